//! `cargo xtask model`: the programs that prove and refute, each a test of its own package that takes arguments.

use std::ffi::OsString;

use anyhow::Result;

use crate::commands::{cargo, show_and_run};
use crate::{fault_picture, measured};

/// Flags that the program itself understands.
#[derive(Debug, clap::Args)]
pub(crate) struct PassedArgs {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    pub(crate) arguments: Vec<OsString>,
}

/// A program that prints a table of what it proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The model check.
    Model,
    /// The simulation.
    Sim,
    /// The matrix of faults on a real kube-apiserver.
    Faults,
}

/// Runs it, with these arguments.
pub(crate) fn run(proof: Proof, arguments: &[OsString]) -> Result<()> {
    show_and_run(
        cargo()
            .arg("test")
            .args(proof.target())
            .arg("--")
            .args(proof.flags())
            .args(arguments),
    )?;
    if !arguments.iter().any(|argument| argument == "--record") {
        return Ok(());
    }
    match proof {
        Proof::Model => measured::sign("docs/proofs/model.md"),
        Proof::Sim => measured::sign("docs/proofs/simulation.md"),
        Proof::Faults => fault_picture::draw(),
    }
}

// === impl Proof ===

impl Proof {
    /// The part of the command that builds it. The model check is quick in every profile, so it is built as
    /// `cargo xtask test` builds it; the simulation runs half of the dependencies.
    const fn target(self) -> &'static [&'static str] {
        match self {
            Self::Model => &["--workspace", "--all-features", "--test", "model"],
            Self::Faults => &["--workspace", "--all-features", "--test", "faults"],
            Self::Sim => &["--release", "-p", "elector-sim", "--test", "sim"],
        }
    }

    /// The flags that it always gets.
    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Model | Self::Sim => &[],
            // Among all tests it would play a part of it, or nothing.
            Self::Faults => &["--by-hand"],
        }
    }
}
