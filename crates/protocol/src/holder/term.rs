//! Where a holder stands with its term, and the writes that may prove it.

use super::decision::{Ending, Loss, WriteKind};
use crate::names::{ResourceVersion, Token};
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::time::{Instant, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TermPhase {
    /// Not holding, and nothing runs. `ended` is the end of the last term, until it has been reported.
    Waiting { ended: Option<Ending> },
    /// The known record is a term that this process accepted.
    Holding(Holding),
    /// The belief is gone and the work still runs. The Lease is not ours to touch.
    Lost { why: Loss, reported: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    pub(super) token: Token,
    /// When the newest write that is proven to have been applied was sent.
    pub(super) proven: Instant,
    pub(super) work: WorkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WorkState {
    /// Not started yet.
    Due,
    Running,
    /// Ordered to stop, and still allowed to finish.
    Draining,
    /// Stopped for good; the lease is to be given up.
    Stopped {
        /// True if it was ever started: a term that was not has no end to report.
        started: bool,
    },
}

/// A write that could prove itself by its renewTime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WriteAttempt {
    /// True if it would begin a term; if not, it renews one or gives it up.
    pub(super) begins: bool,
    /// The version that it replaces.
    pub(super) base: ResourceVersion,
    pub(super) renew_time: Timestamp,
    /// When it was sent, from where the belief counts that it proves. `None` for one of a term that is over: it shows at
    /// most that nobody came between (R20).
    pub(super) sent_at: Option<Instant>,
}

/// A request under way that changes the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum InFlight {
    /// A PUT.
    Write {
        kind: WriteKind,
        attempt: WriteAttempt,
    },
    /// The POST of a born record.
    Create,
}

// === impl TermPhase, Holding ===

impl Renumber for TermPhase {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Holding(holding) => holding.renumber(by),
            Self::Waiting { .. } | Self::Lost { .. } => {}
        }
    }
}

renumber!(Holding { token, proven });

// === impl InFlight, WriteAttempt ===

impl Renumber for InFlight {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Write { attempt, .. } => attempt.renumber(by),
            Self::Create => {}
        }
    }
}

renumber!(WriteAttempt { base, renew_time => lease_time, sent_at });
