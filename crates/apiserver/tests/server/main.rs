//! The server as its clients see it.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod common;
mod control;
mod faults;
mod kinds;
mod sharding;
mod tcp;
mod versions;
mod watching;
