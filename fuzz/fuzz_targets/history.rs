//! Recordings, as `elector verify` reads them.

#![no_main]

use elector_model::drive_history;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| drive_history(script));
