//! `cargo xtask demo`: an election to look at, in one process or on a real cluster.

mod narration;
mod participants;
mod real;

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::cluster::Options;
use crate::commands::{cargo, elector, show_and_run};

/// Where the demo runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DemoKind {
    /// `elector dev`: everything in one process, which needs nothing but Rust.
    Embedded {
        /// True if it ends by itself.
        once: bool,
        /// True for an output without colours.
        plain: bool,
    },
    /// A real etcd and kube-apiserver, and a process for each participant.
    Real(Options),
}

/// Builds the program and runs the demo.
///
/// # Errors
/// When the program cannot be built, the cluster cannot be started, or what should happen does not happen in time.
pub(crate) fn run(kind: &DemoKind) -> Result<()> {
    show_and_run(cargo().args(["build", "--package", "elector-cli", "--bin", "elector"]))?;
    let elector = elector()?;
    match kind {
        DemoKind::Real(options) => real::run(&elector, options),
        DemoKind::Embedded { once, plain } => {
            let mut command = Command::new(elector);
            command.arg("dev");
            command.args(once.then_some("--once"));
            command.args(plain.then_some("--plain"));
            // In our place, so that Ctrl-C and the exit code are its own.
            Err(command.exec()).context("failed to run `elector dev`")
        }
    }
}
