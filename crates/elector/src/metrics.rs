//! The figures of an elector, as Prometheus takes them.
//!
//! ```text
//!   SessionMonitor ──> LeaseTracker, AckTimer, MeasuredQueue ──> Metrics: counters, gauges, histograms ──> scrape
//! ```
//!
//! The elector's loop only adds to numbers; the text is made on the task that is asked for it. No label holds text from
//! an object but the names of the first [`NAMESPACES`] namespaces.

mod ack_timer;
mod candidate_counts;
mod lease_tracker;
mod namespaces;
mod observed_leadership;
mod queue;
mod writes;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use elector_runtime::{
    HistogramFamily, LabelSet, MetricDescription, MetricSet, Seconds, SecondsGauge, WriteCounts,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use self::namespaces::NamespaceLabels;
use self::writes::WriteCollector;
use crate::event::{ElectorObserver, Event};
use crate::view::LimitHit;

pub(crate) use self::ack_timer::AckTimer;
pub(crate) use self::lease_tracker::{LeaseTracker, Obstacle};
pub(crate) use self::queue::MeasuredQueue;

/// The figures of one elector. Clones are the same ones.
///
/// `docs/metrics.md` describes each of them.
///
/// ```
/// use elector::Metrics;
///
/// let text = Metrics::default().encode();
/// assert!(text.contains("elector_build_info{version="));
/// ```
#[derive(Clone)]
pub struct Metrics(Arc<MetricFamilies>);

/// Every metric.
struct MetricFamilies {
    set: MetricSet,
    namespaces: Mutex<NamespaceLabels>,
    leaderless_seconds: Family<LabelSet, Seconds>,
    leases: Family<LabelSet, Gauge>,
    leader_changes: Family<LabelSet, Counter>,
    handover: Histogram,
    failover: Histogram,
    ack: Histogram,
    candidates: Family<LabelSet, Gauge>,
    obstructed: Family<LabelSet, Gauge>,
    limits_hit: Family<LabelSet, Counter>,
    watch_restarts: Family<LabelSet, Counter>,
    watch_failures: Family<LabelSet, Counter>,
    master_status: Family<LabelSet, Gauge>,
    writes: Arc<WriteCounts>,
    queue_depth: Family<LabelSet, Gauge>,
    queue_adds: Family<LabelSet, Counter>,
    queue_retries: Family<LabelSet, Counter>,
    queue_duration: HistogramFamily,
    queue_work: HistogramFamily,
    queue_unfinished: Family<LabelSet, SecondsGauge>,
    queue_longest: Family<LabelSet, SecondsGauge>,
}

/// The limit of distinct namespaces; all further ones share a label.
pub(crate) const NAMESPACES: usize = 100;

/// Those of client-go's workqueue.
const QUEUE_BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

const NAMESPACE: &str = "namespace";

// === impl Metrics ===

impl Metrics {
    /// The content type of what [`Self::encode`] returns.
    pub const CONTENT_TYPE: &str = MetricSet::CONTENT_TYPE;

    /// The figures now, in the text format of OpenMetrics.
    pub fn encode(&self) -> String {
        self.0.set.encode()
    }

    /// Descriptions of every metric, also of those that have no sample yet.
    pub fn descriptions(&self) -> &[MetricDescription] {
        self.0.set.descriptions()
    }

    /// Where writers count how their writes ended.
    pub(crate) fn write_counts(&self) -> &Arc<WriteCounts> {
        &self.0.writes
    }

    /// An observer that notes which elector leads, before it tells that one.
    pub(crate) fn observing(&self, observer: ElectorObserver) -> ElectorObserver {
        let metrics = self.clone();
        Arc::new(move |event| {
            match event {
                Event::Leading { lease, .. } => metrics.set_master(&lease.name, true),
                Event::StandingBy { lease, .. } => metrics.set_master(&lease.name, false),
                _ => {}
            }
            observer(event);
        })
    }

    /// This elector leads the electors or not; their lock has that name.
    pub(crate) fn set_master(&self, lock: &str, leads: bool) {
        let labels = vec![("name", Cow::Owned(lock.to_owned()))];
        let status = self.0.master_status.get_or_create(&labels);
        status.set(i64::from(leads));
    }

    /// There was more of something than one namespace or lease may have.
    pub(crate) fn count_limit_hit(&self, hit: &LimitHit) {
        let limit = match hit {
            LimitHit::Lease { .. } => "candidates_of_lease",
            LimitHit::Namespace { .. } => "candidates_of_namespace",
            LimitHit::Writes { .. } => "requests_of_namespace",
        };
        let labels = self.labels(&hit.lease().namespace, "limit", limit);
        self.0.limits_hit.get_or_create(&labels).inc();
    }

