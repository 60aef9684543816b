//! Which names are bound where, and what they are bound to.

use std::collections::BTreeMap;

use minijinja::Value;

use crate::job::nearest;
use crate::program::Program;
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
    /// The last reply.
    Last,
    /// A loop's name, by its slot.
    Loop(u32),
    /// How many cores the coordinator's machine has.
    Cores,
}

/// Values of bindings. Two implementations: a machine, and a wave that is being planned.
pub(crate) trait Bindings {
    /// The value; undefined if there is none at this point.
    fn value(&self, binding: Binding) -> Value;
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
];

/// Names that later versions bind.
const LATER: &[&str] = &["info", "group", "place", "outputs_of"];

/// What kind of items a wave has, as far as names depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemNames {
    /// No items.
    None,
    /// Items that are no texts.
    Item,
    /// Texts: they have a name, a stem and an extension.
    Text,
}

/// The names that are bound at one place of a job file.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    names: BTreeMap<&'a str, Binding>,
    vars: &'a [String],
    items: ItemNames,
    machine: bool,
}

impl<'a> Scope<'a> {
    /// Parameters only.
    pub(crate) fn params<I: IntoIterator<Item = &'a str>>(params: I) -> Self {
        Self {
            names: params.into_iter().zip((0..).map(Binding::Param)).collect(),
            vars: &[],
            items: ItemNames::None,
            machine: false,
        }
    }

    /// Parameters and `cores`: where a wave is planned.
    pub(crate) fn planning(mut self) -> Self {
        self.names.insert("cores", Binding::Cores);
        self
    }

    /// All that a worker's steps may name.
    pub(crate) fn machine(mut self, items: ItemNames, vars: &'a [String]) -> Self {
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
        self.machine = true;
        self
    }

    /// The same with a loop's name, which hides an outer one of the same name.
    pub(crate) fn with_loop(&self, name: &'a str, slot: u32) -> Self {
        let mut inner = self.clone();
        inner.names.insert(name, Binding::Loop(slot));
        inner
    }

    pub(super) fn binding(&self, name: &str) -> Option<Binding> {
        self.names.get(name).copied()
    }

    /// What to say of a name that is not bound: message and cure.
    pub(super) fn unbound(&self, name: &str) -> (String, Option<String>) {
        if LATER.contains(&name) {
            return (format!("`{name}` is not yet supported"), None);
        }
        let message = format!("`{name}` is not bound");
        let cure = match (name, self.items) {
            ("item" | "name" | "stem" | "ext", ItemNames::None) if self.machine => {
                "it is bound where the wave has `items`".to_owned()
            }
            ("name" | "stem" | "ext", ItemNames::Item) => {
                "it is bound where all items are texts".to_owned()
            }
            _ if self.vars.iter().any(|var| var == name) => format!("write `vars.{name}`"),
            _ if self.machine
                && self.items == ItemNames::None
                && nearest(name, self.names.keys().copied().chain(["item"])) == Some("item") =>
            {
                "did you mean `item`? It is bound where the wave has `items`".to_owned()
            }
            _ => match nearest(name, self.names.keys().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("bound are {}", self.listed()),
            },
        };
        (message, Some(cure))
    }

    fn listed(&self) -> String {
        let names: Vec<String> = self.names.keys().map(|name| format!("`{name}`")).collect();
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
            Some(Binding::Last) => vec!["exit", "output", "elapsed_ms"],
            Some(_) | None => return None,
        };
        if known.contains(&attribute) {
            return None;
        }
        let cure = match nearest(attribute, known.iter().copied()) {
            Some(near) => format!("did you mean `{name}.{near}`?"),
            None if known.is_empty() => {
                format!("give it a value first: `set = {{ {attribute} = \"…\" }}`")
            }
            None => format!("known are {}", known.join(", ")),
        };
        let message = if name == "vars" {
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

/// Bindings of a wave that is being planned.
pub(crate) struct Planning<'a> {
    pub params: &'a [Value],
    pub cores: u32,
}

impl<'a> Planning<'a> {
    pub(crate) fn new(program: &'a Program, cores: u32) -> Self {
        Self { params: &program.param_values, cores }
    }
}

impl Bindings for Planning<'_> {
    fn value(&self, binding: Binding) -> Value {
        match binding {
            Binding::Param(param) => param_value(self.params, param),
            Binding::Cores => Value::from(self.cores),
            Binding::Index
            | Binding::Workers
            | Binding::Wave
            | Binding::Attempt
            | Binding::Item
            | Binding::Name
            | Binding::Stem
            | Binding::Ext
            | Binding::Vars
            | Binding::Last
            | Binding::Loop(_) => Value::UNDEFINED,
        }
    }
}

/// A parameter's value.
pub(crate) fn param_value(params: &[Value], param: u32) -> Value {
    usize::try_from(param)
        .ok()
        .and_then(|param| params.get(param))
        .cloned()
        .unwrap_or(Value::UNDEFINED)
}
