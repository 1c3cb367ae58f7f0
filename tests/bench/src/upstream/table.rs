//! The table of what was measured, and the paragraph that sums it up.

use std::fmt::Write as _;

use super::args::{MeasuredCase, Subject};
use super::results::{FigureSpread, LEASES_LED, RunResults, UNTIL_ALL_LED};

/// A line of the table: a figure of a case, its name, and the way to write its values.
pub(super) struct ComparisonRow {
    pub(super) case: MeasuredCase,
    pub(super) figure: &'static str,
    pub(super) name: &'static str,
    text: fn(f64) -> String,
}

/// A figure in seconds.
const fn time(case: MeasuredCase, figure: &'static str, name: &'static str) -> ComparisonRow {
    ComparisonRow {
        case,
        figure,
        name,
        text: seconds,
    }
}

/// A number of things.
const fn count(case: MeasuredCase, figure: &'static str, name: &'static str) -> ComparisonRow {
    let text = number;
    ComparisonRow {
        text,
        ..time(case, figure, name)
    }
}

pub(super) const COLD_START: ComparisonRow = time(
    MeasuredCase::ColdStart,
    "start to first leader",
    "3 candidates start: until one leads",
);
pub(super) const CRASH: ComparisonRow = time(
    MeasuredCase::Crash,
    "kill to new leader",
    "leader is killed: until the next leads",
);
pub(super) const GAP: ComparisonRow = time(
    MeasuredCase::HandOver,
    "work stopped to new leader",
    "hand-over to a better one: time without a leader",
);
pub(super) const QUIET: ComparisonRow = count(
    MeasuredCase::Quiet,
    "requests in a second",
    "quiet lease, 3 candidates: requests in a second",
);

const ROWS: [ComparisonRow; 8] = [
    COLD_START,
    CRASH,
    time(
        MeasuredCase::HandOver,
        "arrival to new leader",
        "a better candidate starts: until it leads",
    ),
    GAP,
    count(
        MeasuredCase::Equal,
        "terms in 150 s",
        "3 equal candidates: terms in 150 s",
    ),
    QUIET,
    time(
        MeasuredCase::Fleet1000,
        UNTIL_ALL_LED,
        "1 000 leases with 3 candidates each register: until all are led",
    ),
    time(
        MeasuredCase::Fleet3000,
        UNTIL_ALL_LED,
        "3 000 leases with 3 candidates each register: until all are led",
    ),
];

pub(super) const SUBJECTS: [(Subject, &str); 4] = [
    (Subject::Ours, "ours"),
    (Subject::ClientGo, "client-go, elected by ours"),
    (Subject::BuiltIn, "client-go, built-in controller"),
    (Subject::Plain, "plain client-go"),
];

/// The table in Markdown, and the runs that failed.
pub(super) fn table(results: &RunResults) -> String {
    let mut text = String::from("| least / **median** / most |");
    // Writing to a String does not fail.
    for (_, name) in SUBJECTS {
        let _ = write!(text, " {name} |");
    }
    text += " ours ÷ built-in | client-go: ours ÷ built-in |\n|---|--:|--:|--:|--:|--:|--:|\n";
    for row in &ROWS {
        let _ = write!(text, "| {} |", row.name);
        for (subject, _) in SUBJECTS {
            let _ = write!(text, " {} |", row.cell(results, subject));
        }
        for subject in [Subject::Ours, Subject::ClientGo] {
            let ratio = row.ratio(results, subject);
            let ratio = ratio.map_or_else(String::new, number);
            let _ = write!(text, " {ratio} |");
        }
        text.push('\n');
    }
    if !results.failed.is_empty() {
        let runs: Vec<_> = results.failed.iter().map(|run| run.text.as_str()).collect();
        let _ = writeln!(text, "\nFailed, and left out: {}.", runs.join(", "));
    }
    text
}

