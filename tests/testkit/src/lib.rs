//! A cluster in memory and in virtual time, on which the tests of electors and candidates run.
//!
//! ```text
//!  program under test ── Cluster ── request log ── faults of one client ──┐
//!                                                                         ├── elector-apiserver
//!  the test: other actors, scripted candidates, restores ─────────────────┘
//! ```
//!
//! A [`MemoryCluster`] is an [`EmbeddedCluster`](elector_testing::EmbeddedCluster), as users of `elector-testing` have it,
//! whose requests are recorded and may be interfered with. The program under test
//! gets [`MemoryCluster::cluster`] and [`MemoryCluster::clock`]; what it asks for is in [`MemoryCluster::requests`]; faults
//! are the [`Switches`](elector_apiserver::Switches) of its client. What other actors of the cluster do is written to
//! the store directly, in no time.
//!
//! This crate runs neither electors nor candidates: both test with it.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod actors;
mod background;
mod cluster;
mod history;
mod log;
mod one_lease;
mod requests;
mod scrape;
mod scripted;

pub use background::BackgroundTask;
pub use cluster::{CANDIDATES, CUSTOM_CANDIDATES, LEASES, MemoryCluster, wall};
pub use elector_testing::{eventually, millis, pass, seconds};
pub use log::CapturedLog;
pub use one_lease::OneLease;
pub use requests::SentRequest;
pub use scrape::{Scrape, assert_described, described_metrics, documented_metrics};
pub use scripted::ScriptedCandidate;
