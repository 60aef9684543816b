//! All keys but those of steps, in the order of the reference page.

use super::{Key, Place, Role, Takes};

const FILE: &[Place] = &[Place::File];
const JOB: &[Place] = &[Place::Job];
const WAVE: &[Place] = &[Place::Wave];
const WORKERS: &[Place] = &[Place::Job, Place::Wave];
const ITEMS: &[Place] = &[Place::Items];
const RESULTS: &[Place] = &[Place::Results];

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

/// The keys of a file, of `[job]`, waves, items and results.
pub(super) static KEYS: &[Key] = &[
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
        "group_size",
        WORKERS,
        Takes::Number,
        "",
        "Puts the workers into groups of so many, for `group`, `place` and barriers of a group. All \
         groups' first places are filled first: worker `index` is in group `index % groups`, at place \
         `index // groups`.",
        "[job]\nworkers = 64\ngroup_size = 16\n\n[[step]]\nrun = \"./cell --of {{ group }} --at {{ place }}\"",
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
];
