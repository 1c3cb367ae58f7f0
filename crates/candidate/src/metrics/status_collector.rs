//! Figures that are true at the scrape alone: who leads by the clock, and for how long yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elector_protocol::LeaseKey;
use elector_runtime::{LabelSet, MetricDescription};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::handle::CandidateHandle;
use crate::metrics::lease_families::{LEASE, NAMESPACE, lease_labels, name_label};
use crate::status::LeaseStatus;

/// The leases of the candidates of a process, each with those who know its status. Clones are the same ones.
#[derive(Clone, Default)]
pub(super) struct StatusCollector(Arc<Mutex<BTreeMap<LeaseKey, Vec<CandidateHandle>>>>);

/// Name without the unit, meaning, unit, and labels of a gauge.
type GaugeDescription = (
    &'static str,
    &'static str,
    Option<Unit>,
    &'static [&'static str],
);

const LEADING: GaugeDescription = (
    "elector_candidate_leading",
    "1 while this process leads by its own clock, else 0",
    None,
    &[NAMESPACE, LEASE],
);
const TERM: GaugeDescription = (
    "elector_candidate_term",
    "The number of the term that the Lease is in, as this process knows it",
    None,
    &[NAMESPACE, LEASE],
);
const TOKEN: GaugeDescription = (
    "elector_candidate_token",
    "The fencing token of that term",
    None,
    &[NAMESPACE, LEASE],
);
const REMAINING: GaugeDescription = (
    "elector_candidate_remaining",
    "Until this process ceases to lead unless a renewal succeeds",
    Some(Unit::Seconds),
    &[NAMESPACE, LEASE],
);
const WELL: GaugeDescription = (
    "elector_candidate_well",
    "1 while this process is well by its health probe, or has none, 0 while it is no candidate for it",
    None,
    &[NAMESPACE, LEASE],
);
const MASTER_STATUS: GaugeDescription = (
    "leader_election_master_status",
    "1 while this process leads, 0 while it does not",
    None,
    &["name"],
);

// === impl StatusCollector ===

impl StatusCollector {
    pub(super) fn descriptions() -> impl Iterator<Item = MetricDescription> {
        let gauges = [LEADING, TERM, TOKEN, REMAINING, WELL, MASTER_STATUS];
        gauges.into_iter().map(|(name, help, unit, labels)| {
            let unit = unit.map(|_| "seconds");
            let name = unit.map_or_else(|| name.to_owned(), |unit| format!("{name}_{unit}"));
            MetricDescription::new(name, "gauge", labels, unit, help)
        })
    }

    /// The lease of a run that begins. Runs of the same lease that have ended are forgotten.
    pub(super) fn follow(&self, handle: CandidateHandle) {
        let mut leases = self.lock();
        let handles = leases.entry(handle.lease().clone()).or_default();
        handles.retain(|handle| !handle.has_ended());
        handles.push(handle);
    }

    /// The status of each lease now, and the health of its candidate: the one that leads, or that began last.
    fn statuses(&self) -> Vec<(LeaseKey, LeaseStatus, bool)> {
        let leases = self.lock();
        let statuses = leases.iter().filter_map(|(lease, handles)| {
            let known = |handle: &CandidateHandle| (handle.status(), handle.check_ready().is_ok());
            let mut statuses = handles.iter().rev().map(known);
            let newest = statuses.next()?;
            let (status, is_well) = if newest.0.is_leader() {
                newest
            } else {
                statuses
                    .find(|(status, _)| status.is_leader())
                    .unwrap_or(newest)
            };
            Some((lease.clone(), status, is_well))
        });
        statuses.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseKey, Vec<CandidateHandle>>> {
        // A poisoned lock holds a valid state: every section changes one entry.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for StatusCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let statuses = self.statuses();
        let leading = statuses
            .iter()
            .map(|(lease, status, _)| (lease_labels(lease), i64::from(status.is_leader())));
        encode_gauge(&mut encoder, LEADING, leading)?;
        let terms = statuses.iter().filter_map(|(lease, status, _)| {
            Some((lease_labels(lease), i64::from(status.term()?)))
        });
        encode_gauge(&mut encoder, TERM, terms)?;
        let tokens = statuses
            .iter()
            .filter_map(|(lease, status, _)| Some((lease_labels(lease), status.token()?)));
        encode_gauge(&mut encoder, TOKEN, tokens)?;
        let remaining = statuses
            .iter()
            .map(|(lease, status, _)| (lease_labels(lease), status.remaining().as_secs_f64()));
        encode_gauge(&mut encoder, REMAINING, remaining)?;
        let well = statuses
            .iter()
            .map(|(lease, _, is_well)| (lease_labels(lease), i64::from(*is_well)));
        encode_gauge(&mut encoder, WELL, well)?;
        // Leases of one name in several namespaces share a sample.
        let led: BTreeSet<_> = statuses
            .iter()
            .filter(|(_, status, _)| status.is_leader())
            .map(|(lease, _, _)| &lease.name)
            .collect();
        let names: BTreeMap<_, _> = statuses
            .iter()
            .map(|(lease, _, _)| (&lease.name, lease))
            .collect();
        let masters = names
            .into_iter()
            .map(|(name, lease)| (name_label(lease), i64::from(led.contains(name))));
        encode_gauge(&mut encoder, MASTER_STATUS, masters)
    }
}

impl fmt::Debug for StatusCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusCollector").finish_non_exhaustive()
    }
}

fn encode_gauge<N: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, unit, _): GaugeDescription,
    samples: impl IntoIterator<Item = (LabelSet, N)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
    for (labels, value) in samples {
        ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_runtime::SystemClock;

    use super::*;
    use crate::config::Config;
    use crate::resolved_config::ResolvedConfig;
    use crate::status::StatusPublisher;

    #[test]
    fn of_the_runs_that_have_ended_the_last_is_kept() {
        let config = Config::plain("web").identity("me");
        let config = ResolvedConfig::new(config, "ns", Duration::MAX).unwrap();
        let collector = StatusCollector::default();
        for _ in 0..10 {
            let run = StatusPublisher::new(&config, Arc::new(SystemClock::start()));
            collector.follow(CandidateHandle::new(run.reader()));
        }
        assert_eq!(collector.lock()[&config.lease].len(), 1);
        let shown: Vec<_> = collector.statuses();
        assert!(shown.len() == 1 && !shown[0].1.is_leader());
    }
}
