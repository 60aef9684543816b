//! What must hold for any bytes: one law for each way in which untrusted bytes come.
//!
//! In: bytes, of libFuzzer, of a corpus or of a file that broke a law. Out: nothing, or a panic
//! that says which law is broken. Invariants: a law is a function of its bytes alone, so that an
//! input which breaks it does so again; the laws know nothing of libFuzzer, so that the corpora
//! are replayed by every `cargo test`.

mod expression;
mod frames;
mod handshake;
mod job;
mod journal;

/// A law, with the folder of its corpus (`fuzz/corpus/NAME`).
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// Its name: that of the target and of its folder.
    pub name: &'static str,
    /// Panics where the law does not hold.
    pub check: fn(&[u8]),
}

/// All laws.
pub const LAWS: [Law; 5] = [
    Law { name: "frames", check: frames::check },
    Law { name: "handshake", check: handshake::check },
    Law { name: "journal", check: journal::check },
    Law { name: "job", check: job::check },
    Law { name: "expression", check: expression::check },
];

/// The law with this name.
#[must_use]
pub fn law(name: &str) -> Option<Law> {
    LAWS.into_iter().find(|law| law.name == name)
}
