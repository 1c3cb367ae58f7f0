//! A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).

use crate::elector::contenders::Contenders;
use crate::elector::decision::{Effect, Reason};
use crate::elector::election::PreferenceField;
use crate::elector::observation::{Liveness, ObservedCandidate, ObservedLease};
use crate::elector::ping_round::PingPurpose;
use crate::elector::step::Step;
use crate::elector::wake::WakeReason;
use crate::names::Identity;
use crate::order::Contender;

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
            own.is_none_or(|own| contenders.is_better(contender, own))
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
        if let Some(preferred) = preferred
            && let Some(because) = self.unfit(preferred, holder, &stronger)
        {
            return self.withdraw(watched, preferred, holder, because);
        }
        let passed_over = stronger.first().filter(|_| preferred.is_some());
        let Some(best) = better.first().or(passed_over) else {
            return Reason::HolderIsBest(holder.clone());
        };
        // A holder that wrote a token speaks the protocol, whether or not its candidate still has the annotation.
        let reads_annotation = incumbent.candidate.marked || record.has_token();
        if !reads_annotation && self.settings.preference_field == PreferenceField::Dropped {
            if self.settings.reserve
                && let Some(decided) = self.reserve(watched, contenders, &better)
            {
                return decided;
            }
            if let Some(preferred) = preferred {
                return self.withdraw(
                    watched,
                    preferred,
                    holder,
                    "was preferred where the holder cannot see it",
                );
            }
            let (holder, better) = (holder.clone(), best.candidate.name.clone());
            return Reason::HolderCannotYield { holder, better };
        }
        // Only those above the one already preferred may replace it: a preference moves strictly up (L3).
        let above: Vec<Contender<'a>> =
            match preferred.and_then(|name| stronger.iter().find(|c| &c.candidate.name == name)) {
                None => better,
                Some(preferred) => {
                    let better = better.into_iter();
                    better
                        .filter(|contender| contenders.is_better(contender, preferred))
                        .collect()
                }
            };
        let round = self.ping_round(&above, &PingPurpose::Preference);
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
        if let Some(preferred) = preferred {
            self.ping_preferred(preferred);
            let preferred = preferred.clone();
            return Reason::AwaitYield { holder, preferred };
        }
        if !round.awaited.is_empty() {
            return Reason::AwaitAck(round.awaited);
        }
        let silent = round.silent;
        Reason::BetterIsSilent { holder, silent }
    }

    /// Why a preferred candidate should not be preferred any more.
    fn unfit(
        &self,
        preferred: &Identity,
        holder: &Identity,
        stronger: &[Contender<'_>],
    ) -> Option<&'static str> {
        if preferred == holder {
            return Some("is the holder itself");
        }
        let Some(seen) = self.election.candidates.get(preferred) else {
            return Some("is no candidate any more");
        };
        if !stronger
            .iter()
            .any(|contender| &contender.candidate.name == preferred)
        {
            return Some("is not better than the holder");
        }
        let liveness = seen.liveness(self.now, None, &self.settings.timing);
        (liveness == Liveness::Silent).then_some("does not answer")
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

    /// Pings a preferred candidate again when its ack is no longer fresh: a preference must not outlive it (L6).
    fn ping_preferred(&mut self, preferred: &Identity) {
        let Some(seen) = self.election.candidates.get(preferred) else {
            return;
        };
        match seen.liveness(self.now, None, &self.settings.timing) {
            Liveness::Pinged { until } => self.wake(until, WakeReason::AckWindow),
            Liveness::Unpinged => self.ping(seen, seen.candidate.next_ping()),
            Liveness::Acked => {
                if let Some(acked) = seen.acked {
                    let stale_at = acked.at.after(self.settings.timing.fresh);
                    self.wake(stale_at, WakeReason::PreferenceStale);
                }
            }
            Liveness::Silent => {}
        }
    }
}
