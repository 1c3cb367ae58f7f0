//! Acquisitions (R18): processes that take a free lease themselves, alone or beside electors.

use std::time::Duration;

use super::super::acquisition::{AcquisitionSetup, ModelLock};
use super::super::clocks::{PEERS, PEERS_APART, TICK, UNLIKE, UNLIKE_PEERS};
use super::super::mutant::Mutant;
use super::super::run::{Expectation, Full, Run, Start};
use super::super::store::{Interference, Property};
use super::super::timing::Timing;
use super::super::witness::Witnesses;
use super::base::{
    BASE, BLANKED, BLANKED_TWICE, DELETED, DELETED_TWICE, ORDERLY, WIPED, broken, safe,
};

/// Two processes in plain mode: the one that waits has the faster clock.
const PLAIN: Run = Run {
    mixes: UNLIKE,
    electors: 0,
    lagging: 0,
    acquisition: Some(AcquisitionSetup::PLAIN),
    ..ORDERLY
};

/// The same with requests that are given up and land later, and replies that get lost.
const UNRULY: Run = Run {
    orphans: BASE.orphans,
    lost_replies: BASE.lost_replies,
    ..PLAIN
};

/// Two candidates in auto mode, and an elector.
const AUTO: Run = Run {
    electors: 1,
    acquisition: Some(AcquisitionSetup::AUTO),
    ..PLAIN
};

/// A process leads, takes a released lease, and one whose holder is gone.
const TAKEN: Witnesses = Witnesses::LEADS
    .and(Witnesses::TAKES_EXPIRED)
    .and(Witnesses::TAKES_RELEASED);
/// The same where there is no Lease at first, and an unheld one that nothing proves free.
const TAKEN_NEW: Witnesses = Witnesses::LEADS
    .and(Witnesses::TAKES_EXPIRED)
    .and(Witnesses::TAKES_UNPROVEN);

/// Every run about acquisitions.
pub(super) fn runs() -> Vec<Run> {
    [
        plain(),
        auto(),
        first_starts(),
        locks(),
        broken_plain(),
        broken_auto(),
    ]
    .concat()
}

fn live(witnesses: Witnesses, run: Run) -> Run {
    Run {
        expectation: Expectation::SafeAndLive(witnesses),
        ..run
    }
}

fn full(run: Run) -> Run {
    Run {
        full: Full::Only,
        ..run
    }
}

fn born(run: Run) -> Run {
    Run {
        start: Start::Absent,
        ..run
    }
}

fn plain() -> Vec<Run> {
    let returns = TAKEN.and(Witnesses::RETURNS);
    vec![
        live(
            TAKEN,
            Run {
                mixes: PEERS,
                releases: true,
                ..safe("MC-P1", "plain: no elector, holders that let go", PLAIN)
            },
        ),
        live(
            TAKEN,
            full(safe(
                "MC-P1b",
                "plain: late and lost writes and replies",
                UNRULY,
            )),
        ),
        live(
            returns,
            Run {
                interference: DELETED,
                ..safe("MC-P1c", "plain: 1 deletion", PLAIN)
            },
        ),
        live(
            returns.and(Witnesses::TWO_MESSAGES),
            full(Run {
                interference: DELETED_TWICE,
                orphans: 1,
                ..safe("MC-P1d", "plain: 2 deletions, 2 writes under way", PLAIN)
            }),
        ),
        live(
            TAKEN_NEW,
            Run {
                interference: BLANKED,
                ..safe(
                    "MC-P1e",
                    "plain: no lease at first, 1 emptying",
                    born(PLAIN),
                )
            },
        ),
        live(
            TAKEN_NEW,
            full(Run {
                interference: Interference {
                    wipes: 1,
                    ..BLANKED_TWICE
                },
                ..safe(
                    "MC-P1f",
                    "plain: emptied twice, and released by a stranger",
                    born(PLAIN),
                )
            }),
        ),
        live(
            TAKEN,
            Run {
                one_name: true,
                orphans: 1,
                ..safe("MC-P1g", "plain: one name, late writes", PLAIN)
            },
        ),
        live(
            TAKEN,
            Run {
                mixes: UNLIKE_PEERS,
                acquisition: Some(AcquisitionSetup {
                    renames: true,
                    ..AcquisitionSetup::PLAIN
                }),
                ..safe("MC-P1h", "plain: another name after a restart", PLAIN)
            },
        ),
    ]
}

