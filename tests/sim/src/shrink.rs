//! Cutting a plan that fails down to the faults that matter.

use crate::plan::RunPlan;

/// The smallest plan that was found to fail as this one does: leaves out halves, then quarters, and at last single
/// faults, as long as `fails` says that it still does. Runs no more than `most` plans.
#[must_use]
pub fn shrink(plan: &RunPlan, most: usize, mut fails: impl FnMut(&RunPlan) -> bool) -> RunPlan {
    let mut best = plan.clone();
    let mut left = most;
    let mut chunk = best.faults.len().div_ceil(2);
    while chunk > 0 {
        let mut from = 0;
        let mut cut = false;
        while from < best.faults.len() {
            let mut smaller = best.clone();
            let to = (from + chunk).min(smaller.faults.len());
            smaller.faults.drain(from..to);
            if left == 0 {
                return best;
            }
            left -= 1;
            if fails(&smaller) {
                best = smaller;
                cut = true;
            } else {
                from = to;
            }
        }
        chunk = match chunk {
            1 if cut => 1,
            chunk => chunk / 2,
        };
    }
    best
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{ClockBound, FaultKind, PlannedFault, ProcessIndex};

    #[test]
    fn what_does_not_matter_is_left_out() {
        let fault = |second: u64| PlannedFault {
            at: Duration::from_secs(second),
            kind: FaultKind::Pause(ProcessIndex(0), Duration::from_secs(second)),
        };
        let plan = RunPlan {
            faults: (0..13).map(fault).collect(),
            ..RunPlan::draw(1, ClockBound::Within)
        };
        let needed = [fault(3), fault(11)];
        let mut plays = 0;
        let small = shrink(&plan, 100, |plan| {
            plays += 1;
            needed.iter().all(|fault| plan.faults.contains(fault))
        });
        assert_eq!(small.faults, needed);
        assert!(plays < 40, "{plays}");
        let untouched = shrink(&plan, 0, |_| true);
        assert_eq!(untouched, plan);
    }
}
