//! The rig for scenarios on a real kube-apiserver.
//!
//! ```text
//!   Suite ── starts ──> TestSite (cluster, Recorder) ── has a Testbed (namespace, Journal) for each scenario
//!                                                         │ CandidateBuilder ──> RunningCandidate (ours or client-go's)
//!                                                         v
//!         verify(Journal): no two believed at once, every change of a Lease a legal move
//! ```
//!
//! A scenario starts and kills processes and waits for what must follow; it never sleeps for luck. Afterwards the
//! journal of its namespace, with every revision of every object and what each candidate said it believed, is judged
//! against the rules, whichever rule the scenario was about.

mod candidate;
pub mod definition;
mod every_change;
mod explain;
mod harness;
mod journal;
mod process;
mod programs;
mod recorder;
mod selection;
mod server;
mod site;
mod testbed;

pub use candidate::{CandidateBuilder, LEASE, RunningCandidate};
pub use elector_verify::{
    EntryContent, Event, EventKind, HistoryEntry, Implementation, WorkInterval, between,
    work_intervals,
};
pub use every_change::EveryChange;
pub use explain::{ExplainOutput, ExplainedCandidate};
pub use harness::{ClusterChoice, Scenario, ScenarioBody, Suite, warm_up};
pub use journal::{Journal, now};
pub use process::TestProcess;
pub use programs::{Interop, TestedPrograms};
pub use recorder::{Journals, Recorder};
pub use site::{ClusterMode, TestSite, command};
pub use testbed::{LONGEST_LEASE, Testbed};
