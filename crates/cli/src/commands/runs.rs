//! `musec runs`: all runs of a folder, with what became of them and how much room they take.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use musec_analysis::{RunRow, format_ns, run_row};
use serde::Serialize;

use crate::args::{Format, Places, RunsArgs};
use crate::error::CliError;
use crate::output::{complain, print, print_json};
use crate::runs::{FoundRun, list};
use crate::terminal::figures::{bytes, utc};
use crate::terminal::look::Look;
use crate::terminal::page::{Page, clean, short};

/// Fewer characters of an id would look like a number.
const ID_CHARS_MIN: usize = 8;

/// Columns of a job's name.
const JOB_COLUMNS: usize = 16;

/// All runs, as JSON.
#[derive(Serialize)]
struct Runs {
    schema: u32,
    runs: Vec<Row>,
}

/// One run, as JSON.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Sound {
        #[serde(flatten)]
        run: RunRow,
        size_bytes: u64,
    },
    /// Its journal cannot be read to its end.
    Damaged {
        run: String,
        job: String,
        launcher: String,
        status: &'static str,
        started_wall_ns: u64,
        error: String,
        size_bytes: u64,
    },
}

/// Prints one line for each run, the newest first.
pub(crate) fn runs(places: &Places, args: &RunsArgs) -> Result<ExitCode, CliError> {
    let rows: Vec<Row> = list(&places.runs)?.iter().map(row).collect();
    match args.format {
        Format::Json => print_json(&Runs { schema: 1, runs: rows })?,
        Format::Human if rows.is_empty() => {
            complain(&format!("no run in {}; start one with `musec run`", places.runs.display()));
        }
        Format::Human => print(table(&rows, &Look::of_stdout()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn row(run: &FoundRun) -> Row {
    let size_bytes = size(run.folder.root());
    match run.read() {
        Ok(read) => {
            let mut row = run_row(&read.trace, read.liveness);
            if read.trace.run().is_none() {
                // Nothing was recorded yet: the manifest knows more.
                row.run.clone_from(&run.manifest.run);
                row.job.clone_from(&run.manifest.job);
                row.launcher.clone_from(&run.manifest.launcher);
                row.started_wall_ns = run.manifest.created_wall_ns;
            }
            Row::Sound { run: row, size_bytes }
        }
        Err(error) => Row::Damaged {
            run: run.manifest.run.clone(),
            job: run.manifest.job.clone(),
            launcher: run.manifest.launcher.clone(),
            status: "damaged",
            started_wall_ns: run.manifest.created_wall_ns,
            error: with_causes(&error),
            size_bytes,
        },
    }
}

fn with_causes(error: &CliError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Bytes of all files below `folder`; links are not followed, and what cannot be read counts 0.
pub(crate) fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => size(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    sizes.fold(0, u64::saturating_add)
}

fn table(rows: &[Row], look: &Look) -> String {
    let ids: Vec<&str> = rows.iter().map(Row::id).collect();
    let chars = unique_chars(&ids);
    let mut page = Page::new(look);
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(row, chars)).collect();
    page.rows(&["<run", "<job", "<started", "<status", "done", "makespan", "size"], &lines);
    for row in rows {
        if let Row::Damaged { run, error, .. } = row {
            page.sentence(None, &format!("{}  ", id(run, chars)), &clean(error));
        }
    }
    page.into_text()
}

fn line(row: &Row, chars: usize) -> Vec<String> {
    match row {
        Row::Sound { run, size_bytes } => vec![
            id(&run.run, chars),
            short(&run.job, JOB_COLUMNS),
            utc(run.started_wall_ns).replace(" UTC", "Z"),
            run.status.name().to_owned(),
            format!("{}/{}", run.workers.done, run.workers.total),
            format_ns(run.makespan_ns.into()),
            bytes((*size_bytes).into()),
        ],
        Row::Damaged { run, job, status, started_wall_ns, size_bytes, .. } => vec![
            id(run, chars),
            short(job, JOB_COLUMNS),
            utc(*started_wall_ns).replace(" UTC", "Z"),
            (*status).to_owned(),
            "–".to_owned(),
            "–".to_owned(),
            bytes((*size_bytes).into()),
        ],
    }
}

fn id(run: &str, chars: usize) -> String {
    run.chars().take(chars).collect()
}

/// How many characters tell all ids apart.
fn unique_chars(ids: &[&str]) -> usize {
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    let is_unique = |chars: &usize| {
        let mut seen = BTreeSet::new();
        ids.iter().all(|run| seen.insert(id(run, *chars)))
    };
    (ID_CHARS_MIN..longest).find(is_unique).unwrap_or(longest)
}

impl Row {
    fn id(&self) -> &str {
        match self {
            Self::Sound { run, .. } => &run.run,
            Self::Damaged { run, .. } => run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_tells_them_apart() {
        assert_eq!(unique_chars(&["0123456789ab", "1123456789ab"]), 8);
        assert_eq!(unique_chars(&["0123456789ab", "0123456789ac"]), 12);
        assert_eq!(unique_chars(&["0123456789ab", "0123456780ab"]), 10);
        assert_eq!(unique_chars(&[]), 0);
        assert_eq!(unique_chars(&["01"]), 2);
    }
}
