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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_epoch(Duration::from_secs(seconds))
    }

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).unwrap()
    }

    fn candidate(renewed: u8) -> LeaseCandidate {
        LeaseCandidate::from_value(json!({
            "apiVersion": "coordination.k8s.io/v1beta1",
            "metadata": {"namespace": "ns", "name": "me", "uid": "u", "resourceVersion": "7"},
            "spec": {"leaseName": "web", "renewTime": format!("1970-01-01T00:00:{renewed:02}.000000Z")},
        }))
    }

    #[test]
    fn an_ack_is_counted_from_its_first_ping_unless_that_failed_or_is_a_minute_ago() {
        let metrics = Metrics::default();
        let mut acks = AckTimer::new(metrics.clone());
        let counted = || {
            let text = metrics.encode();
            let mut lines = text.lines();
            let figure = |name| move |line: &&str| line.starts_with(name);
            let sum = lines
                .find(figure("elector_ack_duration_seconds_sum"))
                .unwrap();
            sum.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
        };
        let (key, record) = (
            LeaseKey::new("ns", "web"),
            candidate(5).candidate().unwrap(),
        );
        let ping = |acks: &mut AckTimer, now, written| {
            acks.handle_ping(at(now), &key, &record, time(written));
        };
        // The settlement of a ping, which asks for nothing.
        ping(&mut acks, 100, 5);
        acks.handle_candidate(at(101), &candidate(6));
        assert_eq!(counted(), 0.0);
        // The first of two; the record that it finds is no ack, and one ack is one.
        ping(&mut acks, 200, 6);
        ping(&mut acks, 201, 7);
        acks.handle_candidate(at(201), &candidate(5));
        assert_eq!(counted(), 0.0);
        acks.handle_candidate(at(202), &candidate(8));
        acks.handle_candidate(at(203), &candidate(9));
        assert_eq!(counted(), 2.0);
        ping(&mut acks, 300, 6);
        acks.handle_failure(&key, &record.name);
        acks.handle_candidate(at(302), &candidate(8));
        assert_eq!(counted(), 2.0);
        ping(&mut acks, 400, 6);
        acks.forget(at(459));
        ping(&mut acks, 459, 6);
        acks.forget(at(460));
        acks.handle_candidate(at(461), &candidate(8));
        assert_eq!(counted(), 2.0);
        ping(&mut acks, 500, 6);
        acks.forget(at(559));
        acks.handle_candidate(at(560), &candidate(8));
        assert_eq!(counted(), 62.0);
    }
}
