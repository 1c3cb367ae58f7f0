//! What serves the API to the elector and to the candidates.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::TestProcess;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use xtask::cluster::{Options, TestCluster};

use crate::args::ServerName;

/// An API server, which ends when this is dropped.
pub(crate) enum BenchServer {
    Embedded {
        _process: TestProcess,
        kubeconfig: PathBuf,
    },
    Real(Box<TestCluster>),
}

/// How long the embedded API server may take to listen.
const LISTENS: Duration = Duration::from_secs(30);

// === impl BenchServer ===

impl BenchServer {
    /// Starts one with an empty store. Its log goes to `folder`.
    pub(crate) async fn start(
        name: ServerName,
        elector: &Path,
        folder: &Path,
        fsync: bool,
    ) -> Result<Self> {
        match name {
            ServerName::Embedded => Self::embedded(elector, folder).await,
            ServerName::Real => {
                let options = Options {
                    fsync,
                    ..Options::default()
                };
                let cluster = spawn_blocking(move || TestCluster::start(&options)).await??;
                Ok(Self::Real(Box::new(cluster)))
            }
        }
    }

    async fn embedded(elector: &Path, folder: &Path) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        let mut command = Command::new(elector);
        // Without its gate, as a real one has it by default.
        command.args([
            "dev",
            "--serve-only",
            "--plain",
            "--gate=off",
            "--kubeconfig-out",
        ]);
        command.arg(&kubeconfig);
        let mut process = TestProcess::spawn("api-server", command, folder, |_| {})?;
        let deadline = Instant::now() + LISTENS;
        // The file is written when the port is open, and appears whole.
        while !kubeconfig.exists() {
            ensure!(
                process.ended()?.is_none() && Instant::now() < deadline,
                "the embedded API server does not listen: {}",
                process.output()?
            );
            sleep(Duration::from_millis(10)).await;
        }
        Ok(Self::Embedded {
            _process: process,
            kubeconfig,
        })
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded { kubeconfig, .. } => kubeconfig.clone(),
            Self::Real(cluster) => cluster.kubeconfig(),
        }
    }

    /// What it is, for the table.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Embedded { .. } => "the embedded API server".to_owned(),
            Self::Real(cluster) => format!("kube-apiserver {}", cluster.release()),
        }
    }
}

/// Creates these namespaces.
pub(crate) async fn create_namespaces(
    client: &Client,
    names: impl IntoIterator<Item = String>,
) -> Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    for name in names {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        api.create(&PostParams::default(), &namespace)
            .await
            .with_context(|| format!("failed to create namespace {name}"))?;
    }
    Ok(())
}
