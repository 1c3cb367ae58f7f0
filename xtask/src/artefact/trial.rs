//! The elector as it is shipped, run in an empty root folder beside a real kube-apiserver, by `trial.sh`.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::binaries::{Binary, Toolbox};
use crate::child_guard::ChildGuard;
use crate::cluster::{Options, RealCluster};
use crate::manifests::overlays;
use crate::release::Release;

const SCRIPT: &str = include_str!("trial.sh");

/// Tries that program.
///
/// # Errors
/// When it does not run, or takes more than it may.
pub(super) fn run(program: &Path, kubernetes: Option<Release>) -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "only root can make an empty root folder"
    );
    let options = Options {
        kubernetes,
        ..Options::default()
    };
    let cluster = RealCluster::start(&options)?;
    let folder = TempDir::new().context("failed to make a folder")?;
    // Both at once, so that they differ.
    let ports = [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let [health, metrics] = ports.map(|port| port.and_then(|port| port.local_addr()));
    let mut trial = Command::new("/bin/sh");
    trial
        .args(["-c", SCRIPT, "trial.sh"])
        .arg(program)
        .arg(Toolbox::new(kubernetes)?.path(Binary::Kubectl)?)
        .arg(overlays::install_file("native"))
        .arg(folder.path())
        .args([health?.to_string(), metrics?.to_string()])
        .env("KUBECONFIG", cluster.kubeconfig());
    ChildGuard::spawn(&mut trial)
        .context("failed to run a shell")?
        .ends_well()
        .context("the trial of the program failed")?;
    cluster.stop()
}
