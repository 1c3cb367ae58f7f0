//! How a candidate takes a free lease itself, without a grant (R18).

use std::time::Duration;

use super::config::{Displaced, HolderConfig};
use crate::lease::LeaseSnapshot;
use crate::presence::{NewsSource, ObservedLease, Presence};
use crate::renumber::renumber;
use crate::strategy::name::StrategyName;
use crate::time::Instant;
use crate::timing::{CandidateTiming, LONGEST_LEASE};

/// What a process that may acquire knows beyond its own terms, by its monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Vigil {
    pub(super) presence: Presence,
    /// The longest duration seen in a record of this lease (R6).
    longest: Duration,
    /// When a POST of ours was answered; the watch brings the object.
    posted: Option<Instant>,
    /// The first ping since the lease became free: an elector acts, and the wait for it begins anew, once.
    pinged: Option<Instant>,
    /// When a read last said that the lease is as free as it seems.
    confirmed: Option<Instant>,
    /// Whether an operator wants this process not to lead (R16).
    stands_down: bool,
    /// The holder that the lease was taken from, if that one may have been alive.
    taken_from: Option<LivingHolder>,
}

/// A holder whose lease was taken before its record had expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LivingHolder {
    /// When its record was first seen.
    seen: Instant,
    /// How long after that it would have expired.
    duration: Duration,
}

/// What is to be done about a lease that may be acquired, and when by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquire {
    /// POST a born record (R2).
    Create(Instant),
    /// Look whether the record that was POSTed is there, or whether the lease is still free.
    Read(Instant),
    /// PUT an own term.
    Take(Instant),
}

/// How long the watch may take to bring what a POST created before it is looked for.
const POST_SETTLES: Duration = Duration::from_secs(2);

/// How late an acquisition may come without a look at the Lease: more than a busy machine delays a step, and less than
/// a pause that others make use of.
pub(super) const LATE: Duration = CandidateTiming::RETRY_MIN;

// === impl Vigil ===

impl Vigil {
    pub(super) const fn new() -> Self {
        Self {
            presence: Presence::Unknown,
            longest: Duration::ZERO,
            posted: None,
            pinged: None,
            confirmed: None,
            stands_down: false,
            taken_from: None,
        }
    }

    /// Takes in a newer revision.
    pub(super) fn observe(&mut self, now: Instant, snapshot: &LeaseSnapshot, source: NewsSource) {
        let before = self.since();
        self.posted = None;
        self.presence.observe(now, snapshot.clone(), source);
        if let Some(duration) = snapshot.record.duration() {
            self.longest = self.longest.max(duration.min(LONGEST_LEASE));
        }
        if self.since() != before {
            self.pinged = None;
            self.confirmed = None;
        }
    }

    /// Takes in that the Lease is missing.
    pub(super) fn observe_absence(&mut self, now: Instant, source: NewsSource) {
        let before = self.since();
        self.presence.observe_absence(now, source);
        // What was POSTed is gone again, so there is nothing to look for.
        self.posted = None;
        if self.since() != before {
            self.pinged = None;
            self.confirmed = None;
        }
    }

    /// The POST was answered. The reply does not prove what came before; the watch does (R6).
    pub(super) fn note_posted(&mut self, now: Instant) {
        if matches!(self.presence, Presence::Absent { .. }) {
            self.posted = Some(now);
        }
    }

    /// A ping of the own candidate was seen.
    pub(super) fn note_ping(&mut self, now: Instant, config: &HolderConfig) {
        let free = self.free_at(config).is_some_and(|free| free <= now);
        if free && self.pinged.is_none() {
            self.pinged = Some(now);
        }
    }

    /// An operator wants this process not to lead, or does so no more.
    pub(super) const fn note_stand_down(&mut self, stands_down: bool) {
        self.stands_down = stands_down;
    }

    /// A read has said what the Lease is now.
    pub(super) fn note_read(&mut self, now: Instant, config: &HolderConfig) {
        if self.free_for(now, config).is_some() {
            self.confirmed = Some(now);
        }
    }

