//! The figures of all runs, each of which is a line of its own as soon as it has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Not;
use std::path::PathBuf;

use anyhow::{Context as _, Error, Result};
use serde::{Deserialize, Serialize};

use super::args::{MeasuredCase, RunKind, Subject, UpstreamArgs};
use super::unelected::Unelected;

/// The figures of one run by name: seconds, and numbers of things.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// The figures of a fleet: the second one is missing where the leases were not all led in time.
pub(super) const LEASES_LED: &str = "leases led";
pub(super) const UNTIL_ALL_LED: &str = "until all are led";

/// A line of the file of runs.
#[derive(Debug, Serialize, Deserialize)]
struct RunLine {
    run: String,
    figures: BTreeMap<String, f64>,
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Not::not")]
    unelected: bool,
}

/// A run that failed.
pub(super) struct FailedRun {
    pub(super) kind: RunKind,
    /// Its name and the cause.
    pub(super) text: String,
    /// All that failed is that nobody was elected in time.
    pub(super) unelected: bool,
}

/// Results, by kind and figure.
pub(super) struct RunResults {
    out: Box<dyn Write>,
    values: BTreeMap<(RunKind, String), Vec<f64>>,
    pub(super) failed: Vec<FailedRun>,
}

/// The least, the middle and the greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FigureSpread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

// === impl RunResults ===

impl RunResults {
    /// None yet. Lines go to that file, otherwise to standard output.
    pub(super) fn to(path: Option<PathBuf>) -> Result<Self> {
        let out: Box<dyn Write> = match path {
            Some(path) => {
                let file = File::create(&path);
                Box::new(file.with_context(|| format!("failed to create {}", path.display()))?)
            }
            None => Box::new(io::stdout()),
        };
        Ok(Self {
            out,
            values: BTreeMap::new(),
            failed: Vec::new(),
        })
    }

    #[cfg(test)]
    pub(super) fn to_nowhere() -> Self {
        let (out, values, failed) = (Box::new(io::sink()), BTreeMap::new(), Vec::new());
        Self {
            out,
            values,
            failed,
        }
    }

    /// A run of that kind, which may have failed.
    pub(super) fn add(&mut self, kind: RunKind, run: u32, played: Result<Figures>) -> Result<()> {
        let run = format!("{}-{run}", kind.label());
        let (figures, error) = match played {
            Ok(figures) => (figures, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let unelected = error.as_ref().is_some_and(Error::is::<Unelected>);
        let error = error.map(|error| format!("{error:#}"));
        if let Some(error) = &error {
            eprintln!("{run} failed: {error}");
        }
        let figures = figures.into_iter();
        let figures = figures
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        self.take(RunLine {
            run,
            figures,
            error,
            unelected,
        })
    }

    /// The runs of lines that were written before.
    pub(super) fn take_lines(&mut self, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let line = serde_json::from_str(line).with_context(|| format!("{line:?} is no run"))?;
            self.take(line)?;
        }
        Ok(())
    }

    fn take(&mut self, line: RunLine) -> Result<()> {
        let kind = UpstreamArgs::kind_of(&line.run);
        let kind = kind.with_context(|| format!("{:?} is no name of a run", line.run))?;
        writeln!(self.out, "{}", serde_json::to_string(&line)?)?;
        self.out.flush()?;
        if let Some(error) = line.error {
            // The last line tells the cause, after a journal of the run.
            let cause = error.lines().last().unwrap_or_default();
            let cause = cause.trim_start_matches(": ");
            self.failed.push(FailedRun {
                kind,
                text: format!("{} ({cause})", line.run),
                unelected: line.unelected,
            });
        }
        for (figure, value) in line.figures {
            self.values.entry((kind, figure)).or_default().push(value);
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values of a figure, in the order of their size; none where it was not measured.
    pub(super) fn values(&self, case: MeasuredCase, subject: Subject, figure: &str) -> Vec<f64> {
        let of_figure = self.values.iter().filter(|((kind, name), _)| {
            (kind.case, kind.subject) == (case, subject) && name == figure
        });
        let mut values: Vec<f64> = of_figure.flat_map(|(_, values)| values.clone()).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The number of runs of a fleet in which not all leases came to be led.
    pub(super) fn endless(&self, case: MeasuredCase, subject: Subject) -> usize {
        let runs = |figure| self.values(case, subject, figure).len();
        runs(LEASES_LED).saturating_sub(runs(UNTIL_ALL_LED))
    }

    /// The same in three numbers.
    pub(super) fn spread(
        &self,
        case: MeasuredCase,
        subject: Subject,
        figure: &str,
    ) -> Option<FigureSpread> {
        let values = self.values(case, subject, figure);
        let last = values.len().checked_sub(1)?;
        let middle = values.len() / 2;
        Some(FigureSpread {
            least: values[0],
            median: f64::midpoint(values[last - middle], values[middle]),
            most: values[last],
        })
    }
}
