//! The holder's side: how a term is accepted, kept and ended, and how long a process may believe that it leads.
//!
//! ```text
//!   Lease revisions, outcomes, work ──> Holder ──step(now, wall)──> Read | Write | Start | Stop | Ended
//! ```
//!
//! Inputs are `handle_*` calls, which change the state and return nothing. After any number of inputs, and when the
//! `wake_at` of the last decision has come, the caller runs `step`, carries out its effects in their order, and reports
//! how each request ended. The machine has at most one request under way and waits for its outcome, so a caller bounds
//! every request and reports "unknown" when it gives one up. `now` is the holder's own clock ([R9]) and does not run
//! backwards; `wall` only ever becomes a wire time. A step too many is harmless.
//! [`Registration`](crate::registration::Registration) has the same contract.
//!
//! [R9]: crate::rules#r9

mod decision;
mod machine;
mod revision;
mod step;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenarios;

pub use decision::{Decision, Effect, Ending, Loss, StopReason, WriteKind};
pub use machine::{Belief, Holder, HolderConfig, LeaseEvent, LeaseOutcome, ReadFailed};
