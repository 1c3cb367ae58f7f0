//! A cluster with its recorder, and the electors that run on it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::CandidateApi;
use elector_cluster::cluster::{ApiserverBeside, Options};
use elector_cluster::release::Release;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::rig::audit_log::AuditLog;
use crate::rig::definition;
use crate::rig::journal::Journal;
use crate::rig::programs::TestedPrograms;
use crate::rig::recorder::Recorder;
use crate::rig::server::SiteServer;

/// The kind of LeaseCandidates of a cluster, and the other electors there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterMode {
    /// The feature gate CoordinatedLeaderElection is on: Kubernetes' own controller elects, until it is replaced.
    GateOn,
    /// The gate is off, and LeaseCandidates are served all the same. The server drops `spec.strategy` and
    /// `spec.preferredHolder`.
    GateOff,
    /// The gate is off and no LeaseCandidates are served but custom resources: every cluster that was not prepared.
    Custom,
    /// The embedded API server (`elector dev --serve-only`): it keeps both fields, and no other elector is there.
    Embedded,
}

/// The use of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SitePurpose {
    /// Many scenarios side by side.
    Sharing,
    /// One scenario, which may [stop](TestSite::stop) the API server, the embedded one too.
    OneScenario,
    /// Measuring: writes wait for the disk.
    Measuring,
}

/// A running cluster.
pub struct TestSite {
    mode: ClusterMode,
    programs: Arc<TestedPrograms>,
    folder: PathBuf,
    client: Client,
    api: CandidateApi,
    // Dropped in this order: the watches end before their server does.
    recorder: Recorder,
    server: SiteServer,
}

// === impl ClusterMode ===

impl ClusterMode {
    /// The flags that `elector run` needs to elect on such a cluster.
    pub fn elector_flags(self) -> &'static [&'static str] {
        match self {
            Self::GateOn => &["--replace-builtin"],
            Self::GateOff | Self::Custom | Self::Embedded => &[],
        }
    }

    /// True of the API server of `elector dev`.
    pub(super) fn is_embedded(self) -> bool {
        self == Self::Embedded
    }

    /// The options of a real cluster of this kind.
    fn options(self) -> Options {
        Options {
            gate: self == Self::GateOn,
            serve_candidates: self != Self::Custom,
            ..Options::default()
        }
    }

    /// The LeaseCandidates of such a cluster of that release.
    fn candidate_api(self, release: Option<Release>) -> Result<CandidateApi> {
        let Some(release) = release else {
            return Ok(CandidateApi::V1Beta1);
        };
        if self == Self::Custom {
            return Ok(CandidateApi::Elector);
        }
        let version = release
            .candidate_api()
            .with_context(|| format!("Kubernetes {release} serves no LeaseCandidates"))?;
        CandidateApi::of_api_version(&format!("coordination.k8s.io/{version}"))
            .with_context(|| format!("coordination.k8s.io/{version} is unknown"))
    }
}

impl fmt::Display for ClusterMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GateOn => "gate on",
            Self::GateOff => "gate off",
            Self::Custom => "custom",
            Self::Embedded => "embedded",
        })
    }
}

// === impl TestSite ===

