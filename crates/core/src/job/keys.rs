//! The words of a job file: which keys stand where, and which come with later versions.

/// Keys of one kind of table.
pub(super) struct Keys {
    /// What the table is called in errors.
    pub place: &'static str,
    /// Keys that are known here.
    pub known: &'static [&'static str],
    /// Keys of the grammar that this version does not know yet.
    pub later: &'static [&'static str],
}

pub(super) const TOP: Keys =
    Keys { place: "a job file", known: &["job", "params", "step", "wave"], later: &["setup"] };

pub(super) const JOB: Keys = Keys {
    place: "`[job]`",
    known: &[
        "name",
        "workers",
        "items",
        "at_once",
        "timeout",
        "connect_timeout",
        "inputs",
        "results",
        "files",
        "keep_scratch",
    ],
    later: &[
        "store",
        "run_timeout",
        "retry",
        "fail_fast",
        "allow_failures",
        "speculate",
        "group_size",
        "over_launch",
        "only",
        "max_workers",
        "max_attempts",
        "max_cost",
        "keep",
    ],
};

pub(super) const WAVE: Keys = Keys {
    place: "a wave",
    known: &["name", "after", "step", "workers", "items", "at_once", "timeout", "connect_timeout"],
    later: &[
        "each",
        "setup",
        "retry",
        "fail_fast",
        "allow_failures",
        "speculate",
        "group_size",
        "over_launch",
        "only",
        "max_workers",
        "max_attempts",
        "keep",
    ],
};

pub(super) const ITEMS: Keys =
    Keys { place: "`items`", known: &["list", "range", "glob"], later: &["lines", "csv"] };

pub(super) const RESULTS: Keys = Keys { place: "`results`", known: &["from", "to"], later: &[] };

/// Actions: a step has one of them. `for` stands for its `do`.
pub(super) const ACTIONS: &[&str] = &["run", "get", "put", "set", "echo", "sleep", "print", "do"];

/// Actions that later versions bring.
pub(super) const LATER_ACTIONS: &[&str] =
    &["send", "receive", "parallel", "await", "wait_info", "barrier", "fail", "done"];

pub(super) const STEP: Keys = Keys {
    place: "a step",
    known: &[
        "run", "get", "put", "set", "echo", "sleep", "print", "do", "for", "if", "else", "state",
        "name", "timeout", "expect", "as", "shell", "stdin", "env", "cwd", "stdout", "grace",
    ],
    later: &[
        "send",
        "receive",
        "parallel",
        "await",
        "wait_info",
        "barrier",
        "fail",
        "done",
        "to",
        "from",
        "on",
        "while",
        "break_if",
        "pipelined",
        "background",
        "first",
        "scope",
        "retry",
        "once",
        "on_error",
        "category",
        "range",
        "concurrency",
    ],
};

/// Modifiers that only some actions take, with those actions.
pub(super) const ONLY_WITH: &[(&str, &[&str])] = &[
    ("as", &["get", "put"]),
    ("shell", &["run"]),
    ("stdin", &["run"]),
    ("env", &["run"]),
    ("cwd", &["run"]),
    ("stdout", &["run"]),
    ("grace", &["run"]),
    ("expect", &["run", "get", "put", "echo", "sleep", "print"]),
    ("timeout", &["run", "get", "put", "echo", "sleep", "print", "do"]),
    ("for", &["do"]),
];
