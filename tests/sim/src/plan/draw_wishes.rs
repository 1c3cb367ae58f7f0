//! Drawing the strategies that candidates wish for, their priorities, and the orders to stand down.

use std::collections::BTreeMap;

use super::{FaultKind, PlannedFault, PlannedStrategy, ProcessIndex, Setup};
use crate::random::Random;

/// Which candidates keep an instance lock, and the wishes of all in some seeds. Those of a lease wish for the same as a rule,
/// and else for one by their binary version, as all that have one have to agree.
pub(super) fn draw_wishes(random: &mut Random, setup: &mut Setup) {
    for candidate in &mut setup.candidates {
        candidate.keeps_lock = random.percent(60);
    }
    if !random.percent(60) {
        return;
    }
    for lease in 0..setup.leases {
        let (common, mixed) = (random.pick(&PlannedStrategy::ALL), random.percent(15));
        let mut wishes = BTreeMap::new();
        let candidates = setup.candidates.iter_mut().filter(|it| it.lease == lease);
        for candidate in candidates {
            let one = random.pick(&PlannedStrategy::ALL);
            let wish = if mixed { one } else { common };
            candidate.strategy = *wishes.entry(candidate.version.1).or_insert(wish);
            candidate.priority = random.pick(&[0, 1, 10, 10, 2_147_483_646]);
        }
    }
}

/// Candidates that an operator has stand down, until a time or for as long as a word without one counts.
pub(super) fn stand_downs(random: &mut Random, setup: &Setup, horizon: u64) -> Vec<PlannedFault> {
    let some = random.percent(50);
    let count = if some { 1 + random.index(3) } else { 0 };
    let draw = |_| {
        let candidate = setup.electors.len() + random.index(setup.candidates.len());
        let timed = random.percent(50);
        let until = random.millis(1_000, 1_200_000);
        let lasts = random.millis(1_000, 120_000);
        PlannedFault {
            at: random.millis(0, horizon),
            kind: FaultKind::StandDown(ProcessIndex(candidate), timed.then_some(until), lasts),
        }
    };
    (0..count).map(draw).collect()
}
