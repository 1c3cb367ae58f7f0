//! The candidate's side: to be known, to hold the lease, and to know how long.
//!
//! ```text
//!   LeaseCandidate revisions, outcomes ──> Registration ──step(now, wall)──> Create | Replace | Delete | Read
//!   Lease revisions, outcomes, work    ──> Holder       ──step(now, wall)──> Read | Write | Start | Stop | Ended
//! ```
//!
//! Both machines share one contract. Inputs are `handle_*` calls, which change the state and return nothing. After any
//! number of inputs, and when the `wake_at` of the last decision has come, the caller runs `step`, carries out its
//! effects in their order, and reports how each request ended. A machine has at most one request under way and waits
//! for its outcome, so a caller bounds every request and reports "unknown" when it gives one up. `now` is the holder's
//! own clock (R9) and does not run backwards; `wall` only ever becomes a wire time. A step too many is harmless.

mod backoff;
mod decision;
mod news;
mod registration;
mod step;
mod holder;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod world;

pub use decision::{Decision, Effect, Ending, Loss, StopReason, WriteKind};
pub use registration::{
    CandidateEvent, CandidateSnapshot, Registration, RegistrationDecision, RegistrationEffect,
    RegistrationOutcome,
};
pub use holder::{Belief, LeaseEvent, Outcome, ReadFailed, Holder, HolderConfig};
