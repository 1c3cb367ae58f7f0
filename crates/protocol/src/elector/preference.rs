//! A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).

use std::cmp::Ordering;

use crate::elector::decision::{Action, Effect, Reason};
use crate::elector::election::PreferenceField;
use crate::elector::observation::{Liveness, Seen, Watched};
use crate::elector::step::Step;
use crate::names::Identity;
use crate::order::{Contender, because};
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;

// === impl Step ===

impl<'a> Step<'a> {
    /// A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).
    pub(super) fn compare_with(
        &mut self,
        incumbent: &'a Seen,
        watched: &'a Watched,
        ranking: &dyn Strategy,
        contenders: &[Contender<'a>],
        strategy: StrategyName,
    ) -> (Action, Reason) {
        let holder = &incumbent.candidate.name;
        let timing = &self.settings.timing;
        let own = contenders
            .iter()
            .find(|contender| &contender.candidate.name == holder);
        let strictly_better = |contender: &&Contender<'a>| {
            let by_keys =
                own.is_none_or(|own| ranking.compare(contender.spec, own.spec) == Ordering::Less);
            by_keys && &contender.candidate.name != holder
        };
        let stronger: Vec<Contender<'a>> =
            contenders.iter().filter(strictly_better).copied().collect();
        // Whom this elector passes over it does not prefer. Where another one did, that stands: it knows better or will
        // learn, and two that disagree would take each other's word back for as long as one of them remembers (L3).
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
            return (Action::None, Reason::HolderIsBest(holder.clone()));
        };
        // Whoever wrote a token speaks the protocol, whatever became of its candidate's annotation since.
        let reads_annotation = incumbent.candidate.marked || record.has_token();
        if !reads_annotation && self.settings.preference_field == PreferenceField::Dropped {
            if self.settings.reserve
                && let Some(decided) = self.reserve(watched, own, ranking, &better, &strategy)
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
            return (Action::None, Reason::HolderCannotYield { holder, better });
        }
        // Only those above the one already preferred may replace it: a preference moves strictly up (L3).
        let standing =
            preferred.and_then(|name| stronger.iter().find(|c| &c.candidate.name == name));
        let above: Vec<Contender<'a>> = better
            .iter()
            .filter(|c| {
                standing
                    .is_none_or(|standing| ranking.compare(c.spec, standing.spec) == Ordering::Less)
            })
            .copied()
            .collect();
        let poll = self.poll(&above, None, None, None, false);
        if let Some(elected) = poll.elected {
            let because = own.map_or_else(
                || "can be elected, the holder cannot".to_owned(),
                |own| because(ranking, Some(holder), &elected, own),
            );
            let name = elected.candidate.name.clone();
            let next = record.preferring(Some(name.clone()), Some(strategy));
            self.effects
                .push(Effect::Write(watched.snapshot.replace(next)));
            let holder = holder.clone();
            return (
                Action::Prefer,
                Reason::Preferred {
                    preferred: name,
                    holder,
                    because,
                },
            );
        }
        if let Some(preferred) = preferred {
            self.keep_asking(preferred);
            let (holder, preferred) = (holder.clone(), preferred.clone());
            return (
                self.wait_or_ping(),
                Reason::AwaitYield { holder, preferred },
            );
        }
        if !poll.awaited.is_empty() {
            return (self.wait_or_ping(), Reason::AwaitAnswer(poll.awaited));
        }
        let (holder, silent) = (holder.clone(), poll.silent);
        (
            self.wait_or_ping(),
            Reason::BetterIsSilent { holder, silent },
        )
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
        watched: &Watched,
        preferred: &Identity,
        holder: &Identity,
        because: &'static str,
    ) -> (Action, Reason) {
        let next = watched.snapshot.record.preferring(None, None);
        self.effects
            .push(Effect::Write(watched.snapshot.replace(next)));
        let (preferred, holder) = (preferred.clone(), holder.clone());
        (
            Action::Withdraw,
            Reason::Withdrawn {
                preferred,
                holder,
                because,
            },
        )
    }

    /// Asks a preferred candidate again when its answer is no longer fresh: a preference must not outlive it (L6).
    fn keep_asking(&mut self, preferred: &Identity) {
        let Some(seen) = self.election.candidates.get(preferred) else {
            return;
        };
        match seen.liveness(self.now, None, &self.settings.timing) {
            Liveness::Asked { until } => self.wake(until),
            Liveness::Unasked => self.ask(seen, seen.candidate.question()),
            Liveness::Answered => {
                if let Some(answered) = seen.answered {
                    self.wake(answered.at.after(self.settings.timing.fresh));
                }
            }
            Liveness::Silent => {}
        }
    }
}
