//! The command line, and the kinds of runs that it asks for.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use elector_cluster::release::Release;
use elector_tests::rig::{ClusterMode, Implementation};

/// Measures cold start, hand-over and crash on a real kube-apiserver and etcd, which waits for the disk
///
/// Each run is one JSON line, on standard output or in `--out`; the summary goes to standard error. Times are those that the
/// candidates write themselves: work begins, work has ended.
#[derive(Parser, Clone, Debug)]
pub struct UpstreamArgs {
    /// The number of runs of each case
    #[arg(long, default_value_t = 10)]
    pub runs: u32,
    /// The number of runs at once; they spend most of their time waiting
    #[arg(long, default_value_t = 3)]
    pub jobs: usize,
    /// The cases
    #[arg(long = "case", value_enum, default_values = ["cold-start", "hand-over", "crash"])]
    pub cases: Vec<MeasuredCase>,
    /// The kinds of cluster: gate-on, gate-off or custom
    #[arg(long = "mode", value_parser = parse_mode, default_values = ["gate-on", "gate-off", "custom"])]
    pub modes: Vec<ClusterMode>,
    /// Candidates of elector-candidate, and of client-go
    #[arg(long = "candidates", value_parser = parse_implementation, default_values = ["elector", "client-go"])]
    pub implementations: Vec<Implementation>,
    /// Kubernetes' own controller elects, with the gate, among candidates of client-go
    #[arg(long)]
    pub built_in: bool,
    /// Release of Kubernetes
    #[arg(long, value_name = "1.N")]
    pub kubernetes: Option<Release>,
    /// The cargo profile of `elector`
    #[arg(long, default_value = "release")]
    pub profile: String,
    /// Where the JSON lines go [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The event that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MeasuredCase {
    /// Three candidates of different versions start where there was nothing
    ColdStart,
    /// A better candidate arrives while another leads
    HandOver,
    /// The leader is killed with SIGKILL at a random moment
    Crash,
}

/// A kind of run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunKind {
    pub(crate) case: MeasuredCase,
    pub(crate) mode: ClusterMode,
    pub(crate) implementation: Implementation,
    pub(crate) builtin: bool,
}

fn parse_mode(text: &str) -> Result<ClusterMode, &'static str> {
    match text {
        "gate-on" => Ok(ClusterMode::GateOn),
        "gate-off" => Ok(ClusterMode::GateOff),
        "custom" => Ok(ClusterMode::Custom),
        _ => Err("must be gate-on, gate-off or custom"),
    }
}

fn parse_implementation(text: &str) -> Result<Implementation, &'static str> {
    match text {
        "elector" => Ok(Implementation::Elector),
        "client-go" => Ok(Implementation::ClientGo),
        _ => Err("must be elector or client-go"),
    }
}

// === impl UpstreamArgs ===

impl UpstreamArgs {
    /// The kinds of runs on a cluster of that mode.
    pub(crate) fn kinds(&self, mode: ClusterMode) -> Vec<RunKind> {
        let of_implementation = |implementation: &Implementation| {
            let kind = RunKind {
                case: MeasuredCase::Crash,
                mode,
                implementation: *implementation,
                builtin: self.built_in,
            };
            self.cases.iter().map(move |case| RunKind {
                case: *case,
                ..kind
            })
        };
        let kinds = self.implementations.iter().flat_map(of_implementation);
        kinds.filter(|kind| kind.is_possible()).collect()
    }
}

// === impl RunKind ===

impl RunKind {
    fn is_possible(self) -> bool {
        let client_go = self.implementation == Implementation::ClientGo;
        // Without the gate a client-go leader cannot be asked to make room.
        let yields =
            !client_go || self.mode == ClusterMode::GateOn || self.case != MeasuredCase::HandOver;
        let builtin_elects = !self.builtin || (client_go && self.mode == ClusterMode::GateOn);
        // client-go knows no custom resources.
        let registers = !client_go || self.mode != ClusterMode::Custom;
        yields && builtin_elects && registers
    }

    /// The implementation of the candidates.
    pub(crate) fn candidates(self) -> &'static str {
        match self.implementation {
            Implementation::Elector => "ours",
            Implementation::ClientGo => "client-go",
        }
    }

    pub(crate) fn label(self) -> String {
        let case = match self.case {
            MeasuredCase::ColdStart => "cold start",
            MeasuredCase::HandOver => "hand-over",
            MeasuredCase::Crash => "crash",
        };
        let builtin = if self.builtin { ", built-in" } else { "" };
        format!("{case}, {}, {}{builtin}", self.candidates(), self.mode)
    }
}
