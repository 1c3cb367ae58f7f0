//! The server of a site's API, as it goes away and comes back.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_apiserver::{ApiServer, Config};
use elector_cluster::cluster::{ApiserverBeside, Options, RealCluster};
use elector_cluster::release::Release;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::rig::eventually::eventually;
use crate::rig::process::TestProcess;
use crate::rig::programs::TestedPrograms;

/// The server of the API.
pub(super) enum SiteServer {
    /// A kube-apiserver with its etcd.
    Real(Arc<RealCluster>),
    /// The embedded API server as its users start it.
    Embedded {
        /// Killed when it is dropped.
        _process: TestProcess,
        kubeconfig: PathBuf,
    },
    /// The embedded API server as a part of this process, so that its port can be closed while its store stays.
    Local(Local),
}

/// An embedded API server whose port can be closed.
pub(super) struct Local {
    server: ApiServer,
    address: SocketAddr,
    kubeconfig: PathBuf,
    open: Mutex<Option<Open>>,
}

/// An open port.
struct Open {
    close: oneshot::Sender<()>,
    serving: JoinHandle<std::io::Result<()>>,
}

/// The time within which the embedded API server listens.
const LISTENS: Duration = Duration::from_secs(30);

// === impl SiteServer ===

impl SiteServer {
    /// Starts a real one.
    pub(super) async fn real(options: Options) -> Result<Self> {
        let cluster = spawn_blocking(move || RealCluster::start(&options)).await??;
        Ok(Self::Real(Arc::new(cluster)))
    }

    /// Starts the embedded one as a process.
    pub(super) async fn embedded(programs: &TestedPrograms, folder: &Path) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        let mut command = Command::new(&programs.elector);
        command.args(["dev", "--serve-only", "--plain", "--gate=on"]);
        command.arg("--kubeconfig-out").arg(&kubeconfig);
        let process = TestProcess::spawn("api-server", command, folder, |_| {})?;
        // The file is written when the port is open, and appears whole.
        let listens = || async {
            let output = process.output()?;
            let listens = kubeconfig.exists();
            ensure!(listens, "the embedded API server does not listen: {output}");
            Ok(())
        };
        eventually(LISTENS, listens).await?;
        Ok(Self::Embedded {
            _process: process,
            kubeconfig,
        })
    }

    /// Starts the embedded one in this process.
    pub(super) async fn local(folder: &Path) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let local = Local {
            // As `elector dev` has it.
            server: ApiServer::new(Config {
                gate: true,
                ..Config::default()
            }),
            address: listener.local_addr()?,
            kubeconfig: folder.join("kubeconfig"),
            open: Mutex::default(),
        };
        fs::write(&local.kubeconfig, kubeconfig(local.address))?;
        local.serve(listener);
        Ok(Self::Local(local))
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Real(cluster) => cluster.kubeconfig(),
            Self::Embedded { kubeconfig, .. } => kubeconfig.clone(),
            Self::Local(local) => local.kubeconfig.clone(),
        }
    }

    /// Writes a backup of the store of a real one into that folder, and starts it again with these options.
    pub(super) async fn back_up(&self, backup: &Path, options: Options) -> Result<()> {
        let (cluster, backup) = (self.cluster()?, backup.to_owned());
        spawn_blocking(move || cluster.back_up(&backup, &options)).await?
    }

    /// Takes the store of a real one back to that backup, and starts it again with these options.
    pub(super) async fn restore(&self, backup: &Path, options: Options) -> Result<()> {
        let (cluster, backup) = (self.cluster()?, backup.to_owned());
        spawn_blocking(move || cluster.restore(&backup, &options)).await?
    }

    fn cluster(&self) -> Result<Arc<RealCluster>> {
        match self {
            Self::Real(cluster) => Ok(Arc::clone(cluster)),
            Self::Embedded { .. } | Self::Local(_) => {
                bail!("the embedded API server has no users, no etcd and no release")
            }
        }
    }

    /// A kubeconfig in that folder for a user, in that group if any, by a client certificate.
    pub(super) async fn client_kubeconfig(
        &self,
        user: &str,
        group: Option<&str>,
        folder: &Path,
    ) -> Result<PathBuf> {
        let cluster = self.cluster()?;
        let (user, group) = (user.to_owned(), group.map(str::to_owned));
        let folder = folder.to_owned();
        spawn_blocking(move || cluster.client_kubeconfig(&user, group.as_deref(), &folder)).await?
    }

    pub(super) fn release(&self) -> Option<Release> {
        match self {
            Self::Real(cluster) => Some(cluster.release()),
            Self::Embedded { .. } | Self::Local(_) => None,
        }
    }

    /// Starts another kube-apiserver with these options beside a real one.
    pub(super) async fn start_beside(&self, options: Options) -> Result<ApiserverBeside> {
        let cluster = self.cluster()?;
        spawn_blocking(move || cluster.start_beside(&options)).await?
    }

    /// Ends it; its store stays.
    pub(super) async fn stop(&self) -> Result<()> {
        match self {
            Self::Real(cluster) => {
                let cluster = Arc::clone(cluster);
                spawn_blocking(move || cluster.kill_apiserver()).await?
            }
            Self::Embedded { .. } => bail!("the store of `elector dev` ends with it"),
            Self::Local(local) => local.stop().await,
        }
    }

    /// Starts it again after [`stop`](Self::stop), a real one with these options; returns when it is ready.
    pub(super) async fn start(&self, options: Options) -> Result<()> {
        match self {
            Self::Real(cluster) => {
                let cluster = Arc::clone(cluster);
                spawn_blocking(move || cluster.start_apiserver(&options)).await?
            }
            Self::Embedded { .. } => bail!("`elector dev` has not been stopped"),
            Self::Local(local) => {
                local.serve(TcpListener::bind(local.address).await?);
                Ok(())
            }
        }
    }
}

// === impl Local ===

impl Local {
    fn serve(&self, listener: TcpListener) {
        let server = self.server.clone();
        let (close, closed) = oneshot::channel();
        let serving = tokio::spawn(async move {
            // An error means that the other end is gone, which says the same.
            let closed = async { closed.await.unwrap_or_default() };
            server.serve(listener, closed).await
        });
        *self.open.lock() = Some(Open { close, serving });
    }

    async fn stop(&self) -> Result<()> {
        let open = self.open.lock().take().context("it does not serve")?;
        // The receiver is gone only if the server has ended, which is reported below.
        let _ = open.close.send(());
        open.serving.await?.context("failed to serve")
    }
}

/// A kubeconfig for an API server that asks for nothing.
pub fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: local\n\
         clusters:\n- name: local\n  cluster:\n    server: http://{address}\n\
         users:\n- name: local\n  user: {{}}\n\
         contexts:\n- name: local\n  context:\n    cluster: local\n    user: local\n"
    )
}
