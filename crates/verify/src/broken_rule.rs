//! The fault of a revision, and the promise that it breaks.

use std::fmt;

use crate::verdict::{GuaranteeLevel, Invariant};

/// The fault of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The invariant that is broken.
    pub invariant: Invariant,
    /// Which promise it would have been.
    pub level: GuaranteeLevel,
    /// The fault, in words.
    pub message: String,
}

// === impl BrokenRule ===

impl BrokenRule {
    pub(crate) fn promised(invariant: Invariant, message: impl Into<String>) -> Self {
        Self {
            invariant,
            level: GuaranteeLevel::Promised,
            message: message.into(),
        }
    }

    pub(crate) fn of_client_go(self) -> Self {
        Self {
            level: GuaranteeLevel::AsClientGo,
            ..self
        }
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.message)
    }
}
