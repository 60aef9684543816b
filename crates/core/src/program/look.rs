//! What has to be looked at before a wave can be planned: keys that match a glob, or a file.
//!
//! In: a wave. Out: what to look at, for whoever can reach the stores; what was seen comes back to
//! [`Program::plan`]. No I/O.

use globset::{GlobBuilder, GlobMatcher};
use musec_protocol::Place;
use musec_protocol::limits::GLOB_BYTES_MAX;

use crate::program::node::place_of;
use crate::program::{Items, PlanError, Program, WaveId};
use crate::template::{Planning, Template};

/// Characters of a glob that is too long, in its error.
const SHOWN_CHARS: usize = 60;

/// What to look at.
#[derive(Clone, Debug)]
pub enum Look {
    /// Which keys match.
    Keys(Glob),
    /// What stands in a file; at most [`crate::limits::ITEMS_TEXT_BYTES_MAX`] of it.
    Text {
        /// Where.
        place: Place,
        /// The file's key, without `in:`.
        key: String,
    },
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Keys without `in:`; those that do not match are passed over.
    Keys(Vec<String>),
    /// The whole file.
    Text(Vec<u8>),
}

/// Keys to be looked for.
#[derive(Clone, Debug)]
pub struct Glob {
    /// Where.
    pub place: Place,
    /// The pattern, without `in:`.
    pub pattern: String,
    /// The folder that holds all that can match, without a slash at its end; empty for all. Nothing
    /// outside of it needs to be listed.
    pub folder: String,
    matcher: GlobMatcher,
}

impl Glob {
    /// Compiles a glob. `*` and `?` stop at slashes, `**` does not.
    ///
    /// # Errors
    /// When it is not a glob.
    pub fn new(place: Place, pattern: &str) -> Result<Self, PlanError> {
        if pattern.len() > GLOB_BYTES_MAX {
            return Err(PlanError::Glob {
                pattern: pattern.chars().take(SHOWN_CHARS).chain(['…']).collect(),
                why: format!("it is longer than {GLOB_BYTES_MAX} bytes"),
            });
        }
        let matcher = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| PlanError::Glob {
                pattern: pattern.to_owned(),
                why: error.kind().to_string(),
            })?
            .compile_matcher();
        let literal = pattern
            .find(['*', '?', '[', '{', '\\'])
            .map_or(pattern, |at| pattern.get(..at).unwrap_or_default());
        let folder = literal.rfind('/').and_then(|at| literal.get(..at));
        Ok(Self {
            place,
            pattern: pattern.to_owned(),
            folder: folder.unwrap_or_default().to_owned(),
            matcher,
        })
    }

    /// Whether a key (without `in:`) matches.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        self.matcher.is_match(key)
    }

    /// Whether a path matches, whatever bytes it has.
    #[must_use]
    pub fn matches_path(&self, path: &std::path::Path) -> bool {
        self.matcher.is_match(path)
    }

    /// The keys that match, sorted by bytes, each once.
    #[must_use]
    pub fn select<I: IntoIterator<Item = String>>(&self, keys: I) -> Vec<String> {
        let mut keys: Vec<String> = keys.into_iter().filter(|key| self.matches(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl Program {
    /// What has to be looked at before this wave can be planned; `None` if nothing has.
    ///
    /// # Errors
    /// When there is no such wave, its glob is none, or a key cannot be evaluated.
    pub fn look(&self, wave: WaveId) -> Result<Option<Look>, PlanError> {
        let def = self.wave(wave).ok_or(PlanError::NoWave(wave.0))?;
        let text = |template: &Template| {
            template.text(&Planning::of(&self.param_values)).map_err(|why| PlanError::Glob {
                pattern: template.source().to_owned(),
                why: why.to_string(),
            })
        };
        match &def.items {
            Some(Items::Glob { .. }) if def.each => Ok(None),
            Some(Items::Glob { .. }) => Ok(self.glob(wave)?.map(Look::Keys)),
            Some(Items::Lines { key } | Items::Csv { key }) => {
                let key = text(key)?;
                let (place, key) = place_of(&key);
                Ok(Some(Look::Text { place, key: key.to_owned() }))
            }
            Some(Items::List(_) | Items::Bytes(_) | Items::Range(_) | Items::Values(_)) | None => {
                Ok(None)
            }
        }
    }

    /// The glob of this wave's items, if they are one.
    ///
    /// # Errors
    /// When there is no such wave, or its glob is none.
    pub fn glob(&self, wave: WaveId) -> Result<Option<Glob>, PlanError> {
        let def = self.wave(wave).ok_or(PlanError::NoWave(wave.0))?;
        match &def.items {
            Some(Items::Glob { place, pattern }) => {
                let pattern = pattern.text(&Planning::of(&self.param_values)).map_err(|why| {
                    PlanError::Glob { pattern: pattern.source().to_owned(), why: why.to_string() }
                })?;
                let (place, pattern) = match place_of(&pattern) {
                    (Place::Inputs, rest) => (Place::Inputs, rest),
                    (Place::Store, pattern) => (*place, pattern),
                };
                Glob::new(place, pattern).map(Some)
            }
            Some(
                Items::List(_)
                | Items::Bytes(_)
                | Items::Range(_)
                | Items::Values(_)
                | Items::Lines { .. }
                | Items::Csv { .. },
            )
            | None => Ok(None),
        }
    }
}