fn auto() -> Vec<Run> {
    let beside = Witnesses::LEADS
        .and(Witnesses::TAKES_EXPIRED)
        .and(Witnesses::BESIDE);
    let setup = |acquisition, run| Run {
        acquisition: Some(acquisition),
        ..run
    };
    vec![
        live(
            beside,
            Run {
                restarts: false,
                ..safe("MC-P2", "auto: 1 elector", AUTO)
            },
        ),
        live(
            beside,
            setup(
                AcquisitionSetup {
                    pinged: true,
                    ranked: true,
                    ..AcquisitionSetup::AUTO
                },
                full(Run {
                    ..safe("MC-P2b", "auto: 1 elector, hand-overs and pings", AUTO)
                }),
            ),
        ),
        live(
            beside.and(Witnesses::RETURNS),
            full(Run {
                interference: DELETED,
                ..safe("MC-P2c", "auto: 1 elector, 1 deletion", AUTO)
            }),
        ),
        live(
            beside,
            full(Run {
                electors: 2,
                ..safe("MC-P2d", "auto: 2 electors", AUTO)
            }),
        ),
        live(
            TAKEN,
            setup(
                AcquisitionSetup {
                    pinged: true,
                    electors_write: false,
                    ..AcquisitionSetup::AUTO
                },
                Run {
                    restarts: false,
                    full: Full::Only,
                    ..safe("MC-P2e", "auto: 1 elector that may not write", AUTO)
                },
            ),
        ),
    ]
}

/// Names without a Lease, at first and after a deletion: each process creates the Lease as soon as it knows (R18).
fn first_starts() -> Vec<Run> {
    let returns = TAKEN_NEW.and(Witnesses::RETURNS);
    let alone = Run {
        electors: 0,
        ..born(AUTO)
    };
    vec![
        live(
            returns,
            Run {
                interference: DELETED,
                ..safe("MC-P7", "auto: no elector, no lease, 1 deletion", alone)
            },
        ),
        live(
            returns,
            full(Run {
                interference: DELETED,
                orphans: 1,
                ..safe(
                    "MC-P7b",
                    "plain: no lease, late creations, 1 deletion",
                    born(PLAIN),
                )
            }),
        ),
        live(
            TAKEN_NEW.and(Witnesses::BESIDE),
            full(Run {
                lagging: 1,
                restarts: false,
                ..safe(
                    "MC-P7c",
                    "auto: no lease, an elector that appears late",
                    born(AUTO),
                )
            }),
        ),
        live(
            TAKEN_NEW.and(Witnesses::BESIDE),
            Run {
                restarts: false,
                slow_posts: false,
                full: Full::Only,
                ..safe(
                    "MC-P7d",
                    "auto: no lease, elector and candidates start together",
                    born(AUTO),
                )
            },
        ),
        live(
            TAKEN.and(Witnesses::RETURNS),
            Run {
                interference: DELETED,
                acquisition: Some(AcquisitionSetup {
                    flag: Some(TICK),
                    ..AcquisitionSetup::PLAIN
                }),
                ..safe("MC-P7e", "plain: W is above W_max as configured", PLAIN)
            },
        ),
    ]
}

