//! A Lease under a stop-watch: whether it exists, since when its record stands, and when it is free (R4, R6).
//!
//! Every process measures by its own clock for how long a record has not changed; the times in the record are those of
//! other machines. This file holds that stop-watch for all that ask: the election, the holder, the elector's view of the
//! built-in controller and the status of a candidate. `elector-verify` alone has one of its own, since it judges this one.

use std::time::Duration;

use crate::lease::{LeaseSnapshot, Occupancy};
use crate::names::ResourceVersion;
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::time::Instant;
use crate::timing::LONGEST_LEASE;

/// The way in which a revision became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsSource {
    /// By an uninterrupted watch: nothing was missed since the revision before.
    Watch,
    /// By a list after a gap: anything may have happened since the revision before.
    List,
    /// As the reply to a write of our own.
    OwnWrite,
}

/// One Lease as one process sees it, by that process's monotonic clock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseWatch {
    presence: LeasePresence,
    /// The longest duration seen in a record, at most [`LONGEST_LEASE`] (R6).
    longest: Duration,
    /// When a POST of this process was answered; the watch brings the object.
    posted: Option<Instant>,
}

/// The newest state of a Lease that is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeasePresence {
    /// No complete list has been seen.
    Unknown,
    /// It does not exist, without a gap since then.
    Absent {
        /// The first sight of that.
        since: Instant,
    },
    /// It exists.
    Present(ObservedLease),
}

/// A Lease that exists, and since when its record stands ([R4](crate::rules#r4)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObservedLease {
    /// The newest revision.
    pub snapshot: LeaseSnapshot,
    /// When this process first saw this record.
    pub since: Instant,
    /// Since when a watch without a gap proves that there is no holder: the name was absent, then this uid was added, and
    /// no revision of it was ever held (R6 a and c).
    unheld_since: Option<Instant>,
}

/// The order of a revision and the newest one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It is the one known, or an older one.
    Known,
    /// It is newer.
    Newer,
    /// It is older and yet the newest there is: the store was restored from a backup ([R4](crate::rules#r4)).
    Rewound,
}

// === impl LeaseWatch ===

impl LeaseWatch {
    /// A Lease of which nothing is known.
    pub const fn unknown() -> Self {
        Self::begin(LeasePresence::Unknown)
    }

    /// A Lease that does not exist, without a gap since then.
    pub const fn absent(since: Instant) -> Self {
        Self::begin(LeasePresence::Absent { since })
    }

    const fn begin(presence: LeasePresence) -> Self {
        Self {
            presence,
            longest: Duration::ZERO,
            posted: None,
        }
    }

    /// The newest state that is known.
    pub const fn presence(&self) -> &LeasePresence {
        &self.presence
    }

    /// The Lease, where it is known to exist.
    pub const fn lease(&self) -> Option<&ObservedLease> {
        match &self.presence {
            LeasePresence::Present(observed) => Some(observed),
            LeasePresence::Unknown | LeasePresence::Absent { .. } => None,
        }
    }

    /// Since when it has been known not to exist.
    pub(crate) const fn absent_since(&self) -> Option<Instant> {
        match &self.presence {
            LeasePresence::Absent { since } => Some(*since),
            LeasePresence::Unknown | LeasePresence::Present(_) => None,
        }
    }

    /// The longest duration seen in a record.
    pub(crate) const fn longest(&self) -> Duration {
        self.longest
    }

    /// When a POST of this process was answered, until the watch tells more of the Lease.
    pub(crate) const fn posted(&self) -> Option<Instant> {
        self.posted
    }

    /// The order of this revision and the newest one that is known.
    pub fn freshness(&self, version: ResourceVersion, source: NewsSource) -> Freshness {
        match self.lease() {
            Some(known) if version < known.snapshot.version => match source {
                NewsSource::List => Freshness::Rewound,
                NewsSource::Watch | NewsSource::OwnWrite => Freshness::Known,
            },
            Some(known) if version == known.snapshot.version => Freshness::Known,
            _ => Freshness::Newer,
        }
    }

