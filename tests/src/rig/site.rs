//! A cluster with its recorder, and the electors that run on it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::task::spawn_blocking;
use xtask::cluster::{Cluster, Options};

use crate::rig::journal::Journal;
use crate::rig::process::Process;
use crate::rig::programs::Programs;
use crate::rig::recorder::Recorder;

/// Whether the feature gate CoordinatedLeaderElection is on. With it off, LeaseCandidates are served all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// Kubernetes' own controller elects, until it is replaced.
    On,
    /// The server drops `spec.strategy` and `spec.preferredHolder`.
    Off,
}

/// A running cluster.
pub struct Site {
    gate: Gate,
    programs: Arc<Programs>,
    folder: PathBuf,
    client: Client,
    // Dropped in this order: the watches end before their server does.
    recorder: Recorder,
    cluster: Cluster,
}

// === impl Gate ===

impl Gate {
    /// What `elector run` needs to be told, to elect on such a cluster.
    pub fn elector_flags(self) -> &'static [&'static str] {
        match self {
            Self::On => &["--replace-builtin"],
            Self::Off => &[],
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "gate on",
            Self::Off => "gate off",
        })
    }
}

// === impl Site ===

impl Site {
    /// Starts a cluster and a recorder, and no elector. Logs go to `folder`.
    ///
    /// # Errors
    /// When the cluster does not start.
    pub async fn start(
        gate: Gate,
        programs: Arc<Programs>,
        folder: PathBuf,
        fsync: bool,
    ) -> Result<Self> {
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let options = Options {
            gate: gate == Gate::On,
            fsync,
            ..Options::default()
        };
        let cluster = spawn_blocking(move || Cluster::start(&options)).await??;
        let client = client(&cluster.kubeconfig()).await?;
        let recorder = Recorder::start(&client).await?;
        Ok(Self {
            gate,
            programs,
            folder,
            client,
            recorder,
            cluster,
        })
    }

    /// The gate.
    pub fn gate(&self) -> Gate {
        self.gate
    }

    /// The programs under test.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The folder for logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The administrator's client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cluster itself.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The journal of a namespace.
    pub fn journal(&self, namespace: &str) -> Arc<Journal> {
        self.recorder.journal(namespace)
    }

    /// A command that finds this cluster as its user would, through `KUBECONFIG`.
    pub fn command(&self, program: &Path) -> Command {
        command(program, &self.cluster.kubeconfig())
    }

    /// Starts `elector run` with these flags.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn elector<'a>(
        &self,
        name: &str,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<Process> {
        let mut command = self.command(&self.programs.elector);
        command.arg("run").args(flags);
        Process::spawn(name, command, &self.folder, |_| {})
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.cluster.url();
        f.debug_struct("Site")
            .field("gate", &self.gate)
            .field("url", &url)
            .finish_non_exhaustive()
    }
}

/// A command whose only way to a cluster is this kubeconfig.
pub fn command(program: &Path, kubeconfig: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("KUBECONFIG", kubeconfig)
        .env_remove("RUST_LOG")
        .env_remove("NO_COLOR");
    command
}

async fn client(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("failed to read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
