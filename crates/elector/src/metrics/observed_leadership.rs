//! The leadership of a lease by its records: the states that the figures of leadership are made of.

use std::time::Duration;

use elector_protocol::{Identity, Instant, LeaseRecord, ObservedLease, Transition};

/// A term, or the time since when there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObservedLeadership {
    Led(LedTerm),
    Leaderless {
        since: Instant,
        /// The term before.
        after: Option<Box<LedTerm>>,
        end: LeadershipEnd,
    },
}

/// A term that has been accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LedTerm {
    record: LeaseRecord,
    /// When that was first seen.
    seen: Instant,
    expires_at: Instant,
    /// Since when its holder is asked to make room for another.
    preferred_since: Option<Instant>,
}

/// The end of a term in the label of a change of leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadershipEnd {
    /// There was none before.
    First,
    Released,
    HandedOver,
    /// Its holder did not renew.
    Expired,
    /// Another process took the holder out of the record.
    Removed,
    /// The Lease was deleted.
    Deleted,
    /// Another process wrote itself into the record.
    Taken,
    /// The same holder began another term.
    Restarted,
}

/// A term that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaderChange {
    /// The prior term's end.
    pub(super) reason: LeadershipEnd,
    /// The time it took, where the former leader gave the lease away, or expired.
    pub(super) took: Option<Duration>,
}

/// Other processes saw the last renewal somewhat earlier than this one, so to them it has expired earlier.
const TOLERANCE: Duration = Duration::from_secs(1);

// === impl ObservedLeadership ===

impl ObservedLeadership {
    /// A lease that was not followed before. `longest` is the duration of a record that names none.
    pub(super) fn begin(now: Instant, lease: Option<&ObservedLease>, longest: Duration) -> Self {
        match lease.and_then(|lease| LedTerm::of(now, lease, longest)) {
            Some(term) => Self::Led(term),
            None => Self::Leaderless {
                since: now,
                after: None,
                end: LeadershipEnd::First,
            },
        }
    }

    /// Takes in the newest record. Says whether a term began.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        lease: Option<&ObservedLease>,
        longest: Duration,
    ) -> Option<LeaderChange> {
        self.tick(now);
        let led = lease.and_then(|lease| LedTerm::of(now, lease, longest));
        match (&mut *self, led) {
            (Self::Led(known), Some(mut term)) if known.is(&term) => {
                // Another preference in place of the one before asks for the same.
                if let (Some(since), Some(_)) = (known.preferred_since, term.preferred_since) {
                    term.preferred_since = Some(since);
                }
                *known = term;
                None
            }
            (Self::Led(known), Some(term)) => {
                let change = known.replaced_by(now, &term);
                *self = Self::Led(term);
                Some(change)
            }
            (Self::Led(known), None) => {
                let end = known.ended_by(lease.map(|lease| &lease.snapshot.record));
                let after = Some(Box::new(known.clone()));
                *self = Self::Leaderless {
                    since: now,
                    after,
                    end,
                };
                None
            }
            (Self::Leaderless { since, after, end }, Some(term)) => {
                // A holder that renewed late, or whose record was put back, leads the term that it led before.
                let same = after.as_ref().is_some_and(|after| after.is(&term));
                // In another Lease of the same name terms begin anew.
                let resumed = same && *end != LeadershipEnd::Deleted;
                let took = match (*end, &after) {
                    (LeadershipEnd::Released | LeadershipEnd::HandedOver, _) => Some(*since),
                    (LeadershipEnd::Expired, Some(after)) => Some(after.seen),
                    _ => None,
                };
                let change = LeaderChange {
                    reason: *end,
                    took: took.map(|from| now.since(from)),
                };
                *self = Self::Led(term);
                (!resumed).then_some(change)
            }
            (Self::Leaderless { .. }, None) => None,
        }
    }

    /// Lets a term expire whose time has come.
    pub(super) fn tick(&mut self, now: Instant) {
        if let Self::Led(term) = self
            && now >= term.expires_at
        {
            *self = Self::Leaderless {
                since: term.expires_at,
                after: Some(Box::new(term.clone())),
                end: LeadershipEnd::Expired,
            };
        }
    }

    /// When the term expires if it is not renewed.
    pub(super) fn expires_at(&self) -> Option<Instant> {
        match self {
            Self::Led(term) => Some(term.expires_at),
            Self::Leaderless { .. } => None,
        }
    }

    /// The leader.
    pub(super) const fn leader(&self) -> Option<&Identity> {
        match self {
            Self::Led(term) => term.holder(),
            Self::Leaderless { .. } => None,
        }
    }

    /// Since when the leader is asked to make room for another.
    pub(super) const fn preferred_since(&self) -> Option<Instant> {
        match self {
            Self::Led(term) => term.preferred_since,
            Self::Leaderless { .. } => None,
        }
    }

    /// True if the term of `before` goes on.
    pub(super) fn continues(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Led(before), Self::Led(now)) => before.is(now),
            _ => false,
        }
    }

    /// Since when there is no leader.
    pub(super) const fn leaderless_since(&self) -> Option<Instant> {
        match self {
            Self::Led(_) => None,
            Self::Leaderless { since, .. } => Some(*since),
        }
    }
}

