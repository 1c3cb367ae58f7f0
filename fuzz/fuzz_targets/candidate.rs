//! Scripts of Leases, LeaseCandidates and acks, as a candidate sees them.

#![no_main]

use elector_fuzz::{drive_candidate, mutate};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|script: &[u8]| drive_candidate(script));

// Most scripts stay JSON; one in eight is changed as bytes.
fuzz_mutator!(|script: &mut [u8], size: usize, most: usize, seed: u32| {
    if seed % 8 == 0 {
        return fuzzer_mutate(script, size, most);
    }
    let next = mutate(&script[..size], u64::from(seed));
    if next.len() > most {
        return fuzzer_mutate(script, size, most);
    }
    script[..next.len()].copy_from_slice(&next);
    next.len()
});
