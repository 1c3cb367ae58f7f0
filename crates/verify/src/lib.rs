//! The history checker: at most one leader at a time, tokens that grow, and nothing but legal moves?
//!
//! ```text
//!   recorded watches ──> History ──┐
//!   what candidates say ──────────>├── verify ──> Verdict: findings, and what was looked at
//!   who takes part ────> Roster ───┘
//! ```
//!
//! It knows the rules (R1–R17) and the invariants (S1–S12) of ARCHITECTURE.md, and nothing of how a lease is elected:
//! it never asks who should have led, only whether what happened was allowed. It performs no I/O and reads no clock, so
//! a simulation can pass its own times.

mod belief;
mod entry;
mod history;
mod roster;
mod trial;
mod verdict;
mod verify;

pub use belief::{Belief, beliefs};
pub use entry::{Entry, Event, EventKind, What, between};
pub use history::{Beginning, History, Times};
pub use roster::{Limits, Maker, Roster};
pub use verdict::{Case, Extent, Finding, Invariant, Level, Verdict};
pub use verify::verify;
