//! The electors after all faults: one of them leads the others soon, and another one when it leaves or dies.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::{LONGEST_GRANT, POLL_INTERVAL, SLACK};
use crate::names::{ELECTOR_LOCK, lease_name};
use crate::process::ProcessKind;
use crate::simulation::Simulation;

/// The time for which an elector that begins leaves a free lock to the others.
const HEAD_START: Duration = Duration::from_secs(2);

/// The end of an elector: what is under way, then the lock of the built-in controller, then its own.
const ELECTOR_END: Duration = Duration::from_secs(2);

/// The cost of dead candidates to a grant: the best is asked first, then the next two, then all, for 2 s each (R15).
const UNANSWERED_PINGS: Duration = Duration::from_secs(7);

// === impl Simulation ===

impl Simulation {
    /// L1 for the lock of the electors, from an arbitrary state.
    pub(super) async fn check_leading_elector(&self) {
        let Some((w, _)) = self.elector_lock() else {
            return;
        };
        // A stranger may have written a longer duration.
        let duration = Duration::from_secs(w.max(self.plan.setup.longest().max(15)));
        let limit = self.slowest_elector(duration + HEAD_START) + SLACK;
        if self.wait_for_elector(None, limit).await.is_none() {
            let text = format!("no elector leads the others {limit:?} after the last fault");
            self.context.report("L1", text);
        }
    }

    /// L5: of the lock only its holder writes, once in its renew interval.
    pub(super) fn check_quiet_lock(&self, since: Duration, lasted: Duration) {
        let Some((_, h)) = self.elector_lock() else {
            return;
        };
        let Some(leader) = self.leading_elector() else {
            let text = "no elector leads the others";
            return self.context.report("L5", text);
        };
        let process = self.processes.iter().find(|it| it.name == leader);
        let rate = process.map_or(0, |it| it.host().rate);
        let limits = (Duration::from_secs(h), rate);
        self.check_renewals(ELECTOR_LOCK, &leader, (since, lasted), limits);
    }

    /// An elector that leads the others is asked to end, and another one follows at once. The next one dies together with
    /// the leader of a lease: the electors that stood by have watched both, so neither waits for the other.
    pub(super) async fn check_elector_changes(&mut self, lease: usize) {
        if self.elector_lock().is_none() || self.plan.setup.electors.len() < 2 {
            return;
        }
        self.check_elector_shutdown().await;
        self.restart_all().await;
        // An elector that has just begun has to list first, and leaves the lock to others.
        sleep(self.slowest_elector(HEAD_START) + self.hops(8) + SLACK).await;
        self.check_elector_crash(lease).await;
    }

    async fn check_elector_shutdown(&mut self) {
        let Some(leader) = self.leading_elector() else {
            let text = "no elector leads the others";
            return self.context.report("L6", text);
        };
        if let Some(process) = self.processes.iter_mut().find(|it| it.name == leader) {
            process.shut_down();
        }
        let limit = self.slowest_elector(ELECTOR_END) + self.hops(8) + Duration::from_secs(1);
        let end = Instant::now() + limit;
        if self.wait_for_elector(Some(&leader), limit).await.is_none() {
            let text =
                format!("no elector leads the others {limit:?} after {leader} was asked to end");
            self.context.report("L6", text);
        }
        // Its last answers may still be under way.
        sleep_until(end).await;
    }

    async fn check_elector_crash(&mut self, lease: usize) {
        let name = lease_name(lease);
        let settled = self.slowest_stop_watch(lease, LONGEST_GRANT);
        let led = self.wait_for_leader(&name, None, settled).await;
        let pair = (self.leading_elector(), self.leader_name(&name));
        let ((Some(elector), Some(leader)), Some(_)) = (pair, led) else {
            let text = format!("nobody leads the electors or {name}");
            return self.context.report("L1", text);
        };
        let mut duration = Duration::ZERO;
        for process in &mut self.processes {
            if let ProcessKind::Candidate(candidate, _) = &process.kind
                && process.name == leader
            {
                duration = Duration::from_secs(candidate.timing.0);
            } else if process.name != elector {
                continue;
            }
            process.crash().await;
        }
        let (w, _) = self.elector_lock().unwrap_or_default();
        let takeover = Duration::from_secs(w);
        let limit = self.slowest_elector(takeover) + self.hops(6) + Duration::from_secs(3);
        let Some(took) = self.wait_for_elector(Some(&elector), limit).await else {
            let text = format!("no elector leads the others {limit:?} after {elector} died");
            return self.context.report("L1", text);
        };
        self.note_elector_fail_over(took);
        let duration = duration.max(takeover) + UNANSWERED_PINGS;
        let limit = self.slowest_stop_watch(lease, duration) + self.hops(12);
        let led = self.wait_for_leader(&name, Some(&leader), limit).await;
        if led.is_none() {
            let text =
                format!("nobody leads {name} {limit:?} after {leader} and {elector} died at once");
            self.context.report("L1", text);
        }
    }

    fn note_elector_fail_over(&self, took: Duration) {
        let mut state = self.context.state();
        state.guards.leadership.elector_fail_overs.push(took);
    }

    /// Waits until an elector other than `than` leads the others. Returns how long that took.
    async fn wait_for_elector(&self, than: Option<&str>, limit: Duration) -> Option<Duration> {
        let start = self.context.log().now();
        loop {
            let took = self.context.log().now().saturating_sub(start);
            let leader = self.leading_elector();
            if leader.is_some_and(|leader| Some(leader.as_str()) != than) {
                return Some(took);
            }
            if took > limit {
                return None;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn leading_elector(&self) -> Option<String> {
        let state = self.context.state();
        let leader = state.electors.leader(&state.history)?;
        Some(leader.to_owned())
    }

    /// W and H of the lock of the electors, in seconds, where one of them is to lead. Electors that find no
    /// LeaseCandidates have nothing to act upon.
    fn elector_lock(&self) -> Option<(u64, u64)> {
        let setup = &self.plan.setup;
        setup.locks.leader_election.filter(|_| !setup.unserved)
    }

    /// Real time until each elector has counted this much.
    fn slowest_elector(&self, time: Duration) -> Duration {
        let rates = self.plan.setup.electors.iter().map(|host| host.rate);
        super::real_time(time, rates.min())
    }
}
