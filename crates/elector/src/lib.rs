//! The server-side elector of coordinated leader election, as a library.
//!
//! Components register as candidates for a lease; an elector pings the best of them, grants it the
//! lease, and asks a holder to make room for a better one. Every decision is
//! [`elector_protocol::elector::Election::step`]; this crate brings it what happens in a cluster and carries out what
//! it decides.
//!
//! ```text
//!  watch Lease ────────┐          ┌─ what is to be judged ─┐
//!  watch LeaseCandidate┴─> view ──┤                        ├──> workqueue ──> step ──> requests ──> API server
//!                           ^     └─ deadlines of a step ──┘                               │
//!                           └──────────────── responses ───────────────────────────────────┘
//! ```
//!
//! * Nothing is written before leases and candidates have both been listed completely.
//! * Nothing is polled: a step says when it has something to do next, and events wake it earlier.
//! * Each write names the revision that was judged. A conflict means: read again, judge again.
//! * A request that fails is repeated after 5 ms, doubling to 5 s; other leases do not wait for it. Neither a panic nor
//!   an object that cannot be read stops the others.
//! * What happens to a Lease is recorded in Events on it, where [`Config::event_host`] names the author; elections do not
//!   wait for them.
//! * Any number of electors may run at the same time; each change is written by the first of them (R17). With
//!   [`LeaderElection`] among them one acts, and the others stand by.
//!
//! Its findings and decisions come as values, [`Event`]s, by [`Elector::observed_by`].
//!
//! It reports its [`Health`] by [`Elector::with_health`] and its figures by [`Elector::with_metrics`].
//!
//! The smallest program is in the example of [`Elector`]. What it does not do: serve either of them.

mod active_belief;
mod builtin;
mod config;
mod elector;
mod elector_context;
mod elector_lock;
mod event;
mod event_recorder;
mod health;
mod leader_election;
mod leadership_change;
mod lock_driver;
mod metrics;
mod namespace_budget;
mod session;
mod view;

pub use config::{BuiltinController, Config, ConfigError, Scope};
pub use elector::Elector;
pub use elector_runtime::MetricDescription;
pub use event::Event;
pub use health::Health;
pub use leader_election::{LeaderElection, LeaderElectionError};
pub use leadership_change::{ChangeCause, LeadershipChange};
pub use metrics::Metrics;
