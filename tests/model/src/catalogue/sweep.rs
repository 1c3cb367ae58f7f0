//! W against H by the clocks of the worst case: unsafe below equality, safe from there on.

use super::super::run::{Expectation, Run};
use super::super::store::Property;
use super::super::timing::Timing;
use super::base::{BASE, safe};

/// H in ticks of a slow clock, W in ticks of a fast one.
const SWEEP: [(&str, u64, u64); 9] = [
    ("MC-W-2-1", 2, 1),
    ("MC-W-2-2", 2, 2),
    ("MC-W-2-3", 2, 3),
    ("MC-W-3-2", 3, 2),
    ("MC-W-3-3", 3, 3),
    ("MC-W-3-4", 3, 4),
    ("MC-W-4-3", 4, 3),
    ("MC-W-4-4", 4, 4),
    ("MC-W-4-5", 4, 5),
];

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    SWEEP
        .into_iter()
        .map(|(id, belief, lease)| {
            let about = match lease.cmp(&belief) {
                std::cmp::Ordering::Less => "W below H by the clocks",
                std::cmp::Ordering::Equal => "W equal to H by the clocks",
                std::cmp::Ordering::Greater => "W above H by the clocks",
            };
            let run = Run {
                timing: Timing {
                    lease: lease * 3,
                    belief: belief * 2,
                    ..Timing::USUAL
                },
                ..safe(id, about, BASE)
            };
            if lease < belief {
                let expectation = Expectation::Unsafe(Property::OneBeliever);
                return Run {
                    breaks: Some("margins"),
                    expectation,
                    ..run
                };
            }
            run
        })
        .collect()
}
