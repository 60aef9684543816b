//! Results: objects of the store that come back to the user's folders at the end.

use std::path::{Path, PathBuf};

use musec_core::{Glob, ResultRule};
use musec_protocol::Place as KeyPlace;

use crate::store::{Place, StoreError};

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The files, in the order of the rules and then of the keys.
    pub files: Vec<PathBuf>,
    /// Globs of rules that matched nothing.
    pub unmatched: Vec<String>,
}

/// Copies what the rules ask for out of `store`; relative folders start at `base`. The part of a
/// key that its rule's glob spells out as folders is left out of the file's path.
pub(crate) async fn bring(
    store: &Place,
    rules: &[ResultRule],
    base: &Path,
) -> Result<Results, StoreError> {
    let mut results = Results::default();
    for rule in rules {
        let glob = Glob::new(KeyPlace::Store, &rule.from).map_err(StoreError::Glob)?;
        let keys = store.list(&glob).await?;
        if keys.is_empty() {
            results.unmatched.push(rule.from.clone());
        }
        for key in keys {
            let below = key.strip_prefix(&glob.folder).unwrap_or(&key).trim_start_matches('/');
            let file = base.join(&rule.to).join(below);
            store.fetch(&key, &file).await?;
            results.files.push(file);
        }
    }
    Ok(results)
}
