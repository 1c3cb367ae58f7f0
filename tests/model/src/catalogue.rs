//! All runs: those that must be safe, and one for each shortcut.

mod reserve;

use super::run::{Expectation, Run, SOME, Start, WORST};
use super::shortcut::Shortcut;
use super::store::{Property, Whims};
use super::witness::Witnesses;

/// Every run.
pub fn runs() -> Vec<Run> {
    let mut runs = safe();
    runs.extend(strangers());
    runs.extend(broken());
    runs.extend(trapped());
    runs.extend(reserve::runs());
    runs
}

/// The world that runs vary: two candidates that count as alive, one elector, the worst clocks.
const BASE: Run = Run {
    id: "",
    about: "",
    mixes: WORST,
    candidates: 2,
    electors: 1,
    lagging: 1,
    backlog: 1,
    slow_electors: false,
    restarts: true,
    asks: false,
    releases: false,
    orphans: 1,
    lost_replies: true,
    start: Start::Released,
    whims: NO_WHIMS,
    lame: None,
    shortcut: None,
    reserve: None,
    best: false,
    expectation: Expectation::Safe(Witnesses::NONE),
};

/// The same with candidates that are asked, which costs states, so that letters are less unruly.
const ASKED: Run = Run {
    asks: true,
    orphans: 0,
    lost_replies: false,
    ..BASE
};

/// Strangers keep away.
const NO_WHIMS: Whims = Whims {
    deletions: 0,
    blanks: 0,
    wipes: 0,
    object_deletions: 0,
};

fn safe() -> Vec<Run> {
    let led = Witnesses::LEADS | Witnesses::TAKES_OVER | Witnesses::YIELDS;
    let handed_over = led | Witnesses::HANDS_OVER;
    let safe = |id, about| Run {
        id,
        about,
        expectation: Expectation::Safe(handed_over),
        ..BASE
    };
    vec![
        Run {
            mixes: SOME,
            asks: true,
            orphans: 0,
            lost_replies: false,
            ..safe("MC-S0", "1 elector, candidates asked and answering")
        },
        Run {
            electors: 2,
            slow_electors: true,
            orphans: 0,
            lost_replies: false,
            ..safe("MC-S1", "2 electors, whose writes take their time")
        },
        Run {
            electors: 2,
            lagging: 0,
            asks: true,
            orphans: 0,
            lost_replies: false,
            ..safe("MC-S2", "2 electors, candidates asked and answering")
        },
        Run {
            electors: 2,
            releases: true,
            ..safe("MC-G1", "short grants, W from the accept, orphaned writes")
        },
        Run {
            electors: 2,
            orphans: 0,
            lost_replies: false,
            whims: Whims {
                deletions: 2,
                ..NO_WHIMS
            },
            expectation: Expectation::Safe(led | Witnesses::RETURNS),
            ..safe("MC-Y1", "all rules, 2 electors, 2 deletions")
        },
        Run {
            asks: true,
            orphans: 0,
            lost_replies: false,
            best: true,
            expectation: Expectation::SafeAndLive(handed_over),
            ..safe("MC-L0", "from every state the best comes to lead")
        },
    ]
}

/// What the runs with a shortcut do, done right.
fn strangers() -> Vec<Run> {
    let led = Witnesses::LEADS | Witnesses::TAKES_OVER | Witnesses::YIELDS;
    let safe = |id, about, whims| Run {
        id,
        about,
        whims,
        expectation: Expectation::Safe(led),
        ..BASE
    };
    let (blanked, wiped) = (
        Whims {
            blanks: 1,
            ..NO_WHIMS
        },
        Whims {
            wipes: 1,
            ..NO_WHIMS
        },
    );
    vec![
        safe("MC-X1-off", "a stranger blanks the lease", blanked),
        safe("MC-X2-off", "a stranger releases somebody's term", wiped),
        Run {
            id: "MC-X3-off",
            about: "unanimous answers, no object deleted",
            whims: blanked,
            shortcut: Some(Shortcut::GrantOnUnanimity),
            expectation: Expectation::Safe(led),
            ..ASKED
        },
        Run {
            id: "MC-X7-off",
            about: "the best never accepts, and is passed over",
            mixes: SOME,
            lame: Some(0),
            expectation: Expectation::SafeAndLive(Witnesses::LEADS | Witnesses::YIELDS),
            ..ASKED
        },
    ]
}

/// Shortcuts that end in two believers, or in an electee that nobody asked.
fn broken() -> Vec<Run> {
    let broken = |id, about, shortcut| Run {
        id,
        about,
        shortcut: Some(shortcut),
        expectation: Expectation::Unsafe(Property::OneBeliever),
        ..BASE
    };
    let deleted = Whims {
        deletions: 1,
        ..NO_WHIMS
    };
    vec![
        broken("MC-W", "W below H by the clocks", Shortcut::ShortLease),
        broken(
            "MC-M3",
            "belief counted from the reply",
            Shortcut::CountFromReply,
        ),
        broken("MC-M4b", "lead after a fresh read", Shortcut::LeadByRead),
        Run {
            lagging: 0,
            releases: true,
            ..broken(
                "MC-M6",
                "release judged by the old record",
                Shortcut::ReleaseByOldRecord,
            )
        },
        Run {
            whims: deleted,
            ..broken(
                "MC-M9",
                "missing lease granted at once",
                Shortcut::MissingIsFree,
            )
        },
        broken(
            "MC-M10",
            "restarted elector expires the record",
            Shortcut::RestartExpires,
        ),
        Run {
            whims: deleted,
            ..broken("MC-F3", "born record granted at once", Shortcut::BornIsFree)
        },
        Run {
            start: Start::Absent,
            whims: deleted,
            ..broken(
                "MC-RT1",
                "grants by POST, which may land late",
                Shortcut::GrantByPost,
            )
        },
        Run {
            whims: Whims {
                blanks: 1,
                ..NO_WHIMS
            },
            ..broken(
                "MC-X1",
                "unproven record counted from its uid",
                Shortcut::CountFromUid,
            )
        },
        Run {
            whims: Whims {
                wipes: 1,
                ..NO_WHIMS
            },
            ..broken(
                "MC-X2",
                "release judged without the token",
                Shortcut::TrustAnyRelease,
            )
        },
        Run {
            asks: true,
            orphans: 0,
            lost_replies: false,
            whims: Whims {
                blanks: 1,
                object_deletions: 1,
                ..NO_WHIMS
            },
            ..broken(
                "MC-X3",
                "unanimous answers, an object deleted",
                Shortcut::GrantOnUnanimity,
            )
        },
        Run {
            asks: true,
            expectation: Expectation::Unsafe(Property::ElecteeAnswered),
            ..broken(
                "MC-M21",
                "elected without having answered",
                Shortcut::NobodyAsked,
            )
        },
    ]
}

/// Shortcuts that end where nobody can lead any more.
fn trapped() -> Vec<Run> {
    vec![
        Run {
            id: "MC-L6",
            about: "an expired holder is not granted again",
            orphans: 0,
            lost_replies: false,
            shortcut: Some(Shortcut::NeverTheSame),
            expectation: Expectation::Trapped,
            ..BASE
        },
        Run {
            id: "MC-X7",
            about: "the best never accepts, and is not passed over",
            lame: Some(0),
            shortcut: Some(Shortcut::NobodyPassedOver),
            expectation: Expectation::Trapped,
            ..ASKED
        },
    ]
}
