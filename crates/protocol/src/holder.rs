//! The holder's side: how a term is won, kept and ended, and how long a process may believe that it leads.
//!
//! ```text
//!   Lease revisions, outcomes, work ──> Holder ──step(now, wall)──> Read | Create | Write | Start | Stop | Ended
//! ```
//!
//! Inputs are `handle_*` calls, which change the state and return nothing. After any number of inputs, and when the
//! `wake_at` of the last decision has come, the caller runs `step`, carries out its effects in their order, and reports
//! how each request ended. The machine has at most one request under way and waits for its outcome, so a caller bounds
//! every request and reports "unknown" when it gives one up. `now` is the moment by both clocks of the process ([R9]),
//! neither of which runs backwards; `wall` only ever becomes a wire time. A step too many is harmless.
//!
//! A term is won in one of two ways: an elector *grants* it and the process accepts, or the process *acquires* a lease
//! that its own stop-watch says is free ([R18]). [`HolderMode`] says which of them a process uses; what follows is the
//! same for both.
//! [`Registration`](crate::registration::Registration) has the same contract.
//!
//! [R9]: crate::rules#r9
//! [R18]: crate::rules#r18

mod acquisition;
mod config;
mod decision;
mod former_term;
mod input;
mod machine;
mod revision;
mod step;
mod term;
mod wait;

#[cfg(test)]
mod tests;

pub use config::{Acquisition, HolderConfig, HolderMode, TakeoverPolicy};
pub use decision::{Decision, Effect, Ending, Loss, StopReason, WriteKind};
pub use former_term::FormerTerm;
pub use input::{LeaseEvent, LeaseOutcome, ReadFailed};
pub use machine::{Belief, Holder};
pub use wait::{Wait, WaitReason};
