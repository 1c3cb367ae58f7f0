//! The rig for scenarios on a real kube-apiserver.
//!
//! ```text
//!   Suite ── starts ──> TestSite (cluster, Recorder) ── has a Testbed (namespace, Journal) for each scenario
//!                                                         │ CandidateBuilder ──> StartedCandidate (ours or client-go's)
//!                                                         v
//!         verify(Journal): no two believed at once, every change of a Lease a legal move
//! ```
//!
//! A scenario starts and kills processes and waits for what must follow; it never sleeps for luck. Afterwards the
//! journal of its namespace, with every revision of every object and what each candidate said it believed, is judged
//! against the rules, whichever rule the scenario was about.

mod account;
mod audit_log;
mod candidate;
pub mod definition;
mod descendants;
mod eventually;
mod http;
mod journal;
mod kubectl;
mod load_balancer;
mod own_threads;
mod process;
mod programs;
mod record;
mod recorder;
mod results;
mod rights;
mod scenario;
mod selection;
mod server;
mod shared_clusters;
mod site;
mod suite;
mod testbed;

pub use account::TestAccount;
pub use audit_log::{AuditLog, AuditedWrite, ResourceVerb};
pub use candidate::{CandidateBuilder, StartedCandidate};
pub use descendants::signal_descendants;
pub use elector_verify::{
    EntryContent, Event, EventKind, HistoryEntry, Implementation, WorkInterval, between,
    work_intervals,
};
pub use eventually::eventually;
pub use http::http;
pub use journal::{Journal, JournalMark, events, now, revisions};
pub use kubectl::output_of;
pub use load_balancer::LoadBalancer;
pub use own_threads::OwnThreads;
pub use process::TestProcess;
pub use programs::{ElectorVersion, Interop, TestedPrograms};
pub use recorder::{Journals, Recorder};
pub use scenario::RequiredFlag;
pub use server::kubeconfig;
pub use shared_clusters::warm_up;
pub use site::{ClusterMode, SitePurpose, TestSite, client_of, command};
pub use suite::{ScenarioGroup, Suite};
pub use testbed::{LEASE, LONGEST_LEASE, PROMPTLY, Testbed};
