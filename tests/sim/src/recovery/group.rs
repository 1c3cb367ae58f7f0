//! The recovery of a group: each part is led soon, the parts are spread, and those of a member that dies go to the others.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::LeaseGroup;
use tokio::time::sleep;

use super::POLL_INTERVAL;
use crate::names::lease_name;
use crate::simulation::Simulation;

/// The rest of a part after it was moved for balance.
const REST: Duration = Duration::from_secs(10 * 60);
/// The cost of all moves besides waiting: each member takes part in one at a time.
const MOVES: Duration = Duration::from_secs(3 * 60);

// === impl Simulation ===

impl Simulation {
    /// Checks what must come about once nothing goes wrong any more (L1, L4).
    pub(super) async fn check_group_recovery(&mut self) {
        self.check_parts().await;
        self.check_spread("").await;
        if !self.context.state().violations.is_empty() {
            return;
        }
        let leads = self.parts_of_members();
        let Some((busiest, _)) = leads.into_iter().max_by_key(|(_, parts)| *parts) else {
            return;
        };
        if let Some(process) = self.processes.iter_mut().find(|it| it.name == busiest) {
            process.crash().await;
        }
        self.check_parts().await;
        self.restart_all().await;
        self.check_spread(" after a member died").await;
    }

    /// L1 for each part.
    async fn check_parts(&self) {
        for lease in 0..self.plan.setup.leases {
            self.check_leader(lease).await;
        }
    }

    /// L4: the loads of the members differ by at most one, once newcomers have settled and parts may move again.
    async fn check_spread(&mut self, when: &str) {
        let limit = LeaseGroup::SETTLING_MAX + REST + MOVES;
        let since = self.context.log().now();
        loop {
            let leads = self.parts_of_members();
            let all = leads.values().sum::<usize>() == self.plan.setup.leases;
            let (least, most) = (leads.values().min(), leads.values().max());
            if all
                && most
                    .zip(least)
                    .is_some_and(|(most, least)| most - least <= 1)
            {
                return;
            }
            if self.context.log().now() > since + limit {
                let text = format!("the parts are spread {leads:?} {limit:?} later{when}");
                return self.context.report("L4", text);
            }
            // A process that was asked to end while it was paused may end only now.
            self.restart_all().await;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// The number of parts that each member leads.
    fn parts_of_members(&self) -> BTreeMap<String, usize> {
        let members = self.processes.iter().skip(self.plan.setup.electors.len());
        let mut leads: BTreeMap<String, usize> =
            members.map(|member| (member.name.clone(), 0)).collect();
        for lease in 0..self.plan.setup.leases {
            let leader = self.leader_name(&lease_name(lease));
            if let Some(parts) = leader.and_then(|leader| leads.get_mut(&leader)) {
                *parts += 1;
            }
        }
        leads
    }
}
