//! An overlay on a cluster, with its electors.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::binaries;
use elector_cluster::overlays;
use elector_tests::rig::{
    ClusterMode, ElectorVersion, TestAccount, TestProcess, TestSite, Testbed, eventually,
};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::installed::pod_template::PodTemplate;
use crate::{LEASE_DURATION, PROMPTLY};

/// Rights that a site installs for electors of other scenarios; they must not help those of an overlay.
pub(crate) const RIGHTS_OF_THE_SITE: [&str; 4] = [
    "clusterrole/elector",
    "clusterrolebinding/elector",
    "role/elector-lock",
    "rolebinding/elector-lock",
];

/// An overlay of one version, for a cluster.
pub(super) struct Installation {
    site: Arc<TestSite>,
    version: ElectorVersion,
    folder: PathBuf,
    objects: Vec<Value>,
}

/// The fate of the namespace of an overlay that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamespaceEnding {
    /// A real kube-controller-manager ends it.
    ByKubernetes,
    /// It stays for want of one, and is all that does.
    OfAllElse,
}

// === impl Installation ===

impl Installation {
    /// The overlay of that version; nothing is applied yet.
    pub(super) fn of(site: &Arc<TestSite>, version: ElectorVersion, overlay: &str) -> Result<Self> {
        let folder = version.manifests.join("overlays").join(overlay);
        let read = |file: &str| -> Result<Vec<Value>> {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path);
            overlays::objects(&text.with_context(|| format!("there is no {}", path.display()))?)
        };
        let mut objects = read("install.yaml")?;
        if overlay == "control-plane" {
            objects.extend(read("static-pod.yaml")?);
        }
        Ok(Self {
            site: Arc::clone(site),
            version,
            folder,
            objects,
        })
    }

    /// Applies the overlay as one file, to a cluster that has nothing for electors.
    pub(super) async fn apply(&self) -> Result<()> {
        let mut rights = vec!["delete", "--namespace=elector-system"];
        rights.extend(RIGHTS_OF_THE_SITE);
        self.site.kubectl(&rights).await?;
        self.site.apply("-f", &self.file()).await
    }

    /// Applies the overlay with kustomize, over what another version left.
    pub(super) async fn apply_over(&self) -> Result<()> {
        self.site.apply("-k", &self.folder).await
    }

    /// The program of that version.
    pub(super) fn program(&self) -> PathBuf {
        self.version.elector.clone()
    }

    /// The template of its Pods.
    pub(super) fn template(&self) -> Result<PodTemplate> {
        PodTemplate::of(&self.objects)
    }

    /// Starts the number of electors that the overlay has, named after `name`; the first of them acts.
    pub(super) async fn electors(&self, testbed: &Testbed, name: &str) -> Result<Vec<TestProcess>> {
        let mut electors = Vec::new();
        for replica in 0..self.template()?.replicas {
            let mut elector = self.start(testbed, &format!("{name}-{replica}")).await?;
            // Until then the built-in controller elects, and the acting elector waits.
            let says = match (replica, self.site.mode()) {
                (0, ClusterMode::GateOn) => "the built-in controller is replaced",
                (0, _) => "leading the electors",
                _ => "standing by",
            };
            says_one_of(&mut elector, &[says]).await?;
            electors.push(elector);
        }
        Ok(electors)
    }

    /// Starts one elector beside others, and waits until it is one of them.
    pub(super) async fn another(&self, testbed: &Testbed, name: &str) -> Result<TestProcess> {
        let mut elector = self.start(testbed, name).await?;
        says_one_of(&mut elector, &["leading the electors", "standing by"]).await?;
        Ok(elector)
    }

    async fn start(&self, testbed: &Testbed, name: &str) -> Result<TestProcess> {
        testbed.note(&format!("start {name}"));
        let account = self.account(name).await?;
        let command = self
            .template()?
            .command(&self.version.elector, &account, name)?;
        TestProcess::spawn(name, command, self.site.folder(), |_| {})
    }

    /// The identity of an elector: the account of its Pod, or the user of its kubeconfig.
    async fn account(&self, pod: &str) -> Result<TestAccount> {
        if overlays::object(&self.objects, "Deployment", "elector").is_err() {
            return self.site.user_account("elector", None).await;
        }
        let account = self.site.elector_account(pod).await?;
        account.context("the server asks nobody who they are")
    }

    /// Deletes what was applied, and does not wait.
    pub(super) async fn delete(&self) -> Result<()> {
        let file = self.file();
        let file = file.to_str().context("the path is not readable")?;
        let delete = ["delete", "--wait=false", "--filename", file];
        self.site.kubectl(&delete).await.map(drop)
    }

    /// Waits until nothing of it is left.
    pub(super) async fn is_gone(&self, ending: NamespaceEnding) -> Result<()> {
        let file = self.file();
        let file = file.to_str().context("the path is not readable")?;
        let get = ["get", "--ignore-not-found", "--output=name", "-f", file];
        let expected = match ending {
            NamespaceEnding::ByKubernetes => "",
            NamespaceEnding::OfAllElse => "namespace/elector-system",
        };
        let ask = || async {
            let left = self.site.kubectl(&get).await?;
            ensure!(left.trim() == expected, "still there: {left}");
            Ok(())
        };
        // An empty namespace takes the time in which its controller looks twice.
        eventually(PROMPTLY * 3, ask).await
    }

    fn file(&self) -> PathBuf {
        self.folder.join("install.yaml")
    }
}

/// Starts a real kube-controller-manager with the controllers of these names, with commas between them.
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

/// Waits until an elector has written one of these.
async fn says_one_of(elector: &mut TestProcess, words: &[&str]) -> Result<()> {
    let said = |output: &str| words.iter().any(|word| output.contains(word)).then_some(());
    let what = words.join(" or ");
    elector
        .output_until(&what, LEASE_DURATION * 2 + PROMPTLY, said)
        .await
}
