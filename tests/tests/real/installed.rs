//! Each overlay from its first day to its last: applied as one file, run with the command and the identity that it ships,
//! and deleted, after which unmodified client-go elects alone.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, Implementation, RequiredFlag, StartedCandidate, Suite, TestAccount,
    TestProcess, TestSite, Testbed, between,
};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use xtask::binaries;
use xtask::manifests::overlays;

use crate::{CLIENT_GO, LEASE_DURATION, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let lasts = Duration::from_secs(90);
    suite.add(
        "overlay_namespaced_applied_and_deleted",
        ClusterChoice::Own,
        CLIENT_GO,
        &[ClusterMode::Custom],
        lasts,
        |outer| Box::pin(whole_life(outer, "namespaced", NamespaceEnding::OfAllElse)),
    );
    let mut long = |name, mode, run| {
        let flag = RequiredFlag::Long;
        suite.add_with_flag(flag, name, ClusterChoice::Own, CLIENT_GO, mode, lasts, run);
    };
    long(
        "overlay_crd_applied_and_deleted",
        &[ClusterMode::Custom],
        |outer| Box::pin(whole_life(outer, "crd", NamespaceEnding::ByKubernetes)),
    );
    long(
        "overlay_native_applied_and_deleted",
        &[ClusterMode::GateOff],
        |outer| Box::pin(whole_life(outer, "native", NamespaceEnding::ByKubernetes)),
    );
    long(
        "overlay_replace_builtin_applied_and_deleted",
        &[ClusterMode::GateOn],
        |outer| {
            Box::pin(whole_life(
                outer,
                "replace-builtin",
                NamespaceEnding::ByKubernetes,
            ))
        },
    );
    long(
        "overlay_control_plane_applied_and_deleted",
        &[ClusterMode::GateOff],
        |outer| {
            Box::pin(whole_life(
                outer,
                "control-plane",
                NamespaceEnding::ByKubernetes,
            ))
        },
    );
}

/// The namespace that `namespaced` serves, as all others do.
const NAMESPACE: &str = "default";

/// What a site installs for electors of other scenarios; it must not help those of an overlay.
const RIGHTS_OF_THE_SITE: [&str; 4] = [
    "clusterrole/elector",
    "clusterrolebinding/elector",
    "role/elector-lock",
    "rolebinding/elector-lock",
];

/// An overlay on a cluster.
struct Installation {
    site: Arc<TestSite>,
    file: PathBuf,
    objects: Vec<Value>,
}

/// What becomes of the namespace of an overlay that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamespaceEnding {
    /// A real kube-controller-manager ends it.
    ByKubernetes,
    /// It stays for want of one, and is all that does.
    OfAllElse,
}

/// What a Pod of an overlay runs.
struct PodTemplate {
    replicas: u64,
    namespace: String,
    command: Vec<String>,
    /// Each variable, and the field of the Pod that it has the value of.
    variables: Vec<(String, String)>,
}

async fn whole_life(
    outer: Arc<Testbed>,
    overlay: &'static str,
    ending: NamespaceEnding,
) -> Result<()> {
    let site = outer.site();
    let _controllers = match ending {
        NamespaceEnding::ByKubernetes => Some(controllers(site).await?),
        NamespaceEnding::OfAllElse => None,
    };
    let installation = Installation::apply(site, overlay).await?;
    let testbed = Testbed::open(Arc::clone(site), NAMESPACE, Implementation::ClientGo).await?;
    let lived = live(&installation, &testbed, ending).await;
    let judged = testbed.verdict().await;
    for (name, figure) in testbed.figures() {
        outer.figure(&name, figure);
    }
    lived.and(judged).with_context(|| testbed.journal().text())
}