    /// The lease is being taken.
    pub(super) fn note_take(&mut self, now: Instant, config: &HolderConfig) {
        let Presence::Present(observed) = &self.presence else {
            return;
        };
        let expires = self.expires_at(observed, config);
        let early = expires.filter(|expires| now < *expires);
        self.taken_from = early.map(|expires| LivingHolder {
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

    /// What an acquisition needs next. `None` where nothing is known of the Lease, or another elector decides it.
    ///
    /// One that comes late, and is no retry, reads first: the process stood still, and its stop-watch runs on a record
    /// that others may have replaced since. Compare-and-swap refuses its write then; a process that wakes up writes
    /// nothing against its successor in the first place.
    pub(super) fn next(
        &self,
        now: Instant,
        retries: bool,
        config: &HolderConfig,
    ) -> Option<Acquire> {
        let (_, fallback) = config.mode.acquisition()?;
        let free = self.free_at(config)?;
        let due = self
            .pinged
            .map_or(free, |pinged| pinged.max(free))
            .after(fallback);
        let fresh = self.confirmed.map_or(due, |at| at.max(due));
        if self.posted.is_none() && !retries && fresh.after(LATE) < now {
            return Some(Acquire::Read(now));
        }
        Some(match (&self.presence, self.posted) {
            (Presence::Present(_), _) => Acquire::Take(due),
            (_, None) => Acquire::Create(due),
            (_, Some(posted)) => Acquire::Read(posted.after(POST_SETTLES)),
        })
    }

    /// How long the lease has been free.
    pub(super) fn free_for(&self, now: Instant, config: &HolderConfig) -> Option<Duration> {
        let free = self.free_at(config)?;
        (free <= now).then(|| now.since(free))
    }

    /// When the lease is free by this process's own stop-watch (R4, R6); a name without a Lease is free to be created.
    fn free_at(&self, config: &HolderConfig) -> Option<Instant> {
        let (acquisition, _) = config.mode.acquisition()?;
        let ours = |strategy: &StrategyName| strategy.strategy().is_some();
        if self.stands_down || !acquisition.strategy.as_ref().is_none_or(ours) {
            return None;
        }
        let observed = match &self.presence {
            Presence::Unknown => return None,
            Presence::Absent { since } => return Some(*since),
            Presence::Present(observed) => observed,
        };
        let record = &observed.snapshot.record;
        if !record.strategy.as_ref().is_none_or(ours) {
            return None;
        }
        let free = self.expires_at(observed, config)?;
        Some(match (acquisition.displaced, &record.holder) {
            (Displaced::AllButElectors, Some(holder)) if holder.is_elector() => {
                free.min(observed.since.after(config.timing.renew_deadline / 2))
            }
            (Displaced::AllButElectors, Some(_)) => observed.since,
            _ => free,
        })
    }

    /// When this record is free by the rules for every lease (R4, R6).
    fn expires_at(&self, observed: &ObservedLease, config: &HolderConfig) -> Option<Instant> {
        let (acquisition, _) = config.mode.acquisition()?;
        let longest = self
            .longest
            .max(acquisition.max_lease_duration)
            .max(config.timing.lease_duration)
            .min(LONGEST_LEASE);
        // A shorter wait is one process's word, and a strategy says that others count on W_max.
        let may_be_short = observed.snapshot.record.strategy.is_none();
        let grace = acquisition
            .absent_lease_grace
            .filter(|grace| may_be_short || *grace >= longest);
        Some(observed.free_at(longest, grace.unwrap_or(longest)))
    }

    /// Since when the stop-watch runs, and whether on a record.
    const fn since(&self) -> Option<(bool, Instant)> {
        match &self.presence {
            Presence::Unknown => None,
            Presence::Absent { since } => Some((false, *since)),
            Presence::Present(observed) => Some((true, observed.since)),
        }
    }
}

renumber!(Vigil {
    presence,
    posted,
    pinged,
    confirmed,
    taken_from,
    longest => longest
});

renumber!(LivingHolder { seen });
