//! The rules as they are, in worlds that differ in what may go wrong.

use super::super::clocks::{ALL, SOME, WORST};
use super::super::run::{Full, Run, Start};
use super::super::store::{Fence, Interference, Lax};
use super::super::timing::Timing;
use super::super::witness::Witnesses;
use super::base::{
    BASE, DELETED, DELETED_TWICE, HANDED_OVER, LED, NO_INTERFERENCE, ORDERLY, PINGED, met, safe,
};

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    [few(), many(), messages(), absence(), tokens()].concat()
}

/// Two candidates, one or two electors.
fn few() -> Vec<Run> {
    vec![
        Run {
            mixes: SOME,
            full: Full::Grows(ALL, 1),
            ..safe("MC-S0", "1 elector, candidates pinged and acking", PINGED)
        },
        Run {
            electors: 2,
            slow_electors: true,
            full: Full::Grows(ALL, 1),
            ..safe("MC-S1", "2 electors, whose writes take their time", ORDERLY)
        },
        Run {
            electors: 2,
            lagging: 0,
            full: Full::Grows(WORST, 1),
            ..safe("MC-S2", "2 electors, candidates pinged and acking", PINGED)
        },
        Run {
            electors: 2,
            releases: true,
            mixes: ALL,
            lagging: 1,
            full: Full::Only,
            ..safe("MC-G1", "short grants, W from the accept, orphans", BASE)
        },
        Run {
            electors: 2,
            releases: true,
            timing: Timing {
                accept: 2,
                ..Timing::USUAL
            },
            ..safe("MC-G3", "short grants with A = W/3", ORDERLY)
        },
    ]
}

/// Three candidates. Where all ack at once, the last of them comes to lead only where the others do not accept in
/// time or are not known.
fn many() -> Vec<Run> {
    let three = |id, about, base| {
        let timing = Timing {
            passed_over: 6,
            ..Timing::USUAL
        };
        let run = Run {
            candidates: 3,
            timing,
            ..base
        };
        met(HANDED_OVER.and(Witnesses::THIRD), safe(id, about, run))
    };
    let returns = HANDED_OVER.and(Witnesses::THIRD).and(Witnesses::RETURNS);
    vec![
        Run {
            timing: PINGED.timing,
            full: Full::Only,
            ..three("MC-B1", "3 candidates, pinged and acking", PINGED)
        },
        Run {
            electors: 2,
            lagging: 0,
            interference: UNKNOWN,
            ..three("MC-S5", "3 candidates, 2 electors", ORDERLY)
        },
        Run {
            releases: true,
            interference: UNKNOWN,
            full: Full::Only,
            ..three(
                "MC-G2",
                "3 candidates, hand-offs, holders that let go",
                ORDERLY,
            )
        },
        met(
            returns,
            Run {
                interference: Interference {
                    deletions: 1,
                    ..UNKNOWN
                },
                ..three("MC-Y2", "all rules, 3 candidates, 1 deletion", ORDERLY)
            },
        ),
        met(
            returns,
            Run {
                electors: 2,
                lagging: 0,
                releases: true,
                interference: Interference {
                    deletions: 1,
                    ..UNKNOWN
                },
                full: Full::Only,
                ..three("MC-S14", "all at once: 3 candidates, 2 electors", ORDERLY)
            },
        ),
    ]
}

/// A candidate's object is deleted, and only the electors notice.
const UNKNOWN: Interference = Interference {
    object_deletions: 1,
    ..NO_INTERFERENCE
};

/// The fate of messages.
fn messages() -> Vec<Run> {
    vec![
        met(
            HANDED_OVER.and(Witnesses::TWO_MESSAGES),
            Run {
                orphans: 2,
                ..safe("MC-S3", "three writes of one process under way", BASE)
            },
        ),
        met(
            HANDED_OVER.and(Witnesses::SIGNALS),
            Run {
                backlog: 2,
                ..safe(
                    "MC-S4",
                    "stop-watches on the record, not its revision",
                    BASE,
                )
            },
        ),
        Run {
            releases: true,
            ..safe("MC-S10", "the holder writes its successor", BASE)
        },
    ]
}

/// The Lease is deleted, or was never there.
fn absence() -> Vec<Run> {
    let returns = LED.and(Witnesses::RETURNS);
    vec![
        met(
            returns,
            Run {
                interference: DELETED,
                ..safe("MC-S6", "a stranger deletes the lease", BASE)
            },
        ),
        met(
            returns,
            Run {
                start: Start::Absent,
                interference: DELETED_TWICE,
                ..safe("MC-F1", "no lease at first, and 2 deletions", ORDERLY)
            },
        ),
        met(
            returns,
            Run {
                electors: 2,
                interference: DELETED_TWICE,
                full: Full::Only,
                ..safe("MC-Y1", "all rules, 2 electors, 2 deletions", ORDERLY)
            },
        ),
        met(
            returns,
            Run {
                mixes: SOME,
                releases: true,
                interference: DELETED,
                full: Full::Grows(ALL, 1),
                ..safe("MC-Y4", "all rules, all clocks, 1 deletion", ORDERLY)
            },
        ),
        met(
            returns,
            Run {
                electors: 2,
                lagging: 0,
                releases: true,
                interference: DELETED,
                full: Full::Only,
                ..safe(
                    "MC-B3",
                    "all at once: 2 electors, pings, 1 deletion",
                    PINGED,
                )
            },
        ),
        met(
            returns,
            Run {
                interference: DELETED,
                lax: Lax::LastPut,
                ..safe(
                    "MC-S12",
                    "a PUT on its last revision recreates a lease",
                    BASE,
                )
            },
        ),
    ]
}

/// Tokens are kept and compared.
fn tokens() -> Vec<Run> {
    let returns = HANDED_OVER.and(Witnesses::RETURNS);
    vec![
        Run {
            releases: true,
            fence: Fence::Term,
            ..safe("MC-S8", "the term as the token, no deletion", BASE)
        },
        met(
            returns,
            Run {
                releases: true,
                interference: DELETED_TWICE,
                fence: Fence::Token,
                ..safe("MC-S9", "our token, 2 deletions", ORDERLY)
            },
        ),
        met(
            returns,
            Run {
                interference: DELETED,
                fence: Fence::Token,
                ..safe("MC-Y3", "our token, hand-offs, orphans, 1 deletion", BASE)
            },
        ),
    ]
}
