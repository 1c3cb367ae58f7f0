//! The command line of the matrix.

use clap::{ArgAction, Parser, ValueEnum as _};

use crate::case::FaultCase;
use crate::fault_catalogue::FAULTS;
use crate::subject::TestSubject;

/// Runs every fault with every subject, or those whose names FAULT::SUBJECT::RUN contain one of the words
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask faults", bin_name = "cargo xtask faults")]
pub struct MatrixArgs {
    /// Parts of the names of cases; none for all
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// Leave out cases whose names contain this
    #[arg(long, value_name = "WORD")]
    skip: Vec<String>,
    /// Only what `cargo xtask test` runs: fewer and shorter faults, one phase each, and no subject that is only observed
    #[arg(long)]
    pub slice: bool,
    /// Name the cases and do nothing
    #[arg(long)]
    pub list: bool,
    /// The number of runs of each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// The number of cases at once: they wait for most of their time
    #[arg(long, alias = "test-threads", value_name = "N", default_value_t = 48)]
    pub jobs: usize,
    /// The seed of the moments at which faults strike
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write each run that passes into docs/proofs at once, but not those that are recorded at this commit, and the tables at
    /// the end
    #[arg(long)]
    pub record: bool,

    /// Given by `cargo xtask faults`, and not by a run of all tests
    #[arg(long, hide = true)]
    pub by_hand: bool,
    /// Given by a run of all tests: those that need a cluster are to be run too
    #[arg(
        long,
        alias = "include-ignored",
        overrides_with = "ignored",
        hide = true
    )]
    pub ignored: bool,
    /// Flags of libtest that have no meaning here.
    #[arg(long = "nocapture", action = ArgAction::Count, aliases = ["no-capture", "quiet", "show-output", "exact"], short_alias = 'q', hide = true)]
    _no_value: u8,
    #[arg(
        long = "format",
        alias = "color",
        short_alias = 'Z',
        value_name = "VALUE",
        hide = true
    )]
    _value: Vec<String>,
}

// === impl MatrixArgs ===

impl MatrixArgs {
    /// The cases that are asked for, in the order of the table.
    pub fn cases(&self) -> Vec<FaultCase> {
        let mut cases = Vec::new();
        for fault in FAULTS.iter().filter(|fault| !self.slice || fault.sliced) {
            for &subject in TestSubject::value_variants() {
                if !fault.concerns(subject) || (self.slice && !subject.is_ours_to_elect()) {
                    continue;
                }
                let runs = if self.slice { 1 } else { fault.runs(subject) };
                for run in 0..runs * self.repeat {
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

    fn args(words: &[&str]) -> Result<MatrixArgs, clap::Error> {
        MatrixArgs::try_parse_from([&["faults"], words].concat())
    }

    fn names(words: &[&str]) -> Vec<String> {
        let args = args(words).unwrap();
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
        let slice = args(&["--slice"]).unwrap().cases();
        for case in &slice {
            assert!(case.fault.window <= LONGEST_IN_SLICE, "{}", case.name());
        }
        for &subject in TestSubject::value_variants() {
            let there = slice.iter().any(|case| case.subject == subject);
            assert_eq!(there, subject.is_ours_to_elect(), "{subject}");
        }
    }

    #[test]
    fn every_fault_is_met_by_our_candidates_or_their_commands_and_its_name_is_its_own() {
        let met = |subject: &str| names(&[&format!("::{subject}::0")]).len();
        let all = FAULTS.len();
        assert_eq!((met("ours"), met("command")), (all - 1, all));
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
    fn flags_of_libtest_are_taken_and_nonsense_is_refused() {
        let of_libtest = "--ignored --test-threads=3 --format pretty -q --exact";
        let of_libtest: Vec<&str> = of_libtest.split(' ').collect();
        let of_libtest = args(&of_libtest).unwrap();
        assert_eq!((of_libtest.ignored, of_libtest.jobs), (true, 3));
        assert!(args(&["--wat"]).is_err() && args(&["--repeat", "x"]).is_err());
        assert!(args(&["--jobs"]).is_err());
    }
}
