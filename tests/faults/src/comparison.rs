//! Ours against the best rival, in the rows by which an election is chosen, and the rivals that are left out of it.

use std::fmt::Write as _;

use clap::ValueEnum as _;
use elector_protocol::CandidateTiming;

use crate::analysis::Analysis;
use crate::case_result::{CaseResult, worst};
use crate::fault::FaultScenario;
use crate::fault_catalogue::FAULTS;
use crate::subject::TestSubject;

/// The number of points by which ours may do less work.
const TOLERANCE: f64 = 2.0;

/// The modes of ours.
const MODES: [TestSubject; 6] = [
    TestSubject::Ours,
    TestSubject::Command,
    TestSubject::PlainOurs,
    TestSubject::AsClientGo,
    TestSubject::AutoAlone,
    TestSubject::SlowServer,
];

/// A subject in a row.
struct ComparedSubject {
    subject: TestSubject,
    worst: Analysis,
    /// Why its work is no measure for others.
    exception: Option<String>,
}

/// One line for each row that counts: the best mode of ours, the best rival, and rivals that are better by more than the
/// tolerance but are excepted.
pub fn comparison_table(outcomes: &[CaseResult]) -> String {
    let mut text = String::from(
        "| fault | ours | best rival | points | within 2 points | better, and excepted |\n|---|---|---|--:|---|---|\n",
    );
    for fault in FAULTS.iter().filter(|fault| fault.compared) {
        let all = TestSubject::value_variants().iter();
        let all = all.filter_map(|&subject| ComparedSubject::read(fault, subject, outcomes));
        let (rivals, ours): (Vec<_>, Vec<_>) = all.partition(|one| !one.subject.is_judged());
        let ours = best(ours.iter().filter(|one| MODES.contains(&one.subject)));
        let (Some(ours), Some(rival)) = (ours, best(rivals.iter())) else {
            continue;
        };
        let points = ours.worst.work - rival.worst.work;
        let within = if points < -TOLERANCE { "**no**" } else { "yes" };
        let excepted = rivals.iter().filter_map(|one| {
            let better = one.worst.work > ours.worst.work + TOLERANCE;
            let exception = one.exception.as_ref().filter(|_| better)?;
            Some(format!("{} ({exception})", one.text()))
        });
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {points:+.1} | {within} | {} |",
            fault.description,
            ours.text(),
            rival.text(),
            excepted.collect::<Vec<_>>().join("; ")
        );
    }
    text
}

/// The one that does the most work without an exception, the first of several.
fn best<'c>(all: impl Iterator<Item = &'c ComparedSubject>) -> Option<&'c ComparedSubject> {
    let all = all.filter(|one| one.exception.is_none());
    all.reduce(|best, one| {
        if one.worst.work > best.worst.work {
            one
        } else {
            best
        }
    })
}

// === impl ComparedSubject ===

impl ComparedSubject {
    fn read(fault: &FaultScenario, subject: TestSubject, all: &[CaseResult]) -> Option<Self> {
        let runs = all.iter().filter(|one| one.is_of(fault.name, subject));
        let runs: Vec<&CaseResult> = runs.collect();
        if runs.is_empty() {
            return None;
        }
        let worst = worst(&runs);
        let last = runs.iter().filter_map(|one| one.last_operation);
        let last = last.fold(0.0, |last: f64, one| last.max(one.after_renewal));
        let exception = if worst.two_believers > 0.0 {
            Some(format!("two believers for {:.2} s", worst.two_believers))
        } else if last > CandidateTiming::default().lease_duration.as_secs_f64() {
            Some(format!("at work until {last:.1} s after its last renewal"))
        } else {
            let exempt = subject == TestSubject::Single && !fault.strikes_process();
            exempt.then(|| "needs no API server".to_owned())
        };
        Some(Self {
            subject,
            worst,
            exception,
        })
    }

    fn text(&self) -> String {
        format!("{} {:.0} %", self.subject, self.worst.work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_operation::LastOperation;

    #[test]
    fn the_best_rival_counts_unless_nothing_backs_its_work() {
        let rows = [
            ("partition-8", TestSubject::Ours, 0.0, 90.0),
            ("partition-8", TestSubject::PlainOurs, 0.0, 95.5),
            ("partition-8", TestSubject::AsClientGo, 0.1, 99.0),
            ("partition-8", TestSubject::TrappingCommand, 0.0, 99.0),
            ("partition-8", TestSubject::Coordinated, 0.0, 97.0),
            ("partition-8", TestSubject::Plain, 1.0, 98.0),
            ("partition-8", TestSubject::Kubert, 0.0, 99.0),
            ("partition-8", TestSubject::Single, 0.0, 100.0),
            ("killed-and-back", TestSubject::Ours, 0.0, 80.0),
            ("killed-and-back", TestSubject::Single, 0.0, 92.0),
            ("none", TestSubject::Ours, 0.0, 80.0),
            ("none", TestSubject::Single, 0.0, 92.0),
        ];
        let mut outcomes = rows.map(|(fault, subject, two_believers, work)| {
            CaseResult::of_work(fault, subject, two_believers, work)
        });
        outcomes[6].last_operation = Some(LastOperation {
            after_fault: 0.0,
            after_renewal: 15.1,
        });
        let table = comparison_table(&outcomes);
        let lines = table.lines().skip(2);
        let lines: Vec<_> = lines
            .filter_map(|line| Some(line.split_once(" | ")?.1))
            .collect();
        assert_eq!(
            lines,
            [
                "ours 80 % | single 92 % | -12.0 | **no** |  |",
                "plain-ours 96 % | coordinated 97 % | -1.5 | yes | plain 98 % (two believers for 1.00 s); kubert 99 % (at \
                 work until 15.1 s after its last renewal); single 100 % (needs no API server) |",
            ]
        );
    }
}