/// The medians in sentences, `None` where one of them is missing.
pub(super) fn paragraph(results: &RunResults) -> Option<String> {
    let of = |row: &ComparisonRow, subject| Some(seconds(row.spread(results, subject)?.median));
    let [ours, built_in, plain] = [Subject::Ours, Subject::BuiltIn, Subject::Plain];
    Some(format!(
        "A leader is killed, with W = 15 s: the next leads after {}, with the built-in controller of Kubernetes after {}, with\n\
         plain client-go after {}. A better candidate comes: {} without a leader, where the built-in controller takes {}\n\
         and plain election has no such thing. Three candidates start: one leads after {}, not {}. These are medians,\n\
         each of {} runs on Kubernetes 1.36: [all figures](docs/comparison.md).",
        of(&CRASH, ours)?,
        of(&CRASH, built_in)?,
        of(&CRASH, plain)?,
        of(&GAP, ours)?,
        of(&GAP, built_in)?,
        of(&COLD_START, ours)?,
        of(&COLD_START, built_in)?,
        results.values(CRASH.case, ours, CRASH.figure).len(),
    ))
}

// === impl ComparisonRow ===

impl ComparisonRow {
    /// The median of a subject, divided by that with the built-in controller.
    pub(super) fn ratio(&self, results: &RunResults, subject: Subject) -> Option<f64> {
        let other = self.spread(results, Subject::BuiltIn)?;
        Some(self.spread(results, subject)?.median / other.median)
    }

    /// None where some run has never come to its end, which has no median.
    fn spread(&self, results: &RunResults, subject: Subject) -> Option<FigureSpread> {
        let spread = results.spread(self.case, subject, self.figure);
        spread.filter(|_| results.endless(self.case, subject) == 0)
    }

    fn cell(&self, results: &RunResults, subject: Subject) -> String {
        if let Some(spread) = self.spread(results, subject) {
            let FigureSpread {
                least,
                median,
                most,
            } = spread;
            let [least, middle, most] = [least, median, most].map(self.text);
            return match least == most {
                true => format!("**{middle}**"),
                false => format!("{least} / **{middle}** / {most}"),
            };
        }
        let (led, endless) = (
            results.values(self.case, subject, LEASES_LED),
            results.endless(self.case, subject),
        );
        led.first().map_or_else(String::new, |least| {
            let (least, runs) = (number(*least), led.len());
            format!("**never**, {endless} of {runs} runs: {least} after 5 min")
        })
    }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn number(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number:.0}")
    } else if number.abs() < 0.01 {
        format!("{number:.4}")
    } else {
        format!("{number:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::RunKind;
    use super::super::unelected::Unelected;
    use super::*;

    #[test]
    fn a_row_has_medians_and_their_ratio_and_what_never_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = RunResults::to(Some(folder.path().join("lines"))).unwrap();
        let (case, fleet) = (MeasuredCase::Crash, MeasuredCase::Fleet3000);
        for (case, subject, figure, values) in [
            (
                case,
                Subject::Ours,
                CRASH.figure,
                &[12.0, 14.0, 10.0, 11.0][..],
            ),
            (case, Subject::BuiltIn, CRASH.figure, &[23.0]),
            (fleet, Subject::BuiltIn, LEASES_LED, &[3000.0, 512.0]),
            (fleet, Subject::BuiltIn, UNTIL_ALL_LED, &[80.0]),
        ] {
            let kind = RunKind { case, subject };
            for (value, run) in values.iter().zip(0..) {
                results.add(kind, run, Ok(vec![(figure, *value)])).unwrap();
            }
        }
        let kind = RunKind {
            case,
            subject: Subject::Plain,
        };
        let failed = Err(anyhow::anyhow!("late").context(Unelected));
        results.add(kind, 3, failed).unwrap();
        let table = table(&results);
        for part in [
            "| leader is killed: until the next leads | 10.0 s / **11.5 s** / 14.0 s |  | **23.0 s** |  | 0.50 |  |\n",
            "led |  |  | **never**, 1 of 2 runs: 512 after 5 min |  |  |  |\n",
            "Failed, and left out: crash-plain-3 (nobody was elected: late).",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        assert_eq!(paragraph(&results), None);
        // The lines say the same when they are read.
        let lines = std::fs::read_to_string(folder.path().join("lines")).unwrap();
        let mut again = RunResults::to(Some(folder.path().join("again"))).unwrap();
        again.take_lines(&lines).unwrap();
        assert_eq!(super::table(&again), table);
        assert!(again.failed.iter().all(|run| run.unelected));
        let error = again
            .take_lines("{\"run\":\"crash-9\",\"figures\":{}}")
            .unwrap_err();
        assert_eq!(error.to_string(), "\"crash-9\" is no name of a run");
    }
}
