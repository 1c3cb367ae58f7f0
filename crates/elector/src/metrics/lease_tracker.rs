//! The source of the figures of leases: each lease that candidates name, and each that was elected, followed record by
//! record.
//!
//! A renewal costs a look-up. The expiry of a term is looked for when its first record would expire, and again when the
//! newest would; candidates are counted once a second where any has changed, so a flood of changes costs no more than
//! its size.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use elector_protocol::{Instant, LeaseKey, ObservedLease, Occupancy, Term};
use elector_runtime::LabelSet;

use crate::metrics::candidate_counts::CandidateCounts;
use crate::metrics::measured_lease::{MeasuredLease, ShownLease};
use crate::metrics::observed_leadership::{LeaderChange, LeadershipEnd, ObservedLeadership};
use crate::metrics::obstacle::Obstacle;
use crate::metrics::open_times::NamespaceTimes;
use crate::metrics::{Metrics, NAMESPACE};
use crate::view::View;

/// The leases of one session, and the time that they were without a leader.
pub(crate) struct LeaseTracker {
    metrics: Metrics,
    /// The duration of a record that names none.
    longest: Duration,
    /// Boxed: a large map is half empty.
    leases: HashMap<LeaseKey, Box<MeasuredLease>>,
    /// When to look whether a term has expired; one time for each lease that is led.
    checks: BTreeSet<(Instant, LeaseKey)>,
    /// The leases whose candidates have to be counted, and when that is done.
    stale: Vec<LeaseKey>,
    count_at: Option<Instant>,
    /// The times that go on, by the value of the label.
    times: BTreeMap<Cow<'static, str>, NamespaceTimes>,
}

/// A lease in the view.
struct SeenLease<'v> {
    lease: Option<&'v ObservedLease>,
    has_candidates: bool,
}

/// The time to gather changes of candidates before those are counted.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// The period of reporting times that go on.
const REPORT_EVERY: Duration = Duration::from_secs(5);

// === impl LeaseTracker ===

impl LeaseTracker {
    /// One that follows nothing yet; what an earlier session knew is void.
    pub(crate) fn new(metrics: Metrics, longest: Duration) -> Self {
        metrics.forget_leases();
        Self {
            metrics,
            longest,
            leases: HashMap::new(),
            checks: BTreeSet::new(),
            stale: Vec::new(),
            count_at: None,
            times: BTreeMap::new(),
        }
    }

    /// All is listed.
    pub(crate) fn begin(&mut self, now: Instant, view: &View) {
        for key in view.keys().into_iter().chain(view.abandoned_keys()) {
            self.follow(now, key, view);
        }
        self.metrics.remove_unused_namespaces();
    }

    /// Something of a lease or of its candidates has changed.
    pub(crate) fn follow(&mut self, now: Instant, key: &LeaseKey, view: &View) {
        let tracked = self.leases.get(key);
        let was_led = tracked.is_some_and(|tracked| tracked.was_led);
        let seen = SeenLease::of(view, key);
        let Some(seen) = seen.filter(|seen| was_led || seen.is_of_interest()) else {
            self.remove(now, key);
            return;
        };
        let version = seen.lease.map(|lease| lease.snapshot.version);
        let Some(tracked) = self.leases.get_mut(key) else {
            let leadership = ObservedLeadership::begin(now, seen.lease, self.longest);
            let mut tracked = MeasuredLease::new(leadership, version);
            tracked.note(seen.is_released(), seen.has_candidates);
            self.leases.insert(key.clone(), Box::new(tracked));
            self.metrics.add_lease(&key.namespace);
            self.refresh(now, key);
            self.check_later(key);
            self.count_soon(now, key);
            return;
        };
        tracked.note(seen.is_released(), seen.has_candidates);
        tracked.was_led &= seen.lease.is_some();
        if tracked.version == version {
            self.refresh(now, key);
            self.count_soon(now, key);
            return;
        }
        tracked.version = version;
        let before = tracked.leadership.clone();
        let change = tracked.leadership.follow(now, seen.lease, self.longest);
        self.moved(now, key, &before);
        if let Some(change) = change {
            self.note_change(key, change);
        }
    }

