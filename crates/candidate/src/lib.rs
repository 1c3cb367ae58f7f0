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
//! ([`Config::stop_budget`]): nothing of it acts when another candidate may lead. A run that was asked to end, or whose work
//! was done, ends with an [`Outcome`], every other one with an [`Error`]. A candidate that is dropped leaves nothing behind:
//! no task, no watch, no connection.
//!
//! The rest of the process asks a [`CandidateHandle`], which lives before, between and after the terms: who leads, under
//! which token, for how long yet, and whether that is still known, at a call or as a stream of changes. A
//! [`LeaderOnlyLayer`] makes clients of it that write only while this process leads.
//!
//! A lease says that a process renews, and not that it works. A program that can tell gives the candidate a probe
//! ([`Candidate::with_health`]): a leader whose probe keeps failing gives its lease up in good order and stays out until
//! it is well, and a process that is not well is not elected. An answer that is slow, or one that fails now and then, is
//! no loss. Work that finds itself unwell returns an error: with [`Config::retry_work`] the process is no candidate for a
//! while, so that another one leads.
//!
//! A controller or a web server that has to run beside the work belongs to the run ([`Candidate::alongside`]): where it
//! ends or panics, the lease is given up, and the run ends with an error that names it. A [`LeaderGate`] has controllers
//! of any version of kube warm on standbys, and lets them reconcile while this process leads.
//!
//! Work that outgrows one leader is divided into [`Parts`], each with a lease of its own, of which a process leads as many
//! as it comes to ([`GroupCandidate`]): a leader for each reconciler, say, or for each range of objects ([`ShardGate`]).
//!
//! Work that does not stop when it should fails the liveness check of the handle ([`CandidateHandle::check_live`]).
//! Readiness is not leadership: a standby is ready, and [`CandidateHandle::check_ready`] says whether it could lead.
//!
//! A program that is written from top to bottom waits in [`Candidate::become_leader`] and has a [`HeldLease`] in the place
//! of a run with work. The candidate cannot drop such a program when its time to stop is over: it has to ask.
//!
//! The end of a term has one name ([`TermEnd::cause`]), in outcome and error, the log and the figures of the feature
//! `metrics`, and in the Events on the Lease that `Config::record_events` asks for (feature `events`).
//!
//! | feature | brings | foreign types in signatures |
//! |---|---|---|
//! | `connect` | `Cluster::connect`, `Candidate::connect`, `ClientArgs`: a client by kubeconfig or service account on a thread of its own, TLS by rustls with ring, proxies | |
//! | `kube5` | `Cluster::from(client)`, `kube5::guarded`, `kube5::sharded` and `kube5::key` | kube 5 |
//! | `clap4` | `CandidateArgs`: flags and environment variables to flatten into a program's own; `ClientArgs` as `clap::Args` | clap 4 |
//! | `events` | `Config::record_events`: Events on the Lease that report the terms of a process, by the recorder of kube-runtime | |
//! | `latest` | k8s-openapi's feature of that name, for a program without k8s-openapi of its own | |
//! | `metrics` | `Metrics`: what candidates do, in figures for Prometheus | |
//! | `prometheus-client-0-25` | `Metrics::register` | prometheus-client 0.25 |
//! | `tokio-util-0-7` | `Leadership::cancellation_token` | tokio-util 0.7 |
//! | `supervise` | module `supervise`: limits for work in another process, and waiting for it | |
//! | `test-util` | `TestTerm`: a guard for unit tests of work, without an election. For `dev-dependencies`; the crate `elector-testing` brings it, with an API server in memory | |
//!
//! None is on by default: a candidate then brings no TLS, no proxies, no command line and no log, and uses the client
//! that the program has ([`Cluster::over`], whatever its version of kube). All signatures without a feature name types of
//! std, tokio, futures, tower, bytes, http and http-body alone, so that a new major version of kube breaks no program. It
//! builds on Linux and macOS.
//!
//! A program that joins an election, in ten lines:
//!
#![cfg_attr(feature = "connect", doc = "```no_run")]
#![cfg_attr(not(feature = "connect"), doc = "```ignore")]
//! use elector_candidate::{Candidate, Config, Error, Leadership, shutdown_signal};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     let candidate = Candidate::connect(Config::new("web", env!("CARGO_PKG_VERSION"))).await?;
//!     candidate.run(work, shutdown_signal()?).await?;
//!     Ok(())
//! }
//!
//! async fn work(leadership: Leadership) -> std::io::Result<()> {
//!     println!("leading under token {}", leadership.token());
//!     leadership.stopped().await;
//!     Ok(())
//! }
//! ```
//!
//! Namespace and identity are found; a SIGTERM stops the work, and then releases the lease; work that fails ends the
//! program with an exit code other than 0. The client of `Candidate::connect` sends its requests from a thread of its own,
//! so that work which blocks its executor keeps the lease. With [`Cluster::over`] and a client that the program has,
//! requests and renewals share the executor of the work, and such work loses it; [`Cluster::on_own_thread`] has such a
//! client on a thread too.
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
#[cfg(feature = "clap4")]
mod args;
mod become_leader;
mod belief;
mod boxed_work;
mod candidate;
mod candidate_context;
mod cluster;
mod config;
mod disabled;
mod error;
mod event;
mod finish;
mod group;
mod handle;
mod health;
mod health_monitor;
mod identity;
mod instance;
#[cfg(feature = "kube5")]
pub mod kube5;
mod leader_gate;
mod leader_only;
mod leadership;
mod membership;
#[cfg(feature = "metrics")]
mod metrics;
mod object_key;
mod outcome;
mod owner;
mod process_health;
mod renewal_thread;
mod request_monitor;
mod resolved_config;
mod run_loop;
mod session;
mod shard_gate;
#[cfg(feature = "kube5")]
mod sharded_reads;
mod signals;
mod status;
mod stopped;
pub mod strategy;
#[cfg(feature = "supervise")]
pub mod supervise;
#[cfg(feature = "events")]
mod term_events;
mod term_state;
mod term_tasks;
#[cfg(feature = "test-util")]
mod test_surroundings;
#[cfg(feature = "test-util")]
mod test_term;
mod timing;
mod waiting;
mod work;

#[cfg(feature = "clap4")]
pub use args::CandidateArgs;
pub use become_leader::HeldLease;
pub use candidate::Candidate;
pub use cluster::Cluster;
pub use config::{Config, ConfigError, Mode};
pub use elector_protocol::holder::{Loss, StopReason};
pub use elector_protocol::{Identity, LeaseKey};
#[cfg(feature = "connect")]
pub use elector_runtime::ClientArgs;
pub use error::Error;
pub use event::{Event, TermOrigin};
pub use group::{GroupCandidate, GroupHandle, Parts};
pub use handle::CandidateHandle;
pub use health::Unhealthy;
#[doc(hidden)]
pub use identity::pod_or_host_name;
pub use leader_gate::LeaderGate;
pub use leader_only::{LeaderOnly, LeaderOnlyLayer, NotLeading};
pub use leadership::Leadership;
#[cfg(feature = "metrics")]
pub use metrics::Metrics;
pub use object_key::ObjectKey;
pub use outcome::{Outcome, TermEnd};
pub use owner::Owner;
pub use shard_gate::ShardGate;
pub use signals::shutdown_signal;
pub use status::LeaseStatus;
#[cfg(feature = "test-util")]
#[doc(hidden)]
pub use test_surroundings::{
    CandidateWitness, TestSurroundings, WorkWitness, stop_limit, surrounded,
};
#[cfg(feature = "test-util")]
pub use test_term::TestTerm;
pub use timing::Timing;
pub use waiting::Waiting;
