//! The command line, and the kinds of runs that it asks for.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use elector_cluster::release::Release;
use elector_tests::rig::{CandidateBuilder, Implementation, Testbed};

/// Measures Elector beside Kubernetes' own controller and plain client-go, on real kube-apiservers and etcds, which wait
/// for the disk
///
/// All take turns in one session: on one cluster our elector has replaced the built-in controller, on another that one
/// elects. Each run is one JSON line. Times are those that the candidates write themselves: work begins, work has ended.
#[derive(Parser, Clone, Debug)]
pub struct UpstreamArgs {
    /// The number of runs of each case; of equal candidates a third of it, of quiet leases and fleets at most three
    #[arg(long, default_value_t = 10, conflicts_with = "quick")]
    pub runs: u32,
    /// The number of runs at once; they spend most of their time waiting
    #[arg(long, default_value_t = 4)]
    pub jobs: usize,
    /// Only these cases; repeatable
    #[arg(long = "case", value_enum, conflicts_with_all = ["quick", "record"])]
    pub cases: Vec<MeasuredCase>,
    /// Only these subjects; repeatable
    #[arg(long = "subject", value_enum, conflicts_with = "record")]
    pub subjects: Vec<Subject>,
    /// Three runs of the cases that take less than a minute, in five minutes
    #[arg(long)]
    pub quick: bool,
    /// Release of Kubernetes
    #[arg(long, value_name = "1.N")]
    pub kubernetes: Option<Release>,
    /// The cargo profile of `elector`
    #[arg(long, default_value = "release")]
    pub profile: String,
    /// The file for the JSON lines [default: standard output, with --record docs/comparison.jsonl once all have run]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Sum up the lines of earlier runs, in the place of measuring; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "cases", "subjects"])]
    pub lines: Vec<PathBuf>,
    /// Write tables, picture and lines into docs/comparison.md, .svg and .jsonl, and the paragraph of README.md; of --quick
    /// its duration alone
    #[arg(long, conflicts_with_all = ["kubernetes", "out"])]
    pub record: bool,
}

/// The event that is timed, or the thing that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum MeasuredCase {
    /// Three candidates of different versions start where there was nothing
    ColdStart,
    /// The leader is killed with SIGKILL at a random moment
    Crash,
    /// A better candidate arrives while another leads
    HandOver,
    /// Three candidates of one version, watched for 150 s
    Equal,
    /// The requests for leases that nothing happens to, with three candidates each
    Quiet,
    /// 1 000 leases with three candidates each register at once
    Fleet1000,
    /// 3 000 of them
    Fleet3000,
}

/// Which candidates, and who elects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Subject {
    /// Our candidates, elected by our elector
    Ours,
    /// Coordinated candidates of client-go, elected by our elector
    ClientGo,
    /// Coordinated candidates of client-go, elected by Kubernetes' own controller
    BuiltIn,
    /// Candidates of client-go without coordination
    Plain,
}

/// A kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunKind {
    pub(crate) case: MeasuredCase,
    pub(crate) subject: Subject,
}

// === impl UpstreamArgs ===

impl UpstreamArgs {
    /// The kinds of runs, in an order that spreads the subjects.
    pub(crate) fn kinds(&self) -> Vec<RunKind> {
        let all = MeasuredCase::value_variants().iter();
        let cases = all.filter(|case| match self.quick {
            true => **case <= MeasuredCase::HandOver,
            false => self.cases.is_empty() || self.cases.contains(case),
        });
        let subjects = Subject::value_variants().iter();
        let subjects =
            subjects.filter(|subject| self.subjects.is_empty() || self.subjects.contains(subject));
        let kinds = cases.flat_map(|case| {
            subjects.clone().map(|subject| RunKind {
                case: *case,
                subject: *subject,
            })
        });
        kinds.filter(|kind| kind.is_possible()).collect()
    }

    /// The kind of a run of that name.
    pub(crate) fn kind_of(run: &str) -> Option<RunKind> {
        let (label, number) = run.rsplit_once('-')?;
        let cases = MeasuredCase::value_variants().iter();
        let mut kinds = cases.flat_map(|case| {
            let of = |subject: &Subject| RunKind {
                case: *case,
                subject: *subject,
            };
            Subject::value_variants().iter().map(of)
        });
        number.parse::<u32>().ok()?;
        kinds.find(|kind| kind.label() == label)
    }

    /// The number of runs of that kind.
    pub(crate) fn runs_of(&self, kind: RunKind) -> u32 {
        let runs = if self.quick { 3 } else { self.runs };
        match kind.case {
            MeasuredCase::Equal => runs.div_ceil(3),
            MeasuredCase::Quiet | MeasuredCase::Fleet1000 | MeasuredCase::Fleet3000 => runs.min(3),
            _ => runs,
        }
    }
}

// === impl MeasuredCase ===

impl MeasuredCase {
    /// The number of leases of a fleet.
    pub(crate) const fn fleet(self) -> Option<u32> {
        match self {
            Self::Fleet1000 => Some(1_000),
            Self::Fleet3000 => Some(3_000),
            _ => None,
        }
    }
}

// === impl Subject ===

impl Subject {
    /// Its name in sentences.
    pub(super) fn name(self) -> String {
        let name = self.to_possible_value();
        name.map(|it| it.get_name().to_owned()).unwrap_or_default()
    }

    /// The implementation of the candidates.
    pub(crate) fn implementation(self) -> Implementation {
        match self {
            Self::Ours => Implementation::Elector,
            Self::ClientGo | Self::BuiltIn | Self::Plain => Implementation::ClientGo,
        }
    }

    /// True where our elector has to elect.
    pub(crate) fn is_elected_by_us(self) -> bool {
        matches!(self, Self::Ours | Self::ClientGo)
    }
}

// === impl RunKind ===

impl RunKind {
    fn is_possible(self) -> bool {
        match self.subject {
            Subject::Ours | Subject::BuiltIn => true,
            // The candidates of a fleet are played, and are the same with either elector.
            Subject::ClientGo => self.case.fleet().is_none(),
            // No candidate of these is better, and nobody elects.
            Subject::Plain => self.case != MeasuredCase::HandOver,
        }
    }

    /// A candidate of its subject.
    pub(super) fn candidate<'a>(self, testbed: &'a Testbed, name: &str) -> CandidateBuilder<'a> {
        let candidate = testbed.candidate(name);
        match self.subject {
            Subject::Plain => candidate.plain(),
            _ => candidate,
        }
    }

    /// Its name, which a namespace may have.
    pub(crate) fn label(self) -> String {
        let case = self.case.to_possible_value();
        let case = case.map(|it| it.get_name().to_owned()).unwrap_or_default();
        format!("{case}-{}", self.subject.name())
    }
}
