//! The traffic of a process while a fault of its connection lasts: without any the fault has no effect.

use crate::effect::ProcessTraffic;
use crate::names::lease_name;
use crate::plan::FaultKind;
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    /// A fault has taken effect, as far as it lasts.
    pub(crate) fn strike(&self, fault: usize, kind: &FaultKind) {
        let now = self.context.log().now();
        self.context
            .state()
            .effects
            .strike(fault, now, now + kind.lasts());
    }

    /// A fault of the connection of a process begins.
    pub(crate) fn mark_traffic(&self, fault: usize, kind: &FaultKind) {
        if let Some(traffic) = self.traffic(kind) {
            self.context.state().effects.begun.insert(fault, traffic);
        }
    }

    /// The same ends: it took effect if the process sent anything meanwhile, or there was anything for it to hear.
    pub(crate) fn compare_traffic(&self, fault: usize, kind: &FaultKind) {
        let (now, traffic) = (self.context.log().now(), self.traffic(kind));
        let effects = &mut self.context.state().effects;
        let Some(before) = effects.begun.remove(&fault) else {
            return;
        };
        let differs = traffic.is_some_and(|it| match kind {
            // Requests go their way.
            FaultKind::Freeze(..) | FaultKind::OldCache(..) => it.heard != before.heard,
            _ => it != before,
        });
        if differs {
            effects.strike(fault, now.saturating_sub(kind.lasts()), now);
        }
    }

    /// `None` for a process that does not run.
    fn traffic(&self, kind: &FaultKind) -> Option<ProcessTraffic> {
        let who = kind.who()?;
        let process = self.processes.get(who.0).filter(|it| it.runs())?;
        let state = self.context.state();
        let candidate = who.0.checked_sub(self.plan.setup.electors.len());
        let candidate = candidate.and_then(|it| self.plan.setup.candidates.get(it));
        let all = state.history.stored.leases.iter().filter(|(name, _)| {
            let mut leases = 0..self.plan.setup.leases;
            candidate.is_none_or(|it| {
                leases.any(|lease| it.stands_for(lease) && lease_name(lease) == **name)
            })
        });
        let sent = state.effects.sent.get(&process.name);
        Some(ProcessTraffic {
            sent: sent.copied().unwrap_or_default(),
            heard: all.map(|(_, revisions)| revisions.len()).sum(),
        })
    }
}
