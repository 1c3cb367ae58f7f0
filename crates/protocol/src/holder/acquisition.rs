//! A candidate's own acquisition of a free lease, without a grant (R18).

use std::time::Duration;

use super::config::{Acquisition, HolderConfig, TakeoverPolicy};
use super::wait::WaitReason;
use crate::lease::{LeaseSnapshot, Occupancy};
use crate::lease_watch::{LeasePresence, LeaseWatch, NewsSource, ObservedLease};
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::strategy::name::StrategyName;
use crate::time::Instant;
use crate::timing::{CandidateTiming, LONGEST_LEASE};

/// The knowledge beyond its own terms of a process that may acquire, by its monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AcquisitionWatch {
    watch: LeaseWatch,
    /// When the next POST may be sent.
    next_post: Instant,
    /// When a write to an unheld record lost a race; the watch brings what came before it.
    lost_race: Option<Instant>,
    /// The restart of the wait for others, since the lease became free.
    restart: Restart,
    /// When a read, or a race that was lost, last said that the process does not stand still.
    confirmed: Option<Instant>,
    /// The time for which a free lease is left to others, besides what the rules demand.
    delay: Duration,
    /// The holder that the lease was taken from, if that one may have been alive.
    taken_from: Option<LivingHolder>,
}

/// A holder whose lease was taken before its record had expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LivingHolder {
    /// When its record was first seen.
    seen: Instant,
    /// The time from then to its expiry.
    duration: Duration,
}

/// The one restart of the wait for others, who may act only now: an elector, or the former leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Restart {
    /// None so far.
    No,
    /// An acquisition or a read of the free lease had no answer: the API server is away, for the others too.
    Unanswered,
    /// A ping came, or the API server answered again.
    At(Instant),
}

/// The action due on a lease that may be acquired, and when by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquire {
    /// POST a born record (R2).
    Create(Instant),
    /// Look whether the record that was POSTed is there, or whether the lease is still free.
    Read(Instant),
    /// PUT an own term.
    Take(Instant),
}

/// The watch's time to bring what a POST created before it is looked for.
const POST_SETTLES: Duration = Duration::from_secs(2);

/// The interval of POSTs, so that a stranger that deletes the Lease again and again makes no loop of requests.
const POST_INTERVAL: Duration = Duration::from_secs(1);
/// The watch's time to bring the revision to which a write lost a race before it is read (R2).
const WATCH_SETTLES: Duration = Duration::from_secs(2);

/// The longest delay of an acquisition without a look at the Lease: more than a busy machine delays a step, and
/// less than a pause that others make use of.
pub(super) const LATE: Duration = CandidateTiming::RETRY_MIN;

// === impl AcquisitionWatch ===

impl AcquisitionWatch {
    pub(super) const fn new() -> Self {
        Self {
            watch: LeaseWatch::unknown(),
            next_post: Instant::from_epoch(Duration::ZERO),
            lost_race: None,
            restart: Restart::No,
            confirmed: None,
            delay: Duration::ZERO,
            taken_from: None,
        }
    }

    /// Takes in a newer revision.
    pub(super) fn observe(&mut self, now: Instant, snapshot: &LeaseSnapshot, source: NewsSource) {
        let before = self.since();
        if self.lost_race.take().is_some() {
            self.confirmed = Some(now);
        }
        self.watch.observe(now, snapshot.clone(), source);
        self.begin_anew_unless_since(before);
    }

    /// Takes in that the Lease is missing.
    pub(super) fn observe_absence(&mut self, now: Instant, source: NewsSource) {
        let before = self.since();
        self.watch.observe_absence(now, source);
        self.lost_race = None;
        self.begin_anew_unless_since(before);
    }

    /// Takes in a revision that cannot be read.
    pub(super) fn observe_unreadable(&mut self) {
        let before = self.since();
        self.watch.observe_unreadable();
        self.begin_anew_unless_since(before);
    }

    /// An elector's time and a confirmation are those of what is seen now, since when it is.
    fn begin_anew_unless_since(&mut self, before: Option<(bool, Instant)>) {
        if self.since() != before {
            self.restart = Restart::No;
            self.confirmed = None;
        }
    }

    /// A born record is being POSTed.
    pub(super) fn note_post(&mut self, now: Instant) {
        self.next_post = now.after(POST_INTERVAL);
    }

    /// The POST was answered.
    pub(super) fn note_posted(&mut self, now: Instant) {
        self.watch.note_posted(now);
    }

