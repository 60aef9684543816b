//! Which names are bound where, and what they are bound to.

use std::collections::BTreeMap;

use minijinja::Value;

use crate::job::nearest;
use crate::template::{CompileError, scan};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// A parameter, by its place in `Program::param_values`.
    Param(u32),
    /// The worker's number within its wave.
    Index,
    /// How many workers the wave has.
    Workers,
    /// The wave's name.
    Wave,
    /// The worker's group.
    Group,
    /// Its place within the group.
    Place,
    /// The attempt's number within its worker.
    Attempt,
    /// The item.
    Item,
    /// Last part of the item's key.
    Name,
    /// The same without its last extension.
    Stem,
    /// Its last extension, without the dot.
    Ext,
    /// What `set` steps have set.
    Vars,
    /// A column of the table whose rows are the items, by its name.
    Column,
    /// What user code told.
    Info,
    /// The last reply.
    Last,
    /// A loop's name, by its slot.
    Loop(u32),
    /// How many cores the coordinator's machine has.
    Cores,
    /// A function: the keys that a wave put.
    OutputsOf,
}

/// Values of bindings. Two implementations: a machine, and a wave that is being planned.
pub(crate) trait Bindings {
    /// The value of `name`, which is bound to `binding`; undefined if there is none at this point.
    fn value(&self, name: &str, binding: Binding) -> Value;

    /// Takes note of what an evaluation cost, in the engine's fuel.
    fn spend(&self, _fuel: u64) {}

    /// Whether anything more may be evaluated.
    fn may_go_on(&self) -> bool {
        true
    }
}

/// Names that are reserved, so that no parameter, loop or variable may be called like them: what
/// job files bind, now or later, the engine's own functions and words.
pub(crate) const RESERVED: &[&str] = &[
    "index",
    "workers",
    "wave",
    "attempt",
    "item",
    "name",
    "stem",
    "ext",
    "vars",
    "last",
    "info",
    "group",
    "place",
    "cores",
    "outputs_of",
    "url",
    "md5",
    "range",
    "dict",
    "debug",
    "namespace",
    "loop",
    "self",
    "true",
    "false",
    "none",
    "True",
    "False",
    "None",
    "not",
    "and",
    "or",
    "in",
    "is",
    "if",
    "else",
    "__spent",
];

/// What kind of items a wave has, as far as names depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemNames {
    /// No items.
    None,
    /// Items that are no texts.
    Item,
    /// Texts: they have a name, a stem and an extension.
    Text,
    /// Rows of a table: each column is a name.
    Row,
}

/// The columns of the table whose rows are the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns<'a> {
    /// There is none.
    None,
    /// These.
    Known(&'a [String]),
    /// They are known when the table is read: any name that is not the job's own may be one.
    AtRunTime,
}

/// The names that are bound at one place of a job file.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    names: BTreeMap<&'a str, Binding>,
    vars: &'a [String],
    infos: &'a [String],
    items: ItemNames,
    columns: Columns<'a>,
    /// Waves that come before this one, where a wave is planned.
    before: &'a [String],
    place: Place,
    list: InList,
    /// Names that are not bound here only because of the pipelined list around.
    hidden: Vec<&'a str>,
}

/// Where in a pipelined list a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InList {
    /// Outside of all.
    No,
    /// At its steps, which are taken before replies are there.
    Steps,
    /// At the judgement of a reply, when later steps have been taken.
    Judging,
    /// The same, of a background command.
    Background,
}

/// What a scope is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Texts of the job as a whole.
    Job,
    /// Numbers and items of a wave.
    Plan,
    /// Steps that a worker does once.
    Setup,
    /// Steps.
    Steps,
}

