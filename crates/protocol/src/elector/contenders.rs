//! The candidates of a lease that can be elected, the best one first, and the strategy that ranks them (R16).

use std::cmp::Ordering;

use crate::elector::election::Election;
use crate::names::Identity;
use crate::order::{Contender, because, best_first};
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;

/// The candidates of one lease that can be elected under its strategy.
pub(super) struct Contenders<'a> {
    /// The name of the strategy, as it is written into the Lease.
    pub(super) strategy_name: StrategyName,
    pub(super) strategy: &'static dyn Strategy,
    /// The holder of the record. It need not be a candidate.
    pub(super) incumbent: Option<&'a Identity>,
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
        let (_, holder) = self.find(self.incumbent?)?;
        Some(holder)
    }

    /// Whether the strategy's own keys put `left` before `right`.
    pub(super) fn is_better(&self, left: &Contender<'_>, right: &Contender<'_>) -> bool {
        self.strategy.compare(left.spec, right.spec) == Ordering::Less
    }

    /// Says why `better` precedes `other`, as a fragment that follows the candidate's name.
    pub(super) fn because(&self, better: &Contender<'_>, other: &Contender<'_>) -> String {
        because(self.strategy, self.incumbent, better, other)
    }

    /// Says why `better` is to lead in place of the incumbent.
    pub(super) fn because_of_holder(&self, better: &Contender<'_>) -> String {
        self.holder().map_or_else(
            || "can be elected, the holder cannot".to_owned(),
            |holder| self.because(better, holder),
        )
    }
}

// === impl Election ===

impl Election {
    /// The candidates that can be elected under the strategy of this name, `None` where another elector decides it.
    pub(super) fn contenders(&self, strategy_name: &StrategyName) -> Option<Contenders<'_>> {
        let strategy = strategy_name.strategy()?;
        let incumbent = self.lease().and_then(|lease| lease.record.holder.as_ref());
        let eligible = self
            .candidates()
            .filter(|candidate| candidate.renew.is_some())
            .filter_map(|candidate| {
                let spec = candidate.offer().ok()?;
                strategy.eligible(spec).ok()?;
                Some(Contender { candidate, spec })
            });
        Some(Contenders {
            strategy_name: strategy_name.clone(),
            strategy,
            incumbent,
            ranked: best_first(strategy, incumbent, eligible),
        })
    }
}