/// The locks of electors: that of the one which is built in, taken by ours, and our own.
fn locks() -> Vec<Run> {
    let lock = |lock, run| Run {
        releases: true,
        acquisition: Some(AcquisitionSetup {
            grace: Some(Duration::ZERO),
            lock: Some(lock),
            ..AcquisitionSetup::PLAIN
        }),
        ..run
    };
    let taken = ModelLock {
        electors: 1,
        displaces: true,
        quiet: Duration::from_secs(Timing::USUAL.lease),
    };
    let own = ModelLock {
        electors: 2,
        displaces: false,
        quiet: Duration::ZERO,
    };
    let displaced = Witnesses::LEADS.and(Witnesses::DISPLACES);
    let builtin = Run {
        mixes: PEERS_APART,
        ..PLAIN
    };
    let two = ModelLock {
        electors: 2,
        ..taken
    };
    vec![
        live(
            displaced,
            lock(
                taken,
                full(safe(
                    "MC-P3",
                    "the built-in lock: taken by an elector",
                    builtin,
                )),
            ),
        ),
        Run {
            expectation: Expectation::Unsafe(Property::OneBeliever),
            ..full(lock(
                two,
                broken(
                    "MC-P3b",
                    "R17",
                    "the built-in lock: taken over early, and let go of at once",
                    Mutant::ReleaseEarly,
                    Run {
                        mixes: UNLIKE,
                        candidates: 3,
                        restarts: false,
                        ..PLAIN
                    },
                ),
            ))
        },
        Run {
            breaks: Some("R17"),
            expectation: Expectation::Unsafe(Property::OneBeliever),
            ..lock(
                ModelLock {
                    quiet: Duration::ZERO,
                    ..taken
                },
                safe("MC-P3-off", "the built-in lock: no quiet period", builtin),
            )
        },
        live(
            TAKEN_NEW.and(Witnesses::DISPLACES),
            lock(
                own,
                Run {
                    interference: BLANKED,
                    full: Full::Only,
                    ..safe(
                        "MC-P3c",
                        "the elector's own lock: two may hold it, 1 emptying",
                        born(PLAIN),
                    )
                },
            ),
        ),
    ]
}

fn broken_plain() -> Vec<Run> {
    let graced = |grace, run| Run {
        acquisition: Some(AcquisitionSetup {
            grace: Some(grace),
            ..AcquisitionSetup::PLAIN
        }),
        ..run
    };
    let shortened = |id, about, grace| {
        let run = Run {
            id,
            about,
            breaks: Some("R6"),
            interference: DELETED,
            expectation: Expectation::Unsafe(Property::OneBeliever),
            ..PLAIN
        };
        graced(grace, run)
    };
    vec![
        Run {
            interference: DELETED,
            ..broken(
                "MC-P5",
                "R2",
                "plain: created with a holder, 1 deletion",
                Mutant::AcquireByPost,
                born(PLAIN),
            )
        },
        live(
            Witnesses::LEADS.and(Witnesses::TAKES_EXPIRED),
            Run {
                mutant: Some(Mutant::AcquireByPost),
                ..safe(
                    "MC-P5-off",
                    "plain: created with a holder, no deletion",
                    born(PLAIN),
                )
            },
        ),
        shortened("MC-P6", "plain: W_max below H by the clocks", TICK),
        shortened(
            "MC-P6b",
            "plain: a lease that is missing counts as free",
            Duration::ZERO,
        ),
        Run {
            interference: BLANKED,
            ..broken(
                "MC-P-gap",
                "R4, R6",
                "plain: an unproven record's stop-watch spans a gap",
                Mutant::SpanTheGap,
                born(PLAIN),
            )
        },
        Run {
            interference: BLANKED,
            ..broken(
                "MC-P-add",
                "R6",
                "plain: absence and unheld time add up over a gap",
                Mutant::AddOverTheGap,
                born(PLAIN),
            )
        },
        broken(
            "MC-P-reply",
            "R8",
            "plain: belief counts from the reply",
            Mutant::CountFromReply,
            PLAIN,
        ),
        broken(
            "MC-P-clock",
            "R4",
            "plain: expiry by renewTime, clocks 3 s apart",
            Mutant::ExpireByRenewTime(3),
            PLAIN,
        ),
        broken(
            "MC-P-new",
            "R4",
            "plain: a new process takes a record for expired",
            Mutant::RestartExpires,
            PLAIN,
        ),
        Run {
            one_name: true,
            ..broken(
                "MC-P-name",
                "R8",
                "plain: one name, and an event is enough to lead",
                Mutant::LeadByEvent,
                PLAIN,
            )
        },
        Run {
            interference: WIPED,
            ..broken(
                "MC-P-token",
                "R6",
                "plain: a release counts in spite of the token",
                Mutant::TrustAnyRelease,
                PLAIN,
            )
        },
    ]
}

fn broken_auto() -> Vec<Run> {
    vec![broken(
        "MC-P4",
        "R18",
        "auto: the fallback instead of the expiry",
        Mutant::FallbackInstead,
        Run {
            restarts: false,
            ..AUTO
        },
    )]
}
