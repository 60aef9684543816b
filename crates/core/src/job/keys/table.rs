//! All keys, in the order of the reference page.

use super::{Key, Place, Role, Takes};

const FILE: &[Place] = &[Place::File];
const JOB: &[Place] = &[Place::Job];
const WAVE: &[Place] = &[Place::Wave];
const WORKERS: &[Place] = &[Place::Job, Place::Wave];
const ITEMS: &[Place] = &[Place::Items];
const RESULTS: &[Place] = &[Place::Results];
const STEP: &[Place] = &[Place::Step];

/// Actions that a worker carries out.
const COMMANDS: &[&str] = &["run", "get", "put", "echo", "sleep", "print"];

const fn key(
    name: &'static str,
    places: &'static [Place],
    takes: Takes,
    default: &'static str,
    doc: &'static str,
    example: &'static str,
) -> Key {
    Key { name, places, takes, default, doc, example, role: Role::Other }
}

const fn action(name: &'static str, takes: Takes, doc: &'static str, example: &'static str) -> Key {
    Key { name, places: STEP, takes, default: "", doc, example, role: Role::Action }
}

const fn modifier(
    name: &'static str,
    takes: Takes,
    default: &'static str,
    with: &'static [&'static str],
    doc: &'static str,
    example: &'static str,
) -> Key {
    Key { name, places: STEP, takes, default, doc, example, role: Role::Modifier(with) }
}

