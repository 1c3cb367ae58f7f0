//! The figures of an elector, as Prometheus takes them.
//!
//! ```text
//!   SessionMonitor ──> LeaseTracker, AckTimer, MeasuredQueue ──> Metrics: counters, gauges, histograms ──> scrape
//! ```
//!
//! The elector's loop only adds to numbers; the text is made on the task that is asked for it. No label holds text from
//! an object but the names of namespaces, of which there are at most a number that is given.

mod ack_timer;
mod candidate_counts;
mod contact;
mod lease_tracker;
mod measured_lease;
mod namespaces;
mod observed_leadership;
mod obstacle;
mod open_times;
mod queue;
mod writes;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elector_protocol::GroupCounts;
use elector_runtime::{
    HistogramFamily, LabelSet, MetricDescription, MetricSet, ProcessCollector, Seconds,
    SecondsGauge, ServerContact, WriteCounts,
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use self::candidate_counts::CandidateCounts;
use self::contact::ContactCollector;
use self::measured_lease::LeadershipState;
use self::namespaces::NamespaceLabels;
use self::observed_leadership::LeadershipEnd;
use self::writes::WriteCollector;
use crate::event::{ElectorObserver, Event};
use crate::view::{GroupNews, LimitHit};

pub(crate) use self::ack_timer::AckTimer;
pub(crate) use self::lease_tracker::LeaseTracker;
pub(crate) use self::obstacle::Obstacle;
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
    acting: Gauge,
    ready: Gauge,
    contact: ContactCollector,
    leaderless_seconds: Family<LabelSet, Seconds>,
    longest_leaderless: Family<LabelSet, SecondsGauge>,
    oldest_preference: Family<LabelSet, SecondsGauge>,
    preference: Histogram,
    leases: Family<LabelSet, Gauge>,
    leader_changes: Family<LabelSet, Counter>,
    handover: Histogram,
    failover: Histogram,
    ack: Histogram,
    candidates: Family<LabelSet, Gauge>,
    obstructed: Family<LabelSet, Gauge>,
    limits_hit: Family<LabelSet, Counter>,
    group_parts: Family<LabelSet, Gauge>,
    group_moves: Family<LabelSet, Counter>,
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

/// Those of client-go's workqueue.
const QUEUE_BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

const NAMESPACE: &str = "namespace";

/// The limits that a lease or a namespace can hit.
const LIMITS: [&str; 3] = [
    "candidates_of_lease",
    "candidates_of_namespace",
    "requests_of_namespace",
];

/// The states of a part of a group.
const PART_STATES: [&str; 3] = ["settled", "to_move", "vacant"];

// === impl Metrics ===

impl Metrics {
    /// The content type of what [`Self::encode`] returns.
    pub const CONTENT_TYPE: &str = MetricSet::CONTENT_TYPE;

    /// The number of namespaces with a label of their own where nothing else is said.
    pub const NAMESPACES: usize = 100;

    /// Figures in which that many namespaces have a label of their own at the same time; all others share one.
    pub fn with_namespaces(namespaces: usize) -> Self {
        Self(Arc::new(MetricFamilies::new(namespaces)))
    }

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
            LimitHit::Lease { .. } => LIMITS[0],
            LimitHit::Namespace { .. } => LIMITS[1],
            LimitHit::Writes { .. } => LIMITS[2],
        };
        let labels = self.labels(&hit.lease().namespace, "limit", limit);
        self.0.limits_hit.get_or_create(&labels).inc();
    }

    /// A group of leases has other numbers than before.
    pub(crate) fn count_group(&self, news: &GroupNews) {
        let states = |counts: &GroupCounts| {
            let settled = counts.parts.saturating_sub(counts.to_move + counts.vacant);
            [settled, counts.to_move, counts.vacant].map(|it| i64::try_from(it).unwrap_or(i64::MAX))
        };
        let numbers = states(&news.before).into_iter().zip(states(&news.after));
        for (state, (before, after)) in PART_STATES.into_iter().zip(numbers) {
            let labels = self.labels(&news.namespace, "state", state);
            let parts = self.0.group_parts.get_or_create(&labels);
            parts.inc_by(after - before);
        }
        let labels = vec![(NAMESPACE, self.namespace_label(&news.namespace))];
        let moved = news.after.moved.saturating_sub(news.before.moved);
        self.0.group_moves.get_or_create(&labels).inc_by(moved);
    }

    /// The labels of a figure of a namespace.
    fn labels(&self, namespace: &Arc<str>, label: &'static str, value: &'static str) -> LabelSet {
        vec![
            (NAMESPACE, self.namespace_label(namespace)),
            (label, Cow::Borrowed(value)),
        ]
    }

    /// The value of the label of a namespace.
    fn namespace_label(&self, namespace: &Arc<str>) -> Cow<'static, str> {
        self.namespaces().value(namespace)
    }

    /// A lease of this namespace comes into the figures.
    fn add_lease(&self, namespace: &Arc<str>) {
        self.namespaces().add_lease(namespace);
    }

    /// A lease of this namespace has left the figures. The value of the label that goes with it, if one does.
    fn remove_lease(&self, namespace: &Arc<str>) -> Option<Cow<'static, str>> {
        let is_gone = self.namespaces().remove_lease(namespace);
        is_gone.then(|| self.0.remove_namespace(namespace))
    }

    /// No lease is in the figures any more.
    fn forget_leases(&self) {
        let families = &self.0;
        let gauges = [
            &families.leases,
            &families.candidates,
            &families.obstructed,
            &families.group_parts,
        ];
        for gauges in gauges {
            gauges.clear();
        }
        families.longest_leaderless.clear();
        families.oldest_preference.clear();
        self.namespaces().remove_leases();
    }

    /// All leases are in the figures: what is left of other namespaces goes.
    fn remove_unused_namespaces(&self) {
        let unused = self.namespaces().remove_unused();
        for namespace in unused {
            self.0.remove_namespace(&namespace);
        }
    }

    fn namespaces(&self) -> MutexGuard<'_, NamespaceLabels> {
        // A poisoned lock holds a valid state: a label that is counted wrongly stays for longer.
        let namespaces = self.0.namespaces.lock();
        namespaces.unwrap_or_else(PoisonError::into_inner)
    }

    /// This elector acts, or stands by.
    pub(crate) fn set_acting(&self, acts: bool) {
        self.0.acting.set(i64::from(acts));
    }

    /// This elector is ready to act, or not.
    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.0.ready.set(i64::from(is_ready));
    }

    /// The server that this elector talks to.
    pub(crate) fn set_contact(&self, contact: ServerContact) {
        self.0.contact.set(contact);
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
        Self::with_namespaces(Self::NAMESPACES)
    }
}

