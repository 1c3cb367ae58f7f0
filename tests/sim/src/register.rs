//! The register that the work of terms writes to: work is a witness. Each write is held against those of other terms, and
//! against the writes of the Lease by its author: a guard tells what is believed, and this what is done.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_candidate::Leadership;
use elector_protocol::{ResourceVersion, Token};

use crate::clock::{SimClock, TRUE_RATE};
use crate::history::LeaseHistory;
use crate::plan::{PlannedCandidate, PlannedMode, WorkEnd};

/// The register of all leases.
#[derive(Debug, Default)]
pub(crate) struct WorkRegister {
    /// The highest token of a write, and its author, by lease.
    newest: BTreeMap<String, (u64, String)>,
    /// Terms whose work was found to be wrong, and the rules, so that each is reported once.
    reported: BTreeSet<(String, u64, &'static str)>,
    /// Terms whose work wrote beside that of a successor, and the kind of the write that exempts them from S1.
    pub(crate) exempt: BTreeMap<(String, u64), &'static str>,
    /// The rate of the fastest clock by which somebody may wait for the end of a term, by lease.
    pub(crate) fastest: BTreeMap<String, u64>,
    pub(crate) writes: u64,
    /// The processes whose work is spoilt, and how, by the places of the faults in the plan.
    spoilt: BTreeMap<usize, (String, WorkEnd)>,
}

/// A term as its work knows it.
#[derive(Clone)]
pub(crate) struct WorkTerm {
    pub(crate) name: String,
    pub(crate) incarnation: u32,
    pub(crate) candidate: PlannedCandidate,
    pub(crate) clock: SimClock,
    pub(crate) leadership: Leadership,
}

/// The time that a timer and the end of a task may be late.
pub(crate) const GRAIN: Duration = Duration::from_millis(5);

// === impl WorkRegister ===

impl WorkRegister {
    /// Spoils the work of a process, from its next tick on, unless it is spoilt already.
    pub(crate) fn spoil(&mut self, fault: usize, process: String, how: WorkEnd) {
        if self.end_of(&process).is_none() {
            self.spoilt.insert(fault, (process, how));
        }
    }

    /// Spoils it no longer. Returns the process.
    pub(crate) fn unspoil(&mut self, fault: usize) -> Option<String> {
        self.spoilt.remove(&fault).map(|(process, _)| process)
    }

    /// The way in which the work of a process is spoilt, and the fault.
    pub(crate) fn end_of(&self, process: &str) -> Option<(WorkEnd, usize)> {
        let mut spoilt = self.spoilt.iter();
        let found = spoilt.find(|(_, (name, _))| name == process);
        found.map(|(fault, (_, how))| (*how, *fault))
    }

    /// Tokens may come about once more in terms that begin from now on.
    pub(crate) fn forget_tokens(&mut self) {
        self.newest.clear();
    }

    /// Takes a write, and returns the rule that it violates: it comes beside those of a successor, after its author gave the
    /// lease away, or when the time to stop is over.
    pub(crate) fn write(
        &mut self,
        now: Duration,
        work: &WorkTerm,
        history: &LeaseHistory,
    ) -> Option<(&'static str, String)> {
        let (lease, token) = (work.leadership.lease().name.to_string(), work.token());
        self.writes += 1;
        let newest = self.newest.entry(lease.clone()).or_default();
        let mut wrong = work.overstays(now, &lease, history);
        if token < newest.0 {
            // Where clocks differ by as much as they may, nothing of W is left after the time to stop.
            let fastest = self.fastest.get(&lease).copied().unwrap_or(TRUE_RATE);
            let judged = work.leadership.is_leader() || work.stops_in_time(fastest);
            let tokens = [token, newest.0].map(|it| Token(ResourceVersion(it)));
            let exempt = history.exemption(&lease, now, tokens.into());
            if judged && exempt.is_none() {
                let text = format!("beside that of {} with token {}", newest.1, newest.0);
                wrong = Some(("S1", text));
            } else if let Some(why) = exempt.filter(|_| judged) {
                self.exempt.insert((lease.clone(), token), why);
            }
        } else if !history.is_lost(token) {
            *newest = (token, work.name.clone());
        }
        let (rule, text) = wrong.filter(|it| self.reported.insert((lease.clone(), token, it.0)))?;
        let name = &work.name;
        Some((
            rule,
            format!("the work of {name} in {lease}, token {token}, writes {text}"),
        ))
    }
}

// === impl WorkTerm ===

impl WorkTerm {
    pub(crate) fn token(&self) -> u64 {
        self.leadership.token()
    }

    /// H and the time to stop after it, by its own clock. Beside candidates of client-go a second of W is lost.
    fn limit(&self) -> Duration {
        let (w, h) = self.candidate.timing;
        let (w, h) = (Duration::from_secs(w), Duration::from_secs(h));
        let plain = self.candidate.mode == PlannedMode::Plain;
        h + ((w - h) * 3 / 4).saturating_sub(Duration::from_secs(u64::from(plain)))
    }

    /// True if its time is over before W is by the fastest clock.
    fn stops_in_time(&self, fastest: u64) -> bool {
        let w = Duration::from_secs(self.candidate.timing.0).as_nanos();
        self.limit().as_nanos() * u128::from(fastest) <= w * u128::from(self.clock.rate())
    }

    /// The violation of a write at this time, by what its author wrote to the Lease.
    fn overstays(
        &self,
        now: Duration,
        lease: &str,
        history: &LeaseHistory,
    ) -> Option<(&'static str, String)> {
        let newest = history.newest_own(lease, &self.name, self.incarnation);
        if newest.is_some_and(|it| !it.names_author()) {
            return Some(("R12", "after the lease was given away".to_owned()));
        }
        let until = newest.map(|it| it.at + self.clock.real(self.limit()) + GRAIN);
        (until < Some(now)).then(|| ("R10", format!("after {until:?}")))
    }
}