// === impl LedTerm ===

impl LedTerm {
    /// The term of a record that a holder has accepted.
    fn of(now: Instant, lease: &ObservedLease, longest: Duration) -> Option<Self> {
        let record = &lease.snapshot.record;
        let led = record.holder.is_some() && !record.is_unaccepted_grant();
        let preferred = &record.preferred_holder;
        let is_asked = preferred.is_some() && *preferred != record.holder;
        led.then(|| Self {
            record: record.clone(),
            seen: lease.since,
            expires_at: lease.expires_at(longest),
            preferred_since: is_asked.then_some(now),
        })
    }

    pub(super) const fn holder(&self) -> Option<&Identity> {
        self.record.holder.as_ref()
    }

    fn is(&self, other: &Self) -> bool {
        (self.holder(), self.record.term) == (other.holder(), other.record.term)
    }

    /// A term that followed without a record between the two that names no leader.
    fn replaced_by(&self, now: Instant, next: &Self) -> LeaderChange {
        let (reason, took) = if self.record.preferred_holder == next.record.holder {
            (LeadershipEnd::HandedOver, Some(Duration::ZERO))
        } else if self.holder() == next.holder() {
            (LeadershipEnd::Restarted, None)
        } else if now.after(TOLERANCE) >= self.expires_at {
            (LeadershipEnd::Expired, Some(now.since(self.seen)))
        } else {
            (LeadershipEnd::Taken, None)
        };
        LeaderChange { reason, took }
    }

    /// The end of this term by a record that names no leader.
    fn ended_by(&self, record: Option<&LeaseRecord>) -> LeadershipEnd {
        match Transition::between(Some(&self.record), record) {
            Some(Transition::HandedOver) => LeadershipEnd::HandedOver,
            Some(Transition::Released) => LeadershipEnd::Released,
            Some(Transition::Removed) => LeadershipEnd::Removed,
            Some(Transition::Deleted) => LeadershipEnd::Deleted,
            // Another elector granted what had expired to it.
            _ => LeadershipEnd::Expired,
        }
    }
}

// === impl LeadershipEnd ===

impl LeadershipEnd {
    /// Every end.
    pub(super) const ALL: [Self; 8] = [
        Self::First,
        Self::Released,
        Self::HandedOver,
        Self::Expired,
        Self::Removed,
        Self::Deleted,
        Self::Taken,
        Self::Restarted,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Released => "released",
            Self::HandedOver => "handed_over",
            Self::Expired => "expired",
            Self::Removed => "removed",
            Self::Deleted => "deleted",
            Self::Taken => "taken",
            Self::Restarted => "restarted",
        }
    }
}

#[cfg(test)]
mod tests;