// === impl MetricFamilies ===

impl MetricFamilies {
    fn new(namespaces: usize) -> Self {
        let mut set = MetricSet::default();
        let contact = ContactCollector::default();
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
        set.collect(contact.clone(), ContactCollector::descriptions());
        set.collect(ProcessCollector, ProcessCollector::descriptions());
        Self {
            namespaces: Mutex::new(NamespaceLabels::new(namespaces)),
            acting: set.single_gauge(
                "elector_acting",
                "1 while this elector acts, 0 while it stands by, or is about to begin",
            ),
            ready: set.single_gauge(
                "elector_ready",
                "1 while this elector is ready, as /readyz has it, else 0",
            ),
            contact,
            longest_leaderless: set.seconds_gauge(
                "elector_longest_leaderless",
                &[NAMESPACE],
                "For how long a lease has lacked a leader, that which has for the longest; 0 where none does",
            ),
            oldest_preference: set.seconds_gauge(
                "elector_oldest_preference",
                &[NAMESPACE],
                "For how long a leader has been asked to make room and has not, that which has for the longest",
            ),
            preference: set.histogram(
                "elector_preference_duration",
                &[
                    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
                ],
                "From a preference to the end of the term of the leader that was asked to make room",
            ),
            leaderless_seconds: set.seconds(
                "elector_leaderless",
                &[NAMESPACE],
                "Time that leases lacked a leader, summed over the leases",
            ),
            leases: set.gauge(
                "elector_leases",
                &[NAMESPACE, "state"],
                "Leases that candidates name or that were elected: led, leaderless, released or abandoned",
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
            group_parts: set.gauge(
                "elector_group_parts",
                &[NAMESPACE, "state"],
                "Leases that are parts of groups: settled, to move to another member, or vacant",
            ),
            group_moves: set.counter(
                "elector_group_moves",
                &[NAMESPACE],
                "Parts of groups that moved from a member to another for balance",
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
        }
    }

    /// Removes every figure of a namespace that had a label of its own, and returns its value.
    fn remove_namespace(&self, namespace: &Arc<str>) -> Cow<'static, str> {
        let value: Cow<'static, str> = Cow::Owned(namespace.as_ref().to_owned());
        let alone = vec![(NAMESPACE, value.clone())];
        self.leaderless_seconds.remove(&alone);
        self.longest_leaderless.remove(&alone);
        self.oldest_preference.remove(&alone);
        let with = |label, of| vec![(NAMESPACE, value.clone()), (label, Cow::Borrowed(of))];
        for state in LeadershipState::ALL {
            self.leases.remove(&with("state", state.as_str()));
        }
        for state in CandidateCounts::states() {
            self.candidates.remove(&with("state", state));
        }
        for obstacle in Obstacle::ALL {
            self.obstructed.remove(&with("obstacle", obstacle.as_str()));
        }
        for end in LeadershipEnd::ALL {
            self.leader_changes.remove(&with("reason", end.as_str()));
        }
        self.group_moves.remove(&alone);
        for state in PART_STATES {
            self.group_parts.remove(&with("state", state));
        }
        for limit in LIMITS {
            self.limits_hit.remove(&with("limit", limit));
        }
        value
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
