//! The server of the API for the elector and the candidates.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use elector_apiserver::{ApiServer, Config};
use elector_cluster::cluster::{Options, RealCluster};
use elector_tests::rig::{OwnThreads, kubeconfig};
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use crate::scale::args::ServerName;

/// An API server, which ends when this is dropped.
pub(crate) enum BenchServer {
    Embedded {
        /// The number that `elector dev` has.
        _threads: OwnThreads,
        kubeconfig: PathBuf,
    },
    Real(Box<RealCluster>),
}

/// The number of events of a resource that the embedded API server can repeat for a watch that was cut off: about as
/// many as the watch cache of kube-apiserver, which holds 102 400 at most.
const HISTORY: usize = 100_000;

// === impl BenchServer ===

impl BenchServer {
    /// Starts one with an empty store. Its kubeconfig goes to `folder`.
    pub(crate) async fn start(name: ServerName, folder: &Path, fsync: bool) -> Result<Self> {
        match name {
            ServerName::Embedded => {
                let config = Config {
                    history: HISTORY,
                    ..Config::default()
                };
                Self::embedded(folder, config).await
            }
            ServerName::Real => {
                let options = Options {
                    fsync,
                    ..Options::default()
                };
                let cluster = spawn_blocking(move || RealCluster::start(&options)).await??;
                Ok(Self::Real(Box::new(cluster)))
            }
        }
    }

    pub(super) async fn embedded(folder: &Path, config: Config) -> Result<Self> {
        let threads = OwnThreads::start()?;
        let listening = threads.spawn(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let server = ApiServer::new(config);
            tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
            Ok::<_, std::io::Error>(address)
        })?;
        let address = listening.await?.context("failed to listen")?;
        let path = folder.join("kubeconfig");
        fs::write(&path, kubeconfig(address)).context("failed to write a kubeconfig")?;
        Ok(Self::Embedded {
            _threads: threads,
            kubeconfig: path,
        })
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded { kubeconfig, .. } => kubeconfig.clone(),
            Self::Real(cluster) => cluster.kubeconfig(),
        }
    }

    /// Its description, for the table.
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
