//! The common part of the runs: the world that they vary, the interference of strangers, and expectations.

use super::super::clocks::WORST;
use super::super::mutant::Mutant;
use super::super::run::{Expectation, Full, Run, Start};
use super::super::store::{Fence, Interference, Lax, Property};
use super::super::timing::Timing;
use super::super::witness::Witnesses;

/// The world that runs vary: two candidates that count as alive, one elector, the worst clocks.
pub(super) const BASE: Run = Run {
    id: "",
    about: "",
    breaks: None,
    mixes: WORST,
    timing: Timing::USUAL,
    candidates: 2,
    electors: 1,
    lagging: 1,
    backlog: 1,
    slow_electors: false,
    slow_posts: true,
    restarts: true,
    pings: false,
    releases: false,
    orphans: 1,
    lost_replies: true,
    start: Start::Released,
    interference: NO_INTERFERENCE,
    refused_candidate: None,
    one_name: false,
    announced: false,
    fence: Fence::Base,
    lax: Lax::Nothing,
    mutant: None,
    acquisition: None,
    best: false,
    full: Full::Same,
    expectation: Expectation::Safe(Witnesses::NONE),
};

/// The same with messages that are less unruly, which makes room for other things.
pub(super) const ORDERLY: Run = Run {
    orphans: 0,
    lost_replies: false,
    ..BASE
};

/// The same with candidates that are pinged.
pub(super) const PINGED: Run = Run {
    pings: true,
    timing: Timing {
        passed_over: 2,
        ..Timing::USUAL
    },
    ..ORDERLY
};

/// A holder renews as often as it likes, also twice in a tick.
pub(super) const RENEWS_AT_WILL: Timing = Timing {
    renew: 0,
    ..Timing::USUAL
};

/// Strangers keep away.
pub(super) const NO_INTERFERENCE: Interference = Interference {
    deletions: 0,
    creations: 0,
    blanks: 0,
    wipes: 0,
    object_deletions: 0,
};
/// A stranger deletes the Lease.
pub(super) const DELETED: Interference = Interference {
    deletions: 1,
    ..NO_INTERFERENCE
};
/// A stranger deletes it twice.
pub(super) const DELETED_TWICE: Interference = Interference {
    deletions: 2,
    ..NO_INTERFERENCE
};
/// A stranger makes the Lease look newborn.
pub(super) const BLANKED: Interference = Interference {
    blanks: 1,
    ..NO_INTERFERENCE
};
/// The same twice.
pub(super) const BLANKED_TWICE: Interference = Interference {
    blanks: 2,
    ..NO_INTERFERENCE
};
/// A stranger releases another client's term, as client-go would after a pause.
pub(super) const WIPED: Interference = Interference {
    wipes: 1,
    ..NO_INTERFERENCE
};

/// A candidate leads, a crash is taken over, and a better candidate comes to lead.
pub(super) const LED: Witnesses = Witnesses::LEADS
    .and(Witnesses::TAKES_OVER)
    .and(Witnesses::YIELDS);
/// The same, and the better one is written by the one before.
pub(super) const HANDED_OVER: Witnesses = LED.and(Witnesses::HANDS_OVER);

/// A world that is safe.
pub(super) const fn safe(id: &'static str, about: &'static str, base: Run) -> Run {
    Run {
        id,
        about,
        expectation: Expectation::Safe(HANDED_OVER),
        ..base
    }
}

/// The same, with these witnesses.
pub(super) fn met(witnesses: Witnesses, run: Run) -> Run {
    Run {
        expectation: Expectation::Safe(witnesses),
        ..run
    }
}

/// A world that a mutant breaks: two believers, unless said otherwise.
pub(super) const fn broken(
    id: &'static str,
    rule: &'static str,
    about: &'static str,
    mutant: Mutant,
    base: Run,
) -> Run {
    Run {
        id,
        about,
        breaks: Some(rule),
        mutant: Some(mutant),
        expectation: Expectation::Unsafe(Property::OneBeliever),
        ..base
    }
}
