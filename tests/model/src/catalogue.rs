//! All runs: those that must be safe, and one for each mutant.

mod broken;
mod gaps;
mod live;
mod reserve;
mod safe;
mod strangers;
mod sweep;

use super::clocks::WORST;
use super::mutant::Mutant;
use super::run::{Expectation, Full, Run, Start, Timing};
use super::store::{Fence, Interference, Lax, Property};
use super::witness::Witnesses;

/// Every run, in the order of the table.
pub fn runs() -> Vec<Run> {
    [
        safe::runs(),
        sweep::runs(),
        strangers::runs(),
        gaps::runs(),
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
    reserve: None,
    best: false,
    full: Full::Same,
    expectation: Expectation::Safe(Witnesses::NONE),
};

/// The same with messages that are less unruly, which makes room for other things.
const ORDERLY: Run = Run {
    orphans: 0,
    lost_replies: false,
    ..BASE
};

/// The same with candidates that are asked.
const PINGED: Run = Run {
    pings: true,
    timing: Timing {
        passed_over: 2,
        ..Timing::USUAL
    },
    ..ORDERLY
};

/// A holder renews as often as it likes, also twice in a tick.
const RENEWS_AT_WILL: Timing = Timing {
    renew: 0,
    ..Timing::USUAL
};

/// Strangers keep away.
const NO_INTERFERENCE: Interference = Interference {
    deletions: 0,
    creations: 0,
    blanks: 0,
    wipes: 0,
    object_deletions: 0,
};
/// A stranger deletes the Lease.
const DELETED: Interference = Interference {
    deletions: 1,
    ..NO_INTERFERENCE
};
/// A stranger deletes it twice.
const DELETED_TWICE: Interference = Interference {
    deletions: 2,
    ..NO_INTERFERENCE
};
/// A stranger makes the Lease look newborn.
const BLANKED: Interference = Interference {
    blanks: 1,
    ..NO_INTERFERENCE
};
/// The same twice.
const BLANKED_TWICE: Interference = Interference {
    blanks: 2,
    ..NO_INTERFERENCE
};
/// A stranger releases somebody's term, as client-go would after a pause.
const WIPED: Interference = Interference {
    wipes: 1,
    ..NO_INTERFERENCE
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

/// A world that a mutant breaks: two believers, unless said otherwise.
const fn broken(
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

    /// What must be searched whatever else is. Where a row is a switch, it comes with what is safe beside it.
    const ROWS: [&str; 78] = [
        "MC-S0",
        "MC-S1",
        "MC-S2",
        "MC-B1",
        "MC-S3",
        "MC-S4",
        "MC-S5",
        "MC-S6",
        "MC-S6b",
        "MC-S6c",
        "MC-S7",
        "MC-S8",
        "MC-S9",
        "MC-S10",
        "MC-S11",
        "MC-S12",
        "MC-S12b",
        "MC-S14",
        "MC-B3",
        "MC-L0",
        "MC-L1",
        "MC-L2",
        "MC-L3",
        "MC-L4",
        "MC-RT1",
        "MC-RT2",
        "MC-F1",
        "MC-F2",
        "MC-F3",
        "MC-G1",
        "MC-G2",
        "MC-G3",
        "MC-W-2-1",
        "MC-W-2-2",
        "MC-W-3-2",
        "MC-W-3-3",
        "MC-W-4-3",
        "MC-W-4-4",
        "MC-M1",
        "MC-M1-off",
        "MC-M3",
        "MC-M4",
        "MC-M4b",
        "MC-M5",
        "MC-M6",
        "MC-M6b",
        "MC-M7",
        "MC-M8",
        "MC-M9",
        "MC-M9b",
        "MC-M10",
        "MC-M11",
        "MC-M12",
        "MC-M13",
        "MC-M14",
        "MC-M14b",
        "MC-M16",
        "MC-M17",
        "MC-M17b",
        "MC-M17c",
        "MC-M19",
        "MC-M20",
        "MC-M21",
        "MC-L5",
        "MC-L6",
        "MC-X1",
        "MC-X2",
        "MC-X3",
        "MC-X4",
        "MC-X5",
        "MC-X6",
        "MC-X7",
        "MC-Y1",
        "MC-Y2",
        "MC-Y3",
        "MC-Y4",
        "MC-R0",
        "MC-Q1",
    ];

    #[test]
    fn no_row_is_missing() {
        let ids: BTreeSet<_> = runs().iter().map(|run| run.id).collect();
        for row in ROWS {
            assert!(ids.contains(row), "{row}");
        }
    }

    /// What a stranger does to the Lease.
    const DEEDS: [&str; 4] = ["delete", "create", "blank", "wipe"];

    /// How often a run lets a stranger do it.
    fn times(deed: &str, interference: Interference) -> u8 {
        match deed {
            "delete" => interference.deletions,
            "create" => interference.creations,
            "blank" => interference.blanks,
            _ => interference.wipes,
        }
    }

    /// A deed that happens once from one start proves little: MC-Q1 went unseen while no world could show the same
    /// unheld record twice.
    #[test]
    fn every_deed_of_a_stranger_is_met_from_every_start_and_twice() {
        let as_the_rules_are: Vec<Run> = runs().into_iter().filter(Run::is_as_shipped).collect();
        for deed in DEEDS {
            for start in [Start::Absent, Start::Released] {
                let met = |run: &Run| run.start == start && times(deed, run.interference) >= 1;
                assert!(
                    as_the_rules_are.iter().any(met),
                    "{deed} is never met from {start:?}"
                );
            }
            let twice = |run: &Run| times(deed, run.interference) >= 2;
            assert!(
                as_the_rules_are.iter().any(twice),
                "{deed} is never met twice"
            );
        }
    }

    #[test]
    fn every_run_that_must_be_caught_names_the_rule_that_it_breaks() {
        for run in runs() {
            assert_eq!(run.must_be_caught(), run.breaks.is_some(), "{}", run.id);
        }
    }

    #[test]
    fn every_mutant_is_caught_by_some_run() {
        let caught = |mutant| {
            let mut all = runs().into_iter();
            all.any(|run| run.must_be_caught() && run.mutant == Some(mutant))
        };
        for run in runs() {
            let Some(mutant) = run.mutant else {
                continue;
            };
            let harmless = matches!(
                mutant,
                Mutant::ExpireByRenewTime(0) | Mutant::ShortenAndForget | Mutant::RevokeGrants
            );
            assert!(harmless || caught(mutant), "{mutant:?}");
        }
    }
}
