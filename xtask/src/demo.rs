//! `cargo xtask demo`: an election to look at, in one process or on a real cluster.

mod cast;
mod real;
mod tell;

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::cluster::Options;
use crate::commands::{cargo, elector, show_and_run};

/// Where the story is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// `elector dev`: everything in one process, which needs nothing but Rust.
    Embedded {
        /// Whether it ends with the story.
        once: bool,
        /// Whether it is told without colours.
        plain: bool,
    },
    /// A real etcd and kube-apiserver, and a process for each player.
    Real(Options),
}

/// Builds the program and plays the story.
///
/// # Errors
/// When the program cannot be built, the cluster cannot be started, or a scene does not come about in time.
pub(crate) fn run(stage: &Stage) -> Result<()> {
    show_and_run(cargo().args(["build", "--package", "elector-cli", "--bin", "elector"]))?;
    let elector = elector()?;
    match stage {
        Stage::Real(options) => real::run(&elector, options),
        Stage::Embedded { once, plain } => {
            let mut command = Command::new(elector);
            command.arg("dev");
            command.args(once.then_some("--once"));
            command.args(plain.then_some("--plain"));
            // In our place, so that Ctrl-C and the exit code are its own.
            Err(command.exec()).context("failed to run `elector dev`")
        }
    }
}
