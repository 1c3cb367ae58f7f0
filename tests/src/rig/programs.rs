//! The programs under test: built once, before the first scenario.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use elector_cluster::binaries::{self, Binary, Toolbox};
use elector_cluster::cargo;
use elector_cluster::earlier_version;
use elector_cluster::paths;
use elector_cluster::release::Release;

/// Where the programs lie.
#[derive(Clone, Debug)]
pub struct TestedPrograms {
    /// The binary `elector`.
    pub elector: PathBuf,
    /// The binary `kubectl-elector` of the same build.
    pub kubectl_elector: PathBuf,
    /// The version of Elector that runs beside this one and is upgraded to it, where there is one.
    pub earlier_version: Option<ElectorVersion>,
    /// The foreign candidates, unless they are to be left out.
    pub interop: Option<Interop>,
    /// Kubernetes' own command-line client.
    pub kubectl: PathBuf,
    /// The release of the clusters; `None` for the usual one.
    pub release: Option<Release>,
}

/// A version of Elector as its users have it.
#[derive(Clone, Debug)]
pub struct ElectorVersion {
    /// The binary `elector`.
    pub elector: PathBuf,
    /// The folder `manifests`.
    pub manifests: PathBuf,
    /// The commit, where it is reported.
    pub commit: Option<String>,
}

/// Unmodified programs that stand for election.
#[derive(Clone, Debug)]
pub struct Interop {
    /// The client-go elector of `tests/interop/client-go`.
    pub client_go: PathBuf,
    /// Kubernetes' own scheduler.
    pub kube_scheduler: PathBuf,
}

/// Names a ready `elector` binary, so that none is built.
const ELECTOR_BIN: &str = "ELECTOR_BIN";

/// Names another release of Kubernetes than the usual one, such as 1.31.
const ELECTOR_KUBERNETES: &str = "ELECTOR_KUBERNETES";

/// The name of the folder of manifests, in the root of the workspace.
const MANIFESTS: &str = "manifests";

// === impl TestedPrograms ===

impl TestedPrograms {
    /// Builds what is not there yet; takes minutes the first time. `profile` is that of `elector`, unless the
    /// environment variable `ELECTOR_BIN` names one that is ready. `ELECTOR_INTEROP=0` does without [`Interop`], and
    /// `ELECTOR_KUBERNETES` names another release of the clusters.
    pub fn build(profile: &str) -> Result<Self> {
        let release = match env::var(ELECTOR_KUBERNETES) {
            Ok(text) if !text.is_empty() => Some(text.parse::<Release>()?),
            _ => None,
        };
        Self::build_for(profile, release)
    }

    /// The binary `elector` alone: what the environment variable `ELECTOR_BIN` names, otherwise built now.
    pub fn elector(profile: &str) -> Result<PathBuf> {
        match env::var_os(ELECTOR_BIN).filter(|path| !path.is_empty()) {
            Some(path) => Ok(PathBuf::from(path)),
            None => build_binary("elector", profile),
        }
    }

    /// The binary `kubectl-elector` beside that one, otherwise built now.
    fn kubectl_elector(elector: &Path, profile: &str) -> Result<PathBuf> {
        const NAME: &str = "kubectl-elector";
        let beside = elector.with_file_name(NAME);
        if env::var_os(ELECTOR_BIN).is_some() && beside.exists() {
            return Ok(beside);
        }
        build_binary(NAME, profile)
    }

    /// The same for clusters of this release, `None` for the usual one.
    pub fn build_for(profile: &str, release: Option<Release>) -> Result<Self> {
        let elector = Self::elector(profile)?;
        let kubectl_elector = Self::kubectl_elector(&elector, profile)?;
        let toolbox = Toolbox::new(release)?;
        // Not needed here, but better now than in the middle of a scenario.
        toolbox.path(Binary::Etcd)?;
        toolbox.path(Binary::KubeApiserver)?;
        let client_go_release = toolbox.release();
        // These get along with every release that is tested.
        let toolbox = Toolbox::new(None)?;
        let interop = match env::var_os(ELECTOR_INTEROP) {
            Some(value) if value == "0" => None,
            _ => Some(Interop {
                client_go: binaries::client_go_candidate(client_go_release)?,
                kube_scheduler: toolbox.path(Binary::KubeScheduler)?,
            }),
        };
        Ok(Self {
            elector,
            kubectl_elector,
            earlier_version: None,
            interop,
            kubectl: toolbox.path(Binary::Kubectl)?,
            release,
        })
    }

    /// The version that is tested.
    pub fn version(&self) -> ElectorVersion {
        ElectorVersion {
            elector: self.elector.clone(),
            manifests: paths::workspace().join(MANIFESTS),
            commit: None,
        }
    }

    /// The foreign candidates.
    pub fn interop(&self) -> Result<&Interop> {
        self.interop
            .as_ref()
            .context("client-go and kube-scheduler are left out of this run")
    }
}

// === impl ElectorVersion ===

impl ElectorVersion {
    /// The version in a source tree, with the program in its root.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            elector: folder.join("elector"),
            manifests: folder.join(MANIFESTS),
            commit: fs::read_to_string(folder.join(earlier_version::COMMIT)).ok(),
        }
    }
}

/// `0` leaves client-go and kube-scheduler out.
const ELECTOR_INTEROP: &str = "ELECTOR_INTEROP";

fn build_binary(name: &str, profile: &str) -> Result<PathBuf> {
    let output = cargo()
        .args("build --quiet --package elector-cli".split(' '))
        .args(["--bin", name, "--profile", profile])
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to run cargo")?;
    if !output.status.success() {
        bail!("failed to build {name}");
    }
    let messages = String::from_utf8(output.stdout).context("cargo wrote something unreadable")?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|message| message["target"]["name"] == name && message["executable"].is_string())
        .and_then(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo names no executable {name}"))
}
