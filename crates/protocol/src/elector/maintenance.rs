//! Duties whichever candidate leads: the Lease of a strategy that another elector decides, candidates that
//! disagree, candidates to be pinged once in a while, and dead ones.

use crate::elector::decision::{Effect, Reason};
use crate::elector::observation::Liveness;
use crate::elector::state::Election;
use crate::elector::step::Step;
use crate::elector::wake::WakeReason;
use crate::lease_watch::ObservedLease;
use crate::resolution::Conflict;
use crate::strategy::name::StrategyName;

// === impl Step ===

impl<'a> Step<'a> {
    /// A strategy that another elector decides: the Lease is to exist and to name it, and its holder is left alone.
    pub(super) fn on_foreign_strategy(
        &mut self,
        lease: Option<&ObservedLease>,
        strategy: StrategyName,
    ) -> Reason {
        let Some(watched) = lease else {
            if !self.post(&strategy) {
                return Reason::AwaitCreated;
            }
            return Reason::ForeignStrategy(strategy);
        };
        let record = &watched.snapshot.record;
        let ours = |holder| self.election.candidates.contains(holder);
        let unstamped = record.strategy.as_ref() != Some(&strategy);
        if unstamped && record.holder.as_ref().is_none_or(ours) {
            let next = record.preferring(record.preferred_holder.clone(), Some(strategy.clone()));
            self.effects
                .push(Effect::Write(watched.snapshot.replace(next)));
        }
        Reason::ForeignStrategy(strategy)
    }

    /// Candidates that disagree are pinged: a dead one must not block the others.
    pub(super) fn ping_disagreeing(&mut self, conflict: &Conflict) {
        let timing = &self.settings.timing;
        let disputed = conflict.disputed();
        let election: &'a Election = self.election;
        for seen in election.candidates.iter() {
            let disputes = seen
                .offer(self.now, self.wall)
                .is_some_and(|spec| disputed.concerns(spec));
            if !disputes {
                continue;
            }
            match seen.liveness(self.now, None, timing) {
                Liveness::Pinged { until } => self.wake(until, WakeReason::AckWindow),
                // Once in a while is enough: those that answer go on disagreeing.
                Liveness::Unpinged if self.now.since(seen.heard) >= timing.re_ping_after => {
                    self.ping(seen, seen.candidate.next_ping());
                }
                Liveness::Unpinged => {
                    let due = seen.heard.after(timing.re_ping_after);
                    self.wake(due, WakeReason::Disagreement);
                }
                // It counts as alive for now, and nothing else would wake this election when that is over.
                Liveness::Acked => {
                    let due = seen.heard.after(timing.re_ping_after.max(timing.fresh));
                    self.wake(due, WakeReason::Disagreement);
                }
                Liveness::Silent => {}
            }
        }
    }

    /// The upkeep of every candidate, in whatever state the lease is: settle acks of slow clocks, ping quiet
    /// candidates once in a while, collect dead ones (R15).
    pub(super) fn maintain_candidates(&mut self) {
        let timing = &self.settings.timing;
        let election: &'a Election = self.election;
        for seen in election.candidates.iter() {
            if seen.is_unsettled() {
                self.ping(seen, seen.candidate.renew);
                continue;
            }
            let collectable = match seen.liveness(self.now, None, timing) {
                Liveness::Silent => true,
                Liveness::Pinged { until } => {
                    self.wake(until, WakeReason::AckWindow);
                    false
                }
                Liveness::Acked => {
                    let due = seen.heard.after(timing.ping_interval);
                    self.wake(due, WakeReason::QuietCandidate);
                    false
                }
                Liveness::Unpinged => {
                    let due = seen.heard.after(timing.ping_interval);
                    if self.now >= due {
                        self.ping(seen, seen.candidate.next_ping());
                    } else {
                        self.wake(due, WakeReason::QuietCandidate);
                    }
                    false
                }
            };
            // The deletion of one that is being deleted waits for its finalizers, and not for another request.
            if !collectable || seen.candidate.deleting {
                continue;
            }
            let due = seen.heard.after(timing.candidate_validity);
            if self.now < due {
                self.wake(due, WakeReason::Collect);
                continue;
            }
            self.effects.push(Effect::Collect {
                name: seen.candidate.name.clone(),
                uid: seen.candidate.uid.clone(),
                version: seen.candidate.version,
            });
        }
    }
}
