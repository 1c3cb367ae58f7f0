//! Scripts of Leases, LeaseCandidates and acks, as a candidate sees them.

#![no_main]

use elector_model::drive_candidate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| drive_candidate(script));
