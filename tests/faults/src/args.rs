//! The command line of the matrix.

use anyhow::{Context as _, Result, bail};

use crate::case::FaultCase;
use crate::fault_catalogue::FAULTS;
use crate::subject::TestSubject;

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixArgs {
    /// Parts of the names of cases; none for all.
    words: Vec<String>,
    skip: Vec<String>,
    /// Only what `cargo xtask test` runs.
    slice: bool,
    /// True if `cargo xtask faults` asked for it, and not a run of all tests.
    pub by_hand: bool,
    /// libtest's `--ignored` or `--include-ignored`: among all tests, those that need a cluster are to be run too.
    pub real: bool,
    /// Only name the cases.
    pub list: bool,
    /// Write the table into the documentation.
    pub record: bool,
    /// The number of runs of every phase.
    repeat: u32,
    /// The number of cases at once.
    pub jobs: usize,
    /// Of the phases.
    pub seed: u64,
}

/// The number of cases that run at once by default: they wait for most of their time.
const JOBS: usize = 48;

/// The usage of the command line.
pub const USAGE: &str = "\
Usage: cargo xtask faults [--slice] [--list] [--repeat N] [--jobs N] [--seed N] [--record] [WORD]...

Runs every fault with every subject, or those whose names FAULT::SUBJECT::RUN contain one of the words.

  --slice       only what `cargo xtask test` runs: fewer and shorter faults, one phase each, and no subject
                that is only observed
  --list        name the cases and do nothing
  --repeat N    run each N times [default: 1]
  --jobs N      how many at once [default: 48]
  --seed N      of the moments at which faults strike [default: 1]
  --record      write the table to docs/proofs/faults.md";

// === impl MatrixArgs ===

impl MatrixArgs {
    /// Reads the command line; `None` when only help was asked for.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut args = Self {
            words: Vec::new(),
            skip: Vec::new(),
            slice: false,
            by_hand: false,
            real: false,
            list: false,
            record: false,
            repeat: 1,
            jobs: JOBS,
            seed: 1,
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            let mut value = || {
                let value = value.clone().or_else(|| arguments.next());
                value.with_context(|| format!("{flag} needs a value"))
            };
            let mut number = || -> Result<u64> {
                let value = value()?;
                value
                    .parse()
                    .with_context(|| format!("{flag}: {value} is no number"))
            };
            match flag.as_str() {
                "--help" | "-h" => return Ok(None),
                "--by-hand" => args.by_hand = true,
                "--ignored" | "--include-ignored" => args.real = true,
                "--slice" => args.slice = true,
                "--list" => args.list = true,
                "--record" => args.record = true,
                "--repeat" => args.repeat = u32::try_from(number()?)?.max(1),
                "--jobs" | "--test-threads" => args.jobs = usize::try_from(number()?)?,
                "--seed" => args.seed = number()?,
                "--skip" => args.skip.push(value()?),
                // Flags of libtest that have no meaning here.
                "--format" | "--color" | "-Z" => drop(value()?),
                "--nocapture" | "--no-capture" | "--quiet" | "-q" | "--show-output" | "--exact" => {
                }
                unknown if unknown.starts_with('-') => bail!("unknown flag {unknown}\n\n{USAGE}"),
                _ => args.words.push(flag),
            }
        }
        Ok(Some(args))
    }

    /// The same, but only what `cargo xtask test` runs.
    #[must_use]
    pub fn sliced(self) -> Self {
        Self {
            slice: true,
            ..self
        }
    }

    /// The cases that are asked for, in the order of the table.
    pub fn cases(&self) -> Vec<FaultCase> {
        let mut cases = Vec::new();
        for fault in FAULTS.iter().filter(|fault| !self.slice || fault.in_slice) {
            for subject in TestSubject::ALL {
                if !fault.concerns(subject) || (self.slice && !subject.is_ours_to_elect()) {
                    continue;
                }
                let phases = if self.slice { 1 } else { fault.runs(subject) };
                for run in 0..phases * self.repeat {
                    let case = FaultCase {
                        fault,
                        subject,
                        run,
                    };
                    if self.wants(&case.name()) {
                        cases.push(case);
                    }
                }
            }
        }
        cases
    }

    fn wants(&self, name: &str) -> bool {
        let named = |words: &[String]| words.iter().any(|word| name.contains(word.as_str()));
        (self.words.is_empty() || named(&self.words)) && !named(&self.skip)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A fault of 40 s, and what comes after it.
    const LONGEST_IN_SLICE: Duration = Duration::from_secs(80);

    fn args(words: &[&str]) -> Result<Option<MatrixArgs>> {
        MatrixArgs::parse(words.iter().map(|word| (*word).to_owned()))
    }

    fn names(words: &[&str]) -> Vec<String> {
        let args = args(words).unwrap().unwrap();
        args.cases().iter().map(FaultCase::name).collect()
    }

    #[test]
    fn words_choose_and_repetitions_multiply() {
        assert_eq!(names(&["none::ours"]), ["none::ours::0"]);
        assert_eq!(names(&["none::ours", "--repeat", "2"]).len(), 2);
        assert_eq!(names(&["stop-20::ours"]).len(), 4);
        assert_eq!(names(&["stop-20::ours", "--slice"]), ["stop-20::ours::0"]);
        assert_eq!(names(&["stop-20::single"]).len(), 1);
        assert_eq!(names(&["stop-20::single", "--skip", "20"]), [""; 0]);
    }

    #[test]
    fn the_slice_is_short_and_of_judged_subjects() {
        let slice = args(&["--slice"]).unwrap().unwrap().cases();
        for case in &slice {
            assert!(case.fault.window <= LONGEST_IN_SLICE, "{}", case.name());
        }
        for subject in TestSubject::ALL {
            let there = slice.iter().any(|case| case.subject == subject);
            let judged = !matches!(subject, TestSubject::Plain | TestSubject::Single);
            assert_eq!(there, judged, "{subject}");
        }
    }

    #[test]
    fn every_fault_is_met_by_our_candidates_or_their_commands_and_its_name_is_its_own() {
        let met = |subject: &str| names(&[&format!("::{subject}::0")]).len();
        assert_eq!(
            (met("ours"), met("command")),
            (FAULTS.len() - 1, FAULTS.len())
        );
        let mut names: Vec<_> = FAULTS.iter().map(|fault| fault.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAULTS.len());
    }

    /// In a process that does its work itself there is nothing else that could be stopped.
    #[test]
    fn only_a_command_can_outrun_the_process_that_holds_its_lease() {
        let cases = names(&["stop-holder-20", "--slice"]);
        assert_eq!(
            cases,
            [
                "stop-holder-20::command::0",
                "stop-holder-20::trapping-command::0"
            ]
        );
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(args(&["--wat"]).is_err() && args(&["--repeat", "x"]).is_err());
        assert!(args(&["--jobs"]).is_err());
        assert_eq!(args(&["--help"]).unwrap(), None);
    }
}
