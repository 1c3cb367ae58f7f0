//! The table of what was seen.

use std::fmt::Write as _;

use anyhow::Result;
use clap::ValueEnum as _;
use elector_cluster::measured;

use crate::case_result::{CaseResult, MAX_STALL, undisturbed, worst};
use crate::comparison::comparison_table;
use crate::fault_catalogue::FAULTS;
use crate::recorded_runs::RecordedRuns;
use crate::subject::TestSubject;

/// Writes the tables of the recorded runs into the documentation.
///
/// # Errors
/// When the document has no place for them, or cannot be written.
pub fn record(recorded: &RecordedRuns) -> Result<()> {
    let results = recorded.results();
    let stalled = results.iter().filter(|one| one.stall > MAX_STALL);
    let text = format!(
        "Runs: {}. All have passed: a run that fails is not recorded.\n\
         In {} of them the machine was too busy to measure work.\n\n\
         ## Against the best rival\n\n{}\n## Over all faults\n\n{}\n## At a glance\n\n{}\n## Fault by fault\n\n{}",
        recorded.sources(),
        stalled.count(),
        comparison_table(&results),
        subject_table(&results),
        summary_table(&results),
        table(&results),
    );
    measured::record("docs/proofs/faults.md", "faults", &text)
}

/// One line for each fault and subject, Markdown: the worst over all runs, and of the work done the median.
pub fn table(outcomes: &[CaseResult]) -> String {
    let mut text = String::from(
        "| fault | subject | runs | two believers | stale operations | past the fence | wrongly refused | worst gap | \
         work done |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for fault in FAULTS {
        let mut first = true;
        for &subject in TestSubject::value_variants() {
            let runs = runs(outcomes, |one| {
                one.fault == fault.name && one.subject == subject
            });
            if runs.is_empty() {
                continue;
            }
            let name = if first { fault.description } else { "" };
            first = false;
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "| {name} | {subject} | {} | {} |",
                runs.len(),
                line(&runs)
            );
        }
    }
    text
}

/// One line for each fault: for how long there were two believers, and what was done.
pub fn summary_table(outcomes: &[CaseResult]) -> String {
    let mut text = String::from("| two believers, work done |");
    for &subject in TestSubject::value_variants() {
        // Writing to a String does not fail.
        let _ = write!(text, " {subject} |");
    }
    let _ = writeln!(
        text,
        "\n|---|{}",
        "--:|".repeat(TestSubject::value_variants().len())
    );
    for fault in FAULTS {
        if !outcomes.iter().any(|one| one.fault == fault.name) {
            continue;
        }
        let _ = write!(text, "| {} |", fault.description);
        for &subject in TestSubject::value_variants() {
            let runs = runs(outcomes, |one| {
                one.fault == fault.name && one.subject == subject
            });
            let worst = worst(&runs);
            let _ = match (runs.is_empty(), worst.two_believers > 0.0) {
                (true, _) => write!(text, " |"),
                (false, false) => write!(text, " {:.0} % |", worst.work),
                (false, true) => write!(
                    text,
                    " **{:.1} s**, {:.0} % |",
                    worst.two_believers, worst.work
                ),
            };
        }
        text.push('\n');
    }
    text
}

/// One line for each subject, over all faults.
pub fn subject_table(outcomes: &[CaseResult]) -> String {
    let mut text = String::from(
        "| subject | runs | two believers | stale operations | past the fence | wrongly refused | worst gap | \
         work done |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for &subject in TestSubject::value_variants() {
        let runs = runs(outcomes, |one| one.subject == subject);
        if !runs.is_empty() {
            let _ = writeln!(text, "| {subject} | {} | {} |", runs.len(), line(&runs));
        }
    }
    text
}

fn runs(outcomes: &[CaseResult], wanted: impl Fn(&CaseResult) -> bool) -> Vec<&CaseResult> {
    outcomes.iter().filter(|one| wanted(one)).collect()
}

/// The worst of all; work with its extremes, where these differ.
fn line(runs: &[&CaseResult]) -> String {
    let worst = worst(runs);
    let work = || undisturbed(runs).map(|one| one.work.round());
    let (least, most) = (work().fold(f64::MAX, f64::min), work().fold(0.0, f64::max));
    let extremes = match least < most {
        true => format!(" ({least:.0}–{most:.0})"),
        false => String::new(),
    };
    format!(
        "{:.1} s | {} | {} | {} | {:.1} s | {:.0} %{extremes}",
        worst.two_believers,
        worst.stale,
        worst.past_the_fence,
        worst.wrongly_refused,
        worst.worst_gap,
        worst.work
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_faults_and_runs_are_put_together() {
        let outcomes = [
            CaseResult::of_work("killed", TestSubject::Plain, 1.0, 50.0),
            CaseResult::of_work("killed", TestSubject::Plain, 2.5, 70.0),
            CaseResult::of_work("none", TestSubject::Ours, 0.0, 100.0),
        ];
        let glance = summary_table(&outcomes);
        assert!(
            glance.ends_with(
                "| no fault | 100 % | | | | | | | | | | | | | |
\
                 | leader killed, for good | | | | | | | | | | **2.5 s**, 60 % | | | | |
"
            ),
            "{glance}"
        );
        let table = table(&outcomes);
        assert!(table.contains("60 % (50–70) |"), "{table}");
        assert!(table.contains("| plain | 2 | 2.5 s | 0 |"), "{table}");
        assert!(subject_table(&outcomes).contains("| ours | 1 | 0.0 s |"));
    }

    #[test]
    fn work_is_that_of_the_undisturbed_runs_and_overlap_that_of_all() {
        let undisturbed = CaseResult::of_work("killed", TestSubject::Plain, 1.0, 90.0);
        let mut stalled = CaseResult::of_work("killed", TestSubject::Plain, 2.0, 10.0);
        stalled.stall = 5.0;
        let seen = worst(&[&undisturbed, &stalled]);
        assert_eq!((seen.two_believers, seen.work), (2.0, 90.0));
        let mut worse = CaseResult::of_work("killed", TestSubject::Plain, 3.0, 5.0);
        worse.stall = 9.0;
        let seen = worst(&[&worse, &stalled]);
        assert_eq!((seen.two_believers, seen.work), (3.0, 10.0));
    }
}
