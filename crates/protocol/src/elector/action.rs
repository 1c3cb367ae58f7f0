//! The upshot of a decision, in one word.

use std::fmt;

use crate::elector::decision::{Decision, Effect, Reason};

/// The upshot of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing is to be done.
    None,
    /// Something is to be waited for.
    Wait,
    /// Candidates are pinged.
    Ping,
    /// The Lease is created, unheld.
    Create,
    /// The Lease is granted.
    Grant,
    /// The holder is asked to make room.
    Prefer,
    /// The holder is no longer asked to make room.
    Withdraw,
    /// The Lease is left to others.
    Leave,
}

// === impl Decision ===

impl Decision {
    /// The upshot of this decision. It follows from the reason and the effects.
    pub fn action(&self) -> Action {
        match &self.reason {
            Reason::NotSynced | Reason::AwaitCreated | Reason::AwaitAccept { .. } => Action::Wait,
            Reason::StrategyConflict(_)
            | Reason::AwaitProof { .. }
            | Reason::HolderLate { .. }
            | Reason::AwaitAck(_)
            | Reason::NoAck(_)
            | Reason::AwaitYield { .. }
            | Reason::BetterIsSilent { .. } => {
                if self.has(|effect| matches!(effect, Effect::Ping { .. })) {
                    Action::Ping
                } else {
                    Action::Wait
                }
            }
            Reason::ForeignStrategy(_) => {
                if self.has(|effect| matches!(effect, Effect::Create(_))) {
                    Action::Create
                } else {
                    Action::Leave
                }
            }
            Reason::NoCandidate | Reason::HolderIsNoCandidate(_) => Action::Leave,
            Reason::NoEligible { .. }
            | Reason::HolderIsBest(_)
            | Reason::HeldBack { .. }
            | Reason::Frozen { .. }
            | Reason::HolderCannotYield { .. } => Action::None,
            Reason::Missing => Action::Create,
            Reason::Granted { .. } => Action::Grant,
            Reason::Preferred { .. } => Action::Prefer,
            Reason::Withdrawn { .. } => Action::Withdraw,
        }
    }

    fn has(&self, wanted: impl Fn(&Effect) -> bool) -> bool {
        self.effects.iter().any(wanted)
    }
}

// === impl Action ===

impl Action {
    /// The word that `elector explain` prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Wait => "wait",
            Self::Ping => "ping",
            Self::Create => "create",
            Self::Grant => "grant",
            Self::Prefer => "prefer",
            Self::Withdraw => "withdraw",
            Self::Leave => "leave",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_a_word() {
        let actions = [
            Action::None,
            Action::Wait,
            Action::Ping,
            Action::Create,
            Action::Grant,
            Action::Prefer,
            Action::Withdraw,
            Action::Leave,
        ];
        let words = actions.map(|action| action.to_string()).join(" ");
        assert_eq!(words, "none wait ping create grant prefer withdraw leave");
    }
}
