//! All that an elector is given once, for its sessions and its locks.

use std::sync::Arc;

use elector_protocol::elector::{Decision, Election, Settings};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock, Cluster};

use crate::config::Config;
use crate::event::ElectorObserver;

/// The step of an election: [`Election::step`], save in tests that make it fail.
pub(crate) type StepFn = fn(&Election, Instant, Timestamp, &Settings) -> Decision;

/// The configuration of one elector and the world that it lives in.
pub(crate) struct ElectorContext {
    pub(crate) config: Config,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Arc<dyn Clock>,
    /// Spreads the retries of many electors, and names this one.
    pub(crate) seed: u64,
    pub(crate) step: StepFn,
    pub(crate) observer: ElectorObserver,
}
