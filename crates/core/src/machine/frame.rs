//! What a machine remembers of the loops, time limits and guards that it is in: a stack, innermost
//! last.

use std::sync::Arc;
use std::time::Duration;

use musec_trace::CTime;

use crate::duration;
use crate::machine::node_of;
use crate::program::Wave;
use crate::program::node::NodeId;
use crate::template::Value;

/// What a machine is in.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// A loop.
    Loop(Loop),
    /// A time limit.
    Limit(Limit),
    /// A step with a handler for failures within it.
    Guard {
        /// Where the handler begins.
        handler: NodeId,
    },
}

/// A loop that is going on.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    rounds: Rounds,
    taken: u64,
    /// Whether it has come round since the state was last changed. A step that names its state
    /// then begins a new visit.
    pub came_round: bool,
}

/// What a loop goes over.
#[derive(Clone, Debug)]
enum Rounds {
    /// Values, each for the name with this slot.
    Values { values: Sequence, slot: u32 },
    /// As many rounds as a condition wants.
    While,
}

impl Loop {
    pub(super) const fn over(values: Sequence, slot: u32) -> Self {
        Self::new(Rounds::Values { values, slot })
    }

    pub(super) const fn while_it_holds() -> Self {
        Self::new(Rounds::While)
    }

    const fn new(rounds: Rounds) -> Self {
        Self { rounds, taken: 0, came_round: false }
    }

    /// Takes the next value.
    pub(super) fn next_value(&mut self) -> Option<Value> {
        let value = match &self.rounds {
            Rounds::Values { values, .. } => values.value(self.taken)?,
            Rounds::While => return None,
        };
        self.round();
        Some(value)
    }

    /// Notes that another round begins.
    pub(super) const fn round(&mut self) {
        self.came_round = self.taken > 0;
        self.taken += 1;
    }

    /// The slot of its name.
    pub(super) const fn slot(&self) -> Option<u32> {
        match &self.rounds {
            Rounds::Values { slot, .. } => Some(*slot),
            Rounds::While => None,
        }
    }
}

/// The values of a loop. Numbers at equal distances, as `range` makes them, take no room.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sequence {
    Numbers { first: i64, step: i64, count: u64 },
    Values(Arc<[Value]>),
}

impl Sequence {
    /// The values of a list; the keys of a table.
    pub(super) fn of(value: &Value) -> Result<Self, String> {
        use crate::template::ValueKind;
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {}
            ValueKind::Number => {
                return Err(format!(
                    "`for` needs a list, not the number {value}: range({value}) has that many"
                ));
            }
            kind => return Err(format!("`for` needs a list, not a {kind}")),
        }
        let values: Vec<Value> = value
            .try_iter()
            .map_err(|error| error.to_string())?
            .checked()
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Ok(Self::numbers(&values).unwrap_or_else(|| Self::Values(values.into())))
    }

    fn numbers(values: &[Value]) -> Option<Self> {
        if !values.iter().all(Value::is_integer) {
            return None;
        }
        let numbers: Vec<i64> = values.iter().map(Value::as_i64).collect::<Option<_>>()?;
        let first = numbers.first().copied()?;
        let step = match numbers.get(1) {
            Some(second) => second.checked_sub(first)?,
            None => 0,
        };
        let regular = numbers
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if b.checked_sub(*a) == Some(step)));
        regular.then_some(Self::Numbers { first, step, count: numbers.len() as u64 })
    }

    fn value(&self, index: u64) -> Option<Value> {
        match self {
            Self::Numbers { first, step, count } => {
                let index = (index < *count).then(|| i64::try_from(index).ok())??;
                first.checked_add(step.checked_mul(index)?).map(Value::from)
            }
            Self::Values(values) => values.get(usize::try_from(index).ok()?).cloned(),
        }
    }
}

/// A time limit over several steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// When it is over, C.
    pub until: CTime,
    /// How long it is.
    pub limit: Duration,
    /// The node that began it.
    pub node: NodeId,
}

impl Limit {
    /// What to say when it is over.
    pub(super) fn in_words(&self, wave: &Wave) -> String {
        format!(
            "timed out: the {} of `{}` are over",
            duration::in_words(self.limit),
            node_of(wave, self.node).name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &Sequence) -> Vec<Value> {
        (0..).map_while(|index| values.value(index)).collect()
    }

    #[test]
    fn numbers_at_equal_distances_take_no_room_and_come_back_the_same() {
        for numbers in
            [vec![7], vec![0, 1, 2], vec![9, 6, 3, 0, -3], vec![4, 4], vec![i64::MIN, -1]]
        {
            let value = Value::from_iter(numbers.iter().copied());
            let sequence = Sequence::of(&value).unwrap();
            assert!(matches!(sequence, Sequence::Numbers { .. }), "{numbers:?}");
            assert_eq!(all(&sequence), numbers.into_iter().map(Value::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn other_values_are_kept_as_they_are() {
        let mixed = [Value::from(1), Value::from(2.0), Value::from("a")];
        for values in [mixed.to_vec(), vec![], [1, 2, 4].map(Value::from).to_vec()] {
            let sequence = Sequence::of(&Value::from(values.clone())).unwrap();
            assert!(matches!(sequence, Sequence::Values(_)), "{values:?}");
            assert_eq!(all(&sequence), values);
        }
        let far = vec![Value::from(i64::MIN), Value::from(i64::MAX)];
        assert_eq!(all(&Sequence::of(&Value::from(far.clone())).unwrap()), far);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for value in [Value::from(3), Value::from("abc"), Value::from(true), Value::from(())] {
            assert!(Sequence::of(&value).is_err(), "{value:?}");
        }
    }
}
