//! The reference page of job files.

use std::fmt::Write as _;

use super::{Key, Place, Role, Takes, all};

/// The reference page, as Markdown: every key with its type, default and a whole job file as an
/// example, from the table of keys that the parser uses.
#[must_use]
pub fn reference_markdown() -> String {
    let mut page = HEAD.to_owned();
    let here = |place: Place| move |key: &&Key| key.places.contains(&place);
    let only_job = |key: &&Key| here(Place::Job)(key) && !here(Place::Wave)(key);
    let both = |key: &&Key| here(Place::Job)(key) && here(Place::Wave)(key);
    let only_wave =
        |key: &&Key| here(Place::Wave)(key) && !here(Place::Job)(key) && !here(Place::File)(key);
    let sections: [Section<'_>; 8] = [
        ("The file", "", &here(Place::File)),
        ("`[job]`", "Relative paths start at the job file's folder.", &only_job),
        (
            "`[job]` and `[[wave]]`",
            "What `[job]` says is the default of all waves. A wave that says its own `workers` does \
             not take over the job's `items`.",
            &both,
        ),
        ("`[[wave]]`", "", &only_wave),
        ("`items = { … }`", "One of these.", &here(Place::Items)),
        ("`results = { … }`", "", &here(Place::Results)),
        ("Actions of steps", "A step has one of these.", &|key| key.role == Role::Action),
        ("Other keys of steps", "Any of these may stand beside the action.", &|key| {
            matches!(key.role, Role::Modifier(_))
        }),
    ];
    for (title, text, belongs) in sections {
        // Writing to a string cannot fail.
        write!(page, "\n## {title}\n").ok();
        if !text.is_empty() {
            write!(page, "\n{text}\n").ok();
        }
        for key in all().filter(belongs) {
            describe(&mut page, key);
        }
    }
    page.push_str(TAIL);
    page
}

/// A title, a text, and which keys belong there.
type Section<'a> = (&'a str, &'a str, &'a dyn Fn(&&Key) -> bool);

fn describe(page: &mut String, key: &Key) {
    write!(page, "\n### `{}`\n\n{}\n\n", key.name, key.doc).ok();
    writeln!(page, "- Takes: {}", in_words(key.takes)).ok();
    if !key.default.is_empty() {
        writeln!(page, "- Default: {}", key.default).ok();
    }
    if let Role::Modifier(actions) = key.role
        && !actions.is_empty()
    {
        let actions: Vec<String> = actions.iter().map(|action| format!("`{action}`")).collect();
        writeln!(page, "- Goes with: {}", actions.join(", ")).ok();
    }
    write!(page, "\n```toml\n{}```\n", key.example_file()).ok();
}

fn in_words(takes: Takes) -> String {
    match takes {
        Takes::Name => "a text, the same for all workers".to_owned(),
        Takes::Template => "a text; `{{ }}` are replaced".to_owned(),
        Takes::Expression => "an expression in quotes".to_owned(),
        Takes::Count => "a number from 1, or an expression in quotes".to_owned(),
        Takes::Number => "a number from 1".to_owned(),
        Takes::Boolean => "`true` or `false`".to_owned(),
        Takes::True => "`true`".to_owned(),
        Takes::Duration => "a duration like `\"90s\"`, `\"2.5s\"`, `\"1h30m\"`".to_owned(),
        Takes::DurationTemplate => "a duration like `\"90s\"`; `{{ }}` are replaced".to_owned(),
        Takes::Names => "a text, or a list of texts".to_owned(),
        Takes::Numbers => "a list of numbers from 0".to_owned(),
        Takes::Values => "a list of any values".to_owned(),
        Takes::OneOf(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
            format!("one of {}", names.join(", "))
        }
        Takes::Table => "a table".to_owned(),
        Takes::Environment => "a table of texts, numbers and booleans".to_owned(),
        Takes::Loop => "a table with one name, and an expression or a list for it".to_owned(),
        Takes::Command => "a text for a shell, or a list of words".to_owned(),
        Takes::Items => "a glob, an expression in `{{ }}`, or a table".to_owned(),
        Takes::Results => "a folder, a table, or a list of these".to_owned(),
        Takes::Steps => "steps: `[[…]]` tables, or a list of inline tables".to_owned(),
        Takes::Lanes => "a table: names, each with a list of steps".to_owned(),
        Takes::Job => "a table".to_owned(),
        Takes::Waves => "tables".to_owned(),
    }
}

const HEAD: &str = "\
# Reference of job files

Every key of a job file, with what it takes, what holds without it, and a job file that uses it.
This page, the check of unknown keys and the [schema for editors](job.schema.json) are made from one
table; don't edit it by hand.
";

const TAIL: &str = "
## Expressions

Expressions and `{{ }}` are [minijinja](https://docs.rs/minijinja)'s. Only `{{ }}` is special in a
text: `${#x}` and `{%` pass as they are, and `{{ '{{' }}` writes two braces. A text that is wholly one
`{{ }}` gives the value itself, with its type. A name that is not bound is an error of the file; a
value that does not exist fails the step.

| name | what it is | where |
|---|---|---|
| each of `[params]` | the parameter | everywhere |
| `index` | the worker's number within its wave, from 0 | steps |
| `workers` | how many workers the wave has | steps, but not of waves with `each` without `workers` |
| `wave` | the wave's name | steps |
| `group`, `place` | the worker's group, and its place within that, from 0 | steps of waves with `group_size` |
| `attempt` | the attempt's number within the worker, from 0 | steps |
| `item` | the item | `[[step]]` of waves with `items` |
| `name`, `stem`, `ext` | of an item that is a text: the last part of the key, without its extension, its extension | as `item` |
| each column | of items that are rows: the row's value | as `item` |
| each name of `for` | the round's value | the loop's `do` |
| `vars` | what `set` has set: `vars.x` | steps |
| `info` | what code of this worker has told, for keys that a step waits for: `info.port` | steps |
| `last` | the last reply: `last.exit`, `last.output`, `last.elapsed_ms` | steps |
| `cores` | processors of this machine | `workers`, `at_once`, `items` |
| `outputs_of('wave')` | the keys that a wave before this one put, sorted by bytes | `workers`, `at_once`, `items` |

Filters are minijinja's, and `md5`. With rows as items, a name that is bound otherwise wins over a
column; a table whose columns are called like musec's own names or like a parameter is refused. When a
table cannot be read before the run, its columns are checked at run time.
";
