//! `cargo xtask test`: installs what the tests need, and passes them.
//!
//! What is done is printed before it is done, and each part's time after it.

use std::time::Instant;

use crate::needs::{
    Need, cargo, find_bash, find_ffmpeg, find_toolchain, install_bash, install_ffmpeg,
    install_toolchain, provide,
};

/// In the order in which they are installed. Services for the end-to-end scenarios join here.
const NEEDS: [Need; 3] = [
    Need {
        name: "the Rust toolchain of rust-toolchain.toml",
        find: find_toolchain,
        install: install_toolchain,
    },
    Need { name: "bash 5, for jobs that read its clock", find: find_bash, install: install_bash },
    Need {
        name: "ffmpeg and ffprobe, for jobs with films and pictures",
        find: find_ffmpeg,
        install: install_ffmpeg,
    },
];

/// Installs, builds and runs; `extra` goes to `cargo test`.
pub(crate) fn run(extra: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    for need in &NEEDS {
        provide(need)?;
    }
    let mut times = vec![("install", started.elapsed())];
    for (part, args) in [("build", vec!["--no-run"]), ("test", extra.to_vec())] {
        let started = Instant::now();
        let mut words = vec!["test", "--workspace", "--locked"];
        words.extend(args);
        cargo(&words)?;
        times.push((part, started.elapsed()));
    }
    for (part, time) in times {
        println!("test: {part} {:.1} s", time.as_secs_f64());
    }
    println!("test: all passed");
    Ok(())
}
