//! The effects of faults. One that met nothing is not counted: a crash of a dead process, a refusal that no request met, a
//! change of a Lease that is not there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::plan::PlannedFault;

/// The effects of the faults of a run, by their places in the plan.
#[derive(Debug, Default)]
pub(crate) struct StrikeLog {
    /// From the first to the last effect of a fault.
    struck: BTreeMap<usize, RangeInclusive<Duration>>,
    /// The requests of each process so far.
    pub(crate) sent: BTreeMap<String, u64>,
    /// The traffic of a process when a fault of its connection began.
    pub(crate) begun: BTreeMap<usize, ProcessTraffic>,
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

    /// A fault takes effect for this time.
    pub(crate) fn strike(&mut self, fault: usize, from: Duration, until: Duration) {
        let known = self.struck.remove(&fault);
        let from = known.map_or(from, |known| *known.start());
        self.struck.insert(fault, from..=until);
    }

    /// From the first to the last effect of a fault.
    pub(crate) fn of(&self, fault: usize) -> Option<&RangeInclusive<Duration>> {
        self.struck.get(&fault)
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