async fn live(
    installation: &Installation,
    testbed: &Testbed,
    ending: NamespaceEnding,
) -> Result<()> {
    let mut electors = installation.electors(testbed).await?;
    let start = testbed.note("two candidates start");
    let mut old = candidate(testbed, "old", "1.2.0").await?;
    // A fresh elector waits once for leases that it never saw (R6).
    let led = old.leads(LEASE_DURATION * 2 + PROMPTLY).await?;
    testbed.figure("until the first leads", between(start, led));
    testbed.stays("old", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let mut better = candidate(testbed, "better", "1.1.0").await?;
    let led = better.leads(PROMPTLY).await?;
    testbed.figure("until the better leads", between(arrival, led));
    testbed.stays("better", 2).await?;

    if testbed.site().mode() == ClusterMode::GateOn {
        // The built-in controller is waited out by each elector for itself: the standby has seen it go 15 s ago, too.
        sleep(LEASE_DURATION).await;
    }
    testbed.note("the leader and the acting elector are killed");
    let from = testbed.journal().len();
    electors
        .first_mut()
        .context("there is no elector")?
        .kill()?;
    let killed = better.kill()?;
    let limit = crash_limit(Implementation::Elector);
    let led = old.leads_again(from, limit + PROMPTLY).await?;
    let took = between(killed, led);
    testbed.figure("until the next leads after the crash", took);
    ensure!(took <= limit, "the next led after {took:?}");
    testbed.stays("old", 2).await?;

    testbed.note("delete the overlay");
    installation.delete().await?;
    for mut elector in electors.into_iter().skip(1) {
        let (status, took) = elector.terminate(PROMPTLY).await?;
        ensure!(status.success(), "an elector ended with {status}");
        ensure!(
            took <= Duration::from_secs(2),
            "an elector ended after {took:?}"
        );
    }
    installation.is_gone(ending).await?;
    testbed.stays("old", 2).await?;

    testbed.note("client-go elects alone");
    let mut plain = plain(testbed, "plain")?;
    old.terminate()?;
    plain
        .leads(crash_limit(Implementation::ClientGo) + PROMPTLY)
        .await?;
    old.ends_well(PROMPTLY).await?;
    testbed.stays("plain", 2).await?;
    let next = self::plain(testbed, "next")?;
    plain.kill()?;
    next.leads(crash_limit(Implementation::ClientGo) + PROMPTLY)
        .await?;
    testbed.stays("next", 1).await
}

/// A real kube-controller-manager, to end namespaces and nothing else.
async fn controllers(site: &TestSite) -> Result<TestProcess> {
    let program = spawn_blocking(binaries::kube_controller_manager).await??;
    let mut command = site.command(&program);
    command
        .arg("--kubeconfig")
        .arg(site.kubeconfig())
        .args(["--controllers=namespace-controller", "--leader-elect=false"])
        .arg("--secure-port=0");
    TestProcess::spawn("kube-controller-manager", command, site.folder(), |_| {})
}

/// One of ours that no other than the elector brings to lead, in a Pod of its own.
async fn candidate(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    let account = testbed.site().candidate_account(NAMESPACE, name).await?;
    testbed
        .candidate_of(Implementation::Elector, name)
        .account(&account.context("the server asks nobody who they are")?)
        .version(version)
        .flag("--mode=elected")
        .start()
}

fn plain(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(Implementation::ClientGo, name);
    candidate
        .plain()
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .flag("--retry-period=1s")
        .flag("--rejoin")
        .start()
}

// === impl Installation ===

impl Installation {
    async fn apply(site: &Arc<TestSite>, overlay: &str) -> Result<Self> {
        let file = overlays::install_file(overlay);
        let mut objects = overlays::objects(&std::fs::read_to_string(&file)?)?;
        if overlay == "control-plane" {
            let pod = overlays::folder(overlay).join("static-pod.yaml");
            objects.extend(overlays::objects(&std::fs::read_to_string(pod)?)?);
        }
        let installation = Self {
            site: Arc::clone(site),
            file,
            objects,
        };
        let mut rights = vec!["delete", "--namespace=elector-system"];
        rights.extend(RIGHTS_OF_THE_SITE);
        installation.kubectl(&rights).await?;
        site.apply("-f", &installation.file).await?;
        Ok(installation)
    }

    /// Starts as many electors as the overlay has; the first of them acts.
    async fn electors(&self, testbed: &Testbed) -> Result<Vec<TestProcess>> {
        let template = PodTemplate::of(&self.objects)?;
        let mut electors = Vec::new();
        for replica in 0..template.replicas {
            let name = format!("elector-{replica}");
            testbed.note(&format!("start {name}"));
            let account = self.account(&name).await?;
            let command = template.command(&self.site, &account, &name)?;
            let mut elector = TestProcess::spawn(&name, command, self.site.folder(), |_| {})?;
            // Until then the built-in controller elects, and the acting elector waits.
            let says = match (replica, self.site.mode()) {
                (0, ClusterMode::GateOn) => "the built-in controller is replaced",
                (0, _) => "leading the electors",
                _ => "standing by",
            };
            let said = |output: &str| output.contains(says).then_some(());
            elector
                .output_until(says, LEASE_DURATION * 2 + PROMPTLY, said)
                .await?;
            electors.push(elector);
        }
        Ok(electors)
    }

    /// The identity of an elector: the account of its Pod, or the user of its kubeconfig.
    async fn account(&self, pod: &str) -> Result<TestAccount> {
        if overlays::object(&self.objects, "Deployment", "elector").is_err() {
            return self
                .site
                .user_account("elector", &["system:authenticated"])
                .await;
        }
        let account = self.site.elector_account(pod).await?;
        account.context("the server asks nobody who they are")
    }

    /// Deletes what was applied, and does not wait.
    async fn delete(&self) -> Result<()> {
        let file = self.file.to_str().context("the path is not readable")?;
        let delete = ["delete", "--wait=false", "--filename", file];
        self.kubectl(&delete).await.map(drop)
    }

    /// Waits until nothing of it is left.
    async fn is_gone(&self, ending: NamespaceEnding) -> Result<()> {
        let file = self.file.to_str().context("the path is not readable")?;
        let get = [
            "get",
            "--ignore-not-found",
            "--output=name",
            "--filename",
            file,
        ];
        let expected = match ending {
            NamespaceEnding::ByKubernetes => "",
            NamespaceEnding::OfAllElse => "namespace/elector-system",
        };
        // An empty namespace takes the time in which its controller looks twice.
        let deadline = Instant::now() + PROMPTLY * 3;
        loop {
            let left = self.kubectl(&get).await?;
            if left.trim() == expected {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "still there: {left}");
            sleep(Duration::from_millis(200)).await;
        }
    }

    async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.site.command(&self.site.programs().kubectl);
        command.args(arguments);
        let output = spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {arguments:?}: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

// === impl PodTemplate ===

impl PodTemplate {
    /// Of the Deployment, or of the static Pod, one of which each node has.
    fn of(objects: &[Value]) -> Result<Self> {
        let (object, replicas) = match overlays::object(objects, "Deployment", "elector") {
            Ok(deployment) => (deployment, deployment["spec"]["replicas"].as_u64()),
            Err(_) => (overlays::object(objects, "Pod", "elector")?, Some(2)),
        };
        let namespace = object["metadata"]["namespace"].as_str();
        let pod = match &object["spec"]["template"]["spec"] {
            Value::Null => &object["spec"],
            template => template,
        };
        let container = &pod["containers"][0];
        let texts = |value: &Value| -> Vec<String> {
            let words = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        let variables = container["env"].as_array().context("no environment")?;
        let field = |variable: &Value| {
            let name = variable["name"].as_str()?.to_owned();
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str()?;
            Some((name, field.to_owned()))
        };
        Ok(Self {
            replicas: replicas.context("no replicas")?,
            namespace: namespace.context("no namespace")?.to_owned(),
            command: [texts(&container["command"]), texts(&container["args"])].concat(),
            variables: variables
                .iter()
                .map(|variable| field(variable).context("a variable that is no field of the Pod"))
                .collect::<Result<_>>()?,
        })
    }

    /// The command as a Pod of that name has it, on other ports, and with the kubeconfig where this machine has it.
    fn command(&self, site: &TestSite, account: &TestAccount, pod: &str) -> Result<Command> {
        let [program, arguments @ ..] = &self.command[..] else {
            bail!("the Pod has no command");
        };
        ensure!(program == "elector", "the Pod runs {program}");
        let mut command = account.command(&site.programs().elector);
        for argument in arguments {
            match argument.split_once('=') {
                Some((flag, _)) if flag.ends_with("-bind-address") => {
                    command.arg(format!("{flag}=127.0.0.1:0"));
                }
                Some(("--kubeconfig", _)) => {
                    command.arg("--kubeconfig").arg(account.kubeconfig());
                }
                _ => {
                    command.arg(argument);
                }
            }
        }
        for (name, field) in &self.variables {
            match field.as_str() {
                "metadata.name" => command.env(name, pod),
                "metadata.namespace" => command.env(name, &self.namespace),
                other => bail!("{name} has the value of {other}"),
            };
        }
        Ok(command)
    }
}
