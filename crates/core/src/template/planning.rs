//! What names stand for where a wave is planned: there is no worker yet.

use std::collections::BTreeMap;

use minijinja::Value;

use crate::template::{Binding, Bindings};

/// Bindings of a wave that is being planned.
pub(crate) struct Planning<'a> {
    params: &'a [Value],
    cores: u32,
    /// The function `outputs_of`, if the waves before it are over.
    outputs_of: Value,
}

impl<'a> Planning<'a> {
    /// Of parameters only.
    pub(crate) const fn of(params: &'a [Value]) -> Self {
        Self { params, cores: 0, outputs_of: Value::UNDEFINED }
    }

    /// Of parameters, cores, and the keys that waves put, by their names.
    pub(crate) fn new(
        params: &'a [Value],
        cores: u32,
        outputs: Option<BTreeMap<String, Vec<String>>>,
    ) -> Self {
        let outputs_of = outputs.map_or(Value::UNDEFINED, |outputs| {
            let outputs: BTreeMap<String, Value> =
                outputs.into_iter().map(|(wave, keys)| (wave, Value::from(keys))).collect();
            Value::from_function(move |wave: String| {
                outputs.get(&wave).cloned().unwrap_or_else(|| Value::from(Vec::<Value>::new()))
            })
        });
        Self { params, cores, outputs_of }
    }
}

impl Bindings for Planning<'_> {
    fn value(&self, _name: &str, binding: Binding) -> Value {
        match binding {
            Binding::Param(param) => param_value(self.params, param),
            Binding::Cores => Value::from(self.cores),
            Binding::OutputsOf => self.outputs_of.clone(),
            Binding::Index
            | Binding::Workers
            | Binding::Wave
            | Binding::Group
            | Binding::Place
            | Binding::Attempt
            | Binding::Item
            | Binding::Name
            | Binding::Stem
            | Binding::Ext
            | Binding::Column
            | Binding::Vars
            | Binding::Info
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
