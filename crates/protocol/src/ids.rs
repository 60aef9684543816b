//! Ids: one newtype each, so that they cannot be taken for one another.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $raw);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A worker: one slot of a run, numbered from 0 over all its waves (mu's actor number).
    WorkerId(u32)
}
number! {
    /// One launch of a worker, numbered from 0 within that worker.
    AttemptNo(u32)
}
number! {
    /// An attempt's number within the whole run, in order of launch requests. Its certificate
    /// names it, and every record of the journal speaks of an attempt by it.
    LaunchId(u64)
}
number! {
    /// A command, numbered from 0 within its attempt.
    CommandId(u64)
}

/// A run: 16 random bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 16]);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
