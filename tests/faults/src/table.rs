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
            let runs = runs(outcomes, |one| {
                one.fault == fault.name && one.subject == subject
            });
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

/// One line for each fault: for how long there were two believers, and what was done.
pub fn at_a_glance(outcomes: &[Outcome]) -> String {
    let mut text = String::from("| two believers, work done |");
    for subject in Subject::ALL {
        // Writing to a String does not fail.
        let _ = write!(text, " {subject} |");
    }
    let _ = writeln!(text, "\n|---|{}", "--:|".repeat(Subject::ALL.len()));
    for fault in FAULTS {
        if !outcomes.iter().any(|one| one.fault == fault.name) {
            continue;
        }
        let _ = write!(text, "| {} |", fault.tells);
        for subject in Subject::ALL {
            let runs = runs(outcomes, |one| {
                one.fault == fault.name && one.subject == subject
            });
            let worst = Testimony::worst(runs.iter().map(|one| &one.testimony));
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
pub fn told_by_subject(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| subject | runs | two believers | stale operations | past the fence | wrongly refused | worst gap | \
         work done |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for subject in Subject::ALL {
        let runs = runs(outcomes, |one| one.subject == subject);
        if !runs.is_empty() {
            let _ = writeln!(text, "| {subject} | {} | {} |", runs.len(), line(&runs));
        }
    }
    text
}

fn runs(outcomes: &[Outcome], wanted: impl Fn(&Outcome) -> bool) -> Vec<&Outcome> {
    outcomes.iter().filter(|one| wanted(one)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(fault: &'static str, subject: Subject, two_believers: f64, work: f64) -> Outcome {
        Outcome {
            fault,
            subject,
            run: 0,
            phase: 0.5,
            testimony: Testimony {
                two_believers,
                work,
                ..Testimony::default()
            },
            faults: Vec::new(),
        }
    }

    #[test]
    fn rows_stand_in_the_order_of_the_faults_and_runs_are_put_together() {
        let outcomes = [
            outcome("killed", Subject::Plain, 1.0, 50.0),
            outcome("killed", Subject::Plain, 2.5, 70.0),
            outcome("none", Subject::Ours, 0.0, 100.0),
        ];
        let glance = at_a_glance(&outcomes);
        assert!(
            glance.ends_with(
                "| no fault | 100 % | | | | |\n\
                 | leader killed, for good | | | | **2.5 s**, 60 % | |\n"
            ),
            "{glance}"
        );
        let table = table(&outcomes);
        assert!(table.contains("| plain | 2 | 2.5 s | 0 |"), "{table}");
        assert!(told_by_subject(&outcomes).contains("| ours | 1 | 0.0 s |"));
    }
}
