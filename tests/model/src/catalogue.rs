//! All runs: those that must be safe, and one for each shortcut.

mod broken;
mod live;
mod reserve;
mod safe;
mod strangers;
mod sweep;

use super::clocks::WORST;
use super::run::{Expectation, Full, Run, Start, Timing};
use super::shortcut::Shortcut;
use super::store::{Fence, Lax, Property, Whims};
use super::witness::Witnesses;

/// Every run, in the order of the table.
pub fn runs() -> Vec<Run> {
    [
        safe::runs(),
        sweep::runs(),
        strangers::runs(),
        live::runs(),
        broken::runs(),
        reserve::runs(),
    ]
    .concat()
}

/// The world that runs vary: two candidates that count as alive, one elector, the worst clocks.
const BASE: Run = Run {
    id: "",
    about: "",
    mixes: WORST,
    timing: Timing::USUAL,
    candidates: 2,
    electors: 1,
    lagging: 1,
    backlog: 1,
    slow_electors: false,
    slow_posts: true,
    restarts: true,
    asks: false,
    releases: false,
    orphans: 1,
    lost_replies: true,
    start: Start::Released,
    whims: NO_WHIMS,
    lame: None,
    one_name: false,
    announced: false,
    fence: Fence::Base,
    lax: Lax::Nothing,
    shortcut: None,
    reserve: None,
    best: false,
    full: Full::Same,
    expectation: Expectation::Safe(Witnesses::NONE),
};

/// The same with letters that are less unruly, which makes room for other things.
const TIDY: Run = Run {
    orphans: 0,
    lost_replies: false,
    ..BASE
};

/// The same with candidates that are asked.
const ASKED: Run = Run {
    asks: true,
    timing: Timing {
        passed_over: 2,
        ..Timing::USUAL
    },
    ..TIDY
};

/// A holder renews as often as it likes, also twice in a tick.
const RENEWS_AT_WILL: Timing = Timing {
    renew: 0,
    ..Timing::USUAL
};

/// Strangers keep away.
const NO_WHIMS: Whims = Whims {
    deletions: 0,
    creations: 0,
    blanks: 0,
    wipes: 0,
    object_deletions: 0,
};
/// A stranger deletes the Lease.
const DELETED: Whims = Whims {
    deletions: 1,
    ..NO_WHIMS
};
/// A stranger deletes it twice.
const DELETED_TWICE: Whims = Whims {
    deletions: 2,
    ..NO_WHIMS
};
/// A stranger makes the Lease look newborn.
const BLANKED: Whims = Whims {
    blanks: 1,
    ..NO_WHIMS
};
/// A stranger releases somebody's term, as client-go would after a pause.
const WIPED: Whims = Whims {
    wipes: 1,
    ..NO_WHIMS
};

/// Somebody leads, a crash is taken over, and a better candidate comes to lead.
const LED: Witnesses = Witnesses::LEADS
    .and(Witnesses::TAKES_OVER)
    .and(Witnesses::YIELDS);
/// The same, and the better one is written by the one before.
const HANDED_OVER: Witnesses = LED.and(Witnesses::HANDS_OVER);

/// A world that is safe.
const fn safe(id: &'static str, about: &'static str, base: Run) -> Run {
    Run {
        id,
        about,
        expectation: Expectation::Safe(HANDED_OVER),
        ..base
    }
}

/// The same, with these witnesses.
fn met(witnesses: Witnesses, run: Run) -> Run {
    Run {
        expectation: Expectation::Safe(witnesses),
        ..run
    }
}

/// A world that a shortcut breaks: two believers, unless said otherwise.
const fn broken(id: &'static str, about: &'static str, shortcut: Shortcut, base: Run) -> Run {
    Run {
        id,
        about,
        shortcut: Some(shortcut),
        expectation: Expectation::Unsafe(Property::OneBeliever),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_id_is_given_once() {
        let mut seen = BTreeSet::new();
        for run in runs() {
            assert!(run.id.starts_with("MC-"), "{}", run.id);
            assert!(seen.insert(run.id), "{} twice", run.id);
            assert!(!run.about.is_empty(), "{}", run.id);
        }
    }

    #[test]
    fn every_safe_run_has_something_to_meet() {
        for run in runs() {
            if let Expectation::Safe(witnesses) | Expectation::SafeAndLive(witnesses) =
                run.expectation
            {
                assert!(witnesses.include(Witnesses::LEADS), "{}", run.id);
            }
        }
    }

    #[test]
    fn every_shortcut_is_caught_by_some_run() {
        let caught = |shortcut| {
            runs().iter().any(|run| {
                let bad = matches!(
                    run.expectation,
                    Expectation::Unsafe(_) | Expectation::Trapped
                );
                bad && run.shortcut == Some(shortcut)
            })
        };
        for run in runs() {
            let Some(shortcut) = run.shortcut else {
                continue;
            };
            let harmless = matches!(
                shortcut,
                Shortcut::JudgeByRenewTime(0) | Shortcut::ShortenAndForget | Shortcut::RevokeGrants
            );
            assert!(harmless || caught(shortcut), "{shortcut:?}");
        }
    }
}
