//! Why a run comes to its end, and what is reported of it.

use std::convert::Infallible;

use futures::future::Fuse;
use tokio::sync::oneshot;

use crate::boxed_work::BoxedOutcome;
use crate::outcome::{RunOutcome, TermEnd};

/// A channel that carries nothing: its end is a shutdown.
pub(crate) type ShutdownSignal = Fuse<oneshot::Receiver<Infallible>>;

/// Why the run is coming to its end.
pub(crate) enum Finish {
    ShutDown,
    WorkEnded,
    WorkFailed(String),
    WorkPanicked(String),
    Unwell(String),
    TermEnded,
}

// === impl Finish ===

impl Finish {
    /// Keeps the reason that is to be reported: an error of the work even where something else ended the run first, and
    /// of several reasons of a kind the first.
    pub(crate) fn add_to(self, reason: &mut Option<Self>) {
        let replaces = match reason {
            None => true,
            Some(before) => self.is_error() && !before.is_error(),
        };
        if replaces {
            *reason = Some(self);
        }
    }

    /// The outcome of a run whose last term ended so.
    pub(crate) fn outcome(reason: Option<Self>, end: Option<TermEnd>) -> BoxedOutcome {
        let term = end.clone().unwrap_or(TermEnd::Unconfirmed);
        match reason {
            Some(Self::WorkEnded) => RunOutcome::WorkEnded { value: (), term },
            Some(Self::WorkFailed(error)) => RunOutcome::WorkFailed { error, term },
            Some(Self::WorkPanicked(message)) => RunOutcome::WorkPanicked { message, term },
            Some(Self::Unwell(error)) => RunOutcome::Unwell { error, term },
            Some(Self::TermEnded) => RunOutcome::TermEnded(term),
            Some(Self::ShutDown) | None => RunOutcome::ShutDown(end),
        }
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::WorkFailed(_) | Self::WorkPanicked(_))
    }
}