impl TestSite {
    /// Starts a cluster and a recorder, and no elector. Logs go to `folder`.
    pub async fn start(
        mode: ClusterMode,
        programs: Arc<TestedPrograms>,
        folder: PathBuf,
        purpose: SitePurpose,
    ) -> Result<Self> {
        fs::create_dir_all(&folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let server = match purpose {
            SitePurpose::OneScenario if mode.is_embedded() => SiteServer::local(&folder).await?,
            _ if mode.is_embedded() => SiteServer::embedded(&programs, &folder).await?,
            _ => {
                let options = Options {
                    kubernetes: programs.release,
                    fsync: purpose == SitePurpose::Measuring,
                    ..mode.options()
                };
                SiteServer::real(options).await?
            }
        };
        Self::record_from(mode, programs, folder, server).await
    }

    async fn record_from(
        mode: ClusterMode,
        programs: Arc<TestedPrograms>,
        folder: PathBuf,
        server: SiteServer,
    ) -> Result<Self> {
        let client = client_of(&server.kubeconfig()).await?;
        if mode == ClusterMode::Custom {
            definition::install(&client).await?;
        }
        let api = mode.candidate_api(server.release())?;
        let recorder = Recorder::start(&client, api).await?;
        let site = Self {
            mode,
            api,
            programs,
            folder,
            client,
            recorder,
            server,
        };
        if !mode.is_embedded() {
            site.install_rights().await?;
        }
        Ok(site)
    }

    /// The kind of the cluster.
    pub fn mode(&self) -> ClusterMode {
        self.mode
    }

    /// Where its LeaseCandidates are.
    pub fn candidate_api(&self) -> CandidateApi {
        self.api
    }

    /// Records the candidates of another API too, from when it is served.
    pub async fn record(&self, api: CandidateApi) -> Result<()> {
        self.recorder.follow_candidates(&self.client, api).await
    }

    /// The programs under test.
    pub fn programs(&self) -> &TestedPrograms {
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

    /// The release of Kubernetes, `None` for the embedded server.
    pub fn release(&self) -> Option<Release> {
        self.server.release()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig()
    }

    pub(super) async fn client_kubeconfig(
        &self,
        user: &str,
        group: Option<&str>,
    ) -> Result<PathBuf> {
        let folder = &self.folder;
        self.server.client_kubeconfig(user, group, folder).await
    }

    /// Where the API server listens; empty for the embedded one, whose kubeconfig says it.
    pub fn url(&self) -> &str {
        match &self.server {
            SiteServer::Real(cluster) => cluster.url(),
            SiteServer::Embedded { .. } | SiteServer::Local(_) => "",
        }
    }

    /// The journal of a namespace.
    pub fn journal(&self, namespace: &str) -> Arc<Journal> {
        self.recorder.journal(namespace)
    }

    /// A command that finds this cluster as its user would, through `KUBECONFIG`.
    pub fn command(&self, program: &Path) -> Command {
        command(program, &self.kubeconfig())
    }

    /// Starts another kube-apiserver on the store of this one, of that release, which serves LeaseCandidates of its own
    /// or does not.
    pub async fn start_beside(
        &self,
        kubernetes: Option<Release>,
        serve_candidates: bool,
    ) -> Result<ApiserverBeside> {
        let options = Options {
            kubernetes,
            serve_candidates,
            ..self.mode.options()
        };
        self.server.start_beside(options).await
    }

    /// Restarts the API server, which serves LeaseCandidates of its own from then on, or does not.
    pub async fn restart(&self, serve_candidates: bool) -> Result<()> {
        let options = Options {
            serve_candidates,
            ..self.mode.options()
        };
        self.server.stop().await?;
        self.server.start(options).await
    }

    /// Ends the API server; its store stays.
    pub async fn stop(&self) -> Result<()> {
        self.server.stop().await
    }

    /// Starts the API server again after [`stop`](Self::stop), and waits until it is ready.
    pub async fn start_again(&self) -> Result<()> {
        self.server.start(self.mode.options()).await
    }

    /// Makes a backup of the store, during which the API server is away; returns its folder.
    pub async fn back_up(&self) -> Result<PathBuf> {
        let backup = self.folder.join("etcd-backup");
        self.server.back_up(&backup, self.mode.options()).await?;
        Ok(backup)
    }

    /// Takes the store back to that backup. Its versions go back too, so that the journals have nothing until
    /// [`pass`](Self::pass) has come beyond those that they have.
    pub async fn restore(&self, backup: &Path) -> Result<()> {
        self.server.restore(backup, self.mode.options()).await
    }

    /// The version of the store: that of an object that is written now.
    pub async fn version(&self) -> Result<u64> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some("version-".to_owned());
        let written = maps.create(&PostParams::default(), &map).await?;
        let version = written.metadata.resource_version;
        Ok(version.context("an object without a version")?.parse()?)
    }

    /// Writes until the store has come beyond that version.
    pub async fn pass(&self, version: u64) -> Result<()> {
        while self.version().await? <= version {}
        Ok(())
    }

    /// Restarts the API server, which logs all writes of Leases and LeaseCandidates from then on.
    pub async fn audit(&self) -> Result<AuditLog> {
        let holds = !self.mode.is_embedded();
        ensure!(holds, "the embedded API server logs no writes");
        let (log, flags) = AuditLog::in_folder(&self.folder)?;
        let options = Options {
            apiserver_flags: flags,
            ..self.mode.options()
        };
        self.server.stop().await?;
        self.server.start(options).await?;
        Ok(log)
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

/// A client with the credentials of this kubeconfig.
pub async fn client_of(kubeconfig: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).context("failed to read the kubeconfig")?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    // Its pauses double: a watch would be opened long after the server is there again.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
