//! From faults that last to actions at instants.

use std::time::Duration;

use crate::plan::{FaultKind, ProcessIndex, RunPlan};

/// An action at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledAction {
    /// A process begins.
    Start(ProcessIndex),
    /// The fault of this place in the plan begins.
    Begin(usize),
    /// A fault that lasted ends.
    End(usize),
    /// The backup of the store is made that a fault will restore.
    BackUp(usize),
}

/// The actions of a plan in the order of time.
pub(crate) fn schedule(plan: &RunPlan) -> Vec<(Duration, ScheduledAction)> {
    let starts = (0..plan.setup.processes()).filter_map(|index| {
        let host = plan.setup.host(ProcessIndex(index))?;
        Some((host.start, ScheduledAction::Start(ProcessIndex(index))))
    });
    let mut actions: Vec<_> = starts.collect();
    for (index, fault) in plan.faults.iter().enumerate() {
        if let FaultKind::RestoreStore(age, _) = fault.kind {
            let at = fault.at.saturating_sub(age);
            actions.push((at, ScheduledAction::BackUp(index)));
        }
        actions.push((fault.at, ScheduledAction::Begin(index)));
        if fault.kind.ends() {
            let end = fault.at + fault.kind.lasts();
            actions.push((end, ScheduledAction::End(index)));
        }
    }
    actions.sort_by_key(|(at, _)| *at);
    actions
}
