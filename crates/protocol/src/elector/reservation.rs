//! A live holder that cannot be asked to yield: a placeholder takes its place, until it must have stopped (R3 d).

use crate::elector::contenders::Contenders;
use crate::elector::decision::{Effect, Reason};
use crate::elector::ping_round::PingPurpose;
use crate::elector::step::Step;
use crate::lease_watch::ObservedLease;
use crate::order::Contender;

// === impl Step ===

impl<'a> Step<'a> {
    /// Reserves the lease for the best of `better` that acks, the same way as it would be preferred (R15, R16).
    ///
    /// `None` where a preference stands although no better candidate acks: it is withdrawn first.
    pub(super) fn reserve(
        &mut self,
        watched: &'a ObservedLease,
        contenders: &Contenders<'a>,
        better: &[Contender<'a>],
    ) -> Option<Reason> {
        let snapshot = &watched.snapshot;
        let holder = snapshot.record.holder.clone()?;
        let round = self.ping_round(better, &PingPurpose::Preference);
        let Some(elected) = round.elected else {
            if snapshot.record.preferred_holder.is_some() {
                return None;
            }
            if !round.awaited.is_empty() {
                return Some(Reason::AwaitAck(round.awaited));
            }
            let silent = round.silent;
            return Some(Reason::BetterIsSilent { holder, silent });
        };
        let longest = self.election.longest_lease(&self.settings.timing);
        let mut placeholder = snapshot.reserved(longest, self.wall)?;
        placeholder.strategy = Some(contenders.strategy_name.clone());
        let lasts = placeholder.duration().unwrap_or(longest);
        self.effects
            .push(Effect::Write(snapshot.replace(placeholder)));
        Some(Reason::Reserved {
            better: elected.candidate.name.clone(),
            holder,
            because: contenders.because_of_holder(&elected),
            lasts,
        })
    }
}