    /// The labels of a figure of a namespace.
    fn labels(&self, namespace: &Arc<str>, label: &'static str, value: &'static str) -> LabelSet {
        // A poisoned lock holds a valid state: every update is a single insertion.
        let namespaces = self.0.namespaces.lock();
        let mut namespaces = namespaces.unwrap_or_else(PoisonError::into_inner);
        vec![
            (NAMESPACE, namespaces.value(namespace)),
            (label, Cow::Borrowed(value)),
        ]
    }

    /// A watch of this resource lists anew.
    pub(crate) fn count_watch_restart(&self, resource: &'static str) {
        let labels = vec![("resource", Cow::Borrowed(resource))];
        self.0.watch_restarts.get_or_create(&labels).inc();
    }

    /// A request of a watch of this resource failed.
    pub(crate) fn count_watch_failure(&self, resource: &'static str) {
        let labels = vec![("resource", Cow::Borrowed(resource))];
        self.0.watch_failures.get_or_create(&labels).inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut set = MetricSet::default();
        let writes = Arc::<WriteCounts>::default();
        set.info(
            "elector_build",
            &[("version", env!("CARGO_PKG_VERSION"))],
            "Always 1, with the version of this elector",
        );
        set.collect(
            WriteCollector::new(Arc::clone(&writes)),
            [WriteCollector::description()],
        );
        Self(Arc::new(MetricFamilies {
            namespaces: Mutex::new(NamespaceLabels::new(NAMESPACES)),
            leaderless_seconds: set.seconds(
                "elector_leaderless",
                &[NAMESPACE],
                "Time that leases with candidates were without a leader, summed over the leases",
            ),
            leases: set.gauge(
                "elector_leases",
                &[NAMESPACE, "state"],
                "Leases that candidates name: led or leaderless",
            ),
            leader_changes: set.counter(
                "elector_leader_changes",
                &[NAMESPACE, "reason"],
                "Terms that began, by the way in which the term before ended",
            ),
            handover: set.histogram(
                "elector_handover_duration",
                &[
                    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
                    30.0,
                ],
                "From the write by which a leader handed over or released its lease to the accept of the next",
            ),
            failover: set.histogram(
                "elector_failover_duration",
                &[
                    1.0, 2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 16.0, 17.5, 20.0, 25.0, 30.0, 60.0,
                    120.0, 300.0,
                ],
                "From the last renewal of a leader that expired to the accept of the next",
            ),
            ack: set.histogram(
                "elector_ack_duration",
                &[
                    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
                ],
                "From a ping of this elector to the ack of the candidate, for those that acked",
            ),
            candidates: set.gauge(
                "elector_candidates",
                &[NAMESPACE, "state"],
                "Candidates: leading, ready, pinged without an ack so far, or ineligible",
            ),
            obstructed: set.gauge(
                "elector_obstructed_leases",
                &[NAMESPACE, "obstacle"],
                "Leases that this elector decides about and cannot elect for, or not the best candidate",
            ),
            limits_hit: set.counter(
                "elector_limits_hit",
                &[NAMESPACE, "limit"],
                "Times that a lease or a namespace came to have more of something than it may",
            ),
            watch_restarts: set.counter(
                "elector_watch_restarts",
                &["resource"],
                "Watches that had to list anew, after which something may have been missed",
            ),
            watch_failures: set.counter(
                "elector_watch_failures",
                &["resource"],
                "Requests of watches that failed",
            ),
            master_status: set.gauge(
                "leader_election_master_status",
                &["name"],
                "1 while this elector leads the electors, 0 while it stands by; only with --leader-elect",
            ),
            writes,
            queue_depth: set.gauge(
                "workqueue_depth",
                &["name"],
                "Leases that are ready to be decided about",
            ),
            queue_adds: set.counter(
                "workqueue_adds",
                &["name"],
                "Decisions that were asked for",
            ),
            queue_retries: set.counter(
                "workqueue_retries",
                &["name"],
                "Decisions that were asked for again because requests had failed",
            ),
            queue_duration: set.histograms(
                "workqueue_queue_duration",
                &["name"],
                QUEUE_BUCKETS,
                "How long a lease was ready before it was decided about",
            ),
            queue_work: set.histograms(
                "workqueue_work_duration",
                &["name"],
                QUEUE_BUCKETS,
                "How long a decision took, its requests included",
            ),
            queue_unfinished: set.seconds_gauge(
                "workqueue_unfinished_work",
                &["name"],
                "How long the decisions under way have been, summed",
            ),
            queue_longest: set.seconds_gauge(
                "workqueue_longest_running_processor",
                &["name"],
                "How long the oldest decision under way has been",
            ),
            set,
        }))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
