//! The figures of all runs, each of which is a line of its own as soon as it has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Map, json};

use super::args::{MeasuredCase, RunKind, Subject};

/// The figures of one run by name: seconds, and numbers of things.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// Results, by kind and figure.
pub(super) struct RunResults {
    out: Box<dyn Write>,
    values: BTreeMap<(RunKind, &'static str), Vec<f64>>,
    /// The runs that failed.
    pub(super) failed: Vec<String>,
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

    /// A run of that kind, which may have failed.
    pub(super) fn add(&mut self, kind: RunKind, run: u32, played: Result<Figures>) -> Result<()> {
        let name = format!("{}-{run}", kind.label());
        let (figures, error) = match played {
            Ok(figures) => (figures, None),
            Err(error) => (Vec::new(), Some(format!("{error:#}"))),
        };
        if let Some(error) = &error {
            eprintln!("{name} failed: {error}");
            self.failed.push(name.clone());
        }
        let values = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)));
        let line = json!({"run": name, "figures": Map::from_iter(values), "error": error});
        writeln!(self.out, "{line}")?;
        self.out.flush()?;
        for (figure, value) in figures {
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
            (kind.case, kind.subject) == (case, subject) && *name == figure
        });
        let mut values: Vec<f64> = of_figure.flat_map(|(_, values)| values.clone()).collect();
        values.sort_by(f64::total_cmp);
        values
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
