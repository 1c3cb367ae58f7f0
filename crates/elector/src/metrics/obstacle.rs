//! The obstacles to the leader of a lease.

use elector_protocol::elector::Reason;

/// An obstacle to the leader of a lease, or to the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    StrategyConflict,
    ForeignStrategy,
    NoEligible,
    NoAck,
    HolderCannotYield,
    /// R23.
    HeldBack,
    Frozen,
}

// === impl Obstacle ===

impl Obstacle {
    /// Every obstacle.
    pub(super) const ALL: [Self; 7] = [
        Self::StrategyConflict,
        Self::ForeignStrategy,
        Self::NoEligible,
        Self::NoAck,
        Self::HolderCannotYield,
        Self::HeldBack,
        Self::Frozen,
    ];

    /// The obstacle by a decision for this reason.
    pub(crate) fn of(reason: &Reason) -> Option<Self> {
        match reason {
            Reason::StrategyConflict(_) => Some(Self::StrategyConflict),
            Reason::ForeignStrategy(_) => Some(Self::ForeignStrategy),
            Reason::NoEligible { .. } => Some(Self::NoEligible),
            Reason::NoAck(_) => Some(Self::NoAck),
            Reason::HolderCannotYield { .. } => Some(Self::HolderCannotYield),
            Reason::HeldBack { .. } => Some(Self::HeldBack),
            Reason::Frozen { .. } => Some(Self::Frozen),
            _ => None,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::StrategyConflict => "strategy_conflict",
            Self::ForeignStrategy => "foreign_strategy",
            Self::NoEligible => "no_eligible",
            Self::NoAck => "no_ack",
            Self::HolderCannotYield => "holder_cannot_yield",
            Self::HeldBack => "held_back",
            Self::Frozen => "frozen",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_protocol::elector::HoldBackCause;
    use elector_protocol::{Conflict, Identity, Rejection, StrategyName};

    use super::*;

    #[test]
    fn a_reason_without_the_best_leader_is_an_obstacle() {
        let id = |name: &str| Identity::new(name).unwrap();
        let (holder, better) = (id("a"), id("b"));
        let remaining = Duration::from_secs(60);
        let foreign = StrategyName::parse("example.com/mine").unwrap();
        for (reason, obstacle) in [
            (Reason::ForeignStrategy(foreign), Some("foreign_strategy")),
            (
                Reason::StrategyConflict(Conflict::Circle { steps: vec![] }),
                Some("strategy_conflict"),
            ),
            (
                Reason::NoEligible {
                    name: id("a"),
                    rejection: Rejection::NoRenewTime,
                    others: 0,
                },
                Some("no_eligible"),
            ),
            (Reason::NoAck(vec![id("a")]), Some("no_ack")),
            (
                Reason::HolderCannotYield {
                    holder: holder.clone(),
                    better: better.clone(),
                },
                Some("holder_cannot_yield"),
            ),
            (
                Reason::HeldBack {
                    holder: holder.clone(),
                    better: better.clone(),
                    because: HoldBackCause::NewSinceFailure,
                    remaining,
                },
                Some("held_back"),
            ),
            (
                Reason::Frozen {
                    holder: holder.clone(),
                    better,
                    remaining,
                },
                Some("frozen"),
            ),
            (Reason::HolderIsBest(holder), None),
        ] {
            assert_eq!(Obstacle::of(&reason).map(Obstacle::as_str), obstacle);
        }
    }
}