    /// Takes in a revision that is fresh. Its stop-watch goes on where it shows the same record, and after a gap only
    /// where that is held ([R4](crate::rules#r4)).
    pub fn observe(&mut self, now: Instant, snapshot: LeaseSnapshot, source: NewsSource) {
        let held = snapshot.record.holder.is_some();
        let (since, unheld_since) = match &self.presence {
            LeasePresence::Unknown => (now, None),
            LeasePresence::Absent { since } => {
                let proven = source == NewsSource::Watch && !held;
                (now, proven.then_some(*since))
            }
            LeasePresence::Present(known) => {
                let same_object = snapshot.uid == known.snapshot.uid;
                let same_record =
                    same_object && snapshot.record.same_record(&known.snapshot.record);
                // A gap may hide a whole term. A held record names its term and its renewal, so the same one was
                // there throughout; an unheld record looks the same after any term, and its revision alone tells.
                let unbroken = held || source != NewsSource::List;
                (
                    if same_record && unbroken {
                        known.since
                    } else {
                        now
                    },
                    known
                        .unheld_since
                        .filter(|_| same_object && !held && unbroken),
                )
            }
        };
        if let Some(duration) = snapshot.record.duration() {
            self.longest = self.longest.max(duration.min(LONGEST_LEASE));
        }
        self.posted = None;
        self.presence = LeasePresence::Present(ObservedLease {
            snapshot,
            since,
            unheld_since,
        });
    }

    /// Takes in that the Lease is missing. An unbroken watch that repeats itself does not restart the proof of absence.
    pub fn observe_absence(&mut self, now: Instant, source: NewsSource) {
        // An object that was POSTed is gone again, so there is nothing to look for.
        self.posted = None;
        if !matches!(self.presence, LeasePresence::Absent { .. }) || source == NewsSource::List {
            self.presence = LeasePresence::Absent { since: now };
        }
    }

    /// Takes in a revision that cannot be read: nothing is known but the durations of earlier ones.
    pub(crate) fn observe_unreadable(&mut self) {
        *self = Self {
            longest: self.longest,
            ..Self::unknown()
        };
    }

    /// Takes in the answer to a POST. It does not prove what came before; the watch does (R6).
    pub(crate) fn note_posted(&mut self, now: Instant) {
        if matches!(self.presence, LeasePresence::Absent { .. }) {
            self.posted = Some(now);
        }
    }
}

renumber!(LeaseWatch { presence, posted, longest => longest });

impl Renumber for LeasePresence {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Unknown => {}
            Self::Absent { since } => by.instant(since),
            Self::Present(observed) => observed.renumber(by),
        }
    }
}

// === impl ObservedLease ===

impl ObservedLease {
    /// When a held record has expired ([R4](crate::rules#r4)); one without a usable duration counts as `longest`.
    pub fn expires_at(&self, longest: Duration) -> Instant {
        let duration = self.snapshot.record.duration();
        self.since.after(duration.unwrap_or(longest))
    }

    /// When an unproven record may be granted (R6): when the absence that the watch proves and the time since then
    /// without a holder add up to `grace`, otherwise when this very record has been seen unchanged for that long.
    pub(crate) fn proven_free_at(&self, grace: Duration) -> Instant {
        match self.unheld_since {
            Some(unheld) => unheld.after(grace).max(self.since),
            None => self.since.after(grace),
        }
    }

    /// When this record is free for another holder, whichever kind it is (R3 a and b).
    pub(crate) fn free_at(&self, longest: Duration, grace: Duration) -> Instant {
        match self.snapshot.record.occupancy() {
            Occupancy::Held(_) => self.expires_at(longest),
            Occupancy::Released => self.since,
            Occupancy::Unproven => self.proven_free_at(grace),
        }
    }
}

renumber!(ObservedLease {
    snapshot,
    since,
    unheld_since
});
