//! Logs of the program itself: to standard error, by `-v` and `MUSEC_LOG`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging; without `-v` and `MUSEC_LOG` only warnings are shown.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("MUSEC_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .init();
}
