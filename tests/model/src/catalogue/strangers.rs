//! Changes of the Lease by strangers, and mutants that turn out to be harmless: the runs with a mutant, done right.

use super::super::clocks::SOME;
use super::super::mutant::Mutant;
use super::super::run::{Expectation, Full, Run, Start};
use super::super::store::Interference;
use super::super::witness::Witnesses;
use super::base::{
    BASE, BLANKED, DELETED, DELETED_TWICE, HANDED_OVER, LED, NO_INTERFERENCE, ORDERLY, PINGED,
    RENEWS_AT_WILL, WIPED, met, safe,
};

/// The runs of this file.
pub(super) fn runs() -> Vec<Run> {
    [done_right(), harmless(), unanimous()].concat()
}

fn done_right() -> Vec<Run> {
    let returns = LED.and(Witnesses::RETURNS);
    vec![
        Run {
            interference: BLANKED,
            ..safe("MC-X1-off", "a stranger blanks the lease", BASE)
        },
        Run {
            interference: WIPED,
            ..safe("MC-X2-off", "a stranger releases another's term", BASE)
        },
        met(
            returns,
            Run {
                interference: Interference {
                    creations: 1,
                    ..DELETED
                },
                ..safe("MC-X4-off", "the built-in recreates the lease", ORDERLY)
            },
        ),
        met(
            Witnesses::LEADS,
            Run {
                one_name: true,
                ..safe("MC-X5", "two processes of one name, told apart by R8", BASE)
            },
        ),
        Run {
            announced: true,
            interference: BLANKED,
            ..safe("MC-X6-off", "W known by what candidates announce", BASE)
        },
        Run {
            mixes: SOME,
            refused_candidate: Some(0),
            expectation: Expectation::SafeAndLive(Witnesses::LEADS.and(Witnesses::YIELDS)),
            ..safe(
                "MC-X7-off",
                "the best never accepts, and is passed over",
                PINGED,
            )
        },
    ]
}

fn harmless() -> Vec<Run> {
    let with = |mutant, run| Run {
        mutant: Some(mutant),
        ..run
    };
    vec![
        with(
            Mutant::ExpireByRenewTime(0),
            Run {
                lagging: 0,
                ..safe(
                    "MC-M1-off",
                    "renewTime compared with clocks that agree",
                    BASE,
                )
            },
        ),
        with(
            Mutant::ShortenAndForget,
            Run {
                timing: RENEWS_AT_WILL,
                ..safe(
                    "MC-S7",
                    "a holder shortens W and H, forgets old replies",
                    BASE,
                )
            },
        ),
        with(
            Mutant::RevokeGrants,
            safe("MC-S11", "an elector revokes its grants at once", BASE),
        ),
    ]
}

/// Grants on unanimous acks are safe as long as no object is deleted (and so are no rule of ours).
fn unanimous() -> Vec<Run> {
    let unanimous = |mutant, run| Run {
        mutant: Some(mutant),
        ..run
    };
    let returns = LED.and(Witnesses::RETURNS);
    vec![
        unanimous(
            Mutant::PostOnUnanimity,
            met(
                returns,
                Run {
                    slow_posts: false,
                    interference: DELETED,
                    full: Full::Only,
                    ..safe(
                        "MC-S6b",
                        "granted by POST on unanimity, landing at once",
                        PINGED,
                    )
                },
            ),
        ),
        unanimous(
            Mutant::PostOnUnanimity,
            met(
                returns,
                Run {
                    electors: 2,
                    lagging: 0,
                    slow_posts: false,
                    interference: DELETED_TWICE,
                    full: Full::Only,
                    ..safe(
                        "MC-S6c",
                        "granted by POST on unanimity, 2 electors, 2 deletions",
                        PINGED,
                    )
                },
            ),
        ),
        unanimous(
            Mutant::GrantOnUnanimity,
            met(
                returns,
                Run {
                    start: Start::Absent,
                    interference: DELETED,
                    full: Full::Only,
                    ..safe("MC-F2", "born records granted on unanimity", PINGED)
                },
            ),
        ),
        unanimous(
            Mutant::GrantOnUnanimity,
            met(
                HANDED_OVER,
                Run {
                    interference: Interference {
                        blanks: 1,
                        ..NO_INTERFERENCE
                    },
                    full: Full::Only,
                    ..safe("MC-X3-off", "unanimous acks, no object deleted", PINGED)
                },
            ),
        ),
    ]
}
