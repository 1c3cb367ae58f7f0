//! Drawing the plan of a group from a seed: members that join, leave and die, and two electors that do not see the same.

use std::time::Duration;

use super::draw::{TIMINGS, draw_host, draw_rate};
use super::{
    ElectorLocks, FaultKind, PlannedCandidate, PlannedFault, PlannedMode, PlannedStrategy,
    ProcessIndex, RestartName, RunPlan, Setup,
};
use crate::random::Random;

/// The members of a group, its parts and its electors.
const MEMBERS: usize = 3;
const PARTS: usize = 8;
const ELECTORS: usize = 2;

// === impl RunPlan ===

impl RunPlan {
    /// The plan of a seed for a group of three members and eight parts.
    #[must_use]
    pub fn draw_group(seed: u64) -> Self {
        let mut random = Random::stream(seed, 8);
        let mut setup = draw_setup(&mut random);
        let mut locks = Random::stream(seed, 17);
        for member in &mut setup.candidates {
            member.keeps_lock = locks.percent(50);
        }
        let horizon = random.between(200_000, 700_000);
        let count = random.between(2, 14);
        let mut faults: Vec<PlannedFault> = (0..count)
            .map(|_| PlannedFault {
                at: random.millis(0, horizon),
                kind: draw_fault(&mut random),
            })
            .collect();
        faults.sort_by_key(|fault| fault.at);
        let last = faults.iter().map(|fault| fault.at + fault.kind.lasts());
        let faults_end = last.max().unwrap_or_default();
        Self {
            seed,
            setup,
            faults,
            faults_end: faults_end.max(Duration::from_millis(horizon)),
        }
    }
}

fn draw_setup(random: &mut Random) -> Setup {
    let host = |random: &mut Random, latest| {
        let rate = draw_rate(random.bits());
        let mut host = draw_host(random, rate);
        host.start = random.millis(0, latest);
        host
    };
    let electors: Vec<_> = (0..ELECTORS).map(|_| host(random, 10_000)).collect();
    let fastest = electors
        .iter()
        .map(|host| host.rate)
        .max()
        .unwrap_or_default();
    let (w, h) = random.pick(&TIMINGS);
    let mode = random.pick(&[PlannedMode::Elected, PlannedMode::Auto]);
    let stop = random.millis(0, 1_000);
    let candidates = (0..MEMBERS).map(|index| {
        // The last of them joins a group that has settled.
        let latest = if index + 1 == MEMBERS {
            150_000
        } else {
            10_000
        };
        let mut host = host(random, latest);
        host.rate = host.rate.max(fastest * h / w + 1);
        PlannedCandidate {
            host,
            lease: 0,
            parts: PARTS,
            version: (1, 1),
            timing: (w, h),
            stop,
            mode,
            strategy: PlannedStrategy::default(),
            priority: 0,
            keeps_lock: false,
        }
    });
    let candidates: Vec<_> = candidates.collect();
    Setup {
        feature_gate: random.percent(50),
        custom: random.percent(30),
        unserved: false,
        leases: PARTS,
        electors,
        preemptions: Vec::new(),
        allows: Vec::new(),
        locks: ElectorLocks::default(),
        candidates,
    }
}

/// Members that leave, die or stand still, and an elector that does not see what the other does.
fn draw_fault(random: &mut Random) -> FaultKind {
    let member = ProcessIndex(ELECTORS + random.index(MEMBERS));
    let elector = ProcessIndex(random.index(ELECTORS));
    let anybody = random.either(50, member, elector);
    let (short, long) = (random.millis(100, 20_000), random.millis(1_000, 60_000));
    match random.index(9) {
        0 | 1 => FaultKind::Crash(member, short, RestartName::New),
        2 | 3 => FaultKind::ShutDown(member, short),
        4 => FaultKind::Pause(anybody, short),
        5 => FaultKind::Partition(anybody, long),
        6 => FaultKind::Freeze(elector, long),
        7 => FaultKind::Slow(elector, random.between(50, 3_000), long),
        _ => FaultKind::Crash(elector, short, RestartName::New),
    }
}
