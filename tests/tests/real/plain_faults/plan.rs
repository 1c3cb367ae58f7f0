//! The faults of a run, drawn from a seed.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::foreign::ForeignWrite;

/// A fault, and when it strikes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScheduledFault {
    /// Since the beginning.
    pub(super) at: Duration,
    pub(super) fault: RunFault,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RunFault {
    /// SIGKILL.
    Kill(Victim, Comeback),
    /// SIGTERM.
    Terminate(Victim, Comeback),
    /// SIGSTOP, and SIGCONT after this time.
    Stop(Victim, Duration),
    /// A stranger writes the Lease.
    Write(ForeignWrite),
}

/// The process that is struck.
#[derive(Clone, Copy, Debug)]
pub(super) enum Victim {
    /// The holder of the lease.
    Holder,
    /// The candidate in this place.
    Place(usize),
}

/// The replacement of a process that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comeback {
    pub(super) after: Duration,
    /// True if the next one has a name of its own, as a Pod of a Deployment has.
    pub(super) renamed: bool,
}

/// Between two faults of processes, in milliseconds.
const PROCESS_FAULTS: std::ops::RangeInclusive<u64> = 3_000..=9_000;

/// Between two writes of a stranger, in milliseconds.
const WRITES: std::ops::RangeInclusive<u64> = 500..=3_000;

/// The duration of a stop of a process, in milliseconds.
const STOPPED: std::ops::RangeInclusive<u64> = 1_000..=12_000;

/// The absence of a process, in milliseconds.
const AWAY: std::ops::RangeInclusive<u64> = 0..=3_000;

/// The faults of a run over this number of candidates, in the order of their times.
pub(super) fn plan(seed: u64, lasts: Duration, places: usize) -> Vec<ScheduledFault> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut faults = Vec::new();
    for (gaps, writes) in [(PROCESS_FAULTS, false), (WRITES, true)] {
        let mut at = Duration::from_millis(random.random_range(gaps.clone()));
        while at < lasts {
            let fault = if writes {
                RunFault::Write(ForeignWrite::ALL[random.random_range(0..ForeignWrite::ALL.len())])
            } else {
                process_fault(&mut random, places)
            };
            faults.push(ScheduledFault { at, fault });
            at += Duration::from_millis(random.random_range(gaps.clone()));
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

fn process_fault(random: &mut StdRng, places: usize) -> RunFault {
    let victim = if random.random_bool(0.6) {
        Victim::Holder
    } else {
        Victim::Place(random.random_range(0..places))
    };
    let comeback = Comeback {
        after: Duration::from_millis(random.random_range(AWAY)),
        renamed: random.random_bool(0.5),
    };
    match random.random_range(0..3) {
        0 => RunFault::Kill(victim, comeback),
        1 => RunFault::Terminate(victim, comeback),
        _ => RunFault::Stop(victim, Duration::from_millis(random.random_range(STOPPED))),
    }
}
