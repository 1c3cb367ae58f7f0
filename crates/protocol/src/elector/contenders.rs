//! The candidates of a lease that can be elected, the best one first, and the strategy that ranks them (R16).

use std::cmp::Ordering;

use crate::elector::hold_back::PreferenceKind;
use crate::elector::state::Election;
use crate::names::Identity;
use crate::order::{CandidateOrder, Contender};
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Timestamp};

/// The candidates of one lease that can be elected under its strategy.
pub(super) struct Contenders<'a> {
    /// The name of the strategy, as it is written into the Lease.
    pub(super) strategy_name: StrategyName,
    /// Its holder, the incumbent, need not be a candidate; what operators prefer need not either.
    pub(super) order: CandidateOrder<'a>,
    /// The best one first.
    pub(super) ranked: Vec<Contender<'a>>,
}

// === impl Contenders ===

impl<'a> Contenders<'a> {
    /// The contender of this name, and its place, from zero.
    pub(super) fn find(&self, name: &Identity) -> Option<(usize, &Contender<'a>)> {
        let named = |(_, contender): &(usize, &Contender<'a>)| &contender.candidate.name == name;
        self.ranked.iter().enumerate().find(named)
    }

    /// The incumbent, where it can be elected itself.
    pub(super) fn holder(&self) -> Option<&Contender<'a>> {
        let (_, holder) = self.find(self.order.incumbent?)?;
        Some(holder)
    }

    /// For what `better` goes before the incumbent.
    pub(super) fn preference_kind(&self, better: &Contender<'_>) -> PreferenceKind {
        let equal =
            |holder: &&Contender<'_>| self.order.compare_keys(better, holder) == Ordering::Equal;
        if self.order.preferred == Some(&better.candidate.name) {
            PreferenceKind::Operator
        } else if self.holder().filter(equal).is_some() {
            PreferenceKind::Balance
        } else {
            PreferenceKind::Strategy
        }
    }

    /// Says why `better` is to lead in place of the incumbent.
    pub(super) fn because_of_holder(&self, better: &Contender<'_>) -> String {
        self.holder().map_or_else(
            || "can be elected, the holder cannot".to_owned(),
            |holder| self.order.because(better, holder),
        )
    }
}

// === impl Election ===

impl Election {
    /// The candidates that can be elected at `now`, which is `wall` by the wall clock, under the strategy of this name;
    /// `None` where another elector decides it.
    pub(super) fn contenders(
        &self,
        strategy_name: &StrategyName,
        now: Instant,
        wall: Timestamp,
    ) -> Option<Contenders<'_>> {
        let strategy = strategy_name.strategy()?;
        let lease = self.lease();
        let preferred = lease.and_then(|lease| lease.overrides.preferred_for(wall));
        let order = CandidateOrder {
            preferred: preferred.map(|(preferred, _)| preferred),
            strategy,
            assigned: self.group.assigned.as_ref(),
            incumbent: lease.and_then(|lease| lease.record.holder.as_ref()),
        };
        let eligible = self
            .candidates
            .iter()
            .filter(|seen| seen.candidate.renew.is_some())
            .filter_map(|seen| {
                let (candidate, spec) = (&seen.candidate, seen.offer(now, wall)?);
                strategy.eligible(spec).ok()?;
                Some(Contender { candidate, spec })
            });
        Some(Contenders {
            strategy_name: strategy_name.clone(),
            order,
            ranked: order.best_first(eligible),
        })
    }
}