    /// A write of ours lost a race, perhaps to one that the watch is about to bring.
    pub(super) fn note_lost_race(&mut self, now: Instant, open: bool) {
        self.confirmed = Some(now);
        self.lost_race = open.then_some(now);
    }

    /// A ping of the own candidate was seen.
    pub(super) fn note_ping(&mut self, now: Instant, config: &HolderConfig) {
        let restarted = matches!(self.restart, Restart::At(_));
        if !restarted && self.free_for(now, config).is_some() {
            self.restart = Restart::At(now);
        }
    }

    /// An acquisition or a read had no answer.
    pub(super) fn note_unanswered(&mut self, now: Instant, config: &HolderConfig) {
        if self.restart == Restart::No && self.free_for(now, config).is_some() {
            self.restart = Restart::Unanswered;
        }
    }

    /// The process acquires other leases before this one.
    pub(super) const fn note_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// A read has said what the Lease is now.
    pub(super) fn note_read(&mut self, now: Instant, config: &HolderConfig) {
        self.lost_race = None;
        if self.free_for(now, config).is_some() {
            self.confirmed = Some(now);
            if self.restart == Restart::Unanswered {
                self.restart = Restart::At(now);
            }
        }
    }

    /// The lease is being taken.
    pub(super) fn note_take(&mut self, now: Instant, config: &HolderConfig) {
        let (Some(observed), Some((acquisition, _))) =
            (self.watch.lease(), config.mode.acquisition())
        else {
            return;
        };
        let expires = self.expires_at(observed, acquisition, config);
        self.taken_from = (now < expires).then(|| LivingHolder {
            seen: observed.since,
            duration: expires.since(observed.since),
        });
    }

    /// From when on the lease that was taken may be released: one that was taken from a living holder is not opened to
    /// others before that holder has certainly stopped (MC-P3b).
    pub(super) fn releasable_at(&self) -> Option<Instant> {
        let LivingHolder { seen, duration } = self.taken_from?;
        Some(seen.after(duration))
    }

    /// The next need of an acquisition. `None` where nothing is known of the Lease, or another elector decides it.
    ///
    /// A Lease that is missing is created at once: a born record grants nothing, and the wait for it runs all the same
    /// (R6 c). An acquisition that comes late, and is no retry, reads first. The process stood still, and its stop-watch
    /// runs on a record that others may have replaced since. Compare-and-swap refuses its write then; a process that
    /// wakes up writes nothing against its successor in the first place. One that had no answer reads first too: the former
    /// leader is to be the first that the API server answers.
    pub(super) fn next(
        &self,
        now: Instant,
        retries: bool,
        config: &HolderConfig,
    ) -> Option<Acquire> {
        let (acquisition, fallback) = self.acquisition(config)?;
        let observed = match (self.watch.presence(), self.watch.posted()) {
            (LeasePresence::Unknown, _) => return None,
            (LeasePresence::Absent { .. }, Some(posted)) => {
                return Some(Acquire::Read(posted.after(POST_SETTLES)));
            }
            (LeasePresence::Absent { since }, None) => {
                return Some(Acquire::Create(self.next_post.max(*since)));
            }
            (LeasePresence::Present(observed), _) => observed,
        };
        let due = self.due(observed, acquisition, fallback, config)?;
        if self.restart == Restart::Unanswered {
            return Some(Acquire::Read(due));
        }
        if let Some(lost) = self.lost_race {
            return Some(Acquire::Read(lost.after(WATCH_SETTLES)));
        }
        let fresh = self.confirmed.map_or(due, |at| at.max(due));
        if !retries && fresh.after(LATE) < now {
            return Some(Acquire::Read(now));
        }
        Some(Acquire::Take(due))
    }

    /// Why this process does not acquire the lease yet, and when it will, by the monotonic clock. `None` where nothing is
    /// known of the Lease, or another elector decides it.
    pub(super) fn waiting(&self, config: &HolderConfig) -> Option<(WaitReason, Option<Instant>)> {
        let (acquisition, fallback) = self.acquisition(config)?;
        let record = self.watch.lease().map(|lease| &lease.snapshot.record);
        // That of the record which this process creates, where there is none.
        let strategy = record.map_or(&acquisition.strategy, |record| &record.strategy);
        let longest = self.grace(strategy.as_ref(), acquisition, config);
        let unproven = WaitReason::Unproven { longest };
        let (reason, due) = match self.watch.presence() {
            LeasePresence::Unknown => return None,
            LeasePresence::Absent { since } => (unproven, since.after(longest).after(fallback)),
            LeasePresence::Present(observed) => {
                let due = self.due(observed, acquisition, fallback, config)?;
                match observed.snapshot.record.occupancy() {
                    Occupancy::Unproven => (unproven, due),
                    Occupancy::Released | Occupancy::Held(_) => (WaitReason::Fallback, due),
                }
            }
        };
        Some((reason, Some(due)))
    }

