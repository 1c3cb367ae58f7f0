//! The operands of the rules, each with a world in which it alone decides: safe with it, and caught without it.

use std::mem::discriminant;

use super::super::run::{Expectation, Full, ModelMode, Run};
use super::super::store::Lax;
use super::base::{OTHER_FLAGS, ticks};
use super::runs;

/// One operand of a rule that takes the largest, the earliest or all of several things.
struct RuleOperand {
    rule: &'static str,
    /// The operand, in a few words.
    says: &'static str,
    /// The world in which it holds.
    with: &'static str,
    /// The same world without it.
    without: &'static str,
    /// Gives the one what the other lacks, where that is no mutant.
    restores: fn(Run) -> Run,
}

macro_rules! operands {
    ($($rule:literal $says:literal: $with:literal $without:literal $(by $restores:expr)?;)*) => {
        const OPERANDS: &[RuleOperand] = &[$(RuleOperand {
            rule: $rule,
            says: $says,
            with: $with,
            without: $without,
            restores: operands!(@ $($restores)?),
        }),*];
    };
    (@) => { |run| run };
    (@ $restores:expr) => { $restores };
}

operands! {
    "R2" "conditional: writes of electors": "MC-L1" "MC-M7" by |run| Run { lax: Lax::Nothing, ..run };
    "R2" "conditional: writes of holders": "MC-L1" "MC-M8" by |run| Run { lax: Lax::Nothing, ..run };
    "R4" "its own stop-watch, and no time of another clock": "MC-M1-off" "MC-M1";
    "R4" "this process has seen it": "MC-L1" "MC-M10";
    "R4" "renewTime is the same": "MC-L1" "MC-M16";
    "R4" "after a gap, no unproven record": "MC-Q1-off" "MC-Q1";
    "R4" "acquired: after a gap, no unproven record": "MC-P1e" "MC-P-gap";
    "R5" "not passed over while another acked": "MC-X7-off" "MC-X7";
    "R6" "an unheld record, not its duration": "MC-X4-off" "MC-X4";
    "R6" "released: a duration of at most 1 s": "MC-S6" "MC-F3";
    "R6" "released: no token": "MC-X2-off" "MC-X2";
    "R6" "absent for at least W_max": "MC-S6" "MC-M9";
    "R6" "absent for at least W_max, where it never was seen": "MC-S6" "MC-M9b";
    "R6" "the watch is unbroken": "MC-Q1-off" "MC-Q1b";
    "R6" "acquired: the watch is unbroken": "MC-P1e" "MC-P-add";
    "R6" "no revision of this uid was ever held": "MC-Q2" "MC-X8";
    "R6" "unchanged is the record, not the uid": "MC-X1-off" "MC-X1";
    "R6" "W_max: as configured": "MC-X1-off" "MC-X6";
    "R6" "W_max: as announced": "MC-X6-off" "MC-X6" by |run| Run { announced: true, ..run };
    "R6" "W_max: as seen": "MC-X6b" "MC-X6d";
    "R6" "W_max: as configured in this life": "MC-E1" "MC-E3"
        by |run| Run { next_life: Some(OTHER_FLAGS), ..run };
    "R6" "acquired: a grace of at least W_max": "MC-P1c" "MC-P6" by |run| Run { grace: None, ..run };
    "R6" "acquired: a shorter grace for records without a strategy": "MC-P6c" "MC-P6b"
        by |run| Run { mode: ModelMode::Auto, ..run };
    "R7" "the duration stays": "MC-L1" "MC-M11";
    "R7" "the holder stays": "MC-L1" "MC-M12";
    "R8" "counted from the send": "MC-L1" "MC-M3";
    "R8" "the own write, not an event": "MC-L1" "MC-M4";
    "R8" "the own write, not a read": "MC-L1" "MC-M4b";
    "R8" "a record without a token": "MC-X5" "MC-M13";
    "margins" "W is at least H, by the clocks": "MC-W-2-2" "MC-W-2-1" by |run| Run { timing: ticks(2, 2), ..run };
    "R9" "belief by the clock that runs ahead": "MC-P9" "MC-P-awake";
    "R9" "the stop-watch by the clock that stands still": "MC-P9" "MC-P-asleep";
    "R9" "elected: belief by the clock that runs ahead": "MC-C1" "MC-C2";
    "R9" "asked for at every call": "MC-L1" "MC-M19";
    "R11" "one duration for the whole term": "MC-L1" "MC-M14";
    "R12" "the work has stopped": "MC-L1" "MC-M5";
    "R15" "acked": "MC-S0" "MC-M21";
    "R18" "expired, and the fallback": "MC-P2" "MC-P4";
    "R18" "W_max: the own W": "MC-P7e" "MC-P7g";
    "R18" "W_max: as configured": "MC-P7f" "MC-P7g" by |run| Run { flag: None, ..run };
    "R16" "the pause: from the second withdrawal on": "MC-D2" "MC-D2b";
    "R16" "the pause: doubled": "MC-D2" "MC-D2c";
    "R16" "the time of a preference: doubled": "MC-D4" "MC-D4b";
    "R16" "frozen: no leader is asked to make room": "MC-O1" "MC-O2";
    "R16" "an operator's candidate is preferred, and not granted": "MC-O1" "MC-O3";
    "R21" "the earlier life is dead": "MC-J1e" "MC-J2";
    "R21" "noted, and not of the same name alone": "MC-J1b" "MC-J3";
    "R21" "of this very life": "MC-J1b" "MC-J5";
    "R22" "counted from the send of the write that is shown": "MC-H1" "MC-H2";
    "R23" "held back: a hand-over failed": "MC-D3" "MC-D3b";
    "R23" "held back: doubled": "MC-D3" "MC-D3d";
    "R23" "held back: pre-emptions": "MC-D3" "MC-D3c";
}

/// The run of an id, and the world of it: all but what is said of it, the clocks and the rule that is broken.
fn run_of(id: &str) -> (Run, Run) {
    let mut all = runs().into_iter();
    let run = all
        .find(|run| run.id() == id)
        .unwrap_or_else(|| panic!("no {id}"));
    (run, world_of(run))
}

fn world_of(run: Run) -> Run {
    Run {
        id: "",
        about: "",
        mixes: &[],
        mutant: None,
        full: Full::Same,
        expectation: Expectation::Trapped(""),
        ..run
    }
}

#[test]
fn each_operand_decides_alone_in_some_world() {
    for operand in OPERANDS {
        let (with, world) = run_of(operand.with);
        let (without, broken) = run_of(operand.without);
        let case = format!("{}: {}", operand.rule, operand.says);
        assert!(!with.must_be_caught(), "{case}");
        let broken_alike =
            |mutant| without.mutant.as_ref().map(discriminant) == Some(discriminant(mutant));
        assert!(with.mutant.as_ref().is_none_or(broken_alike), "{case}");
        let rules: Vec<_> = without.breaks().split(", ").collect();
        assert!(rules.contains(&operand.rule), "{case}: {rules:?}");
        assert_eq!((operand.restores)(broken), world, "{case}");
    }
    for rule in ["R4", "R5", "R6", "R7", "R8", "R16", "R18", "R23"] {
        assert!(
            OPERANDS.iter().any(|operand| operand.rule == rule),
            "{rule}"
        );
    }
}
