//! A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).

use crate::elector::contenders::Contenders;
use crate::elector::decision::{Effect, Reason};
use crate::elector::hold_back::HoldBackCause;
use crate::elector::observation::{Liveness, ObservedCandidate};
use crate::elector::ping_round::PingPurpose;
use crate::elector::state::PreferenceField;
use crate::elector::step::Step;
use crate::elector::wake::WakeReason;
use crate::lease_watch::ObservedLease;
use crate::names::Identity;
use crate::order::Contender;
use crate::time::Instant;

/// A reason to withdraw a preference.
struct PreferenceDoubt {
    /// The reason, as a fragment that follows the candidate's name.
    because: &'static str,
    /// Until when the preference stands all the same; `None` where there is no doubt about the reason.
    stands_until: Option<Instant>,
}

// === impl Step ===

impl<'a> Step<'a> {
    /// A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).
    pub(super) fn on_candidate_holder(
        &mut self,
        incumbent: &'a ObservedCandidate,
        watched: &'a ObservedLease,
        contenders: &Contenders<'a>,
    ) -> Reason {
        let holder = &incumbent.candidate.name;
        let timing = &self.settings.timing;
        let own = contenders.holder();
        let strictly_better = |contender: &&Contender<'a>| {
            own.is_none_or(|own| contenders.order.is_better(contender, own))
                && &contender.candidate.name != holder
        };
        let ranked = contenders.ranked.iter();
        let stronger: Vec<Contender<'a>> = ranked.filter(strictly_better).copied().collect();
        // A candidate that this elector passes over is not preferred. Where another elector did, that stands: it knows
        // better or will learn, and two that disagree would take each other's word back for as long as one of them
        // remembers (L3).
        let better: Vec<Contender<'a>> = stronger
            .iter()
            .filter(|contender| {
                !self
                    .election
                    .passes_over(&contender.candidate.name, self.now, timing)
            })
            .copied()
            .collect();
        let record = &watched.snapshot.record;
        let preferred = record.preferred_holder.as_ref();
        let frozen = watched.snapshot.overrides.frozen_for(self.wall);
        if let Some(preferred) = preferred
            && let Some(doubt) = self.doubt(preferred, holder, &stronger, frozen.is_some())
        {
            return self.on_doubt(&doubt, watched, preferred, holder);
        }
        let passed_over = stronger.first().filter(|_| preferred.is_some());
        let Some(best) = better.first().or(passed_over) else {
            return Reason::HolderIsBest(holder.clone());
        };
        let best = best.candidate.name.clone();
        if let Some(remaining) = frozen {
            self.wake(self.now.after(remaining), WakeReason::Frozen);
            return Reason::Frozen {
                holder: holder.clone(),
                better: best,
                remaining,
            };
        }
        // A holder that wrote a token speaks the protocol, whether or not its candidate still has the annotation.
        let reads_annotation = incumbent.candidate.marked || record.has_token();
        if !reads_annotation && self.settings.preference_field == PreferenceField::Dropped {
            let Some(preferred) = preferred else {
                let (holder, better) = (holder.clone(), best);
                return Reason::HolderCannotYield { holder, better };
            };
            let because = "was preferred, and the holder cannot see that";
            return self.withdraw(watched, preferred, holder, because);
        }
        let better = match self.allowed(better, holder, contenders) {
            Ok(allowed) => allowed,
            Err(held_back) if preferred.is_none() => return held_back,
            Err(_) => Vec::new(),
        };
        let above = self.above(preferred, &stronger, better, contenders);
        self.ask_to_make_room(&above, watched, holder, contenders)
    }

    /// Prefers the best of these candidates when it has acked (R15, R16).
    fn ask_to_make_room(
        &mut self,
        better: &[Contender<'a>],
        watched: &ObservedLease,
        holder: &Identity,
        contenders: &Contenders<'a>,
    ) -> Reason {
        let record = &watched.snapshot.record;
        let round = self.ping_round(better, &PingPurpose::Preference);
        let holder = holder.clone();
        if let Some(elected) = round.elected {
            let name = elected.candidate.name.clone();
            let strategy = contenders.strategy_name.clone();
            let next = record.preferring(Some(name.clone()), Some(strategy));
            self.effects
                .push(Effect::Write(watched.snapshot.replace(next)));
            return Reason::Preferred {
                preferred: name,
                holder,
                because: contenders.because_of_holder(&elected),
            };
        }
        if let Some(preferred) = &record.preferred_holder {
            return self.await_yield(preferred, holder);
        }
        if !round.awaited.is_empty() {
            return Reason::AwaitAck(round.awaited);
        }
        let silent = round.silent;
        Reason::BetterIsSilent { holder, silent }
    }

    /// Those of `better` that may be preferred in the place of the present preference: a preference moves strictly up,
    /// and not back and forth between electors of different orders (L3).
    fn above(
        &mut self,
        preferred: Option<&Identity>,
        stronger: &[Contender<'a>],
        mut better: Vec<Contender<'a>>,
        contenders: &Contenders<'a>,
    ) -> Vec<Contender<'a>> {
        let is_preferred =
            |contender: &&Contender<'_>| Some(&contender.candidate.name) == preferred;
        let Some(preferred) = stronger.iter().find(is_preferred) else {
            return better;
        };
        better.retain(|contender| contenders.order.is_better(contender, preferred));
        let (window, longest) = self
            .election
            .patience(&preferred.candidate.name, &self.settings.timing);
        let stays = self.election.preference.stays_until(window, longest);
        if let Some(until) = stays.filter(|until| self.now < *until)
            && !better.is_empty()
        {
            self.wake(until, WakeReason::PreferenceDoubted);
            better.clear();
        }
        better
    }

    /// Those of `better` that may be preferred now (R16, R23); the reason where none may be. This elector wakes when
    /// another one may be.
    fn allowed(
        &mut self,
        better: Vec<Contender<'a>>,
        holder: &Identity,
        contenders: &Contenders<'a>,
    ) -> Result<Vec<Contender<'a>>, Reason> {
        let (hold_back, memory) = (&self.election.hold_back, &self.election.preference);
        let mut first = None;
        let mut allowed = Vec::with_capacity(better.len());
        for contender in better {
            let name = &contender.candidate.name;
            let kind = contenders.preference_kind(&contender);
            let timing = &self.settings.timing;
            let (window, longest) = self.election.patience(name, timing);
            let withdrawn = memory
                .withdrawn_until(window, longest)
                .map(|(until, times)| (until, HoldBackCause::Withdrawn { times }));
            let held_back = hold_back.holds(name, kind, timing);
            let longest = held_back
                .into_iter()
                .chain(withdrawn)
                .max_by_key(|(until, _)| *until);
            let Some((until, because)) = longest.filter(|(until, _)| self.now < *until) else {
                allowed.push(contender);
                continue;
            };
            self.wake(until, WakeReason::HeldBack);
            first.get_or_insert_with(|| Reason::HeldBack {
                holder: holder.clone(),
                better: name.clone(),
                because,
                remaining: until.since(self.now),
            });
        }
        match first {
            Some(held_back) if allowed.is_empty() => Err(held_back),
            _ => Ok(allowed),
        }
    }

    /// Why a preferred candidate should not be preferred any more, as far as this elector sees, and until when that may
    /// be the blindness of its own watch: another elector may have seen the candidate appear, change or ack (R16).
    fn doubt(
        &self,
        preferred: &Identity,
        holder: &Identity,
        stronger: &[Contender<'_>],
        is_frozen: bool,
    ) -> Option<PreferenceDoubt> {
        let timing = &self.settings.timing;
        let memory = &self.election.preference;
        let seen = self.election.candidates.get(preferred);
        let (window, longest) = self.election.patience(preferred, timing);
        let is_preferred = |contender: &Contender<'_>| &contender.candidate.name == preferred;
        let (because, stands_until) = match seen {
            _ if preferred == holder => ("is the holder itself", None),
            // At once. Where another elector prefers it again, the two clocks differ on the end of the freeze, and they
            // would take each other's word back without end.
            _ if is_frozen => (
                "has to wait, since the lease is frozen",
                memory.stands_frozen_until(window, longest),
            ),
            None => (
                "is no candidate any more",
                memory.stands_unseen_until(window, longest),
            ),
            Some(_) if !stronger.iter().any(is_preferred) => (
                "is not better than the holder",
                memory.stands_unseen_until(window, longest),
            ),
            Some(seen) if seen.liveness(self.now, None, timing) == Liveness::Silent => {
                ("does not answer", memory.stands_until(window, longest))
            }
            Some(_) => return None,
        };
        Some(PreferenceDoubt {
            because,
            stands_until,
        })
    }

    /// A preference that this elector sees no reason for stands for its time, and is withdrawn then.
    fn on_doubt(
        &mut self,
        doubt: &PreferenceDoubt,
        watched: &ObservedLease,
        preferred: &Identity,
        holder: &Identity,
    ) -> Reason {
        match doubt.stands_until.filter(|until| self.now < *until) {
            Some(until) => {
                self.wake(until, WakeReason::PreferenceDoubted);
                self.await_yield(preferred, holder.clone())
            }
            None => self.withdraw(watched, preferred, holder, doubt.because),
        }
    }

    fn await_yield(&mut self, preferred: &Identity, holder: Identity) -> Reason {
        self.ping_preferred(preferred);
        let preferred = preferred.clone();
        Reason::AwaitYield { holder, preferred }
    }

    fn withdraw(
        &mut self,
        watched: &ObservedLease,
        preferred: &Identity,
        holder: &Identity,
        because: &'static str,
    ) -> Reason {
        let next = watched.snapshot.record.preferring(None, None);
        self.effects
            .push(Effect::Write(watched.snapshot.replace(next)));
        Reason::Withdrawn {
            preferred: preferred.clone(),
            holder: holder.clone(),
            because,
        }
    }

    /// Pings a preferred candidate again when its ack is old: a preference must not outlive it (L6), and a holder that
    /// does not make room costs ever fewer pings.
    fn ping_preferred(&mut self, preferred: &Identity) {
        let Some(seen) = self.election.candidates.get(preferred) else {
            return;
        };
        let timing = &self.settings.timing;
        if let Some(until) = seen.ack_due(timing) {
            // Afterwards it is silent.
            if self.now < until {
                self.wake(until, WakeReason::AckWindow);
            }
            return;
        }
        let memory = &self.election.preference;
        let due = seen
            .acked
            .map(|acked| memory.ping_at(acked.at, timing.fresh));
        match due.filter(|due| self.now < *due) {
            Some(due) => self.wake(due, WakeReason::PreferenceStale),
            None => self.ping(seen, seen.candidate.next_ping()),
        }
    }
}
