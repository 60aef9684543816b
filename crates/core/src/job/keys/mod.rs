//! The words of a job file: every key, where it stands, what it takes. The one source for the check
//! of unknown keys, the reference page and the schema for editors.

mod later;
mod reference;
mod schema;
mod steps;
mod table;

pub(super) use later::LATER;
pub use reference::reference_markdown;
pub use schema::json_schema;

/// Tables of a job file, by what keys they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    File,
    Job,
    Wave,
    Items,
    Results,
    Step,
}

impl Place {
    /// What the table is called in errors.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::File => "a job file",
            Self::Job => "`[job]`",
            Self::Wave => "a wave",
            Self::Items => "`items`",
            Self::Results => "`results`",
            Self::Step => "a step",
        }
    }

    /// The keys that are known here.
    pub(super) fn keys(self) -> impl Iterator<Item = &'static Key> {
        all().filter(move |key| key.places.contains(&self))
    }

    /// Their names.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        self.keys().map(|key| key.name)
    }

    /// The key of this name.
    pub(super) fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    /// Whether a later version brings this key.
    pub(super) fn comes_later(self, name: &str) -> bool {
        LATER.iter().any(|later| later.name == name && later.places.contains(&self))
    }
}

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub places: &'static [Place],
    pub takes: Takes,
    /// What holds without it; empty if nothing does.
    pub default: &'static str,
    /// What it means, for people.
    pub doc: &'static str,
    /// A job file that uses it, or the part of one: [`Key::example_file`].
    pub example: &'static str,
    pub role: Role,
}

/// What a key of a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No key of a step.
    Other,
    /// A step has one of these.
    Action,
    /// It goes with these actions; with all if there are none.
    Modifier(&'static [&'static str]),
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// A text that is the same for all workers.
    Name,
    /// A text; `{{ }}` are replaced.
    Template,
    /// An expression in quotes.
    Expression,
    /// A number, or an expression in quotes.
    Count,
    /// A number from 1.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `true` only.
    True,
    /// A duration.
    Duration,
    /// A duration; `{{ }}` are replaced.
    DurationTemplate,
    /// A text, or a list of texts.
    Names,
    /// A list of numbers from 0.
    Numbers,
    /// A list of any values.
    Values,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// Any table.
    Table,
    /// A table of texts, numbers and booleans.
    Environment,
    /// A table with one name, and its expression or list.
    Loop,
    /// A command for a shell, or words.
    Command,
    /// A glob, or a table of [`Place::Items`].
    Items,
    /// A folder, a table of [`Place::Results`], or a list of these.
    Results,
    /// Tables of [`Place::Step`].
    Steps,
    /// A table with names, and tables of [`Place::Step`] for each.
    Lanes,
    /// The table of [`Place::Job`].
    Job,
    /// Tables of [`Place::Wave`].
    Waves,
}

/// A key that a later version brings.
#[derive(Debug)]
pub(super) struct Later {
    pub name: &'static str,
    pub places: &'static [Place],
    pub is_action: bool,
}

/// Every key of this version.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    table::KEYS.iter().chain(steps::KEYS)
}

/// The actions of steps.
pub(super) fn actions() -> impl Iterator<Item = &'static str> {
    all().filter(|key| key.role == Role::Action).map(|key| key.name)
}

/// Whether a later version brings this action.
pub(super) fn is_later_action(name: &str) -> bool {
    LATER.iter().any(|later| later.is_action && later.name == name)
}

impl Key {
    /// A whole job file that uses it.
    pub(super) fn example_file(&self) -> String {
        let example = self.example;
        if example.contains("[job]") || example.contains("[[wave]]") {
            return format!("{example}\n");
        }
        if self.places.contains(&Place::Step) {
            return format!("[job]\nworkers = 1\n\n[[step]]\n{example}\n");
        }
        let counts = ["workers", "items"];
        let has_count = example
            .lines()
            .filter_map(|line| line.split(" = ").next())
            .any(|name| counts.contains(&name));
        let workers = if has_count { "" } else { "workers = 1\n" };
        format!("[job]\n{workers}{example}\n\n[[step]]\nrun = \"true\"\n")
    }
}
