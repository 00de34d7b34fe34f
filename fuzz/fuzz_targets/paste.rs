//! Any bytes as pasted text, through all rules to the printed report.
#![no_main]

#[path = "../judged.rs"]
mod judged;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| judged::judged(data));
