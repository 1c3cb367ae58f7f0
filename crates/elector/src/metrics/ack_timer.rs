//! The delay of acks to the pings of this elector.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_api::LeaseCandidate;
use elector_protocol::{CandidateRecord, Identity, Instant, LeaseKey, Timestamp};

use crate::metrics::Metrics;

/// The pings that have not been acked yet.
pub(crate) struct AckTimer {
    metrics: Metrics,
    open: BTreeMap<(Arc<str>, Identity), OpenPing>,
}

/// A ping, and the renewal time that the candidate had then.
struct OpenPing {
    at: Instant,
    renewed: Option<Timestamp>,
}

/// For how long an ack is waited for: longer than any ack window lets a candidate answer.
const FORGOTTEN: Duration = Duration::from_secs(60);

// === impl AckTimer ===

impl AckTimer {
    pub(crate) const fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            open: BTreeMap::new(),
        }
    }

    /// This ping of a candidate is being written.
    pub(crate) fn handle_ping(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        candidate: &CandidateRecord,
        ping: Timestamp,
    ) {
        let renewed = candidate.renew;
        // The settlement of a ping asks for nothing (R15).
        if renewed.is_none_or(|renewed| renewed < ping) {
            let name = (Arc::clone(&key.namespace), candidate.name.clone());
            self.open
                .entry(name)
                .or_insert(OpenPing { at: now, renewed });
        }
    }

    /// A ping was not stored.
    pub(crate) fn handle_failure(&mut self, key: &LeaseKey, name: &Identity) {
        self.open
            .remove(&(Arc::clone(&key.namespace), name.clone()));
    }

    /// A candidate was seen.
    pub(crate) fn handle_candidate(&mut self, now: Instant, object: &LeaseCandidate) {
        if self.open.is_empty() {
            return;
        }
        let Ok(candidate) = object.candidate() else {
            return;
        };
        let name = (object.lease_key().namespace.clone(), candidate.name);
        if let Some(ping) = self.open.get(&name)
            && candidate.renew != ping.renewed
        {
            let took = now.since(ping.at);
            self.metrics.0.ack.observe(took.as_secs_f64());
            self.open.remove(&name);
        }
    }

    /// Drops the pings that no ack will come for.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.open.retain(|_, ping| now.since(ping.at) < FORGOTTEN);
    }
}
