//! A real kube-controller-manager with some of its controllers.

use anyhow::Result;
use elector_cluster::binaries;
use elector_tests::rig::{TestProcess, TestSite};
use tokio::task::spawn_blocking;

/// Starts one with the controllers of these names, with commas between them.
pub(super) async fn controllers(site: &TestSite, names: &str) -> Result<TestProcess> {
    let program = spawn_blocking(binaries::kube_controller_manager).await??;
    let mut command = site.command(&program);
    command
        .arg("--kubeconfig")
        .arg(site.kubeconfig())
        .arg(format!("--controllers={names}"))
        .args(["--leader-elect=false", "--secure-port=0"]);
    TestProcess::spawn("kube-controller-manager", command, site.folder(), |_| {})
}
