//! Which candidates to ping, and when to stop: ping and ack are the election (R15).

use crate::elector::observation::{Liveness, ObservedCandidate};
use crate::elector::state::Election;
use crate::elector::wake::{Wake, WakeReason};
use crate::names::Identity;
use crate::order::Contender;
use crate::time::{Instant, Timestamp};
use crate::timing::ElectorTiming;

/// Why candidates are pinged.
#[derive(Clone, Copy, Debug)]
pub(super) enum PingPurpose<'a> {
    /// A leader is needed: candidates that are passed over and those that stay silent get another chance.
    Election {
        /// When the round began: acks of pings since then count, besides fresh ones.
        round: Instant,
        /// The late, expired or former holder. It is pinged too, but no grant waits for it.
        previous_holder: Option<&'a Identity>,
        /// The electee of a grant that has just expired without an accept.
        failed: Option<&'a Identity>,
    },
    /// A live holder may have to make room: only fresh acks count, and there is no haste.
    Preference,
}

/// A round of pings: what it came to, and the candidates to ping now.
#[derive(Debug, Default)]
pub(super) struct PingRound<'a> {
    /// The best candidate that acked, when no better one still has time to.
    pub(super) elected: Option<Contender<'a>>,
    /// Pings to write now.
    pub(super) pings: Vec<(&'a ObservedCandidate, Timestamp)>,
    /// Candidates with an open ping.
    pub(super) awaited: Vec<Identity>,
    /// When an awaited ack is late, or a ping is to be repeated.
    pub(super) wake: Option<Wake>,
    /// Better candidates that did not ack in time.
    pub(super) silent: Vec<Identity>,
}

/// The criteria for the candidates of a round.
struct Criteria<'a> {
    now: Instant,
    election: &'a Election,
    purpose: &'a PingPurpose<'a>,
    timing: &'a ElectorTiming,
}

// === impl PingRound ===

impl<'a> PingRound<'a> {
    /// Walks the contenders, the best one first. The best is pinged first; when it stays silent the next two, then all.
    pub(super) fn new(
        now: Instant,
        election: &'a Election,
        contenders: &[Contender<'a>],
        purpose: &PingPurpose<'_>,
        timing: &ElectorTiming,
    ) -> Self {
        let criteria = Criteria {
            now,
            election,
            purpose,
            timing,
        };
        let mut round = Self::default();
        let (mut passed_over, regular): (Vec<_>, Vec<_>) = contenders
            .iter()
            .filter_map(|contender| {
                let seen = election.candidates.get(&contender.candidate.name)?;
                Some((*contender, seen))
            })
            .partition(|(contender, _)| criteria.defers(&contender.candidate.name));
        passed_over.sort_by_key(|(contender, _)| criteria.passes_over(&contender.candidate.name));
        let silent = regular
            .iter()
            .filter(|(_, seen)| criteria.liveness(seen) == Liveness::Silent)
            .count();
        let mut batch = match silent {
            0 => 1,
            1 | 2 => 2,
            _ => usize::MAX,
        };
        for (contender, seen) in &regular {
            match criteria.liveness(seen) {
                Liveness::Acked => {
                    if round.awaited.is_empty() {
                        round.elected = Some(*contender);
                    }
                    return round;
                }
                Liveness::Silent => round.silent.push(seen.candidate.name.clone()),
                Liveness::Unpinged if criteria.is_previous_holder(seen) => round.ping(seen),
                Liveness::Pinged { .. } if criteria.is_previous_holder(seen) => {}
                Liveness::Unpinged if batch == 0 => return round,
                Liveness::Unpinged => {
                    round.ping(seen);
                    round.awaited.push(seen.candidate.name.clone());
                    batch -= 1;
                }
                Liveness::Pinged { until } => {
                    round.wait(seen, until);
                    batch = batch.saturating_sub(1);
                }
            }
        }
        if round.awaited.is_empty() && !criteria.is_for_preference() {
            round.last_resort(&regular, &passed_over, &criteria);
        }
        round
    }

    /// No regular candidate acked: those passed over count again, the previous holder is waited for, and pings that
    /// have been without an ack for long are repeated, ever less often.
    fn last_resort(
        &mut self,
        regular: &[(Contender<'a>, &'a ObservedCandidate)],
        passed_over: &[(Contender<'a>, &'a ObservedCandidate)],
        criteria: &Criteria<'_>,
    ) {
        for (contender, seen) in passed_over {
            match criteria.liveness(seen) {
                Liveness::Acked => {
                    if self.awaited.is_empty() {
                        self.elected = Some(*contender);
                    }
                    return;
                }
                Liveness::Silent => self.silent.push(seen.candidate.name.clone()),
                Liveness::Unpinged => {
                    self.ping(seen);
                    self.awaited.push(seen.candidate.name.clone());
                }
                Liveness::Pinged { until } => self.wait(seen, until),
            }
        }
        let previous_holder = regular
            .iter()
            .filter(|(_, seen)| criteria.is_previous_holder(seen));
        for (_, seen) in previous_holder {
            match criteria.liveness(seen) {
                Liveness::Pinged { until } => self.wait(seen, until),
                // Pinged by this very step.
                Liveness::Unpinged => self.awaited.push(seen.candidate.name.clone()),
                Liveness::Acked | Liveness::Silent => {}
            }
        }
        if !self.awaited.is_empty() {
            return;
        }
        for (_, seen) in regular.iter().chain(passed_over) {
            let (Some(pinged), Some(ping)) = (seen.pinged, seen.candidate.ping) else {
                continue;
            };
            let Some(repeated) = ping.next().filter(|_| seen.is_ping_open()) else {
                continue;
            };
            let silence = pinged.at.since(seen.heard);
            let due = pinged
                .at
                .after(criteria.timing.re_ping_after_silence(silence));
            if criteria.now >= due {
                self.pings.push((seen, repeated));
            } else {
                Wake::note(&mut self.wake, due, WakeReason::RePing);
            }
        }
    }

    fn ping(&mut self, seen: &'a ObservedCandidate) {
        // Liveness::Unpinged implies that a ping can be written.
        if let Some(ping) = seen.candidate.next_ping() {
            self.pings.push((seen, ping));
        }
    }

    fn wait(&mut self, seen: &'a ObservedCandidate, until: Instant) {
        self.awaited.push(seen.candidate.name.clone());
        Wake::note(&mut self.wake, until, WakeReason::AckWindow);
    }
}

// === impl Criteria ===

impl Criteria<'_> {
    fn is_for_preference(&self) -> bool {
        matches!(self.purpose, PingPurpose::Preference)
    }

