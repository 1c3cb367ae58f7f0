//! What Elector's shells share: the connection to an API server, its watches, its writer, and the clocks.
//!
//! ```text
//!   ClientArgs ──connect──> Cluster ──┬── watch_leases, watch_candidates ──> WatchEvent, one after the other
//!                                     ├── Writer: put, post, delete, read ──> WriteOutcome
//!                                     ├── HolderShell: one Lease, won, kept and ended by protocol::holder
//!                                     └── ApiDiscovery: which LeaseCandidates to use, at first and from then on
//!   Cluster::request, server_time: what no type here stands for
//!   LeaseEventRecorder: Events on Leases, and list_hold_backs, which reads what they tell
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
//! ```no_run
//! use elector_api::Lease;
//! use elector_runtime::{ClientArgs, Scope, Watch, WatchEvent, WatchOptions, connect, watch_leases};
//!
//! # async fn program() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = connect(&ClientArgs::default()).await?;
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

mod api_discovery;
mod bind_address;
mod clock;
mod cluster;
mod cluster_request;
mod connect;
mod failure_log;
mod health_checks;
mod holder_shell;
mod http_server;
mod lease_events;
mod line;
mod logging;
mod panic_text;
mod proxy;
mod request;
mod request_slot;
mod secrets;
mod seed;
mod signals;
mod terminal;
#[cfg(test)]
mod testing;
mod watch;
mod write_outcome;
mod writer;

pub use api_discovery::ApiDiscovery;
pub use bind_address::{BindAddress, BindAddressError};
pub use clock::{Clock, SharedInstant, SystemClock, TokioClock};
pub use cluster::{Cluster, DiscoveryError};
pub use connect::{ClientArgs, ConnectError, connect};
pub use failure_log::FailureLog;
pub use health_checks::{HealthCheck, HealthChecks};
pub use holder_shell::{HolderLog, HolderShell, LeasePath, LeaseResponse};
pub use http_server::{HttpServer, ServerReply};
pub use lease_events::{
    EventSeverity, LeaseEventRecorder, RecordedEvent, list_hold_backs, list_told_events,
};
pub use logging::{LogArgs, LogError, LogFormat, init_logging};
pub use panic_text::panic_text;
pub use request::{Cause, RequestError, Target, Verb};
pub use request_slot::RequestSlot;
pub use seed::random_seed;
pub use signals::{Signal, shutdown_signal};
pub use terminal::{printable, printable_json};
pub use watch::{Scope, Watch, WatchEvent, WatchOptions, watch_candidates, watch_leases};
pub use write_outcome::{WriteCounts, WriteOutcome, WriteOutcomeKind, Written};
pub use writer::{JudgedCandidate, Writer};
