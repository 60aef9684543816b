//! libFuzzer's entry: one program for all laws; `MUSEC_FUZZ` names the one that is tried.
//!
//! `cargo xtask fuzz` builds it with the coverage that libFuzzer needs, and starts it.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use musec_fuzz::{Law, law};

fuzz_target!(|bytes: &[u8]| {
    static LAW: OnceLock<Law> = OnceLock::new();
    let law = LAW.get_or_init(|| {
        let name = std::env::var("MUSEC_FUZZ").expect("MUSEC_FUZZ names a law");
        law(&name).expect("MUSEC_FUZZ names a law that there is")
    });
    (law.check)(bytes);
});
