//! A test kit for programs that lead by `elector-candidate`: what does the work do when the lease is lost?
//!
//! ```text
//!  the test ── faults, strangers, time ──> EmbeddedCluster: API server in memory, clock of tokio's timers
//!                                                │ requests, watches
//!                                    ProgramUnderTest: a candidate, as in production
//!                                                │ Leadership, EffectLog
//!                                              the work ──> fakes of what it acts on, which record each effect
//! ```
//!
//! | to test | take |
//! |---|---|
//! | a function that takes a [`Leadership`](elector_candidate::Leadership) | [`TestTerm`]: a guard without a candidate and a server |
//! | work, as a candidate runs it | [`EmbeddedCluster::run`]: a [`ProgramUnderTest`] with faults, and a [`TermReport`] of each of its terms |
//! | a whole program | [`EmbeddedCluster::connect`] and [`EmbeddedCluster::clock`], for a `Cluster` with that clock and `Candidate::new` |
//!
//! It goes into `dev-dependencies`, beside tokio with its feature `macros`. A test begins with
//! `#[tokio::test(start_paused = true)]`: time then stands still while something runs, and jumps to the next timer when
//! nothing does. Twenty seconds of waiting for a lease take no time, and each run of a test is like the last.
//!
//! # Does my controller stop in time?
//!
//! The lease is lost while the API server is silent. From then on nothing of the work may act after the time that the
//! lease leaves, and here it also wants to finish what it does.
//!
//! ```
//! use elector_candidate::{Config, Leadership};
//! use elector_testing::{EffectLog, EmbeddedCluster, seconds};
//!
//! /// What is to be tested: it writes a row a second, and closes its table when it stops.
//! async fn controller(leadership: Leadership, database: EffectLog) -> Result<(), String> {
//!     let mut tick = tokio::time::interval(seconds(1));
//!     loop {
//!         tokio::select! {
//!             biased;
//!             _ = leadership.stopped() => break,
//!             _ = tick.tick() => database.record("row"),
//!         }
//!     }
//!     tokio::time::sleep(seconds(2)).await;
//!     database.record("closed");
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let cluster = EmbeddedCluster::new();
//! let config = Config::new("web", "1.0.0");
//! let mut program = cluster.run(config, controller);
//! program.leads().await;
//! program.faults().partition(true);
//!
//! let report = program.term_report().await;
//! report.assert_nothing_late();
//! report.assert_returned();
//! assert_eq!(report.effects.last().unwrap().what, "closed");
//! # }
//! ```
//!
//! With five seconds in the place of two, `assert_returned` fails: *the work did not return in time, and was dropped (told
//! to stop: lost: …; it had 3.75s)*. Had the controller spawned its rows by `tokio::spawn`, `assert_nothing_late` would
//! name each that was written when another process may lead.
//!
//! # What does my work do when the API server is silent, or the lease is taken?
//!
//! A silence that is shorter than the renew deadline is no loss, and a longer one is. A lease that is overwritten is lost at
//! once, and leaves no time.
//!
//! ```
//! use elector_candidate::{Config, Leadership, Loss, StopReason};
//! use elector_testing::{EmbeddedCluster, pass, seconds};
//!
//! async fn work(leadership: Leadership) -> Result<(), String> {
//!     leadership.stopped().await;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let cluster = EmbeddedCluster::new();
//! let config = Config::new("web", "1.0.0");
//! let mut program = cluster.run(config, |leadership, _| work(leadership));
//! program.leads().await;
//!
//! // Five seconds of silence cost nothing.
//! program.faults().partition(true);
//! pass(seconds(5)).await;
//! program.heal();
//! pass(seconds(5)).await;
//! assert!(program.handle().is_leader());
//!
//! // Thirty seconds cost the term, and then it leads again.
//! program.faults().partition(true);
//! pass(seconds(30)).await;
//! assert!(!program.handle().is_leader());
//! program.heal();
//! let (reason, _) = program.term_report().await.told.unwrap();
//! assert_eq!(reason, StopReason::Lost(Loss::DeadlinePassed));
//! program.leads().await;
//!
//! // Another process takes the lease.
//! program.lease().overwrite_holder("another");
//! let report = program.term_report().await;
//! let (reason, told) = report.told.clone().unwrap();
//! assert!(matches!(reason, StopReason::Lost(Loss::Taken { .. })));
//! assert_eq!(report.limit, told, "no time is left");
//! report.assert_nothing_late();
//! # }
//! ```
//!
//! | fault | by |
//! |---|---|
//! | the API server is silent: requests hang, watches hear nothing | `program.faults().partition(true)` |
//! | it refuses | `program.faults().inject(Rule::new(Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE)))` |
//! | it is slow | `program.faults().latency(…)` |
//! | only watches hear nothing, or are cut | `program.faults().freeze_watches(true)`, `break_watches()` |
//! | renewals are written, and their answers are lost | `Rule::new(Fault::DropAfter).verb(RequestVerb::Update)` |
//! | all is well again | `program.heal()` |
//! | another holder is written into the Lease | `program.lease().overwrite_holder("another")` |
//! | the Lease is deleted | `program.lease().delete()` |
//! | an elector prefers another candidate: a hand-over | `program.lease().prefer("another")` |
//! | another process waits for the lease, and takes it when it is free | `program.start_rival()` |
//! | SIGTERM | `program.shut_down()` |
//! | the process is killed | `drop(program)` |
//!
//! # How do I test a function that takes a guard?
//!
//! ```
//! use elector_candidate::{Leadership, Loss, StopReason};
//! use elector_testing::TestTerm;
//!
//! /// What is to be tested.
//! fn write(leadership: &Leadership, rows: &mut Vec<u32>, row: u32) -> Result<(), &'static str> {
//!     if !leadership.is_leader() {
//!         return Err("not leading");
//!     }
//!     rows.push(row);
//!     Ok(())
//! }
//!
//! // #[test]
//! let (term, mut rows) = (TestTerm::new(), Vec::new());
//! let leadership = term.leadership();
//! assert_eq!(write(&leadership, &mut rows, 1), Ok(()));
//! term.stop(StopReason::Lost(Loss::Deleted));
//! assert_eq!(write(&leadership, &mut rows, 2), Err("not leading"));
//! assert_eq!(rows, [1]);
//! ```
//!
//! # Who else takes part?
//!
//! [`EmbeddedCluster::register`], [`EmbeddedCluster::candidate`] and [`ScriptedCandidate`] are candidates of other
//! processes, [`EmbeddedCluster::keep`] is a holder that is no candidate, and [`StoredLease`] is what an elector or a
//! stranger writes. [`EmbeddedCluster::requests`] is what programs asked the server for.
//!
//! | feature | what it adds |
//! |---|---|
//! | `log` | `CapturedLog`: the log of the test's thread, line by line |
//! | `metrics` | `Scrape`: the text that Prometheus is given, read back |
//!
//! # What it does not show
//!
//! Virtual time stands still while anything runs, so work that blocks its thread blocks the test, and is late by no
//! clock: test that on a clock that runs, or see that nothing in the work blocks. What the work does to the network and to
//! disks takes time that a paused clock does not know of: it needs fakes. The API server serves Leases, LeaseCandidates,
//! Namespaces and Events, and no other kinds.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod actors;
mod effect_log;
mod embedded_cluster;
mod history;
mod listen;
#[cfg(feature = "log")]
mod log;
mod one_lease;
mod program;
mod requests;
#[cfg(feature = "metrics")]
mod scrape;
mod scripted;
mod stored_lease;
mod term_report;
mod time;

pub use actors::BackgroundTask;
pub use effect_log::{EffectLog, RecordedEffect};
pub use elector_apiserver::{ApiServer, Config as ServerConfig, NativeCandidates};
pub use elector_apiserver::{Fault, Latency, RequestVerb, Rule, Switches};
pub use elector_candidate::TestTerm;
pub use elector_runtime::TokioClock;
pub use embedded_cluster::{
    CANDIDATES, CUSTOM_CANDIDATES, EmbeddedCluster, LEASES, REQUEST_LATENCY,
};
pub use http::StatusCode;
pub use listen::{listen, wait_until};
#[cfg(feature = "log")]
pub use log::CapturedLog;
pub use one_lease::OneLease;
pub use program::ProgramUnderTest;
pub use requests::SentRequest;
#[cfg(feature = "metrics")]
pub use scrape::{Scrape, assert_described, described_metrics, documented_metrics};
pub use scripted::ScriptedCandidate;
pub use stored_lease::StoredLease;
pub use term_report::{TermReport, WorkStop};
pub use time::{eventually, millis, pass, seconds};
