//! Scripts of objects, as an elector sees them.

#![no_main]

use elector_fuzz::{drive_objects, mutate_in_place};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|script: &[u8]| drive_objects(script));

fuzz_mutator!(|script: &mut [u8], size: usize, most: usize, seed: u32| {
    mutate_in_place(script, size, most, seed, fuzzer_mutate)
});
