//! The shared part of Elector's shells: the connection to an API server, its watches, its writer, and the clocks.
//!
//! ```text
//!   ClientArgs ──connect──> Cluster ──┬── watch_leases, watch_candidates ──> WatchEvent, one after the other
//!                                     ├── Writer: put, post, delete, read ──> WriteOutcome
//!                                     ├── HolderShell: one Lease, won, kept and ended by protocol::holder
//!                                     └── ApiDiscovery: which LeaseCandidates to use, at first and from then on
//!   Cluster::request, server_time: what no type here stands for
//!   LeaseEventRecorder: Events on Leases; list_hold_backs, list_reported_events: what they say
//!   Reflection: objects as a reader sees them who decides nothing
//!   Clock: elector's, holder's and wall clock in one value
//!   LogArgs ──init_logging──> stderr          shutdown_signal() ──> which one          printable(text) ──> one safe line
//!   HttpServer: probes and scrapes, within bounds       HealthChecks: their answers, as kube-apiserver has them
//!   FailureLog: what fails, in few lines         RequestSlot: a request under way         panic_text, random_seed
//! ```
//!
//! It is the only crate that sets up a `kube::Client`. Nothing in it retries a write, hides an outcome or waits
//! without a bound: each request has one timeout, answer included; watches back off with a cap and a floor; deciding
//! what to do next is left to the caller.
//!
//! | feature | brings |
//! |---|---|
//! | `connect` | `ClientArgs`, `connect`: kubeconfig, service account, TLS by rustls with ring, proxies |
//! | `clap` | flags: `ClientArgs` and `LogArgs` become `clap::Args` |
//! | `logging` | `LogArgs`, `init_logging`, on tracing-subscriber |
//! | `http-server` | `BindAddress`, `HttpServer`, `HealthChecks` |
//! | `metrics` | `MetricSet`: figures for Prometheus, and the forms that they have |
//! | `events` | `LeaseEventRecorder`, `EventPublisher`: Events, by the recorder of kube-runtime |
//! | `reflector` | `Reflection`: Leases and LeaseCandidates to look at, by the watcher and the reflector of kube-runtime |
//!
//! None is on by default: without `connect` a [`Cluster`] is made of a client of the program's own. It builds on Linux and
//! macOS, whose clocks notice a suspend.
//!
//! ```no_run
//! use elector_api::Lease;
//! use elector_runtime::{Cluster, Scope, Watch, WatchEvent, WatchOptions, watch_leases};
//!
//! # async fn program(cluster: Cluster) {
//! let options = WatchOptions::elector(7);
//! let mut leases: Watch<Lease> = watch_leases(&cluster, &Scope::Cluster, &options);
//! loop {
//!     match leases.next().await {
//!         WatchEvent::Applied(lease) => println!("{}: {:?}", lease.key(), lease.spec.holder_identity),
//!         WatchEvent::Failed(error) => eprintln!("failed to {error}"),
//!         _ => {}
//!     }
//! }
//! # }
//! ```

#[cfg(not(unix))]
compile_error!(
    "Elector needs clocks that notice a suspend, and signals, as Linux and macOS have them: other platforms are not supported"
);

mod api_discovery;
#[cfg(feature = "http-server")]
mod bind_address;
mod clock;
mod cluster;
mod cluster_request;
#[cfg(feature = "connect")]
mod connect;
mod event_lists;
#[cfg(feature = "events")]
mod event_publisher;
mod failure_log;
#[cfg(feature = "http-server")]
mod health_checks;
mod holder_shell;
#[cfg(feature = "http-server")]
mod http_server;
mod instance_lock;
mod kept_reads;
#[cfg(feature = "events")]
mod lease_events;
mod line;
#[cfg(feature = "logging")]
mod logging;
#[cfg(feature = "metrics")]
mod metric_series;
#[cfg(feature = "metrics")]
mod metric_set;
mod panic_text;
#[cfg(feature = "metrics")]
mod process_collector;
#[cfg(feature = "connect")]
mod proxy;
#[cfg(feature = "reflector")]
mod reflection;
mod request;
mod request_slot;
mod secrets;
mod seed;
mod server_contact;
#[cfg(unix)]
mod signals;
mod terminal;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[cfg(all(feature = "http-server", feature = "metrics", feature = "reflector"))]
mod tests;
mod watch;
mod write_outcome;
mod writer;

pub use api_discovery::ApiDiscovery;
#[cfg(feature = "http-server")]
pub use bind_address::{BindAddress, BindAddressError};
pub use clock::{Clock, ClockSource, MachineClocks, SharedInstant, SystemClock, TokioClock};
pub use cluster::{Cluster, DiscoveryError};
#[cfg(feature = "connect")]
pub use connect::{ClientArgs, ConnectError, connect};
pub use event_lists::{list_hold_backs, list_reported_events};
#[cfg(feature = "events")]
pub use event_publisher::EventPublisher;
pub use failure_log::FailureLog;
#[cfg(feature = "http-server")]
pub use health_checks::{HealthCheck, HealthChecks};
pub use holder_shell::{HolderLog, HolderShell, LeasePath, LeaseResponse};
#[cfg(feature = "http-server")]
pub use http_server::{HttpServer, ServerAnswer, ServerReply, ServerRequest};
pub use instance_lock::{InstanceLock, InstanceLockError, InstanceRun};
pub use kept_reads::read_until_answered;
#[cfg(feature = "events")]
pub use lease_events::{EventSeverity, LeaseEventRecorder, RecordedEvent};
#[cfg(feature = "logging")]
pub use logging::{LogArgs, LogError, LogFormat, init_logging};
#[cfg(feature = "metrics")]
pub use metric_series::{HistogramBuckets, HistogramFamily, LabelSet, Seconds, SecondsGauge};
#[cfg(feature = "metrics")]
pub use metric_set::{MetricDescription, MetricSet};
pub use panic_text::panic_text;
#[cfg(feature = "metrics")]
pub use process_collector::ProcessCollector;
#[cfg(feature = "reflector")]
pub use reflection::{Reflection, reflect_candidates, reflect_leases};
pub use request::{Cause, RequestError, Target, Verb};
pub use request_slot::RequestSlot;
pub use seed::random_seed;
pub use server_contact::ServerContact;
#[cfg(unix)]
pub use signals::{Signal, shutdown_signal};
pub use terminal::{printable, printable_json};
pub use watch::{Scope, Watch, WatchEvent, WatchOptions, watch_candidates, watch_leases};
pub use write_outcome::{WriteCounts, WriteOutcome, WriteOutcomeKind, Written};
pub use writer::{JudgedCandidate, Writer};
