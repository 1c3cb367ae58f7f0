//! The fault of a revision, and the promise that it breaks.

use crate::verdict::{GuaranteeLevel, Invariant};

/// The fault of a revision.
#[derive(Debug)]
pub(super) struct BrokenRule {
    pub(super) invariant: Invariant,
    pub(super) level: GuaranteeLevel,
    pub(super) message: String,
}

// === impl BrokenRule ===

impl BrokenRule {
    pub(super) fn promised(invariant: Invariant, message: impl Into<String>) -> Self {
        Self {
            invariant,
            level: GuaranteeLevel::Promised,
            message: message.into(),
        }
    }

    pub(super) fn of_client_go(self) -> Self {
        Self {
            level: GuaranteeLevel::AsClientGo,
            ..self
        }
    }
}