    /// A decision about a lease, where this elector decides.
    pub(crate) fn set_obstacle(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        obstacle: Option<Obstacle>,
    ) {
        if let Some(tracked) = self.leases.get_mut(key) {
            tracked.obstacle = obstacle;
            self.refresh(now, key);
        }
    }

    /// This elector does not decide any more.
    pub(crate) fn clear_obstacles(&mut self) {
        self.metrics.0.obstructed.clear();
        for tracked in self.leases.values_mut() {
            tracked.forget_obstacle();
        }
    }

    /// Does what is due, and says when there is more to do.
    pub(crate) fn advance(&mut self, now: Instant, view: &View) -> Option<Instant> {
        while self.checks.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, key)) = self.checks.pop_first()
        {
            let Some(tracked) = self.leases.get_mut(&key) else {
                continue;
            };
            tracked.is_checked = false;
            let before = tracked.leadership.clone();
            tracked.leadership.tick(now);
            self.moved(now, &key, &before);
        }
        for times in self.times.values_mut() {
            times.report(now);
        }
        if self.count_at.is_some_and(|at| now >= at) {
            self.count_at = None;
            for key in std::mem::take(&mut self.stale) {
                self.count(now, &key, view);
            }
        }
        let check = self.checks.first().map(|(at, _)| *at);
        let is_idle = self.times.values().all(NamespaceTimes::is_idle);
        let report = (!is_idle).then(|| now.after(REPORT_EVERY));
        [check, self.count_at, report].into_iter().flatten().min()
    }

    fn remove(&mut self, now: Instant, key: &LeaseKey) {
        let Some(tracked) = self.leases.remove(key) else {
            return;
        };
        self.add_candidates(key, tracked.candidates, CandidateCounts::default());
        self.show(now, key, tracked.shown, None);
        if let Some(namespace) = self.metrics.remove_lease(&key.namespace) {
            self.times.remove(&namespace);
        }
    }

    /// The leadership of a lease may have changed.
    fn moved(&mut self, now: Instant, key: &LeaseKey, before: &ObservedLeadership) {
        let Some(tracked) = self.leases.get(key) else {
            return;
        };
        let after = &tracked.leadership;
        if let Some(since) = before.preferred_since()
            && !after.continues(before)
        {
            let took = now.since(since).as_secs_f64();
            self.metrics.0.preference.observe(took);
        }
        if before.leader() != after.leader() {
            self.count_soon(now, key);
        }
        self.refresh(now, key);
        self.check_later(key);
    }

    /// Brings the figures of a lease up to date.
    fn refresh(&mut self, now: Instant, key: &LeaseKey) {
        let Some(tracked) = self.leases.get_mut(key) else {
            return;
        };
        let (before, after) = tracked.refresh(now);
        if before != Some(after) {
            self.show(now, key, before, Some(after));
        }
    }

    /// Has a lease shown so, and no longer as before.
    fn show(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        before: Option<ShownLease>,
        after: Option<ShownLease>,
    ) {
        let families = &*self.metrics.0;
        for (shown, by) in [(before, -1), (after, 1)] {
            let Some(shown) = shown else {
                continue;
            };
            let labels = self.labels(key, "state", shown.state.as_str());
            families.leases.get_or_create(&labels).inc_by(by);
            if let Some(obstacle) = shown.obstacle {
                let labels = self.labels(key, "obstacle", obstacle.as_str());
                families.obstructed.get_or_create(&labels).inc_by(by);
            }
        }
        let label = self.metrics.namespace_label(&key.namespace);
        let times = self.times.entry(label).or_insert_with_key(|label| {
            let labels = vec![(NAMESPACE, label.clone())];
            NamespaceTimes::new(
                now,
                families.longest_leaderless.get_or_create_owned(&labels),
                families.oldest_preference.get_or_create_owned(&labels),
                families.leaderless_seconds.get_or_create_owned(&labels),
            )
        });
        times.report(now);
        let leaderless = [before, after].map(|shown| shown?.leaderless_since);
        if let [None, Some(since)] = leaderless {
            times.add_since(now, since);
        }
        let [ended, begun] = leaderless;
        times.leaderless.replace(now, key, ended, begun);
        let [ended, begun] = [before, after].map(|shown| shown?.preferred_since);
        times.preferences.replace(now, key, ended, begun);
    }

    fn note_change(&self, key: &LeaseKey, change: LeaderChange) {
        let families = &*self.metrics.0;
        let labels = self.labels(key, "reason", change.reason.as_str());
        families.leader_changes.get_or_create(&labels).inc();
        if let Some(took) = change.took {
            let histogram = match change.reason {
                LeadershipEnd::Expired => &families.failover,
                _ => &families.handover,
            };
            histogram.observe(took.as_secs_f64());
        }
    }

    /// Has the expiry of a lease looked for, unless that is under way.
    fn check_later(&mut self, key: &LeaseKey) {
        if let Some(tracked) = self.leases.get_mut(key)
            && let Some(at) = tracked.leadership.expires_at()
            && !tracked.is_checked
        {
            tracked.is_checked = true;
            self.checks.insert((at, key.clone()));
        }
    }

    fn count_soon(&mut self, now: Instant, key: &LeaseKey) {
        if let Some(tracked) = self.leases.get_mut(key)
            && !std::mem::replace(&mut tracked.is_stale, true)
        {
            self.stale.push(key.clone());
            self.count_at.get_or_insert(now.after(COUNT_AFTER));
        }
    }

    fn count(&mut self, now: Instant, key: &LeaseKey, view: &View) {
        let Some(tracked) = self.leases.get_mut(key) else {
            return;
        };
        tracked.is_stale = false;
        let counts = match view.election(key) {
            Some(Ok(election)) => CandidateCounts::of(election, tracked.leadership.leader()),
            // Candidates of a lease that cannot be read are counted when it can.
            Some(Err(_)) => return,
            None => CandidateCounts::default(),
        };
        let before = std::mem::replace(&mut tracked.candidates, counts);
        self.add_candidates(key, before, counts);
        self.refresh(now, key);
    }

    fn add_candidates(&self, key: &LeaseKey, before: CandidateCounts, after: CandidateCounts) {
        for (state, by) in after.since(before) {
            let labels = self.labels(key, "state", state);
            self.metrics.0.candidates.get_or_create(&labels).inc_by(by);
        }
    }

    fn labels(&self, key: &LeaseKey, label: &'static str, value: &'static str) -> LabelSet {
        self.metrics.labels(&key.namespace, label, value)
    }
}

// === impl SeenLease ===

impl<'v> SeenLease<'v> {
    fn of(view: &'v View, key: &LeaseKey) -> Option<Self> {
        let Some(election) = view.election(key) else {
            let lease = view.abandoned(key)?;
            return Some(Self {
                lease: Some(lease),
                has_candidates: false,
            });
        };
        // A Lease that cannot be read names no leader.
        let lease = election.ok().and_then(|election| election.watch().lease());
        Some(Self {
            lease,
            has_candidates: true,
        })
    }

    /// True if candidates name it, or its record shows that it was led.
    fn is_of_interest(&self) -> bool {
        let was_led = self.lease.is_some_and(|lease| {
            let record = &lease.snapshot.record;
            match record.holder {
                Some(_) => !record.is_unaccepted_grant(),
                None => record.term != Term::default(),
            }
        });
        self.has_candidates || was_led
    }

    /// True if its last holder stopped and let go.
    fn is_released(&self) -> bool {
        let occupancy = self.lease.map(|lease| lease.snapshot.record.occupancy());
        occupancy == Some(Occupancy::Released)
    }
}
