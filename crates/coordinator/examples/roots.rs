//! A job that is built in Rust and run with local workers. Each of three workers improves its guess
//! of the square root of its number until it is good, and puts it into the store; then one worker
//! shows all of them.
//!
//! `cargo run -p musec-coordinator --example roots -- target/debug/musec`, or with the path in
//! `MUSEC_WORKER_PROGRAM`. Then `musec report` and `musec graph .musec/runs/ID/job.toml`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use musec_coordinator::build::{
    Job, State, Var, Wave, done, fail, get, goto, print, put, run, set,
};
use musec_coordinator::{Run, RunSetup, steps};
use musec_trace::RunStatus;

const GUESS: State = State::named("guess");
const DELIVER: State = State::named("deliver");
const TRIES: Var = Var::named("tries");

pub(crate) fn job() -> Job {
    // Newton's method: states, and edges between them.
    let roots = Wave::new("roots")
        .workers(3)
        .step(run("echo 1 > guess"))
        .step(set([(TRIES, 0)]))
        .step(run(IMPROVE).env("NUMBER", "{{ (index + 1) * 100 }}").state(GUESS))
        .step(set([(TRIES, format!("{TRIES} + 1"))]))
        .step(goto(DELIVER).only_if("last.output|trim == 'good'"))
        .step(goto(GUESS).only_if(format!("{TRIES} < 30")))
        .step(fail(format!("no root after {{{{ {TRIES} }}}} tries")))
        .step(put("guess").to_key("roots/{{ index }}").state(DELIVER))
        .step(done());
    let show = Wave::new("show").workers(1).after(["roots"]).steps(steps![
        get("roots/"),
        run("cat roots/* > answer"),
        print("answer")
    ]);
    Job::new("roots").wave(roots).wave(show)
}

/// Says `good` when a guess hardly changes any more.
const IMPROVE: &str = "awk -v n=\"$NUMBER\" '{ g = ($1 + n / $1) / 2; print g > \"next\"; \
                       d = g - $1; print (d * d < 1e-6 ? \"good\" : \"better\") }' guess && mv next guess";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let worker = std::env::args_os().nth(1).or_else(|| std::env::var_os("MUSEC_WORKER_PROGRAM"));
    let worker =
        worker.ok_or("say where `musec` is: as an argument, or in MUSEC_WORKER_PROGRAM")?;
    let run = Run::create(RunSetup::local(&job(), std::path::absolute(PathBuf::from(worker))?)?)?;
    let folder = run.folder().root().to_owned();
    let finished = run.execute()?;
    let (status, folder) = (finished.status, folder.display());
    let told =
        format!("{} in {folder}\n", if status == RunStatus::Done { "done" } else { "failed" });
    std::io::Write::write_all(&mut std::io::stdout(), told.as_bytes())?;
    Ok(if status == RunStatus::Done { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
