//! The catalogue holds what it must hold.

use super::super::mutant::Mutant;
use super::super::run::{Expectation, Run, Start};
use super::super::store::Interference;
use super::super::witness::Witnesses;
use super::runs;

/// No row of the table of proofs is lost, and none is added that was never searched.
#[test]
fn the_catalogue_is_the_page_that_was_recorded() {
    let recorded = include_str!("../../../../docs/proofs/model.md");
    let rows = recorded.lines().filter(|line| line.starts_with("| MC-"));
    let columns = |row: &str| {
        row.split(" | ")
            .take(3)
            .map(str::trim)
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let recorded: Vec<String> = rows.map(columns).collect();
    let row = |run: &Run| format!("| {} | {} | {}", run.id, run.about, run.breaks());
    let wanted: Vec<String> = runs().iter().map(row).collect();
    assert_eq!(recorded, wanted, "record the model check anew");
}

#[test]
fn every_safe_run_has_something_to_meet() {
    for run in runs() {
        if let Expectation::Safe(witnesses) | Expectation::SafeAndLive(witnesses) = run.expectation
        {
            assert!(witnesses.contains(Witnesses::LEADS), "{}", run.id);
        }
    }
}

/// A change that happens once from one start proves little: MC-Q1 went unseen while no world could show the same
/// unheld record twice.
#[test]
fn every_change_by_a_stranger_is_met_from_every_start_and_twice() {
    type Times = fn(Interference) -> u8;
    let changes: [(&str, Times); 5] = [
        ("delete", |by| by.deletions),
        ("create", |by| by.creations),
        ("blank", |by| by.blanks),
        ("unlabel", |by| by.unlabels),
        ("wipe", |by| by.wipes),
    ];
    let as_the_rules_are: Vec<Run> = runs().into_iter().filter(Run::is_as_shipped).collect();
    for (change, times) in changes {
        let met = |wanted: &dyn Fn(&Run) -> bool| as_the_rules_are.iter().any(wanted);
        for start in [Start::Absent, Start::Released] {
            assert!(
                met(&|run| run.start == start && times(run.interference) >= 1),
                "{change} is never met from {start:?}"
            );
        }
        let twice = met(&|run| times(run.interference) >= 2);
        assert!(twice, "{change} is never met twice");
    }
}

#[test]
fn every_mutant_is_caught_by_some_run() {
    let caught = |mutant| {
        let mut all = runs().into_iter();
        all.any(|run| run.must_be_caught() && run.mutant == Some(mutant))
    };
    for mutant in runs().into_iter().filter_map(|run| run.mutant) {
        let harmless = matches!(
            mutant,
            Mutant::ExpireByRenewTime(0) | Mutant::ShortenAndForget | Mutant::RevokeGrants
        );
        assert!(harmless || caught(mutant), "{mutant:?}");
    }
}
