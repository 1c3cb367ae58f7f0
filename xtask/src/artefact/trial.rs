//! The elector as it is shipped, run in an empty root folder beside a real kube-apiserver, and what that takes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::empty_root::{EmptyRoot, USER};
use super::identity::{POD, PodIdentity};
use crate::binaries::{Binary, Toolbox};
use crate::child_guard::ChildGuard;
use crate::cluster::{Options, TestCluster};
use crate::commands;
use crate::manifests::overlays;
use crate::release::Release;

/// The time limit from its start until it is ready, with [`LEASES`] there.
const MOST_TIME: Duration = Duration::from_millis(100);
/// The limit of its resident memory with [`LEASES`], in KiB.
const MOST_KIB: u64 = 15_000;
/// The number of leases, each led by a process that renews it.
const LEASES: usize = 100;
/// The number of its starts; the median counts.
const STARTS: usize = 5;

/// kubectl as the administrator of a cluster.
struct Administrator<'a> {
    folder: &'a Path,
    kubectl: &'a Path,
    cluster: &'a TestCluster,
}

/// Tries that program.
///
/// # Errors
/// When it does not run, or takes more than it may.
pub(super) fn run(program: &Path, kubernetes: Option<Release>) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        println!("left out: the run in an empty root folder, which only root can make");
        return Ok(());
    }
    let kubectl = Toolbox::new(kubernetes)?.path(Binary::Kubectl)?;
    let options = Options {
        kubernetes,
        ..Options::default()
    };
    let cluster = TestCluster::start(&options)?;
    let folder = TempDir::new().context("failed to make a folder")?;
    let administrator = Administrator {
        folder: folder.path(),
        kubectl: &kubectl,
        cluster: &cluster,
    };
    let root = EmptyRoot::with(program, administrator.install()?)?;
    let candidates = candidates(program, &cluster)?;
    let first = root.start()?;
    first.has_elected(LEASES)?;
    first.is_confined()?;
    let resident = first.resident_kib()?;
    administrator.looks(program)?;
    first.end()?;
    println!(
        "in an empty, read-only root folder as user {USER}: {LEASES} leases led, {resident} KiB resident"
    );
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let started = root.start()?;
        starts.push(started.took);
        started.end()?;
    }
    starts.sort_unstable();
    let took = starts[STARTS / 2];
    let shown: Vec<_> = starts.iter().map(|took| format!("{took:.1?}")).collect();
    println!("ready after {}", shown.join(", "));
    drop(candidates);
    cluster.stop()?;
    if resident > MOST_KIB {
        bail!("it has {resident} KiB resident, and {MOST_KIB} are allowed");
    }
    if took > MOST_TIME {
        bail!("it was ready after {took:?}, and {MOST_TIME:?} are allowed");
    }
    Ok(())
}

/// A process for each lease.
fn candidates(program: &Path, cluster: &TestCluster) -> Result<Vec<ChildGuard>> {
    (0..LEASES)
        .map(|lease| {
            let mut command = Command::new(program);
            command
                .args(["candidate", "--mode=elected", "--binary-version=1.0.0"])
                .arg(format!("--lease=lease-{lease}"))
                .arg("--kubeconfig")
                .arg(cluster.kubeconfig())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            ChildGuard::spawn(&mut command).context("failed to run a candidate")
        })
        .collect()
}

// === impl Administrator ===

impl Administrator<'_> {
    fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(self.kubectl);
        command.arg("--kubeconfig").arg(self.cluster.kubeconfig());
        Ok(commands::read(command.args(arguments))?.stdout)
    }

    /// Runs the plugin of kubectl, which lies beside the program, as kubectl finds it: it must show each lease.
    fn looks(&self, program: &Path) -> Result<()> {
        let folder = program.parent().context("the program has no folder")?;
        let mut command = Command::new(self.kubectl);
        command
            .args(["elector", "status", "--namespace=default", "--no-headers"])
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("PATH", folder);
        let shown = commands::read(&mut command)?.stdout;
        let leases = shown.lines().filter(|line| line.contains("lease-"));
        let leases = leases.count();
        ensure!(
            leases == LEASES,
            "kubectl elector shows {leases} leases: {shown}"
        );
        println!("kubectl elector status: {leases} leases");
        Ok(())
    }

    /// Applies the manifests; returns what a Pod of their Deployment would have.
    fn install(&self) -> Result<PodIdentity> {
        let manifests = overlays::install_file("native");
        let manifests = manifests
            .to_str()
            .context("the workspace has no readable path")?;
        self.ask(&["apply", "-f", manifests])?;
        let deployment = ["get", "deployment", "--all-namespaces", "--output=json"];
        let deployment: Value = serde_json::from_str(&self.ask(&deployment)?)?;
        let deployment = &deployment["items"][0];
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let namespace = text(&deployment["metadata"]["namespace"])?;
        let template = &deployment["spec"]["template"];
        let pod = &template["spec"];
        let account = text(&pod["serviceAccountName"])?;
        self.create_pod(&namespace, template)?;
        let container = &pod["containers"][0];
        let words = [&container["command"], &container["args"]];
        let words = words.into_iter().filter_map(Value::as_array).flatten();
        let authority = "--output=jsonpath={.clusters[0].cluster.certificate-authority}";
        let authority = self.ask(&["config", "view", "--raw", authority])?;
        let (_, server) = self
            .cluster
            .url()
            .split_once("://")
            .context("no scheme before the address of the server")?;
        Ok(PodIdentity {
            server: server.parse().context("the address of the server")?,
            authority: fs::read(authority.trim()).context("failed to read the authority")?,
            token: self.ask(&[
                "create",
                "token",
                &account,
                "--namespace",
                &namespace,
                "--bound-object-kind=Pod",
                "--bound-object-name",
                POD,
            ])?,
            command: words.map(text).collect::<Result<_>>()?,
            namespace,
        })
    }

    /// Creates a Pod of that template, to which a token can be bound. There is no node that would run it.
    fn create_pod(&self, namespace: &str, template: &Value) -> Result<()> {
        let pod = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": POD, "namespace": namespace, "labels": template["metadata"]["labels"]},
            "spec": template["spec"],
        });
        let path = self.folder.join("pod.json");
        fs::write(&path, pod.to_string()).context("failed to write a Pod")?;
        let path = path.to_str().context("the folder has no readable path")?;
        self.ask(&["create", "-f", path]).map(drop)
    }
}
