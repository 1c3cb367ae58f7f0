//! The targets of `cargo xtask bench upstream`: medians, divided by those with the built-in controller.

use super::args::{RunKind, Subject};
use super::results::RunResults;
use super::table::{CRASH, ComparisonRow, GAP, QUIET};

/// The most that each ratio may be.
const TARGETS: [(ComparisonRow, Subject, f64); 4] = [
    (CRASH, Subject::Ours, 0.62),
    (CRASH, Subject::ClientGo, 0.76),
    (GAP, Subject::Ours, 0.02),
    (QUIET, Subject::Ours, 0.32),
];

/// A sentence for each run that failed, for each fleet of ours that was not wholly led, and for each target of these kinds
/// that is missed or has no figure. That others elect nobody in time is a finding, which the table tells.
pub(super) fn missed(results: &RunResults, judged: &[RunKind]) -> Vec<String> {
    let failed = results.failed.iter();
    let failed = failed.filter(|run| run.kind.subject.is_elected_by_us() || !run.unelected);
    let failed = failed.map(|run| format!("failed: {}", run.text));
    let is_judged = |row: &ComparisonRow, subject| {
        let (case, both) = (row.case, [subject, Subject::BuiltIn]);
        both.iter().all(|subject| {
            let subject = *subject;
            judged.contains(&RunKind { case, subject })
        })
    };
    let missed = TARGETS.iter().filter_map(|(row, subject, most)| {
        let ratio = row.ratio(results, *subject);
        if !is_judged(row, *subject) || ratio.is_some_and(|ratio| ratio <= *most) {
            return None;
        }
        let ratio = ratio.map_or("unknown".to_owned(), |ratio| format!("{ratio:.4}"));
        let (name, subject) = (row.name, subject.name());
        Some(format!(
            "{name}: {subject} ÷ built-in is {ratio}, and the target is at most {most}"
        ))
    });
    let ours = judged.iter().filter(|kind| kind.subject == Subject::Ours);
    let endless = ours.filter_map(|kind| {
        let (runs, label) = (results.endless(kind.case, kind.subject), kind.label());
        (runs > 0).then(|| format!("{label}: not all leases came to be led, in {runs} of its runs"))
    });
    failed.chain(endless).chain(missed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::args::MeasuredCase;
    use crate::upstream::results::{LEASES_LED, UNTIL_ALL_LED};
    use crate::upstream::unelected::Unelected;

    #[test]
    fn a_fleet_of_ours_that_is_not_wholly_led_is_told() {
        let mut results = RunResults::to_nowhere();
        let case = MeasuredCase::Fleet3000;
        let kinds = [Subject::Ours, Subject::BuiltIn].map(|subject| RunKind { case, subject });
        for kind in kinds {
            let led = Ok(vec![(LEASES_LED, 3000.0), (UNTIL_ALL_LED, 80.0)]);
            results.add(kind, 0, led).unwrap();
        }
        assert!(missed(&results, &kinds).is_empty());
        for kind in kinds {
            results.add(kind, 1, Ok(vec![(LEASES_LED, 512.0)])).unwrap();
        }
        let told = "fleet3000-ours: not all leases came to be led, in 1 of its runs";
        assert_eq!(missed(&results, &kinds), [told]);
    }

    #[test]
    fn a_failed_run_and_each_missed_target_are_told() {
        let mut results = RunResults::to_nowhere();
        let kind = |case, subject| RunKind { case, subject };
        let mut add = |case, subject, figure, value| {
            let played = Ok(vec![(figure, value)]);
            results.add(kind(case, subject), 0, played).unwrap();
        };
        for (row, ours, built_in) in [(&CRASH, 6.2, 10.0), (&GAP, 0.3, 10.0)] {
            add(row.case, Subject::Ours, row.figure, ours);
            add(row.case, Subject::BuiltIn, row.figure, built_in);
        }
        add(CRASH.case, Subject::ClientGo, CRASH.figure, 7.7);
        for (subject, run, error) in [
            (Subject::Ours, 3, anyhow::anyhow!("late").context(Unelected)),
            (
                Subject::BuiltIn,
                3,
                anyhow::anyhow!("late").context(Unelected),
            ),
            (Subject::BuiltIn, 4, anyhow::anyhow!("no program")),
        ] {
            let failed = Err(error.context("0.1 start\n0.2 ping\n"));
            results
                .add(kind(MeasuredCase::Equal, subject), run, failed)
                .unwrap();
        }
        let asked = |cases: &[MeasuredCase]| {
            let subjects = [Subject::Ours, Subject::ClientGo, Subject::BuiltIn];
            let kinds = cases.iter().map(|case| subjects.map(|it| kind(*case, it)));
            kinds.flatten().collect::<Vec<_>>()
        };
        let failed = [
            "failed: equal-ours-3 (nobody was elected: late)",
            "failed: equal-built-in-4 (no program)",
        ];
        assert_eq!(missed(&results, &[]), failed);
        let all = [CRASH.case, GAP.case, QUIET.case];
        let told = [
            failed[0],
            failed[1],
            "leader is killed: until the next leads: client-go ÷ built-in is 0.7700, and the target is at most 0.76",
            "hand-over to a better one: time without a leader: ours ÷ built-in is 0.0300, and the target is at most 0.02",
            "quiet lease, 3 candidates: requests in a second: ours ÷ built-in is unknown, and the target is at most 0.32",
        ];
        assert_eq!(missed(&results, &asked(&all)), told);
        assert_eq!(missed(&results, &asked(&all[..1])), told[..3]);
    }
}
