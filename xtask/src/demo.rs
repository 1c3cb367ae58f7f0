//! `cargo xtask demo`: an election to look at, in one process or on a real cluster.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::child_guard::ChildGuard;
use crate::cluster::{Options, RealCluster};
use crate::commands::{cargo, elector, show_and_run};
use crate::release::Release;

const REAL: &str = include_str!("demo/real.sh");

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// End when the demo is over; without this all processes run until Ctrl-C, to be tried out
    #[arg(long)]
    once: bool,

    /// No colours
    #[arg(long)]
    plain: bool,

    /// On a real etcd and kube-apiserver, with processes that are killed; ends by itself
    #[arg(long)]
    real: bool,

    /// Release of Kubernetes [default: what KUBEBUILDER_ASSETS holds, otherwise 1.36]
    #[arg(long, value_name = "1.N", requires = "real")]
    kubernetes: Option<Release>,
}

/// Builds the program and runs the demo.
///
/// # Errors
/// When the program cannot be built, the cluster cannot be started, or what should happen does not happen in time.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    show_and_run(cargo().args(["build", "--package", "elector-cli", "--bin", "elector"]))?;
    let elector = elector()?;
    if !args.real {
        let mut command = Command::new(elector);
        command.arg("dev");
        command.args(args.once.then_some("--once"));
        command.args(args.plain.then_some("--plain"));
        // In our place, so that Ctrl-C and the exit code are its own.
        return Err(command.exec()).context("failed to run `elector dev`");
    }
    eprintln!("starting etcd and kube-apiserver (built on the first run, which takes minutes)");
    let cluster = RealCluster::start(&Options {
        kubernetes: args.kubernetes,
        ..Options::default()
    })?;
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    let mut demo = Command::new("/bin/sh");
    demo.args(["-c", REAL, "real.sh"])
        .arg(elector)
        .arg(folder.path())
        .env("KUBECONFIG", cluster.kubeconfig());
    ChildGuard::spawn(&mut demo)
        .context("failed to run a shell")?
        .ends_well()
        .context("the demo failed")?;
    cluster.stop()
}
