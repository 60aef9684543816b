//! The keys of steps, in the order of the reference page.

use super::{Key, Place, Role, Takes};

const STEP: &[Place] = &[Place::Step];

/// Actions that a worker carries out.
const COMMANDS: &[&str] = &["run", "get", "put", "echo", "sleep", "print"];

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

/// The keys of steps.
pub(super) static KEYS: &[Key] = &[
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
        "parallel",
        Takes::Lanes,
        "Lanes, each with steps of its own, done at the same time. The step ends when all have ended; \
         when one fails, the others are cancelled and the step fails.",
        "parallel = { a = [{ run = \"./fetch\" }], b = [{ run = \"./prepare\" }] }",
    ),
    action(
        "await",
        Takes::Name,
        "Waits until a background command of this lane has ended, and fails if it has failed. One that \
         was not begun is not waited for.",
        "do = [{ run = \"./compress\", background = true, name = \"zip\" }, { run = \"./count\" }, { await = \"zip\" }]",
    ),
    action(
        "barrier",
        Takes::Name,
        "Waits until all workers of the wave are at the barrier of this name. Workers whose program is \
         over are not waited for. All must be alive together: `at_once` must allow it.",
        "[job]\nworkers = 4\n\n[[step]]\nrun = \"./load\"\n\n[[step]]\nbarrier = \"loaded\"\ntimeout = \"5m\"\n\n[[step]]\nrun = \"./exchange\"",
    ),
    action(
        "wait_info",
        Takes::Name,
        "Waits until code of this worker has said `musec info KEY VALUE`; the value is then `info.KEY`. \
         What was said since the last wait for this key is not waited for.",
        "[job]\nworkers = 1\n\n[[step]]\nrun = \"./serve --on-start 'musec info port'\"\nbackground = true\nname = \"server\"\n\n[[step]]\nwait_info = \"port\"\ntimeout = \"10s\"\n\n[[step]]\nrun = \"./ask --port {{ info.port }}\"",
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
    action(
        "goto",
        Takes::Name,
        "Goes on at the first of the wave's own steps (in `setup`: of those) that names this state, and \
         leaves all loops, time limits and handlers on the way: a new visit. For machines that are no \
         tree; not within lanes and pipelined lists.",
        "[job]\nworkers = 1\n\n[[step]]\nstate = \"ask\"\nrun = \"./ask\"\non_error = [{ goto = \"repair\" }]\n\n[[step]]\ndone = true\n\n[[step]]\nstate = \"repair\"\nrun = \"./repair\"\n\n[[step]]\ngoto = \"ask\"",
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
        "background",
        Takes::Boolean,
        "false",
        COMMANDS,
        "The worker begins the command, and its lane goes on at once. It needs a `name`. It ends with \
         its lane, unless it is awaited before; one of `setup` ends with the worker.",
        "[job]\nworkers = 1\n\n[[step]]\nrun = \"./serve\"\nbackground = true\nname = \"server\"\n\n[[step]]\nrun = \"./ask\"",
    ),
    modifier(
        "first",
        Takes::Boolean,
        "false",
        &["parallel"],
        "The first lane that ends well ends the step; the others are cancelled. The step fails when \
         all lanes have failed.",
        "parallel = { here = [{ run = \"./ask a\" }], there = [{ run = \"./ask b\" }] }\nfirst = true",
    ),
    modifier(
        "scope",
        Takes::OneOf(&["wave", "group"]),
        "wave",
        &["barrier"],
        "Who meets: all workers of the wave, or those of one group (of `group_size`).",
        "[job]\nworkers = 64\ngroup_size = 16\n\n[[step]]\nbarrier = \"row\"\nscope = \"group\"\n\n[[step]]\nrun = \"./next\"",
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
        &[
            "run",
            "get",
            "put",
            "echo",
            "sleep",
            "print",
            "do",
            "parallel",
            "await",
            "wait_info",
            "barrier",
        ],
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
