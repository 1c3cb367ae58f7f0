//! The deterministic simulation of Elector.
//!
//! ```text
//!   seed ──> RunPlan: processes, and faults with their times
//!              │
//!              v
//!   electors, candidates ── kube::Client ── Transport ── API server in memory ──> LeaseHistory: every revision,
//!   (production code, each with a clock          │           │ fault switches                    and its author
//!    and a pause switch of its own)              v           v
//!        └── every guard, at every poll ──> GuardMonitor    RunLog ──> one hash for one seed
//! ```
//!
//! Time is tokio's, paused: it moves on when no task can run. Every random number is drawn from the seed, so a plan
//! always runs the same way, and a plan that fails can be cut down to the faults that matter.

mod actions;
mod author;
mod client_go;
mod clock;
mod context;
mod delivery;
mod effect;
mod elector_belief;
mod foreign;
mod guards;
mod history;
mod log;
mod names;
mod operator;
mod oracle;
mod pause;
mod plan;
mod process;
mod programs;
mod random;
mod recorder;
mod recovery;
mod register;
mod schedule;
mod simulation;
mod statistics;
mod tamper;
mod tenant;
mod traffic;
mod transport;
mod verification;
mod witness;

pub use clock::{SimClock, TRUE_RATE};
pub use context::RuleViolation;
pub use guards::LeadershipStats;
pub use plan::{
    Applied, CandidateTampering, ClockBound, ElectorLocks, FaultKind, LeaseTampering,
    PlannedCandidate, PlannedFault, PlannedMode, PlannedStrategy, PlannedWord, ProcessHost,
    ProcessIndex, Requests, RestartName, RunPlan, Setup, WatchClose, WorkEnd,
};
pub use random::Random;
pub use simulation::{RunReport, simulate};
pub use statistics::RunStatistics;
