//! The table of what was seen.

use std::fmt::Write as _;

use crate::cell::Outcome;
use crate::fault::FAULTS;
use crate::subject::Subject;
use crate::testimony::Testimony;

/// One line for each fault and subject, Markdown: the worst over all runs, and the mean of the work done.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| fault | subject | runs | two believers | stale operations | past the fence | wrongly refused | worst gap | \
         work done |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for fault in FAULTS {
        let mut first = true;
        for subject in Subject::ALL {
            let of = |one: &&Outcome| one.fault == fault.name && one.subject == subject;
            let runs: Vec<&Outcome> = outcomes.iter().filter(of).collect();
            if runs.is_empty() {
                continue;
            }
            let name = if first { fault.tells } else { "" };
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

/// One line for each subject, over all faults.
pub fn told_by_subject(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| subject | runs | two believers | stale operations | past the fence | wrongly refused | worst gap | \
         work done |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for subject in Subject::ALL {
        let runs: Vec<&Outcome> = outcomes
            .iter()
            .filter(|one| one.subject == subject)
            .collect();
        if !runs.is_empty() {
            let _ = writeln!(text, "| {subject} | {} | {} |", runs.len(), line(&runs));
        }
    }
    text
}

fn line(runs: &[&Outcome]) -> String {
    let worst = Testimony::worst(runs.iter().map(|one| &one.testimony));
    format!(
        "{:.1} s | {} | {} | {} | {:.1} s | {:.0} %",
        worst.two_believers,
        worst.stale,
        worst.past_the_fence,
        worst.wrongly_refused,
        worst.worst_gap,
        worst.work
    )
}
