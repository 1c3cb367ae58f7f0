//! The command line, and the kinds of runs that it asks for.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use elector_tests::rig::{ClusterMode, Implementation};
use xtask::release::Release;

/// Measures cold start, hand-over and crash on a real kube-apiserver and etcd.
#[derive(Parser, Clone, Debug)]
pub(crate) struct Arguments {
    /// The number of runs of each case
    #[arg(long, default_value_t = 10)]
    pub(crate) runs: u32,
    /// The number of runs at once; they spend most of their time waiting
    #[arg(long, default_value_t = 3)]
    pub(crate) jobs: usize,
    /// Which cases, all if none is given
    #[arg(long = "case", value_enum)]
    pub(crate) cases: Vec<MeasuredCase>,
    /// On which kind of cluster, all if none is given
    #[arg(long = "mode", value_enum)]
    pub(crate) modes: Vec<ModeName>,
    /// The implementation of the candidates, both if none is given
    #[arg(long = "candidates", value_enum)]
    pub(crate) implementations: Vec<ImplementationName>,
    /// The elector; Kubernetes' built-in controller with client-go candidates only
    #[arg(long = "elector", value_enum, default_value = "elector")]
    pub(crate) electors: Vec<ElectorName>,
    /// Release of Kubernetes
    #[arg(long, value_name = "1.N")]
    pub(crate) kubernetes: Option<Release>,
    /// The cargo profile of `elector`
    #[arg(long, default_value = "release")]
    pub(crate) profile: String,
    /// Where the JSON lines go [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasuredCase {
    /// Three candidates of different versions start where there was nothing
    ColdStart,
    /// A better candidate arrives while another leads
    HandOver,
    /// The leader is killed with SIGKILL at a random moment
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    GateOn,
    GateOff,
    Custom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElectorName {
    Elector,
    BuiltIn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImplementationName {
    Elector,
    ClientGo,
}

/// A kind of run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunKind {
    pub(crate) case: MeasuredCase,
    pub(crate) mode: ClusterMode,
    pub(crate) implementation: Implementation,
    pub(crate) builtin: bool,
}

// === impl Arguments ===

impl Arguments {
    pub(crate) fn kinds(&self) -> Vec<RunKind> {
        let cases: &[MeasuredCase] = if self.cases.is_empty() {
            MeasuredCase::value_variants()
        } else {
            &self.cases
        };
        let modes: &[ModeName] = if self.modes.is_empty() {
            ModeName::value_variants()
        } else {
            &self.modes
        };
        let implementations: &[ImplementationName] = if self.implementations.is_empty() {
            ImplementationName::value_variants()
        } else {
            &self.implementations
        };
        let mut kinds = Vec::new();
        for &elector in &self.electors {
            for &mode in modes {
                for &implementation in implementations {
                    for &case in cases {
                        kinds.push(RunKind {
                            case,
                            mode: match mode {
                                ModeName::GateOn => ClusterMode::GateOn,
                                ModeName::GateOff => ClusterMode::GateOff,
                                ModeName::Custom => ClusterMode::Custom,
                            },
                            implementation: match implementation {
                                ImplementationName::Elector => Implementation::Elector,
                                ImplementationName::ClientGo => Implementation::ClientGo,
                            },
                            builtin: elector == ElectorName::BuiltIn,
                        });
                    }
                }
            }
        }
        kinds.retain(|kind| kind.is_possible());
        kinds
    }
}

// === impl RunKind ===

impl RunKind {
    pub(crate) fn is_possible(self) -> bool {
        let client_go = self.implementation == Implementation::ClientGo;
        // Without the gate a client-go leader cannot be asked to make room.
        let yields =
            !client_go || self.mode == ClusterMode::GateOn || self.case != MeasuredCase::HandOver;
        let builtin_elects = !self.builtin || (client_go && self.mode == ClusterMode::GateOn);
        // client-go knows no custom resources.
        let registers = !client_go || self.mode != ClusterMode::Custom;
        yields && builtin_elects && registers
    }

    /// The cluster that it is measured on: the two electors do not share one.
    pub(crate) fn site(self) -> (ClusterMode, bool) {
        (self.mode, self.builtin)
    }

    pub(crate) fn label(self) -> String {
        let case = match self.case {
            MeasuredCase::ColdStart => "cold start",
            MeasuredCase::HandOver => "hand-over",
            MeasuredCase::Crash => "crash",
        };
        let implementation = if self.implementation == Implementation::Elector {
            "ours"
        } else {
            "client-go"
        };
        let builtin = if self.builtin { ", built-in" } else { "" };
        format!("{case}, {implementation}, {}{builtin}", self.mode)
    }
}