/// Every key of this version.
pub(in crate::job) static KEYS: &[Key] = &[
    key(
        "job",
        FILE,
        Takes::Job,
        "",
        "What is said of the run as a whole.",
        "[job]\nworkers = 2\n\n[[step]]\nrun = \"hostname\"",
    ),
    key(
        "params",
        FILE,
        Takes::Table,
        "",
        "Parameters with their defaults, for expressions and `--param NAME=VALUE`. An override is \
         read as its default's type.",
        "[job]\nworkers = \"frames // 2\"\n\n[params]\nframes = 6\n\n[[step]]\nrun = \"echo {{ frames }}\"",
    ),
    key(
        "step",
        &[Place::File, Place::Wave],
        Takes::Steps,
        "",
        "What each worker does (with items: for each item), in order.",
        "[job]\nworkers = 1\n\n[[step]]\nrun = \"date > now\"\n\n[[step]]\nput = \"now\"",
    ),
    key(
        "setup",
        &[Place::File, Place::Wave],
        Takes::Steps,
        "",
        "Steps that each worker does once, before its first item; only where workers take items \
         from a queue. Variables that they set are there for every item, and so are files that they \
         leave in the scratch folder.",
        "[job]\nworkers = 2\nitems = { range = 100 }\n\n[[setup]]\nget = \"in:model.bin\"\n\n[[step]]\nrun = \"./predict model.bin {{ item }}\"",
    ),
    key(
        "wave",
        FILE,
        Takes::Waves,
        "",
        "A set of workers started together. A job without waves has one, named after it.",
        "[[wave]]\nname = \"split\"\nworkers = 1\n[[wave.step]]\nrun = \"split -n 4 big part-\"\n\n[[wave]]\nname = \"work\"\nafter = [\"split\"]\nworkers = 4\n[[wave.step]]\nrun = \"true\"",
    ),
    key(
        "name",
        &[Place::Job, Place::Wave],
        Takes::Name,
        "the file's name without `.toml`; a wave must have one",
        "What the job, or the wave, is called.",
        "name = \"png2y4m\"",
    ),
    key(
        "inputs",
        JOB,
        Takes::Template,
        "the job file's folder",
        "The folder where keys that begin with `in:` are read.",
        "inputs = \"frames/\"",
    ),
    key(
        "store",
        JOB,
        Takes::Template,
        "a folder of the run",
        "The folder, or `file://` URL, where workers get and put objects.",
        "store = \"objects/\"",
    ),
    key(
        "files",
        JOB,
        Takes::Names,
        "[]",
        "Programs and files that are shipped to every host; read-only, and on PATH of every `run`.",
        "files = [\"bin/png2y4m\"]",
    ),
    key(
        "results",
        JOB,
        Takes::Results,
        "nothing comes back",
        "Objects of the store that come back at the end: a folder for all of them, or rules.",
        "results = [{ from = \"y4m/*\", to = \"out/\" }]",
    ),
    key(
        "from",
        RESULTS,
        Takes::Template,
        "**",
        "A glob over the store's keys.",
        "results = { from = \"y4m/*\", to = \"out/\" }",
    ),
    key(
        "to",
        RESULTS,
        Takes::Template,
        "",
        "The folder that takes them.",
        "results = { from = \"**\", to = \"out/\" }",
    ),
    key(
        "keep_scratch",
        JOB,
        Takes::Boolean,
        "false",
        "Whether workers' scratch folders stay when they end.",
        "keep_scratch = true",
    ),
    key(
        "workers",
        WORKERS,
        Takes::Count,
        "one for each item",
        "How many workers: a number, an expression over parameters and `cores`, and in later waves \
         over `outputs_of('wave')`. With `items`, that many take items from one queue.",
        "workers = \"cores * 2\"",
    ),
    key(
        "max_workers",
        WORKERS,
        Takes::Number,
        "1048576",
        "The most workers that an expression, or a number of items, may come to; more are an error.",
        "items = \"in:*.png\"\nmax_workers = 500",
    ),
    key(
        "items",
        WORKERS,
        Takes::Items,
        "",
        "What workers work on, bound as `item`: a glob of the inputs (`in:*.png`) or of the store, \
         an expression that gives a list, or one of `list`, `range`, `glob`, `lines`, `csv`. Of \
         texts, `name`, `stem` and `ext` are bound too.",
        "items = \"in:*.png\"",
    ),
    key("list", ITEMS, Takes::Values, "", "These values.", "items = { list = [\"a\", \"b\", 3] }"),
    key(
        "range",
        ITEMS,
        Takes::Count,
        "",
        "The numbers from 0 up to, without, this one.",
        "workers = 4\nitems = { range = 1000 }",
    ),
    key(
        "glob",
        ITEMS,
        Takes::Template,
        "",
        "Keys that match, sorted by bytes; `in:` for the inputs, else the store.",
        "items = { glob = \"in:**/*.png\" }",
    ),
    key(
        "lines",
        ITEMS,
        Takes::Template,
        "",
        "The lines of a file, without empty ones.",
        "workers = 4\nitems = { lines = \"in:names.txt\" }",
    ),
    key(
        "csv",
        ITEMS,
        Takes::Template,
        "",
        "The rows of a table with a header; each column is bound by its name. Values are integers, \
         floats, booleans or texts; a quoted value is always a text.",
        "[job]\nworkers = 4\nitems = { csv = \"in:table.csv\" }\n\n[[step]]\nrun = \"./render --width {{ width }} {{ scene }}\"",
    ),
    key(
        "at_once",
        WORKERS,
        Takes::Count,
        "all workers; the cores where each item has its own",
        "How many attempts may be alive at a time.",
        "workers = 100\nat_once = \"cores\"",
    ),
    key(
        "only",
        WORKERS,
        Takes::Numbers,
        "all",
        "Numbers of the workers that are launched; the others are left out.",
        "workers = 25\nonly = [3, 17]",
    ),
    key(
        "keep",
        WORKERS,
        Takes::Boolean,
        "false",
        "Whether the scratch folder stays as it is between two items of a worker. Otherwise it is \
         emptied of all but what `setup` left.",
        "workers = 2\nitems = { range = 10 }\nkeep = true",
    ),
    key(
        "timeout",
        WORKERS,
        Takes::Duration,
        "none",
        "The time of each attempt, from its hello; it is what `musec remaining` counts down to.",
        "timeout = \"3m\"",
    ),
    key(
        "connect_timeout",
        WORKERS,
        Takes::Duration,
        "60s",
        "Time from an attempt's launch to its hello.",
        "connect_timeout = \"2m\"",
    ),
    key(
        "after",
        WAVE,
        Takes::Names,
        "[]",
        "Waves that must have ended well before this one starts.",
        "[[wave]]\nname = \"a\"\nworkers = 3\n[[wave.step]]\nrun = \"true\"\n\n[[wave]]\nname = \"b\"\nafter = [\"a\"]\nworkers = 1\n[[wave.step]]\nrun = \"true\"",
    ),
    key(
        "each",
        WAVE,
        Takes::Boolean,
        "false",
        "Whether the wave starts with those before it and takes each item as soon as they have put \
         it. Its `items` are a glob of the store or `{{ outputs_of('wave') }}`: the keys that the \
         waves in `after` put, in order of arrival.",
        "[[wave]]\nname = \"split\"\nworkers = 3\n[[wave.step]]\nput = \"part\"\nas = \"parts/{{ index }}\"\n\n[[wave]]\nname = \"work\"\nafter = [\"split\"]\neach = true\nworkers = 2\nitems = \"parts/*\"\n[[wave.step]]\nget = \"{{ item }}\"",
    ),
    action(
        "run",
        Takes::Command,
        "A text for `/bin/sh -c`, or a program and its arguments.",
        "run = [\"convert\", \"in.png\", \"out.jpg\"]",
    ),
    action(
        "get",
        Takes::Template,
        "Brings an object into the scratch folder: from the inputs if its key begins with `in:`, \
         else from the store. A key that ends with `/` brings a folder, one with `*`, `?`, `[` or \
         `{` outside of `{{ }}` all that match.",
        "get = \"in:{{ '%08d'|format(index) }}.png\"\nas = \"frame.png\"",
    ),
    action(
        "put",
        Takes::Template,
        "Puts a file of the scratch folder into the store. A name that ends with `/` puts a folder, \
         one with `*`, `?`, `[` or `{` outside of `{{ }}` all that match.",
        "put = \"out.y4m\"\nas = \"y4m/{{ index }}.y4m\"",
    ),
    action(
        "set",
        Takes::Table,
        "Gives variables values, at the coordinator: texts are expressions, other values are kept \
         as they are. They are read as `vars.name`.",
        "set = { n = \"index * 2\", size = [640, 480] }",
    ),
    action("echo", Takes::Template, "A round trip: the worker answers.", "echo = \"hello\""),
    action("sleep", Takes::DurationTemplate, "Waits, at the worker.", "sleep = \"2s\""),
    action(
        "print",
        Takes::Template,
        "Shows a file of the scratch folder as the job's answer at the end.",
        "print = \"answer.txt\"",
    ),
    action(
        "do",
        Takes::Steps,
        "Steps in a row; the body of a loop.",
        "do = [{ run = \"make\" }, { put = \"out\" }]",
    ),
    action(
        "break_if",
        Takes::Expression,
        "Leaves the innermost loop if it holds.",
        "for = { k = \"range(10)\" }\ndo = [{ run = \"./try {{ k }}\", expect = \"true\" }, { break_if = \"last.exit == 0\" }]",
    ),
    action(
        "fail",
        Takes::Template,
        "Fails, with this text.",
        "if = \"index > 99\"\nfail = \"there is no part {{ index }}\"",
    ),
    action(
        "done",
        Takes::True,
        "Ends the program here, well; with items it goes on with the next one, and in `setup` with \
         the first.",
        "if = \"index == 0\"\ndone = true",
    ),
    modifier(
        "for",
        Takes::Loop,
        "",
        &["do"],
        "Does `do` once for each value, bound by a name.",
        "for = { k = \"range(3)\" }\ndo = [{ run = \"echo {{ k }}\" }]",
    ),
    modifier(
        "while",
        Takes::Expression,
        "",
        &["do"],
        "Does `do` as long as it holds; it is evaluated before each round.",
        "[job]\nworkers = 1\n\n[[step]]\nset = { error = 1.0 }\n\n[[step]]\nwhile = \"vars.error > 0.01\"\ndo = [{ run = \"./improve\" }, { set = { error = \"last.output|float\" } }]",
    ),
    modifier(
        "if",
        Takes::Expression,
        "",
        &[],
        "Whether the step is done at all.",
        "if = \"index == 0\"\nrun = \"echo first\"",
    ),
    modifier(
        "else",
        Takes::Steps,
        "",
        &[],
        "Steps for when `if` does not hold.",
        "if = \"index == 0\"\nrun = \"echo first\"\nelse = [{ run = \"echo other\" }]",
    ),
    modifier(
        "on_error",
        Takes::Steps,
        "",
        &[],
        "Steps for when the step, or one within it, fails; the program then goes on after it. \
         `last` is the last reply.",
        "run = \"./fetch\"\non_error = [{ run = \"./fetch --from-mirror\" }]",
    ),
    modifier(
        "state",
        Takes::Name,
        "its parent's; the wave's name at the top",
        &[],
        "The state that the step belongs to, for times and paths.",
        "state = \"encode\"\nrun = \"make\"",
    ),
    modifier(
        "name",
        Takes::Name,
        "its action",
        &[],
        "What the step is called in errors.",
        "name = \"compile\"\nrun = \"make\"",
    ),
    modifier(
        "pipelined",
        Takes::Boolean,
        "false",
        &["do"],
        "Sends the commands of `do` one after another without awaiting replies; the worker does them \
         in this order. The first that fails makes the step fail; the others are then cancelled.",
        "for = { k = \"range(1000)\" }\npipelined = true\ndo = [{ echo = \"{{ k }}\" }]",
    ),
    modifier(
        "timeout",
        Takes::Duration,
        "none",
        &["run", "get", "put", "echo", "sleep", "print", "do"],
        "The time of all that the step holds, loops and all.",
        "run = \"make\"\ntimeout = \"90s\"",
    ),
    modifier(
        "expect",
        Takes::Expression,
        "exit code 0, or success",
        COMMANDS,
        "Whether the reply is a success.",
        "run = \"grep -c error log\"\nexpect = \"last.exit in [0, 1]\"",
    ),
    modifier(
        "category",
        Takes::OneOf(&["user", "storage", "peer", "peer_wait", "overhead", "wait"]),
        "that of its action",
        COMMANDS,
        "Where the command's own time is counted.",
        "run = \"aws s3 cp s3://bucket/x .\"\ncategory = \"storage\"",
    ),
    modifier(
        "as",
        Takes::Template,
        "the last part of the key; the file's name",
        &["get", "put"],
        "The file of a `get`, the key of a `put`; the folder of several.",
        "get = \"in:a/b.png\"\nas = \"b.png\"",
    ),
    modifier(
        "range",
        Takes::Template,
        "the whole object",
        &["get"],
        "Bytes of the object: `FROM-TO` (both included), `FROM-`, or `-LAST`.",
        "get = \"in:big.bin\"\nrange = \"{{ index * 1024 }}-{{ index * 1024 + 1023 }}\"",
    ),
    modifier(
        "concurrency",
        Takes::Number,
        "8",
        &["get", "put"],
        "How many objects of a folder or glob are under way at a time.",
        "get = \"in:frames/\"\nconcurrency = 16",
    ),
    modifier(
        "shell",
        Takes::Template,
        "/bin/sh",
        &["run"],
        "The shell of a `run` that is a text.",
        "run = \"echo ${BASH_VERSION}\"\nshell = \"bash\"",
    ),
    modifier(
        "stdin",
        Takes::Template,
        "empty",
        &["run"],
        "A file of the scratch folder that is standard input.",
        "run = \"wc -l\"\nstdin = \"names.txt\"",
    ),
    modifier(
        "stdout",
        Takes::Template,
        "kept by musec, its end shown on failure",
        &["run"],
        "A file of the scratch folder that takes standard output.",
        "run = \"seq 10\"\nstdout = \"numbers.txt\"",
    ),
    modifier(
        "env",
        Takes::Environment,
        "{}",
        &["run"],
        "Variables added to the environment.",
        "run = \"make\"\nenv = { JOBS = 2, TARGET = \"{{ wave }}\" }",
    ),
    modifier(
        "cwd",
        Takes::Template,
        "the scratch folder",
        &["run"],
        "The folder within the scratch folder where it runs.",
        "run = \"make\"\ncwd = \"source\"",
    ),
    modifier(
        "grace",
        Takes::Duration,
        "2s",
        &["run"],
        "Time from TERM to KILL when its time is over.",
        "run = \"./server\"\ntimeout = \"1m\"\ngrace = \"5s\"",
    ),
];
