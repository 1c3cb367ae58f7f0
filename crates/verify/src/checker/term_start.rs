//! The ways in which a term begins, and what each has to wait for.

use std::time::Duration;

/// The ways in which a term begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermStart {
    /// An elector granted it.
    Granted,
    /// Its holder acquired it (R18).
    Acquired,
    /// A plain client-go holder took it.
    Taken,
}

// === impl TermStart ===

impl TermStart {
    /// The word for it, and the rules that say when it may be.
    pub(super) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Granted => ("granted", "R4, R6"),
            Self::Acquired => ("acquired", "R4, R6, R18"),
            Self::Taken => ("taken", "R4, R6"),
        }
    }

    /// The tolerated earliness of an expiry: client-go compares whole seconds.
    pub(super) const fn leeway(self) -> Duration {
        match self {
            Self::Granted | Self::Acquired => Duration::ZERO,
            Self::Taken => Duration::from_secs(1),
        }
    }
}
