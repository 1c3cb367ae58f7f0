//! Everything that can happen next to an elector, whatever its candidates are.

use super::elector::{ElectorProcess, ElectorRequest};
use super::run::Run;
use super::search::TransitionKind;
use super::store::{LeaseStore, Side};

/// A transition of an elector.
#[derive(Clone, Debug)]
pub(super) enum ElectorTransition {
    /// Its watch delivers an event, or it lists.
    See,
    /// It sends one of its requests, which lands at once, and sees the outcome.
    Decide(ElectorRequest),
    /// It sends a write, which takes its time.
    Send(ElectorRequest),
    /// Its write lands, and its watch delivers that.
    Land,
    /// Its watch breaks.
    BreakWatch,
    /// It dies and starts again.
    Restart,
}

// === impl ElectorTransition ===

impl ElectorTransition {
    /// Its kind: prompt, time or a fault.
    pub(super) fn kind(&self) -> TransitionKind {
        match self {
            Self::See | Self::Decide(_) | Self::Send(_) | Self::Land => TransitionKind::Prompt,
            Self::BreakWatch | Self::Restart => TransitionKind::Fault,
        }
    }

    /// Applies what concerns the elector alone; the other transitions do nothing here.
    pub(super) fn apply_alone(&self, elector: &mut ElectorProcess) {
        match self {
            Self::Send(ElectorRequest::Write(write)) => elector.message = Some(write.clone()),
            Self::BreakWatch => elector.break_watch(),
            Self::Restart => elector.restart(),
            Self::Send(_) | Self::See | Self::Decide(_) | Self::Land => {}
        }
    }
}

/// All that can happen next to an elector with these requests. A write on a revision that was replaced is dead (R2).
pub(super) fn of_elector(
    run: &Run,
    elector: &ElectorProcess,
    requests: &[ElectorRequest],
    store: &LeaseStore,
) -> Vec<ElectorTransition> {
    let mut transitions = Vec::with_capacity(6);
    if elector.can_see() {
        transitions.push(ElectorTransition::See);
    }
    for request in requests {
        match request {
            ElectorRequest::Write(write) if !store.may_accept(write, Side::Elector) => {}
            ElectorRequest::Write(_) if run.slow_electors => {
                if elector.message.is_none() {
                    transitions.push(ElectorTransition::Send(request.clone()));
                }
            }
            ElectorRequest::Write(_) | ElectorRequest::Post(_) | ElectorRequest::Ping { .. } => {
                transitions.push(ElectorTransition::Decide(request.clone()));
            }
        }
    }
    if elector.message.is_some() {
        transitions.push(ElectorTransition::Land);
    }
    if run.interference.deletions > 0 && elector.whole {
        transitions.push(ElectorTransition::BreakWatch);
    }
    if run.restarts {
        transitions.push(ElectorTransition::Restart);
    }
    transitions
}
