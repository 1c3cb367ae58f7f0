//! The catalogue holds what it must hold.

use std::collections::BTreeSet;

use super::super::mutant::Mutant;
use super::super::run::{Expectation, Start};
use super::super::store::Interference;
use super::super::witness::Witnesses;
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
        if let Expectation::Safe(witnesses) | Expectation::SafeAndLive(witnesses) = run.expectation
        {
            assert!(witnesses.include(Witnesses::LEADS), "{}", run.id);
        }
    }
}

/// The rows that must be searched in any case. Where a row is a switch, it comes with the safe one beside it.
const ROWS: [&str; 101] = [
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
    "MC-Q1",
    "MC-Q1b",
    "MC-P1",
    "MC-P1c",
    "MC-P1d",
    "MC-P1e",
    "MC-P1g",
    "MC-P2",
    "MC-P2c",
    "MC-P2d",
    "MC-P2e",
    "MC-P3",
    "MC-P3-off",
    "MC-P3c",
    "MC-P4",
    "MC-P5",
    "MC-P5-off",
    "MC-P6",
    "MC-P7",
    "MC-P7b",
    "MC-P7c",
    "MC-P7d",
    "MC-P7e",
    "MC-P-gap",
    "MC-P-add",
];

#[test]
fn no_row_is_missing() {
    let ids: BTreeSet<_> = runs().iter().map(|run| run.id).collect();
    for row in ROWS {
        assert!(ids.contains(row), "{row}");
    }
}

/// The changes that a stranger makes to the Lease.
const CHANGES: [&str; 4] = ["delete", "create", "blank", "wipe"];

/// The number of times a run lets a stranger do it.
fn times(change: &str, interference: Interference) -> u8 {
    match change {
        "delete" => interference.deletions,
        "create" => interference.creations,
        "blank" => interference.blanks,
        _ => interference.wipes,
    }
}

/// A change that happens once from one start proves little: MC-Q1 went unseen while no world could show the same
/// unheld record twice.
#[test]
fn every_change_by_a_stranger_is_met_from_every_start_and_twice() {
    let as_the_rules_are: Vec<Run> = runs().into_iter().filter(Run::is_as_shipped).collect();
    for change in CHANGES {
        for start in [Start::Absent, Start::Released] {
            let met = |run: &Run| run.start == start && times(change, run.interference) >= 1;
            assert!(
                as_the_rules_are.iter().any(met),
                "{change} is never met from {start:?}"
            );
        }
        let twice = |run: &Run| times(change, run.interference) >= 2;
        assert!(
            as_the_rules_are.iter().any(twice),
            "{change} is never met twice"
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