impl<'a> Scope<'a> {
    /// Parameters only.
    pub(crate) fn params<I: IntoIterator<Item = &'a str>>(params: I) -> Self {
        Self {
            names: params.into_iter().zip((0..).map(Binding::Param)).collect(),
            vars: &[],
            infos: &[],
            items: ItemNames::None,
            columns: Columns::None,
            before: &[],
            place: Place::Job,
            list: InList::No,
            hidden: Vec::new(),
        }
    }

    /// Parameters, `cores` and what the waves `before` put: where a wave is planned.
    pub(crate) fn planning(mut self, before: &'a [String]) -> Self {
        self.names.insert("cores", Binding::Cores);
        if !before.is_empty() {
            self.names.insert("outputs_of", Binding::OutputsOf);
        }
        self.before = before;
        self.place = Place::Plan;
        self
    }

    /// The waves whose outputs can be known here.
    pub(super) const fn before(&self) -> &'a [String] {
        self.before
    }

    /// All that a worker's steps may name.
    pub(crate) fn machine(
        mut self,
        items: ItemNames,
        columns: Columns<'a>,
        vars: &'a [String],
    ) -> Self {
        self.names.extend([
            ("index", Binding::Index),
            ("workers", Binding::Workers),
            ("wave", Binding::Wave),
            ("attempt", Binding::Attempt),
            ("vars", Binding::Vars),
            ("last", Binding::Last),
        ]);
        if items != ItemNames::None {
            self.names.insert("item", Binding::Item);
        }
        if items == ItemNames::Text {
            self.names.extend([
                ("name", Binding::Name),
                ("stem", Binding::Stem),
                ("ext", Binding::Ext),
            ]);
        }
        self.vars = vars;
        self.items = items;
        self.columns = columns;
        self.place = Place::Steps;
        self
    }

    /// All that the steps of `setup` may name: a worker has no item yet.
    pub(crate) fn setup(self, vars: &'a [String]) -> Self {
        let mut scope = self.machine(ItemNames::None, Columns::None, vars);
        scope.place = Place::Setup;
        scope
    }

    /// The same with what user code tells, for keys that steps wait for, and with the worker's
    /// group and place, if the wave has groups.
    pub(crate) fn of_wave(mut self, infos: &'a [String], has_groups: bool) -> Self {
        if !infos.is_empty() {
            self.names.insert("info", Binding::Info);
        }
        if has_groups {
            self.names.extend([("group", Binding::Group), ("place", Binding::Place)]);
        }
        self.infos = infos;
        self
    }

    /// The same; without the number of workers, where that is not known before the wave's end.
    pub(crate) fn counted(mut self, is_known: bool) -> Self {
        if !is_known {
            self.names.remove("workers");
        }
        self
    }

    /// The same with a loop's name, which hides an outer one of the same name.
    pub(crate) fn with_loop(&self, name: &'a str, slot: u32) -> Self {
        let mut inner = self.clone();
        inner.names.insert(name, Binding::Loop(slot));
        inner
    }

    /// The same at the steps of a pipelined list.
    pub(crate) fn in_list(&self) -> Self {
        let mut inner = self.clone();
        inner.names.remove("last");
        inner.list = InList::Steps;
        inner.hidden = vec!["last"];
        inner
    }

    /// The same, of a step of a pipelined list that began at `start`, where its reply is judged.
    pub(crate) fn judging(&self, start: &Self) -> Self {
        let mut inner = start.clone();
        inner.names.remove("vars");
        inner.names.remove("info");
        inner.list = InList::Judging;
        let changes = |name: &str| start.names.get(name) != self.names.get(name);
        let loops = self.names.keys().copied().filter(|name| changes(name));
        inner.hidden = loops.chain(["vars", "info"]).collect();
        inner.names.retain(|name, _| *name == "last" || !changes(name));
        inner
    }

    /// The same, of a background command, where its reply is judged.
    pub(crate) fn judging_background(&self) -> Self {
        let mut inner = self.clone();
        inner.list = InList::Background;
        let changes =
            |binding: &Binding| matches!(binding, Binding::Vars | Binding::Info | Binding::Loop(_));
        inner.hidden =
            self.names.iter().filter(|(_, bound)| changes(bound)).map(|(name, _)| *name).collect();
        inner.names.retain(|_, bound| !changes(bound));
        inner.names.insert("last", Binding::Last);
        inner
    }

    pub(super) fn binding(&self, name: &str) -> Option<Binding> {
        if self.hidden.contains(&name) {
            return None;
        }
        let is_column = match self.columns {
            Columns::None => false,
            Columns::Known(columns) => columns.iter().any(|column| column == name),
            Columns::AtRunTime => !["group", "place", "outputs_of"].contains(&name),
        };
        self.names.get(name).copied().or_else(|| is_column.then_some(Binding::Column))
    }

    /// What to say of a name that is not bound: message and cure.
    pub(super) fn unbound(&self, name: &str) -> (String, Option<String>) {
        if self.hidden.contains(&name) {
            return self.hidden_by_list(name);
        }
        let message = format!("`{name}` is not bound");
        let cure = match (name, self.items) {
            ("item" | "name" | "stem" | "ext", _) if self.place == Place::Setup => {
                "`setup` comes before the worker's first item".to_owned()
            }
            ("item" | "name" | "stem" | "ext", ItemNames::None) if self.place == Place::Steps => {
                "it is bound where the wave has `items`".to_owned()
            }
            ("workers", _) if self.place == Place::Steps => {
                "with `each`, how many workers there are is known only at the wave's end".to_owned()
            }
            ("group" | "place", _) if self.place != Place::Plan => {
                "it is bound where the wave has `group_size`".to_owned()
            }
            ("info", _) if self.place != Place::Plan => {
                "it is bound where a step has `wait_info`".to_owned()
            }
            ("outputs_of", _) if self.place == Place::Plan => {
                "name the waves before this one in its `after`".to_owned()
            }
            ("outputs_of", _) => "it is bound in `workers` and `items` of a wave".to_owned(),
            ("name" | "stem" | "ext", ItemNames::Item) => {
                "it is bound where all items are texts".to_owned()
            }
            _ if self.vars.iter().any(|var| var == name) => format!("write `vars.{name}`"),
            _ if self.place == Place::Steps
                && self.items == ItemNames::None
                && nearest(name, self.names.keys().copied().chain(["item"])) == Some("item") =>
            {
                "did you mean `item`? It is bound where the wave has `items`".to_owned()
            }
            _ => match nearest(name, self.names.keys().copied().chain(self.column_names())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bound are {}", self.listed()),
            },
        };
        (message, Some(cure))
    }

    fn hidden_by_list(&self, name: &str) -> (String, Option<String>) {
        match self.list {
            InList::Steps | InList::No => (
                format!("`{name}` is not known in a pipelined list, which does not await replies"),
                Some("put this step after the list, or leave out `pipelined`".to_owned()),
            ),
            InList::Judging => (
                format!("`{name}` may have changed when this reply of a pipelined list comes"),
                Some("name only what stays the same, and `last`; or leave out `pipelined`".into()),
            ),
            InList::Background => (
                format!("`{name}` may have changed when the reply of this command comes"),
                Some("name only what stays the same, and `last`".to_owned()),
            ),
        }
    }

    fn column_names(&self) -> impl Iterator<Item = &'a str> {
        let columns: &'a [String] = match self.columns {
            Columns::Known(columns) => columns,
            Columns::None | Columns::AtRunTime => &[],
        };
        columns.iter().map(String::as_str)
    }

    fn listed(&self) -> String {
        let columns = self.column_names();
        let names: Vec<String> =
            self.names.keys().copied().chain(columns).map(|name| format!("`{name}`")).collect();
        if names.is_empty() {
            "only the job's parameters, and it has none".to_owned()
        } else {
            names.join(", ")
        }
    }

    /// What is wrong with an attribute of `vars` or `last`.
    pub(super) fn wrong_path(&self, source: &str, path: &str) -> Option<CompileError> {
        let (name, rest) = path.split_once('.')?;
        let attribute = rest.split('.').next().unwrap_or_default();
        let known: Vec<&str> = match self.binding(name) {
            Some(Binding::Vars) => self.vars.iter().map(String::as_str).collect(),
            Some(Binding::Info) => self.infos.iter().map(String::as_str).collect(),
            Some(Binding::Last) => vec!["exit", "output", "elapsed_ms"],
            Some(_) | None => return None,
        };
        if known.contains(&attribute) {
            return None;
        }
        let cure = match nearest(attribute, known.iter().copied()) {
            Some(near) => format!("did you mean `{name}.{near}`?"),
            None if name == "info" => {
                format!("wait for it first: `wait_info = \"{attribute}\"`")
            }
            None if known.is_empty() => {
                format!("give it a value first: `set = {{ {attribute} = \"…\" }}`")
            }
            None => format!("known are {}", known.join(", ")),
        };
        let message = if name == "info" {
            format!("no step waits for `{name}.{attribute}`")
        } else if name == "vars" {
            format!("no step sets `{name}.{attribute}`")
        } else {
            format!("there is no `{name}.{attribute}`")
        };
        Some(CompileError {
            range: scan::find_path(source, &format!("{name}.{attribute}")),
            message,
            cure: Some(cure),
            is_syntax: false,
        })
    }
}
