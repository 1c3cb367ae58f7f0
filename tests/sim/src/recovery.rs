//! The recovery when all faults are over: a candidate leads soon, then the best one, then nothing happens; then a
//! leader leaves, and another one dies.

mod electors;
mod group;

use std::time::Duration;

use tokio::time::sleep;

use crate::clock::TRUE_RATE;
use crate::names::{FALLBACK, lease_name};
use crate::plan::{self, FaultKind, PlannedFault, PlannedMode, PlannedStrategy, RestartName};
use crate::process::ProcessKind;
use crate::simulation::Simulation;

/// The pause between two looks at what is to come about.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The longest accept window: a grant to a candidate that died just then lasts until its end (R5).
const LONGEST_GRANT: Duration = Duration::from_secs(60);

/// The longest time that a candidate is passed over (R5), and what it may take to be asked and to hand over then.
const BEST_LEADS: Duration = Duration::from_secs(15 * 60 + 120);

/// The same where an elector has one pre-emption in 10 min (R23): the best candidate is new since a failed hand-over for so
/// long, and the next best takes the only pre-emption of the 10 min after that, on the slowest clock of an elector.
const BEST_LEADS_BY_ONE: Duration = Duration::from_secs(20 * 60 * 11 / 10 + 120);

/// The time for which nothing is to happen.
const QUIET_PERIOD: Duration = Duration::from_secs(40);

/// The cost of elections besides waiting: requests, questions, retries.
const SLACK: Duration = Duration::from_secs(12);

// === impl Simulation ===

impl Simulation {
    /// Checks what must come about once nothing goes wrong any more (L1, L4, L5, L6).
    pub(crate) async fn check_recovery(&mut self) {
        if self.plan.setup.is_group() {
            return self.check_group_recovery().await;
        }
        self.check_leading_elector().await;
        for lease in 0..self.plan.setup.leases {
            self.check_leader(lease).await;
        }
        let since = self.context.log().now();
        for lease in 0..self.plan.setup.leases {
            if let Some(took) = self.check_best_leader(lease, since).await {
                self.context.state().guards.leadership.best.push(took);
            }
        }
        // A believer at the end of the faults may have had no answer to a renewal for long: by then it has had one, or
        // has ceased to lead.
        sleep(self.slowest_holder()).await;
        let since = self.context.log().now();
        for lease in 0..self.plan.setup.leases {
            self.check_best_leader(lease, since).await;
        }
        if !self.context.state().violations.is_empty() {
            return;
        }
        // The last hand-over may have left an answer under way.
        sleep(Duration::from_secs(10)).await;
        self.check_quiet().await;
        self.check_leader_shutdown(0).await;
        let fallback = match self.plan.setup.unserved {
            true => FALLBACK,
            false => Duration::ZERO,
        };
        let last = self.plan.setup.leases - 1;
        self.check_leader_crash(last, fallback, "").await;
        self.restart_all().await;
        self.check_elector_changes(0).await;
        self.check_absent_electors().await;
    }

    /// L1, from an arbitrary state.
    async fn check_leader(&self, lease: usize) {
        let longest = Duration::from_secs(self.plan.setup.longest().max(15));
        let limit = self.slowest_stop_watch(lease, longest + LONGEST_GRANT) + SLACK;
        let name = lease_name(lease);
        match self.wait_for_leader(&name, None, limit).await {
            Some(took) => self.context.state().guards.leadership.recoveries.push(took),
            None => self.context.report(
                "L1",
                format!("nobody leads {name} {limit:?} after the last fault"),
            ),
        }
    }

