//! The source of the figures of leases: each lease that candidates name, followed record by record.
//!
//! A renewal costs a look-up. The expiry of a term is looked for when its first record would expire, and again when the
//! newest would; candidates are counted once a second where any has changed, so a flood of changes costs no more than
//! its size.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use elector_protocol::elector::Reason;
use elector_protocol::{Instant, LeaseKey, ResourceVersion};
use elector_runtime::{LabelSet, Seconds};

use crate::metrics::candidate_counts::CandidateCounts;
use crate::metrics::observed_leadership::{LeaderChange, LeadershipEnd, ObservedLeadership};
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
    /// The leaderless leases of each value of the label, and until when their time is counted.
    leaderless: BTreeMap<Cow<'static, str>, Leaderless>,
}

/// A lease, as it enters the figures now.
struct MeasuredLease {
    leadership: ObservedLeadership,
    version: Option<ResourceVersion>,
    candidates: CandidateCounts,
    obstacle: Option<Obstacle>,
    /// True while a check is under way.
    is_checked: bool,
    /// True if its candidates have to be counted.
    is_stale: bool,
}

/// The leaderless leases of one value of the label.
struct Leaderless {
    leases: u32,
    counted_until: Instant,
    seconds: Seconds,
}

/// An obstacle to the leader of a lease, or to the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    StrategyConflict,
    ForeignStrategy,
    NoEligible,
    NoAck,
    HolderCannotYield,
    /// R23.
    HeldBack,
    Frozen,
}

/// The time to gather changes of candidates before those are counted.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// The period of summing the time of leaderless leases.
const ADD_UP_EVERY: Duration = Duration::from_secs(5);

// === impl LeaseTracker ===

impl LeaseTracker {
    /// One that follows nothing yet; what an earlier session knew is void.
    pub(crate) fn new(metrics: Metrics, longest: Duration) -> Self {
        metrics.0.leases.clear();
        metrics.0.candidates.clear();
        metrics.0.obstructed.clear();
        Self {
            metrics,
            longest,
            leases: HashMap::new(),
            checks: BTreeSet::new(),
            stale: Vec::new(),
            count_at: None,
            leaderless: BTreeMap::new(),
        }
    }

    /// Something of a lease or of its candidates has changed.
    pub(crate) fn follow(&mut self, now: Instant, key: &LeaseKey, view: &View) {
        let Some(election) = view.election(key) else {
            self.remove(now, key);
            return;
        };
        // A Lease that cannot be read names no leader.
        let lease = election.ok().and_then(|election| election.watch().lease());
        let version = lease.map(|lease| lease.snapshot.version);
        let Some(tracked) = self.leases.get_mut(key) else {
            let leadership = ObservedLeadership::begin(now, lease, self.longest);
            self.insert(now, key, leadership, version);
            return;
        };
        if tracked.version == version {
            self.count_soon(now, key);
            return;
        }
        tracked.version = version;
        let before = tracked.leadership.clone();
        let change = tracked.leadership.follow(now, lease, self.longest);
        self.moved(now, key, &before);
        if let Some(change) = change {
            self.note_change(key, change);
        }
    }

    /// A decision about a lease, where this elector decides.
    pub(crate) fn set_obstacle(&mut self, key: &LeaseKey, obstacle: Option<Obstacle>) {
        let Some(tracked) = self.leases.get_mut(key) else {
            return;
        };
        let before = std::mem::replace(&mut tracked.obstacle, obstacle);
        if before == obstacle {
            return;
        }
        for (obstacle, by) in [(before, -1), (obstacle, 1)] {
            if let Some(obstacle) = obstacle {
                let labels = self.labels(key, "obstacle", obstacle.as_str());
                self.metrics.0.obstructed.get_or_create(&labels).inc_by(by);
            }
        }
    }

    /// This elector does not decide any more.
    pub(crate) fn clear_obstacles(&mut self) {
        self.metrics.0.obstructed.clear();
        for tracked in self.leases.values_mut() {
            tracked.obstacle = None;
        }
    }

    /// Does what is due, and says when there is more to do.
    pub(crate) fn advance(&mut self, now: Instant, view: &View) -> Option<Instant> {
        while let Some((at, key)) = self.checks.pop_first() {
            if at > now {
                self.checks.insert((at, key));
                break;
            }
            let Some(tracked) = self.leases.get_mut(&key) else {
                continue;
            };
            tracked.is_checked = false;
            let before = tracked.leadership.clone();
            tracked.leadership.tick(now);
            self.moved(now, &key, &before);
        }
        for leaderless in self.leaderless.values_mut() {
            leaderless.add_up(now);
        }
        if self.count_at.is_some_and(|at| now >= at) {
            self.count_at = None;
            for key in std::mem::take(&mut self.stale) {
                self.count(&key, view);
            }
        }
        let check = self.checks.first().map(|(at, _)| *at);
        let idle = self.leaderless.values().all(|of| of.leases == 0);
        let add_up = (!idle).then(|| now.after(ADD_UP_EVERY));
        [check, self.count_at, add_up].into_iter().flatten().min()
    }

