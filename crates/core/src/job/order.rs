//! The order of waves: which come after which.

use std::ops::Range;

use toml::de::DeValue;

use crate::job::context::{Context, Spot, listed};
use crate::job::nearest;
use crate::program::WaveId;

/// A wave's name and the names that it comes after, with their places.
pub(super) struct Order<'v, 't> {
    pub name: String,
    pub name_span: Range<usize>,
    pub after: Vec<(&'v str, &'v Spot<'t>)>,
}

/// The texts in `after`, whatever they are.
pub(super) fn names<'v>(value: &'v Spot<'_>) -> Vec<&'v str> {
    match value.get_ref() {
        DeValue::Array(values) => values.iter().filter_map(|v| v.get_ref().as_str()).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// The names in `after`.
pub(super) fn after<'v, 't>(
    cx: &mut Context<'t>,
    value: Option<&'v Spot<'t>>,
) -> Vec<(&'v str, &'v Spot<'t>)> {
    let Some(value) = value else {
        return Vec::new();
    };
    let values: Vec<&'v Spot<'t>> = match value.get_ref() {
        DeValue::String(_) => vec![value],
        DeValue::Array(values) => values.iter().collect(),
        _ => {
            cx.wrong_type("after", value, "a list of waves' names");
            return Vec::new();
        }
    };
    values.into_iter().filter_map(|value| Some((cx.text("after", value)?, value))).collect()
}

/// Turns names into numbers; notes names that are given twice or to no wave, and waves that wait
/// for themselves.
pub(super) fn resolve(cx: &mut Context<'_>, waves: &[Order<'_, '_>]) -> Vec<Vec<WaveId>> {
    let names: Vec<&str> = waves.iter().map(|wave| wave.name.as_str()).collect();
    let ids = |name: &str| (0..).map(WaveId).zip(&names).find(|(_, known)| **known == name);
    let mut resolved = Vec::new();
    for (number, wave) in waves.iter().enumerate() {
        let first = names.iter().position(|name| *name == wave.name);
        if first != Some(number) {
            let message = format!("there are two waves `{}`", wave.name);
            let cure = Some("give one of them another name".to_owned());
            cx.error(wave.name_span.clone(), message, cure);
        }
        let mut after = Vec::new();
        for (name, spot) in &wave.after {
            match ids(name) {
                Some((id, _)) if after.contains(&id) => {}
                Some((id, _)) => after.push(id),
                None => {
                    let cure = match nearest(name, names.iter().copied()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("the waves are {}", listed(&names)),
                    };
                    cx.error(spot.span(), format!("no wave is called `{name}`"), Some(cure));
                }
            }
        }
        resolved.push(after);
    }
    for cycle in cycles(&resolved) {
        let Some(first) = cycle.first().and_then(|id| waves.get(*id)) else {
            continue;
        };
        let path: Vec<&str> =
            cycle.iter().chain(cycle.first()).filter_map(|id| names.get(*id).copied()).collect();
        let message = format!("these waves wait for each other: {}", path.join(" → "));
        let span = first.after.first().map_or(0..0, |(_, spot)| spot.span());
        cx.error(span, message, Some("take one out of its `after`".to_owned()));
    }
    resolved
}

/// Cycles among waves, each told once, from its first wave on.
fn cycles(after: &[Vec<WaveId>]) -> Vec<Vec<usize>> {
    let next = |wave: usize| {
        after.get(wave).into_iter().flatten().filter_map(|id| usize::try_from(id.0).ok())
    };
    let mut done = vec![false; after.len()];
    let mut cycles: Vec<Vec<usize>> = Vec::new();
    for start in 0..after.len() {
        if done.get(start) == Some(&true) {
            continue;
        }
        // A path from `start` on, with what is left to be tried at each of its waves.
        let mut path: Vec<(usize, Vec<usize>)> = vec![(start, next(start).collect())];
        while let Some((wave, rest)) = path.last_mut() {
            let wave = *wave;
            let Some(step) = rest.pop() else {
                if let Some(done) = done.get_mut(wave) {
                    *done = true;
                }
                path.pop();
                continue;
            };
            if let Some(at) = path.iter().position(|(known, _)| *known == step) {
                let cycle: Vec<usize> = path.iter().skip(at).map(|(wave, _)| *wave).collect();
                cycles.push(cycle);
            } else if done.get(step) == Some(&false) {
                path.push((step, next(step).collect()));
            }
        }
    }
    cycles
}

/// Names of all waves that come before each, however far.
pub(super) fn before(names: &[&str], after: &[Vec<WaveId>]) -> Vec<Vec<String>> {
    let all = (0..names.len()).map(|wave| {
        let mut seen = vec![false; names.len()];
        let mut todo = vec![wave];
        while let Some(wave) = todo.pop() {
            for id in after.get(wave).into_iter().flatten() {
                let Ok(index) = usize::try_from(id.0) else { continue };
                if let Some(seen) = seen.get_mut(index)
                    && !std::mem::replace(seen, true)
                {
                    todo.push(index);
                }
            }
        }
        let names = names.iter().zip(seen).filter(|(_, seen)| *seen);
        names.map(|(name, _)| (*name).to_owned()).collect()
    });
    all.collect()
}
