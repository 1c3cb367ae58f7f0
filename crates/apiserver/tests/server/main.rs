//! The server as its clients see it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod common;
mod control;
mod faults;
mod kinds;
mod sharding;
mod tcp;
mod versions;
mod watching;
