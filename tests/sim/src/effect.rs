//! The effects of faults. One that met nothing is not counted: a crash of a dead process, a refusal that no request met, a
//! change of a Lease that is not there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::plan::PlannedFault;

/// The effects of the faults of a run, by their places in the plan.
#[derive(Debug, Default)]
pub(crate) struct StrikeLog {
    /// The effects of a fault, each from its beginning to its end.
    struck: BTreeMap<usize, Vec<RangeInclusive<Duration>>>,
    /// The requests of each process so far.
    pub(crate) sent: BTreeMap<String, u64>,
    /// The traffic of a process when a fault of its connection began.
    pub(crate) begun: BTreeMap<usize, ProcessTraffic>,
    /// The writes that are on their way: process, path and the version that they replace.
    on_their_way: BTreeMap<(String, String, u64), usize>,
    /// The open watches of each process.
    pub(crate) watches: BTreeMap<String, usize>,
    /// The fault by which no LeaseCandidates are served at present, and its end.
    pub(crate) hidden: Option<(usize, Duration)>,
    /// The fault by which the server forgot its history last.
    pub(crate) compacted: Option<usize>,
}

/// The requests of a process so far, and the revisions that there were for it to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessTraffic {
    pub(crate) sent: u64,
    pub(crate) heard: usize,
}

// === impl StrikeLog ===

impl StrikeLog {
    /// A process sends a request.
    pub(crate) fn count_request(&mut self, process: &str) {
        *self.sent.entry(process.to_owned()).or_default() += 1;
    }

    /// A process sends a write, and says whether one on the same version is on its way.
    pub(crate) fn send_write(&mut self, write: &(String, String, u64)) -> bool {
        let on_their_way = self.on_their_way.entry(write.clone()).or_default();
        *on_their_way += 1;
        *on_their_way > 1
    }

    /// A write has its answer.
    pub(crate) fn answer_write(&mut self, write: &(String, String, u64)) {
        if let Some(on_their_way) = self.on_their_way.get_mut(write) {
            *on_their_way -= 1;
        }
    }

    /// A fault takes effect for this time.
    pub(crate) fn strike(&mut self, fault: usize, from: Duration, until: Duration) {
        self.struck.entry(fault).or_default().push(from..=until);
    }

    /// A process is told that there are no LeaseCandidates.
    pub(crate) fn strike_hidden(&mut self, now: Duration) {
        if let Some((fault, until)) = self.hidden.take() {
            self.strike(fault, now, until);
        }
    }

    /// A process is told that what it asks for is forgotten.
    pub(crate) fn strike_compacted(&mut self, now: Duration) {
        if let Some(fault) = self.compacted {
            self.strike(fault, now, now);
        }
    }

    /// The effects of a fault.
    pub(crate) fn of(&self, fault: usize) -> &[RangeInclusive<Duration>] {
        let struck = self.struck.get(&fault);
        struck.map(Vec::as_slice).unwrap_or_default()
    }

    /// The number of faults that took effect, by kind.
    pub(crate) fn counts(&self, faults: &[PlannedFault]) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for fault in self.struck.keys().filter_map(|index| faults.get(*index)) {
            *counts.entry(fault.kind.name()).or_default() += 1;
        }
        counts
    }
}
