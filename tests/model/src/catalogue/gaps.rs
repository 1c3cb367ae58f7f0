//! Terms that an elector misses: its watch breaks, a term begins, and a stranger makes the Lease look as it did before.
//!
//! These worlds have what no other has: the same unheld record twice. It takes a start without a Lease, so that a born
//! record is seen before the first term, or a stranger that empties the Lease twice.

use super::super::mutant::Mutant;
use super::super::run::{Full, Run, Start};
use super::super::store::Interference;
use super::super::witness::Witnesses;
use super::base::{BASE, BLANKED, BLANKED_TWICE, DELETED, LED, ORDERLY, WIPED, broken, met, safe};

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    let recurs = LED.and(Witnesses::RECURS);
    let born = |run| Run {
        start: Start::Absent,
        ..run
    };
    vec![
        Run {
            electors: 2,
            interference: BLANKED,
            ..broken(
                "MC-Q1",
                "R4, R6",
                "an unproven record's stop-watch spans a gap",
                Mutant::SpanTheGap,
                born(ORDERLY),
            )
        },
        Run {
            electors: 2,
            interference: BLANKED,
            ..broken(
                "MC-Q1b",
                "R6",
                "absence and unheld time add up over a gap",
                Mutant::AddOverTheGap,
                born(ORDERLY),
            )
        },
        met(
            recurs,
            Run {
                electors: 2,
                interference: BLANKED,
                full: Full::Only,
                ..safe(
                    "MC-Q1-off",
                    "a born record comes back, 2 electors",
                    born(ORDERLY),
                )
            },
        ),
        met(
            recurs,
            Run {
                slow_electors: true,
                interference: BLANKED,
                ..safe(
                    "MC-Q2",
                    "a born record comes back, 1 elector that misses its grant",
                    born(BASE),
                )
            },
        ),
        met(
            recurs,
            Run {
                electors: 2,
                interference: BLANKED_TWICE,
                full: Full::Only,
                ..safe("MC-Q3", "a stranger empties the lease twice", ORDERLY)
            },
        ),
        met(
            recurs.and(Witnesses::RETURNS),
            Run {
                electors: 2,
                interference: Interference {
                    deletions: 1,
                    ..BLANKED
                },
                full: Full::Only,
                ..safe(
                    "MC-Q4",
                    "a deletion and an emptying, 2 electors",
                    born(ORDERLY),
                )
            },
        ),
        met(
            LED,
            Run {
                interference: Interference {
                    wipes: 2,
                    ..BLANKED
                },
                ..safe(
                    "MC-Q5",
                    "a foreign release twice, and an emptying",
                    born(ORDERLY),
                )
            },
        ),
        met(
            LED,
            Run {
                interference: WIPED,
                ..safe(
                    "MC-Q6",
                    "a foreign release of the first term",
                    born(ORDERLY),
                )
            },
        ),
        met(
            LED.and(Witnesses::RETURNS),
            Run {
                interference: Interference {
                    creations: 2,
                    ..DELETED
                },
                ..safe(
                    "MC-Q7",
                    "the built-in creates the lease, and again",
                    born(ORDERLY),
                )
            },
        ),
    ]
}
