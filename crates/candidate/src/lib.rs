//! The client that components link: register, ack, accept, renew, make room, hand over.
//!
//! ```text
//!                    ┌── LeaseCandidate (own) ──> acks pings ─────────┐
//!  Candidate::run ───┤                                                ├──> API server
//!                    └── Lease ──> accepts, renews, gives up ─────────┘
//!                           │
//!                           └──> work(Leadership): a future that the term owns
//! ```
//!
//! The work is a future. It is made anew for each term, asked to stop by [`Leadership::stopped`], given a grace period,
//! dropped when that is over, and only then is the lease handed to the successor or released. What it spawns by
//! [`Leadership::spawn`] is stopped and waited for in the same way. After a loss it has no longer than the lease leaves
//! ([`Config::stop_budget`]): nothing of it acts when another candidate may lead. How a run ended is a value,
//! [`RunOutcome`]. A candidate that is dropped leaves nothing behind: no task, no watch, no connection.
//!
//! The rest of the process asks a [`CandidateHandle`], which lives before, between and after the terms: who leads, under
//! which token, until when, and whether that is still known. A [`WriteGuard`] makes clients of it that write only while
//! this process leads.
//!
//! A lease says that a process renews, and not that it works. A program that can tell gives the candidate a probe
//! ([`Candidate::with_health`]): a leader whose probe keeps failing gives its lease up in good order and stays out until
//! it is well, and a process that is not well is not elected. An answer that is slow, or one that fails now and then, is
//! no loss. Work that finds itself unwell returns an error: with [`AfterFailure::Retry`] the process is no candidate for a
//! while, so that another one leads.
//!
//! A controller or a web server that has to run beside the work belongs to the run ([`Candidate::alongside`]): where it
//! ends or panics, the lease is given up, and the run ends with an error that names it.
//!
//! Work that does not stop when it should fails the liveness check of the handle ([`CandidateHandle::check_work`]).
//! Readiness is not leadership: a standby is ready, and [`CandidateHandle::check_health`] says whether it could lead.
//!
//! A program that is written from top to bottom waits in [`Candidate::become_leader`] and holds a [`LeaderGuard`] in the place
//! of a run with work. The candidate cannot drop such a program when its time to stop is over: it has to ask the guard.
//!
//! The end of a term has one name ([`TermEnd::cause`]), in the outcome, the log and the figures of the feature
//! `metrics` (`CandidateMetrics`), and in the Events on the Lease that `Config::record_events` asks for (feature
//! `events`).
//!
//! | feature | brings |
//! |---|---|
//! | `connect` | `Candidate::connect`, `ClientArgs`, `connect`: a client by kubeconfig or service account, TLS by rustls with ring, proxies |
//! | `clap` | flags and environment variables to flatten into a program's own: `CandidateArgs`, and `ClientArgs` as `clap::Args` |
//! | `controller` | `LeaderGate`: controllers of `kube::runtime` that are warm on standbys, and reconcile while this process leads |
//! | `events` | `Config::record_events`: Events on the Lease, by the recorder of kube-runtime |
//! | `latest` | k8s-openapi's feature of that name, for a program without k8s-openapi of its own |
//! | `metrics` | `CandidateMetrics`: what candidates do, in figures for Prometheus, and `prometheus_client` itself |
//! | `test-util` | `TestTerm`: a guard for unit tests of work, without an election. For `dev-dependencies`; the crate `elector-testing` brings it, with an API server in memory |
//!
//! None is on by default: a candidate then brings no TLS, no proxies, no command line and no log, and uses the client
//! that the program has, of the same major version of kube (`Cluster::from(client)`) or another
//! ([`Cluster::over`]). It builds on Linux and macOS.
//!
//! A program that joins an election, in ten lines:
//!
#![cfg_attr(feature = "connect", doc = "```no_run")]
#![cfg_attr(not(feature = "connect"), doc = "```ignore")]
//! use elector_candidate::{Candidate, ClientArgs, Config, Leadership};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let shutdown = elector_candidate::shutdown_signal()?;
//!     let config = Config::new("web", env!("CARGO_PKG_VERSION").parse()?);
//!     let candidate = Candidate::connect(config, &ClientArgs::default()).await?;
//!     candidate.run(work, shutdown).await?.into_result()?;
//!     Ok(())
//! }
//!
//! async fn work(leadership: Leadership) -> std::io::Result<()> {
//!     println!("leading, token {}", leadership.token());
//!     leadership.stopped().await;
//!     Ok(())
//! }
//! ```
//!
//! Namespace and identity are found; a SIGTERM stops the work, and then releases the lease; work that fails ends the
//! program with an exit code other than 0 ([`RunOutcome::into_result`]). The client of `Candidate::connect` sends its
//! requests from a thread of its own, so that work which blocks its executor keeps the lease. With [`Candidate::new`] and
//! a client that the program has, requests and renewals share the executor of the work, and such work loses it.
//!
//! The first start of a program takes its time, which the candidate logs at once ([`Event::Waiting`]): where no Lease
//! exists, a leader whose Lease was deleted may lead on for as long as any lease lasts. With the usual durations the first
//! candidate leads
//!
//! | [`Mode`] | where no elector acts | where an elector has been up for 15 s | rights in the namespace |
//! |---|---|---|---|
//! | `Auto` | after 20 s: 15 s, and 5 s for an elector | at once | `get`, `list`, `watch`, `create`, `update` for `leases`; these and `delete` for `leasecandidates` |
//! | `Elected` | never | at once | the same without `create` for `leases` |
//! | `Plain` | after 15 s | after 15 s | those for `leases` alone |
//!
//! Later starts, hand-overs and releases wait for nothing of this. A right that is missing is named in the log.
//!
//! Its promise: at most one candidate of this crate believes that it leads, where clock *rates* differ by less than
//! lease duration over renew deadline (1.5 by default). It cannot promise that at most one *acts*: for that, send
//! [`Leadership::token`] along and have the resource check it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod alongside;
#[cfg(feature = "clap")]
mod args;
mod become_leader;
mod boxed_work;
mod candidate;
mod candidate_context;
mod config;
#[cfg(feature = "controller")]
mod controller;
mod disabled;
mod event;
mod finish;
mod guard;
mod handle;
mod health;
mod health_monitor;
mod identity;
mod leadership;
#[cfg(feature = "metrics")]
mod metrics;
mod outcome;
mod owner_pod;
#[cfg(feature = "connect")]
mod renewal_thread;
mod request_monitor;
mod resolved_config;
mod run_failure;
mod run_loop;
mod session;
mod status;
mod stop_token;
#[cfg(feature = "events")]
mod term_events;
mod term_state;
mod term_tasks;
#[cfg(feature = "test-util")]
mod test_surroundings;
#[cfg(feature = "test-util")]
mod test_term;
mod waiting;
mod work;

