//! A live holder that cannot be asked to yield: a placeholder takes its place, until it must have stopped (R3 d).

use crate::elector::decision::{Action, Effect, Reason};
use crate::elector::observation::Watched;
use crate::elector::step::Step;
use crate::order::{Contender, because};
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;

// === impl Step ===

impl<'a> Step<'a> {
    /// Reserves the lease for the best of `better` that answers, the same way as it would be preferred (R15, R16).
    ///
    /// `own` is the holder as a contender, where it is eligible. `None` where somebody else than a better candidate is
    /// still preferred: that is withdrawn first.
    pub(super) fn reserve(
        &mut self,
        watched: &'a Watched,
        own: Option<&Contender<'a>>,
        ranking: &dyn Strategy,
        better: &[Contender<'a>],
        strategy: &StrategyName,
    ) -> Option<(Action, Reason)> {
        let snapshot = &watched.snapshot;
        let holder = snapshot.record.holder.as_ref()?;
        let poll = self.poll(better, None, None, None, false);
        let Some(elected) = poll.elected else {
            if snapshot.record.preferred_holder.is_some() {
                return None;
            }
            let reason = if poll.awaited.is_empty() {
                let (holder, silent) = (holder.clone(), poll.silent);
                Reason::BetterIsSilent { holder, silent }
            } else {
                Reason::AwaitAnswer(poll.awaited)
            };
            return Some((self.wait_or_ping(), reason));
        };
        let longest = self.election.longest_lease(&self.settings.timing);
        let mut placeholder = snapshot.reserved(longest, self.wall)?;
        placeholder.strategy = Some(strategy.clone());
        let lasts = placeholder.duration().unwrap_or(longest);
        self.effects
            .push(Effect::Write(snapshot.replace(placeholder)));
        let reason = Reason::Reserved {
            better: elected.candidate.name.clone(),
            holder: holder.clone(),
            because: own.map_or_else(
                || "can be elected, the holder cannot".to_owned(),
                |own| because(ranking, Some(holder), &elected, own),
            ),
            lasts,
        };
        Some((Action::Reserve, reason))
    }
}
