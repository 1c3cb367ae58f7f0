//! The model check: every reachable state of a small world that runs the production step functions.
//!
//! ```text
//!   system ── candidates: Holder, Registration              ─┐                         ┌─ at most one believer
//!          ── electors:   elector::Election                 ─┼─> Search: every state ──┼─ tokens, moves, acks
//!          ── one Lease, its candidates' objects, messages  ─┘                         └─ a leader within reach
//! ```
//!
//! Writes are messages: they land at any later time or never, and their replies come late or not at all. Every process
//! sees the Lease as late as it likes, crashes when it likes, and reads a clock of its own that is up to half again as
//! fast as the others. There is no bound on time or on depth: after each transition the numbers in a state are replaced
//! by what they mean (`numbers`), so that the states that can be told apart are finitely many.
//!
//! A [`Run`] is one world with its expected verdict. Safe runs must also reach their witnesses; a run with a
//! `Mutant` must be caught, or the check has lost its teeth. Mutants live in this crate alone: they alter what a
//! step is given or what becomes of its effects, never the step.
//!
//! Beside it stand the drivers of the fuzzers and of their kept corpus: [`drive_objects`], [`drive_candidate`] and
//! [`drive_history`].

mod apply;
mod arbitrary;
mod canonical;
mod catalogue;
mod clocks;
mod elector;
mod elector_variation;
mod group;
mod instance;
mod intern;
mod lease_message;
#[cfg(test)]
mod meaning;
mod mutant;
mod numbers;
mod possible;
mod process;
mod process_variation;
#[cfg(test)]
mod reductions;
mod registration;
mod report;
mod restraint;
mod run;
mod search;
mod state;
mod store;
mod system;
mod transition;
mod witness;

pub use arbitrary::{drive_candidate, drive_history, drive_objects};
pub use catalogue::runs;
pub use report::{SearchReport, page, table};
pub use run::Run;
