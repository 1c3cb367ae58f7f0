//! Scripts of objects, as an elector sees them.

#![no_main]

use elector_model::drive_objects;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| drive_objects(script));
