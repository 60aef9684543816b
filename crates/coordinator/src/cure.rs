//! What to do about the limits of a machine: an error of the system in, a cure in words out.
//!
//! Invariant: what is no limit has no cure here; who reports it knows better where it happened.

use std::io;

use rustix::io::Errno;

/// What to do about an error of the system, to follow a sentence; empty where nothing is known.
pub(crate) fn cure(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "; free space there, or choose another place",
        Some(Errno::FBIG) => "; raise the limit of a file's size (ulimit -f)",
        Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => "; choose a place that can be written",
        Some(Errno::MFILE | Errno::NFILE) => {
            "; raise the limit of open files (ulimit -n), or lower -j"
        }
        Some(Errno::AGAIN) => "; raise the limit of processes (ulimit -u), or lower -j",
        Some(Errno::NOMEM) => "; there is no memory for it: lower -j",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_a_cure_and_another_error_has_none() {
        let of = |errno: Errno| cure(&errno.into());
        assert!(of(Errno::NOSPC).contains("free space"));
        assert!(of(Errno::FBIG).contains("ulimit -f"));
        assert!(of(Errno::NOMEM).contains("memory") && of(Errno::NOMEM).contains("-j"));
        assert_eq!(of(Errno::NOENT), "");
    }
}