    /// L4: no candidate of a worse rank leads for long. Returns how long it took, if it came about. A plain process has
    /// no rank and makes room for no other, and where candidates are not registered there is no choice.
    async fn check_best_leader(&mut self, lease: usize, since: Duration) -> Option<Duration> {
        let name = lease_name(lease);
        let candidates = self.candidates(lease);
        let ranked = candidates
            .iter()
            .filter(|(_, it)| it.mode != PlannedMode::Plain);
        let strategy = self.plan.setup.strategy(lease);
        let best = ranked.map(|(_, it)| it.rank(strategy)).min();
        let limit = match self.plan.setup.preemptions.contains(&1) {
            true => BEST_LEADS_BY_ONE,
            false => BEST_LEADS,
        };
        loop {
            let leader = self.leader_name(&name);
            let leading = leader.as_ref().and_then(|leader| {
                let found = candidates.iter().find(|(name, _)| name == leader);
                found.map(|(_, it)| *it)
            });
            let took = self.context.log().now().saturating_sub(since);
            let rank = leading.map(|it| it.rank(strategy));
            let unranked = |it: plan::PlannedCandidate| {
                self.plan.setup.unserved || it.mode == PlannedMode::Plain
            };
            if leading.is_some_and(unranked) || rank == best {
                return Some(took);
            }
            if took > limit {
                let text = format!("{leader:?} of rank {rank:?} leads {name}, not one of {best:?}");
                self.context.report("L4", text);
                return None;
            }
            // A process that was asked to end while it was paused may end only now.
            self.restart_all().await;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// L5: only holders write, once in their renew interval.
    async fn check_quiet(&self) {
        let start = self.context.log().now();
        sleep(QUIET_PERIOD).await;
        for lease in 0..self.plan.setup.leases {
            let name = lease_name(lease);
            let Some(leader) = self.leader_name(&name) else {
                self.context.report("L5", format!("nobody leads {name}"));
                continue;
            };
            let candidates = self.candidates(lease);
            let leading = candidates.iter().find(|(name, _)| *name == leader);
            let (h, rate) = leading.map_or((0, 0), |(_, it)| (it.timing.1, it.host.rate));
            let limits = (Duration::from_secs(h), rate);
            self.check_renewals(&name, &leader, (start, QUIET_PERIOD), limits);
        }
        self.check_quiet_lock(start, QUIET_PERIOD);
        let answers = {
            let state = self.context.state();
            let all = state.history.stored.candidates.iter();
            all.filter(|it| it.at > start).count()
        };
        // Each is asked once in a quarter of an hour, and answers; the four that were left lying about do not.
        let most = 2 * self.plan.setup.candidates.len() + 4;
        if answers > most {
            let text = format!("{answers} writes of candidates in {QUIET_PERIOD:?}");
            self.context.report("L5", text);
        }
    }

    /// Checks that a leader of this H and clock wrote as often as it is to, and no other process did.
    fn check_renewals(
        &self,
        lease: &str,
        leader: &str,
        (since, lasted): (Duration, Duration),
        (h, rate): (Duration, u64),
    ) {
        let (renewals, others) = self.writes(lease, leader, since);
        let most = renewals_in(lasted, h, rate);
        if others > 0 || renewals > most || renewals + 3 < most {
            let text = format!(
                "{leader} wrote {renewals} times to {lease} in {lasted:?}, where {most} do, and others {others} times"
            );
            self.context.report("L5", text);
        }
    }

    /// The renewals of a leader since then, and all other writes.
    fn writes(&self, lease: &str, leader: &str, since: Duration) -> (u64, usize) {
        let state = self.context.state();
        let (mut renewals, mut others) = (0, 0);
        for revision in state.history.stored.leases.get(lease).into_iter().flatten() {
            if revision.at <= since {
                continue;
            }
            let attempt = revision
                .attempt
                .and_then(|it| state.history.attempts.get(it));
            match attempt.map(|it| &it.author) {
                Some(author) if author.name == leader && author.is_ours() => renewals += 1,
                _ => others += 1,
            }
        }
        (renewals, others)
    }

    /// L6: a leader that is asked to end hands over.
    async fn check_leader_shutdown(&mut self, lease: usize) {
        let name = lease_name(lease);
        let Some(leader) = self.leader_name(&name) else {
            return self.context.report("L6", format!("nobody leads {name}"));
        };
        let Some(process) = self.processes.iter_mut().find(|it| it.name == leader) else {
            return;
        };
        process.shut_down();
        let ProcessKind::Candidate(candidate, _) = process.kind else {
            return;
        };
        let grace = Duration::from_secs(10);
        let stop = process
            .clock
            .real(candidate.stop.min(grace) + Duration::from_secs(1));
        // It stops, reads, releases; a successor is pinged, granted, and accepts. Each is a request and its news. What
        // dead candidates left behind is asked first: the best, the next two, then all, for 2 s each (R15).
        let asked = Duration::from_secs(7) + self.unmarked_are_asked(lease);
        let limit = stop + self.hops(12) + self.slowest_stop_watch(lease, asked);
        match self.wait_for_leader(&name, Some(&leader), limit).await {
            Some(took) => self
                .context
                .log()
                .note("plan", format_args!("a successor after {took:?}")),
            None => self.context.report(
                "L6",
                format!("no candidate leads {name} {limit:?} after {leader} was asked to end"),
            ),
        }
        // Its last answers may still be under way.
        sleep(limit).await;
        self.restart_all().await;
        sleep(self.hops(12) + Duration::from_secs(2)).await;
    }

    /// L1 as it is written: W · κ after the last renewal, and the fallback more where no elector acts. Returns how long it
    /// took, if it came about.
    async fn check_leader_crash(
        &mut self,
        lease: usize,
        fallback: Duration,
        when: &str,
    ) -> Option<Duration> {
        let name = lease_name(lease);
        let settled = self.slowest_stop_watch(lease, LONGEST_GRANT);
        self.wait_for_leader(&name, None, settled).await;
        let Some(leader) = self.leader_name(&name) else {
            self.context
                .report("L1", format!("nobody leads {name}{when}"));
            return None;
        };
        let process = self.processes.iter_mut().find(|it| it.name == leader)?;
        let ProcessKind::Candidate(candidate, _) = process.kind else {
            return None;
        };
        process.crash().await;
        let asked = self.unmarked_are_asked(lease);
        let duration = Duration::from_secs(candidate.timing.0) + fallback + asked;
        let limit =
            self.slowest_stop_watch(lease, duration) + self.hops(6) + Duration::from_secs(3);
        let took = self.wait_for_leader(&name, Some(&leader), limit).await;
        if took.is_none() {
            let text = format!("nobody leads {name} {limit:?} after {leader} died{when}");
            self.context.report("L1", text);
        }
        took
    }

    /// L1 without an elector (R18): a leader that dies is followed by one that acquires the lease, and when the electors
    /// are back, the best leads again.
    async fn check_absent_electors(&mut self) {
        self.restart_all().await;
        for elector in self.electors() {
            elector.crash().await;
        }
        // The last write of the electors may be a grant.
        let leases = 0..self.plan.setup.leases;
        for lease in leases.clone() {
            let acquirers = self.plan.setup.candidates_of(lease);
            let (mut plain, mut auto) = (0, 0);
            for candidate in acquirers {
                plain += u32::from(candidate.mode == PlannedMode::Plain);
                auto += u32::from(candidate.mode == PlannedMode::Auto);
            }
            let fallback = if plain > 1 { Duration::ZERO } else { FALLBACK };
            // One of them may be the leader.
            if plain + auto > 1 {
                let when = ", without electors";
                let took = self.check_leader_crash(lease, fallback, when).await;
                let mut state = self.context.state();
                state.guards.leadership.unelected.extend(took);
            }
        }
        if !self.context.state().violations.is_empty() {
            return;
        }
        self.restart_all().await;
        let since = self.context.log().now();
        for lease in leases {
            self.check_best_leader(lease, since).await;
            self.check_sticky_leader(lease).await;
        }
    }

    /// L4 under a strategy by which leaders stay: no other candidate follows, whatever its version.
    async fn check_sticky_leader(&self, lease: usize) {
        if self.plan.setup.common_strategy(lease) != Some(PlannedStrategy::Sticky) {
            return;
        }
        let name = lease_name(lease);
        let leader = self.leader_name(&name);
        sleep(QUIET_PERIOD).await;
        let follower = self.leader_name(&name);
        if follower != leader {
            let text = format!("{leader:?} led {name}, and {follower:?} does for no reason");
            self.context.report("L4", text);
        }
    }

    /// The time that three rounds take in addition where a candidate as client-go's has left its objects behind, which
    /// are given 5 s to answer and not 2 (R15).
    fn unmarked_are_asked(&self, lease: usize) -> Duration {
        let of_lease = |fault: &PlannedFault| matches!(fault.kind, FaultKind::ClientGoCandidate(of, _) if of == lease);
        let some = self.plan.faults.iter().any(of_lease);
        Duration::from_secs(3 * if some { 5 } else { 0 })
    }

    /// Waits until a candidate other than `than` leads. Returns how long that took.
    async fn wait_for_leader(
        &self,
        lease: &str,
        than: Option<&str>,
        limit: Duration,
    ) -> Option<Duration> {
        let start = self.context.log().now();
        loop {
            let took = self.context.log().now().saturating_sub(start);
            if self
                .leader_name(lease)
                .is_some_and(|leader| Some(leader.as_str()) != than)
            {
                return Some(took);
            }
            if took > limit {
                return None;
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    fn leader_name(&self, lease: &str) -> Option<String> {
        let state = self.context.state();
        let (leader, _) = state.guards.leader_of(lease)?;
        Some(leader.to_owned())
    }

    async fn restart_all(&mut self) {
        for process in &mut self.processes {
            process.restart_if_ended(RestartName::New).await;
        }
    }

    /// The candidates of a lease by the names of their processes.
    fn candidates(&self, lease: usize) -> Vec<(String, plan::PlannedCandidate)> {
        let candidates = self.processes.iter().filter_map(|process| {
            let ProcessKind::Candidate(candidate, _) = &process.kind else {
                return None;
            };
            (candidate.lease == lease).then(|| (process.name.clone(), *candidate))
        });
        candidates.collect()
    }

    /// Real time until each process that may begin a term of this lease, or let one begin, has counted this much.
    fn slowest_stop_watch(&self, lease: usize, time: Duration) -> Duration {
        let setup = &self.plan.setup;
        let acquirers = setup
            .candidates_of(lease)
            .filter(|it| it.mode != PlannedMode::Elected);
        let acquirers = acquirers.map(|it| it.host.rate);
        let rates = setup.electors.iter().map(|host| host.rate).chain(acquirers);
        real_time(time, rates.min())
    }

    /// Real time after which no belief is left that was not renewed.
    fn slowest_holder(&self) -> Duration {
        let candidates = &self.plan.setup.candidates;
        let limits = candidates
            .iter()
            .map(|it| real_time(Duration::from_secs(it.timing.1), Some(it.host.rate)));
        limits.max().unwrap_or_default()
    }

    /// This number of messages, one after the other, at the slowest.
    fn hops(&self, count: u32) -> Duration {
        let sites = self.processes.iter().map(|process| process.host().latency);
        Duration::from_millis(sites.max().unwrap_or(0) + 5) * count
    }
}

/// The most writes of a holder of this H and clock within `time` of real time.
fn renewals_in(time: Duration, h: Duration, rate: u64) -> u64 {
    let local = time.as_nanos() * u128::from(rate) / u128::from(TRUE_RATE);
    let interval = (h / 3).as_nanos().max(1);
    u64::try_from(local / interval + 1).unwrap_or(u64::MAX)
}

/// Real time until a clock of this rate has counted this much.
fn real_time(time: Duration, rate: Option<u64>) -> Duration {
    let rate = u32::try_from(rate.unwrap_or(TRUE_RATE).max(1)).unwrap_or(u32::MAX);
    time.mul_f64(1_000_000.0 / f64::from(rate))
}
