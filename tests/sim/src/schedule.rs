//! From faults that last to actions at instants.

use std::time::Duration;

use crate::plan::{FaultKind, ProcessIndex, RunPlan};

/// An action at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledAction {
    /// A process begins.
    Start(ProcessIndex),
    /// A fault begins.
    Begin(FaultKind),
    /// A fault that lasted ends.
    End(FaultKind),
}

/// The actions of a plan in the order of time.
pub(crate) fn schedule(plan: &RunPlan) -> Vec<(Duration, ScheduledAction)> {
    let starts = (0..plan.setup.processes()).filter_map(|index| {
        let host = plan.setup.host(ProcessIndex(index))?;
        Some((host.start, ScheduledAction::Start(ProcessIndex(index))))
    });
    let mut actions: Vec<_> = starts.collect();
    for fault in &plan.faults {
        actions.push((fault.at, ScheduledAction::Begin(fault.kind.clone())));
        if fault.kind.ends() {
            let end = fault.at + fault.kind.lasts();
            actions.push((end, ScheduledAction::End(fault.kind.clone())));
        }
    }
    actions.sort_by_key(|(at, _)| *at);
    actions
}
