//! The standing of a lease's candidates: which are eligible, in which order, and why.

use std::collections::BTreeSet;

use crate::elector::observation::ObservedCandidate;
use crate::elector::state::{Election, Settings};
use crate::names::Identity;
use crate::rejection::Rejection;
use crate::resolution::Resolution;
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Timestamp};

/// All candidates of one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// The strategy, `None` when the candidates disagree or none has a valid wish.
    pub strategy: Option<StrategyName>,
    /// Every candidate: the eligible ones by rank, then the others by name.
    pub candidates: Vec<RankedCandidate>,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankedCandidate {
    /// The candidate.
    pub name: Identity,
    /// True if it is valid under the strategy; says nothing about being alive.
    pub eligible: bool,
    /// From 1 among the eligible.
    pub rank: Option<usize>,
    /// Why it stands there, in one line.
    pub reason: String,
}

// === impl Election ===

impl Election {
    /// The strategy that the lease is elected under at `now`, which is `wall` by the elector's wall clock; `None` when the
    /// candidates disagree or none has a valid wish.
    pub fn strategy(
        &self,
        now: Instant,
        wall: Timestamp,
        settings: &Settings,
    ) -> Option<StrategyName> {
        match self.resolve(now, wall, settings) {
            Resolution::One(strategy) => Some(strategy),
            Resolution::NoWish | Resolution::Conflict(_) => None,
        }
    }

    /// The candidates' standing at `now`, which is `wall` by the elector's wall clock.
    pub fn ranking(&self, now: Instant, wall: Timestamp, settings: &Settings) -> Ranking {
        let strategy = self.strategy(now, wall, settings);
        let contenders = strategy
            .as_ref()
            .and_then(|name| self.contenders(name, now, wall));
        let ranked = contenders.as_ref().map_or(&[][..], |all| &all.ranked);
        let mut candidates = Vec::with_capacity(self.candidates.iter().len());
        for (index, contender) in ranked.iter().enumerate() {
            let because = |better, other| {
                let all = contenders.as_ref();
                all.map_or_else(String::new, |all| all.order.because(better, other))
            };
            let reason = match (index, ranked.get(1)) {
                (0, None) => "is the only eligible candidate".to_owned(),
                (0, Some(next)) => because(contender, next),
                _ => {
                    let best = &ranked[0];
                    format!("{} {}", best.candidate.name, because(best, contender))
                }
            };
            candidates.push(RankedCandidate {
                name: contender.candidate.name.clone(),
                eligible: true,
                rank: Some(index + 1),
                reason,
            });
        }
        let eligible: BTreeSet<&Identity> = ranked
            .iter()
            .map(|contender| &contender.candidate.name)
            .collect();
        for seen in self.candidates.iter() {
            let candidate = &seen.candidate;
            if eligible.contains(&candidate.name) {
                continue;
            }
            let strategy_of_all = contenders.as_ref().map(|all| all.order.strategy);
            let rejection = rejection(seen, now, wall, strategy_of_all);
            let foreign = strategy.is_some() && contenders.is_none();
            candidates.push(RankedCandidate {
                name: candidate.name.clone(),
                eligible: rejection.is_none() && foreign,
                rank: None,
                reason: match (&rejection, &strategy) {
                    (Some(rejection), _) => rejection.to_string(),
                    (None, Some(strategy)) => {
                        format!("strategy {strategy} is decided by its own elector")
                    }
                    (None, None) => "the candidates disagree on the strategy".to_owned(),
                },
            });
        }
        Ranking {
            strategy,
            candidates,
        }
    }
}

/// Why a candidate cannot be elected now under a strategy; without one, why it is invalid.
pub(super) fn rejection(
    seen: &ObservedCandidate,
    now: Instant,
    wall: Timestamp,
    strategy: Option<&dyn Strategy>,
) -> Option<Rejection> {
    let candidate = &seen.candidate;
    if let Some((_, Ok(remaining))) = seen.stand_down(now, wall) {
        return Some(Rejection::StandsDown(remaining));
    }
    match (candidate.offer(), strategy) {
        (Err(rejection), _) => Some(rejection.clone()),
        (Ok(spec), Some(strategy)) => strategy
            .eligible(spec)
            .err()
            .or_else(|| candidate.renew.is_none().then_some(Rejection::NoRenewTime)),
        (Ok(_), None) => candidate.renew.is_none().then_some(Rejection::NoRenewTime),
    }
}
