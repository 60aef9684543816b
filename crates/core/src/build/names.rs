//! Names as values. Written into an expression, each is what it stands for there.

use std::fmt;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(&'static str);

        impl $name {
            /// The one with this name. That it can be one is checked when the job is built.
            #[must_use]
            pub const fn named(name: &'static str) -> Self {
                Self(name)
            }

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

name!(
    /// A state: what times and paths are told by, and where a `goto` leads.
    State,
    "{}"
);
name!(
    /// A variable; in an expression `vars.name`.
    Var,
    "vars.{}"
);
name!(
    /// The name that a loop binds; in an expression itself.
    Loop,
    "{}"
);
name!(
    /// What code of the worker tells with `musec info`; in an expression `info.key`.
    Info,
    "info.{}"
);
name!(
    /// A command in the background.
    Task,
    "{}"
);
