//! An elector's sightings of each candidate, with their times on its own clock.

use std::time::Duration;

use crate::lease_watch::NewsSource;
use crate::names::ResourceVersion;
use crate::operator_overrides::{OutOfTime, StandDown};
use crate::renumber::renumber;
use crate::spec::{CandidateRecord, CandidateSpec};
use crate::time::{Instant, Timestamp};
use crate::timing::ElectorTiming;

/// A candidate, with what was heard of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObservedCandidate {
    pub(super) candidate: CandidateRecord,
    /// When its renewal time was last seen new, or it was first seen at all.
    pub(super) heard: Instant,
    /// When it was seen created, or seen to change its renewal time.
    pub(super) acked: Option<Sighting>,
    /// When a ping of it was first seen.
    pub(super) pinged: Option<Sighting>,
    /// When the order to stand down was first seen.
    pub(super) stand_down_since: Option<Instant>,
}

/// A change and the revision that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sighting {
    pub(super) at: Instant,
    pub(super) version: ResourceVersion,
}

/// A candidate's liveness, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// It acked ([R15](crate::rules#r15)).
    Acked,
    /// It has been pinged and still has time to answer.
    Pinged { until: Instant },
    /// It has not been pinged.
    Unpinged,
    /// It was pinged and did not answer in time, or cannot be pinged at all.
    Silent,
}

// === impl ObservedCandidate ===

impl ObservedCandidate {
    /// A candidate not seen before. Only a creation that the watch delivered is a sign of life.
    pub(super) fn new(now: Instant, candidate: CandidateRecord, source: NewsSource) -> Self {
        let sighting = Sighting {
            at: now,
            version: candidate.version,
        };
        Self {
            heard: now,
            acked: (source == NewsSource::Watch && candidate.renew.is_some()).then_some(sighting),
            pinged: candidate.is_pinged().then_some(sighting),
            stand_down_since: stand_down_of(&candidate).map(|_| now),
            candidate,
        }
    }

    /// Takes in a later revision of the same object.
    pub(super) fn update(&mut self, now: Instant, candidate: CandidateRecord, source: NewsSource) {
        let sighting = Sighting {
            at: now,
            version: candidate.version,
        };
        if candidate.renew != self.candidate.renew {
            self.heard = now;
            // After a gap the ack may be as old as the gap.
            if candidate.renew.is_some() && source != NewsSource::List {
                self.acked = Some(sighting);
            }
        }
        if candidate.ping != self.candidate.ping && candidate.is_pinged() {
            self.pinged = Some(sighting);
        }
        if stand_down_of(&candidate) != stand_down_of(&self.candidate) {
            self.stand_down_since = stand_down_of(&candidate).map(|_| now);
        }
        self.candidate = candidate;
    }

    /// Its present offer; `None` where that cannot be used, or an operator wants it not to lead (R16).
    pub(super) fn offer(&self, now: Instant, wall: Timestamp) -> Option<&CandidateSpec> {
        let stands_down = matches!(self.stand_down(now, wall), Some((_, Ok(_))));
        self.candidate.offer().ok().filter(|_| !stands_down)
    }

    /// That an operator wants it not to lead, and for how much longer, or why that does not count.
    pub(super) fn stand_down(
        &self,
        now: Instant,
        wall: Timestamp,
    ) -> Option<(StandDown, Result<Duration, OutOfTime>)> {
        let order = stand_down_of(&self.candidate)?;
        Some((order, order.remaining(self.stand_down_since?, now, wall)))
    }

    /// True if a ping is open: no ack was seen in a later revision.
    pub(super) fn is_ping_open(&self) -> bool {
        self.candidate.is_pinged() && !self.acked_after_ping()
    }

    /// True if it acked, with a clock that is still below the ping (R15): the ping must be settled, or it goes on
    /// acking.
    pub(super) fn is_unsettled(&self) -> bool {
        self.candidate.is_pinged() && self.acked_after_ping()
    }

    fn acked_after_ping(&self) -> bool {
        match (self.acked, self.pinged) {
            (Some(acked), Some(pinged)) => acked.version > pinged.version,
            _ => false,
        }
    }

    /// Its time to answer.
    pub(super) fn ack_window(&self, timing: &ElectorTiming) -> Duration {
        if self.candidate.marked {
            timing.ack_window
        } else {
            timing.ack_window_unmarked
        }
    }

    /// Until when the ack of an open ping is awaited.
    pub(super) fn ack_due(&self, timing: &ElectorTiming) -> Option<Instant> {
        let pinged = self.pinged.filter(|_| self.is_ping_open())?;
        Some(pinged.at.after(self.ack_window(timing)))
    }

    /// Its liveness, judged for a round that began at `round` (R15); without a round only a fresh ack counts.
    pub(super) fn liveness(
        &self,
        now: Instant,
        round: Option<Instant>,
        timing: &ElectorTiming,
    ) -> Liveness {
        if let Some(until) = self.ack_due(timing) {
            if now >= until {
                return Liveness::Silent;
            }
            if self.is_fresh(now, timing) {
                return Liveness::Acked;
            }
            return Liveness::Pinged { until };
        }
        if self.is_fresh(now, timing) || self.acked_in(round) {
            return Liveness::Acked;
        }
        if self.candidate.next_ping().is_none() {
            return Liveness::Silent;
        }
        Liveness::Unpinged
    }

    /// True if its newest ack came after `instant`.
    pub(super) fn acked_since(&self, instant: Instant) -> bool {
        self.acked.is_some_and(|acked| acked.at > instant)
    }

    fn is_fresh(&self, now: Instant, timing: &ElectorTiming) -> bool {
        self.acked
            .is_some_and(|acked| now.since(acked.at) < timing.fresh)
    }

    fn acked_in(&self, round: Option<Instant>) -> bool {
        let in_round = |pinged: Sighting| round.is_some_and(|round| pinged.at >= round);
        self.acked_after_ping() && self.pinged.is_some_and(in_round)
    }
}

fn stand_down_of(candidate: &CandidateRecord) -> Option<StandDown> {
    candidate.offer().ok()?.stand_down
}

renumber!(ObservedCandidate { candidate, heard => heard, acked, pinged, stand_down_since => instant });

renumber!(Sighting { at => sighting, version });