    /// The time since the lease became free.
    pub(super) fn free_for(&self, now: Instant, config: &HolderConfig) -> Option<Duration> {
        let (acquisition, _) = self.acquisition(config)?;
        let free = self.free_at(self.watch.lease()?, acquisition, config)?;
        (free <= now).then(|| now.since(free))
    }

    /// Its way to acquire the lease, where its own wish belongs to no other elector.
    fn acquisition<'a>(&self, config: &'a HolderConfig) -> Option<(&'a Acquisition, Duration)> {
        let (acquisition, fallback) = config.mode.acquisition()?;
        let ours = acquisition.strategy.as_ref().is_none_or(is_ours);
        let waits = fallback.saturating_add(self.delay);
        ours.then_some((acquisition, waits))
    }

    /// When this process may take the lease, given the time for which it is left to others. That time begins when the
    /// record is free, and anew with a restart; the former leader needs a retry period then.
    fn due(
        &self,
        observed: &ObservedLease,
        acquisition: &Acquisition,
        fallback: Duration,
        config: &HolderConfig,
    ) -> Option<Instant> {
        let free = self.free_at(observed, acquisition, config)?;
        let due = free.after(fallback);
        Some(match self.restart {
            Restart::No | Restart::Unanswered => due,
            Restart::At(at) => due.max(at.after(fallback.max(config.timing.retry_period + LATE))),
        })
    }

    /// When this record is free by this process's own stop-watch (R4, R6); `None` where another elector decides it.
    fn free_at(
        &self,
        observed: &ObservedLease,
        acquisition: &Acquisition,
        config: &HolderConfig,
    ) -> Option<Instant> {
        let record = &observed.snapshot.record;
        if !record.strategy.as_ref().is_none_or(is_ours) {
            return None;
        }
        let free = self.expires_at(observed, acquisition, config);
        Some(match (acquisition.takeover, &record.holder) {
            (TakeoverPolicy::AllButElectors, Some(holder)) if holder.is_elector() => {
                free.min(observed.since.after(config.timing.renew_deadline / 2))
            }
            (TakeoverPolicy::AllButElectors, Some(_)) => observed.since,
            _ => free,
        })
    }

    /// When this record is free by the rules for every lease (R4, R6).
    fn expires_at(
        &self,
        observed: &ObservedLease,
        acquisition: &Acquisition,
        config: &HolderConfig,
    ) -> Instant {
        let strategy = &observed.snapshot.record.strategy;
        let grace = self.grace(strategy.as_ref(), acquisition, config);
        observed.free_at(self.longest_lease(acquisition, config), grace)
    }

    /// The wait for an unproven record with that strategy (R6). A shorter wait is one process's word, and a
    /// strategy says that others count on `W_max`.
    fn grace(
        &self,
        strategy: Option<&StrategyName>,
        acquisition: &Acquisition,
        config: &HolderConfig,
    ) -> Duration {
        let longest = self.longest_lease(acquisition, config);
        let given = acquisition.absent_lease_grace;
        let counts = given.filter(|grace| strategy.is_none() || *grace >= longest);
        counts.unwrap_or(longest)
    }

    /// `W_max` for this process: what was seen, what it heard, and its own W (R18).
    fn longest_lease(&self, acquisition: &Acquisition, config: &HolderConfig) -> Duration {
        self.watch
            .longest()
            .max(acquisition.max_lease_duration)
            .max(config.timing.lease_duration)
            .min(LONGEST_LEASE)
    }

    /// Since when the stop-watch runs, and whether on a record.
    const fn since(&self) -> Option<(bool, Instant)> {
        match self.watch.presence() {
            LeasePresence::Unknown => None,
            LeasePresence::Absent { since } => Some((false, *since)),
            LeasePresence::Present(observed) => Some((true, observed.since)),
        }
    }
}

/// True if the electors of these rules decide by it.
pub(super) fn is_ours(strategy: &StrategyName) -> bool {
    strategy.strategy().is_some()
}

impl Renumber for AcquisitionWatch {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.watch.renumber(by);
        by.instant(&mut self.next_post);
        self.lost_race.renumber(by);
        if let Restart::At(at) = &mut self.restart {
            by.restart(at);
        }
        self.confirmed.take_if(|at| !by.confirmation(at));
        self.taken_from.renumber(by);
    }
}

renumber!(LivingHolder { seen });