    fn insert(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        leadership: ObservedLeadership,
        version: Option<ResourceVersion>,
    ) {
        self.enter(now, key, &leadership, 1);
        let tracked = MeasuredLease {
            leadership,
            version,
            candidates: CandidateCounts::default(),
            obstacle: None,
            is_checked: false,
            is_stale: false,
        };
        self.leases.insert(key.clone(), Box::new(tracked));
        self.check_later(key);
        self.count_soon(now, key);
    }

    fn remove(&mut self, now: Instant, key: &LeaseKey) {
        self.set_obstacle(key, None);
        let Some(tracked) = self.leases.remove(key) else {
            return;
        };
        self.enter(now, key, &tracked.leadership, -1);
        self.add_candidates(key, tracked.candidates, CandidateCounts::default());
    }

    /// The leadership of a lease may have changed.
    fn moved(&mut self, now: Instant, key: &LeaseKey, before: &ObservedLeadership) {
        let Some(tracked) = self.leases.get(key) else {
            return;
        };
        let after = tracked.leadership.clone();
        if before.leader() != after.leader() {
            self.enter(now, key, before, -1);
            self.enter(now, key, &after, 1);
            self.count_soon(now, key);
        }
        self.check_later(key);
    }

    /// Adds a lease of that leadership to the figures, or takes it out of them.
    fn enter(&mut self, now: Instant, key: &LeaseKey, leadership: &ObservedLeadership, by: i64) {
        let since = leadership.leaderless_since();
        let state = if since.is_some() { "leaderless" } else { "led" };
        let labels = self.labels(key, "state", state);
        self.metrics.0.leases.get_or_create(&labels).inc_by(by);
        let Some(since) = since else {
            return;
        };
        let value = labels[0].1.clone();
        let leaderless = self.leaderless.entry(value).or_insert_with_key(|value| {
            let labels = vec![(NAMESPACE, value.clone())];
            Leaderless {
                leases: 0,
                counted_until: now,
                seconds: self
                    .metrics
                    .0
                    .leaderless_seconds
                    .get_or_create_owned(&labels),
            }
        });
        leaderless.add_up(now);
        if by > 0 {
            leaderless.leases += 1;
            leaderless.seconds.inc_by(now.since(since).as_secs_f64());
        } else {
            leaderless.leases = leaderless.leases.saturating_sub(1);
        }
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

    fn count(&mut self, key: &LeaseKey, view: &View) {
        let Some(tracked) = self.leases.get_mut(key) else {
            return;
        };
        tracked.is_stale = false;
        // Candidates of a lease that cannot be read are counted when it can.
        let Some(Ok(election)) = view.election(key) else {
            return;
        };
        let counts = CandidateCounts::of(election, tracked.leadership.leader());
        let before = std::mem::replace(&mut tracked.candidates, counts);
        self.add_candidates(key, before, counts);
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

// === impl Leaderless ===

impl Leaderless {
    /// Adds the time since that was last done.
    fn add_up(&mut self, now: Instant) {
        let passed = now.since(self.counted_until).as_secs_f64();
        self.counted_until = self.counted_until.max(now);
        self.seconds.inc_by(passed * f64::from(self.leases));
    }
}

// === impl Obstacle ===

impl Obstacle {
    /// The obstacle by a decision for this reason.
    pub(crate) fn of(reason: &Reason) -> Option<Self> {
        match reason {
            Reason::StrategyConflict(_) => Some(Self::StrategyConflict),
            Reason::ForeignStrategy(_) => Some(Self::ForeignStrategy),
            Reason::NoEligible { .. } => Some(Self::NoEligible),
            Reason::NoAck(_) => Some(Self::NoAck),
            Reason::HolderCannotYield { .. } => Some(Self::HolderCannotYield),
            Reason::HeldBack { .. } => Some(Self::HeldBack),
            Reason::Frozen { .. } => Some(Self::Frozen),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::StrategyConflict => "strategy_conflict",
            Self::ForeignStrategy => "foreign_strategy",
            Self::NoEligible => "no_eligible",
            Self::NoAck => "no_ack",
            Self::HolderCannotYield => "holder_cannot_yield",
            Self::HeldBack => "held_back",
            Self::Frozen => "frozen",
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::elector::HoldBackCause;
    use elector_protocol::{Identity, StrategyName};

    use super::*;

    #[test]
    fn a_reason_without_the_best_leader_is_an_obstacle() {
        let id = |name: &str| Identity::new(name).unwrap();
        let (holder, better) = (id("a"), id("b"));
        let remaining = Duration::from_secs(60);
        let foreign = StrategyName::parse("example.com/mine").unwrap();
        for (reason, obstacle) in [
            (Reason::ForeignStrategy(foreign), Some("foreign_strategy")),
            (Reason::NoAck(vec![id("a")]), Some("no_ack")),
            (
                Reason::HolderCannotYield {
                    holder: holder.clone(),
                    better: better.clone(),
                },
                Some("holder_cannot_yield"),
            ),
            (
                Reason::HeldBack {
                    holder: holder.clone(),
                    better: better.clone(),
                    because: HoldBackCause::NewSinceFailure,
                    remaining,
                },
                Some("held_back"),
            ),
            (
                Reason::Frozen {
                    holder: holder.clone(),
                    better,
                    remaining,
                },
                Some("frozen"),
            ),
            (Reason::HolderIsBest(holder), None),
        ] {
            assert_eq!(Obstacle::of(&reason).map(Obstacle::as_str), obstacle);
        }
    }
}
