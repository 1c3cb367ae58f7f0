//! A Lease under a stop-watch: whether it exists, since when its record stands, and when it is free (R4, R6).

use std::time::Duration;

use crate::lease::{LeaseSnapshot, Occupancy};
use crate::names::ResourceVersion;
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::time::Instant;

/// How a revision became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewsSource {
    /// By an uninterrupted watch: nothing was missed since the revision before.
    Watch,
    /// By a list after a gap: anything may have happened since the revision before.
    List,
    /// As the reply to a write of our own.
    OwnWrite,
}

/// What is known of the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Presence {
    /// No complete list has been seen.
    Unknown,
    /// It does not exist, without a gap since then.
    Absent { since: Instant },
    /// It exists.
    Present(ObservedLease),
}

/// A Lease under a stop-watch (R4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObservedLease {
    pub(crate) snapshot: LeaseSnapshot,
    /// When this process first saw this record.
    pub(crate) since: Instant,
    /// Since when a watch without a gap proves that there is no holder: the name was absent, then this uid was added, and
    /// no revision of it was ever held (R6 a and c).
    pub(crate) unheld_since: Option<Instant>,
}

/// What a revision is to what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Novelty {
    /// It is the one known, or an older one.
    None,
    /// It is newer.
    Newer,
    /// It is older and yet the newest there is: the store was restored from a backup (R4).
    Rewound,
}

// === impl Presence ===

impl Presence {
    /// What a revision is to what is known.
    pub(crate) fn novelty(&self, version: ResourceVersion, source: NewsSource) -> Novelty {
        match self {
            Self::Present(known) if version < known.snapshot.version => match source {
                NewsSource::List => Novelty::Rewound,
                NewsSource::Watch | NewsSource::OwnWrite => Novelty::None,
            },
            Self::Present(known) if version == known.snapshot.version => Novelty::None,
            Self::Unknown | Self::Absent { .. } | Self::Present(_) => Novelty::Newer,
        }
    }

    /// Takes in a newer revision. Its stop-watch goes on where it shows the same record, and after a gap only where
    /// that is held (R4).
    pub(crate) fn observe(&mut self, now: Instant, snapshot: LeaseSnapshot, source: NewsSource) {
        let held = snapshot.record.holder.is_some();
        let (since, unheld_since) = match &*self {
            Self::Unknown => (now, None),
            Self::Absent { since } => {
                let proven = source == NewsSource::Watch && !held;
                (now, proven.then_some(*since))
            }
            Self::Present(known) => {
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
        *self = Self::Present(ObservedLease {
            snapshot,
            since,
            unheld_since,
        });
    }

    /// Takes in that the Lease is missing. An unbroken watch that repeats itself does not restart the proof of absence.
    pub(crate) fn observe_absence(&mut self, now: Instant, source: NewsSource) {
        if !matches!(self, Self::Absent { .. }) || source == NewsSource::List {
            *self = Self::Absent { since: now };
        }
    }
}

impl Renumber for Presence {
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
    /// When a held record has expired (R4); one without a usable duration counts as `longest`.
    pub(crate) fn expires_at(&self, longest: Duration) -> Instant {
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
