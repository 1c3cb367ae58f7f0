//! From every state a leader, or the best one, is within reach without a fault; and where it is not.

use super::super::clocks::WORST;
use super::super::mutant::Mutant;
use super::super::run::{Expectation, Full, Run};
use super::super::store::Interference;
use super::super::timing::Timing;
use super::super::witness::Witnesses;
use super::base::{BASE, DELETED, HANDED_OVER, LED, ORDERLY, PINGED, safe};

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    let mut runs = live();
    runs.extend(held_back());
    runs.extend(trapped());
    runs
}

fn live() -> Vec<Run> {
    let live = |witnesses, run| Run {
        expectation: Expectation::SafeAndLive(witnesses),
        ..run
    };
    vec![
        live(
            HANDED_OVER,
            Run {
                best: true,
                ..safe("MC-L0", "from every state the best comes to lead", PINGED)
            },
        ),
        live(
            HANDED_OVER,
            safe("MC-L1", "from every state a candidate comes to lead", BASE),
        ),
        live(
            LED.and(Witnesses::RETURNS),
            Run {
                interference: Interference {
                    blanks: 1,
                    wipes: 1,
                    ..DELETED
                },
                best: true,
                ..safe("MC-L2", "the best, whatever strangers did", ORDERLY)
            },
        ),
        live(
            HANDED_OVER,
            Run {
                electors: 2,
                lagging: 0,
                full: Full::Grows(WORST, 1),
                ..safe("MC-L3", "a candidate, with 2 electors", BASE)
            },
        ),
        live(
            HANDED_OVER,
            Run {
                electors: 2,
                lagging: 0,
                best: true,
                full: Full::Only,
                ..safe("MC-L4", "the best, with 2 electors and pings", PINGED)
            },
        ),
    ]
}

/// Hand-overs are held back where they fail, and where they are many (R23).
fn held_back() -> Vec<Run> {
    let held_back = |id, about, run: Run| Run {
        timing: Timing {
            preemptions: (3, 1),
            ..run.timing
        },
        ..safe(id, about, run)
    };
    vec![
        Run {
            refused_candidate: Some(0),
            expectation: Expectation::SafeAndLive(Witnesses::LEADS.and(Witnesses::YIELDS)),
            ..held_back(
                "MC-HB1",
                "hand-overs to the best fail, and are held back",
                PINGED,
            )
        },
        Run {
            best: true,
            expectation: Expectation::SafeAndLive(HANDED_OVER),
            ..held_back("MC-HB2", "the best, with one hand-over in a while", PINGED)
        },
        Run {
            electors: 2,
            lagging: 0,
            best: true,
            full: Full::Only,
            expectation: Expectation::SafeAndLive(HANDED_OVER),
            ..held_back(
                "MC-HB3",
                "the same with 2 electors, which saw as much",
                PINGED,
            )
        },
    ]
}

/// Mutants that end where no candidate can lead any more.
fn trapped() -> Vec<Run> {
    let trapped = |id, rule, about, mutant, run| Run {
        id,
        breaks: Some(rule),
        about,
        mutant: Some(mutant),
        expectation: Expectation::Trapped,
        ..run
    };
    vec![
        trapped(
            "MC-L5",
            "R3",
            "a lone holder that expired is not granted again",
            Mutant::NeverRegrant,
            Run {
                candidates: 1,
                ..ORDERLY
            },
        ),
        trapped(
            "MC-L6",
            "R3",
            "an expired holder is not granted again",
            Mutant::NeverRegrant,
            ORDERLY,
        ),
        trapped(
            "MC-X7",
            "R5",
            "the best never accepts, and is not passed over",
            Mutant::NoPassOver,
            Run {
                refused_candidate: Some(0),
                ..PINGED
            },
        ),
    ]
}