#[cfg(feature = "clap")]
pub use args::{ArgsError, CandidateArgs};
pub use become_leader::LeaderGuard;
pub use candidate::Candidate;
#[cfg(feature = "connect")]
pub use candidate::StartError;
pub use config::{AfterFailure, AfterTerm, Config, ConfigError, Mode};
#[cfg(feature = "controller")]
pub use controller::LeaderGate;
pub use elector_protocol::holder::{Loss, StopReason};
pub use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseKey, StrategyName, Term, TimingError, Token, Version,
    VersionError,
};
#[cfg(feature = "metrics")]
pub use elector_runtime::MetricDescription;
#[cfg(feature = "connect")]
pub use elector_runtime::{ClientArgs, ConnectError, connect};
pub use elector_runtime::{Cluster, RequestError, Signal, shutdown_signal};
pub use event::Event;
pub use guard::{GuardedService, NotLeading, WriteGuard};
pub use handle::CandidateHandle;
pub use health::{HealthTiming, Unwell, WorkOverdue};
pub use identity::{pod_or_host_name, random_identity};
pub use leadership::Leadership;
#[cfg(feature = "metrics")]
pub use metrics::CandidateMetrics;
pub use outcome::{RunError, RunOutcome, TermEnd};
pub use owner_pod::OwnerPod;
#[cfg(feature = "metrics")]
pub use prometheus_client;
pub use run_failure::RunFailure;
pub use status::LeadershipStatus;
pub use stop_token::{StopToken, Stopped};
pub use term_state::StopLimits;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub use test_surroundings::{
    CandidateWitness, TestSurroundings, WorkWitness, stop_limit, surrounded,
};
#[cfg(feature = "test-util")]
pub use test_term::TestTerm;
pub use waiting::Waiting;
