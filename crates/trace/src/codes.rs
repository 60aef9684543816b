//! Causes, ends, outcomes and the like: closed lists, each with its number in the journal, which is
//! never given to another, and its name as it is shown.

macro_rules! coded {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $code:literal $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its number in the journal.
            #[must_use]
            pub const fn code(self) -> u32 {
                match self { $(Self::$variant => $code,)* }
            }

            /// The one with this number in the journal.
            #[must_use]
            pub const fn from_code(code: u32) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// Its name, as it is shown.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

coded! {
    /// Why a machine moved.
    Cause {
        /// The program's beginning.
        Start = 1 "start",
        /// A step was done.
        Done = 2 "done",
        /// A step failed.
        Failed = 3 "failed",
        /// The attempt was ended from outside.
        Stopped = 4 "stopped",
        /// Another lane decided that this one is not needed.
        Cancelled = 5 "cancelled",
    }
}
coded! {
    /// Where a step may say that the time of its command goes.
    StepCategory {
        /// The user's own code.
        User = 1 "user",
        /// Objects to and from a store.
        Storage = 2 "storage",
        /// Bytes between workers.
        Peer = 3 "peer",
        /// Waiting for another worker's bytes.
        PeerWait = 4 "peer_wait",
        /// What is not the job's own work.
        Overhead = 5 "overhead",
        /// Waiting.
        Wait = 6 "wait",
    }
}
coded! {
    /// What a program waits for outside of its commands.
    WaitReason {
        /// Its queue has no item now, but may get one back.
        Item = 1 "item",
        /// It is no longer needed.
        Dismissal = 2 "dismissal",
        /// A barrier.
        Barrier = 3 "barrier",
        /// An info of user code.
        Info = 4 "info",
        /// Other lanes.
        Join = 5 "join",
        /// A background command.
        Await = 6 "await",
    }
}
coded! {
    /// Deadlines.
    Timer {
        /// A launched attempt has not connected.
        Connect = 1 "connect_timeout",
        /// An attempt's time is over.
        Attempt = 2 "timeout",
        /// A frozen worker is given up.
        Frozen = 3 "frozen",
        /// A worker that was told to quit is still there.
        Quit = 4 "quit",
        /// The run's time is over.
        Run = 5 "run_timeout",
        /// The time limit of a step or state is over.
        Step = 6 "step timeout",
        /// An attempt that is slow to connect makes room for another launch.
        Start = 7 "start",
    }
}
coded! {
    /// What ended an attempt.
    EndCause {
        /// The connection closed.
        Closed = 1 "connection closed",
        /// The launcher told of its exit.
        Exited = 2 "exited",
        /// It gave no sign of life.
        Silent = 3 "silent",
        /// It did not connect in time.
        NeverConnected = 4 "never connected",
        /// The launcher could not start it.
        NotLaunched = 5 "not launched",
        /// What it sent broke the protocol.
        Protocol = 6 "protocol broken",
        /// The coordinator stopped.
        Stopped = 7 "stopped",
    }
}
coded! {
    /// What came of an attempt.
    AttemptOutcome {
        /// Its program ended well.
        Done = 1 "done",
        /// A step failed.
        Failed = 2 "failed",
        /// It was ended from outside.
        Killed = 3 "killed",
        /// It vanished.
        Lost = 4 "lost",
        /// It never connected.
        NeverConnected = 5 "never connected",
        /// Another attempt won.
        Superseded = 6 "superseded",
        /// It was not needed.
        Dismissed = 7 "dismissed",
    }
}
coded! {
    /// How a run ended.
    RunStatus {
        /// All workers done, or failures within what is allowed.
        Done = 1 "done",
        /// Some worker failed.
        Failed = 2 "failed",
        /// It was told to stop.
        Interrupted = 3 "interrupted",
    }
}
coded! {
    /// A process's output.
    Stream {
        /// Standard output.
        Stdout = 1 "stdout",
        /// Standard error.
        Stderr = 2 "stderr",
    }
}
