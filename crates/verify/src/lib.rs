//! The history checker: at most one leader at a time, tokens that grow, and nothing but legal moves?
//!
//! ```text
//!   recorded watches ────────┐
//!   events of the candidates ┴─ RecordingReader ──> History ─┐
//!                                                            ├─ verify ──> Verdict: breaches, and what was looked at
//!   candidates and holders ────────────────> Participants ───┘
//! ```
//!
//! It knows the rules (R1–R18, R20–R23) and the invariants (S1–S12, L9) of docs/protocol.md, and nothing of how a lease is elected:
//! it never asks which candidate should have led, only whether what happened was allowed. It performs no I/O and reads no clock, so
//! a simulation can pass its own times.

mod actor;
mod audit;
mod balance;
mod broken_rule;
mod checker;
mod entry;
mod history;
mod leadership;
mod limits;
mod participants;
mod placeholder;
mod read;
mod reading;
mod recorded_writer;
mod term_record;
mod verdict;
mod verify;
mod work_trace;

pub use actor::Actor;
pub use audit::audit;
pub use broken_rule::BrokenRule;
pub use entry::{EntryContent, Event, EventKind, HistoryEntry, between};
pub use history::{Beginning, History, Times, TraceCoverage};
pub use limits::Limits;
pub use participants::{Implementation, LeasePurpose, Participants};
pub use read::{Position, ReadError, RecordingReader};
pub use recorded_writer::{CandidateAnswers, ElectorSight, RecordedWriter, TermSource, WriterRole};
pub use term_record::{RecordedEnd, SeenRevision, TermRecord};
pub use verdict::{
    Breach, ExemptBreach, Extent, GuaranteeLevel, Invariant, LeaseChangeKind, LeaseVerdict,
    Unjudged, Verdict,
};
pub use verify::verify;
pub use work_trace::{WorkInterval, work_intervals};