    fn is_previous_holder(&self, seen: &ObservedCandidate) -> bool {
        match self.purpose {
            PingPurpose::Election {
                previous_holder, ..
            } => *previous_holder == Some(&seen.candidate.name),
            PingPurpose::Preference => false,
        }
    }

    /// True if a candidate that did not accept a grant is passed over for now (R5).
    fn passes_over(&self, name: &Identity) -> bool {
        let failed = match self.purpose {
            PingPurpose::Election { failed, .. } => *failed,
            PingPurpose::Preference => None,
        };
        failed == Some(name) || self.election.passes_over(name, self.now, self.timing)
    }

    /// True if a candidate counts only where no other one acks: it is passed over, or a grant goes first to those that
    /// have led (R23).
    fn defers(&self, name: &Identity) -> bool {
        let untested = match self.purpose {
            PingPurpose::Election { failed, .. } => {
                let hold_back = &self.election.hold_back;
                hold_back.defers(name, failed.is_some(), self.now, self.timing)
            }
            PingPurpose::Preference => false,
        };
        untested || self.passes_over(name)
    }

    /// The liveness that counts here.
    fn liveness(&self, seen: &ObservedCandidate) -> Liveness {
        match self.purpose {
            PingPurpose::Election { round, .. } => self.liveness_in(*round, seen),
            PingPurpose::Preference => self.liveness_for_preference(seen),
        }
    }

    /// For an election, acks of the round count; of the previous holder only those do.
    fn liveness_in(&self, round: Instant, seen: &ObservedCandidate) -> Liveness {
        let liveness = seen.liveness(self.now, Some(round), self.timing);
        let stale = self.is_previous_holder(seen) && !seen.acked_since(round);
        if liveness == Liveness::Acked && stale {
            return match (seen.is_ping_open(), seen.candidate.next_ping()) {
                (false, Some(_)) => Liveness::Unpinged,
                _ => Liveness::Silent,
            };
        }
        liveness
    }

    /// A preference can wait for the ack of an open ping. An elector that has slept takes old acks for fresh ones,
    /// and those that pinged would withdraw what it prefers, again and again. The same goes for a candidate that cannot
    /// be pinged.
    fn liveness_for_preference(&self, seen: &ObservedCandidate) -> Liveness {
        let liveness = seen.liveness(self.now, None, self.timing);
        if liveness != Liveness::Acked {
            return liveness;
        }
        if seen.candidate.next_ping().is_none() {
            return Liveness::Silent;
        }
        match seen.ack_due(self.timing) {
            Some(until) => Liveness::Pinged { until },
            None => liveness,
        }
    }
}
