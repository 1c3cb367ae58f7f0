//! The server-side elector of coordinated leader election, as a library.

#![expect(dead_code, reason = "the loop that drives these parts follows")]

mod builtin;
mod leadership;
mod view;

pub use leadership::LeadershipChange;
