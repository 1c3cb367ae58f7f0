//! `kubectl elector check` on a real server: faults are planted one after the other, and what to do about each is read.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use elector_tests::rig::{TestProcess, TestSite, Testbed};
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::{LEASE_DURATION, PROMPTLY};

/// One line of `kubectl elector check -o json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct ToldLine {
    level: String,
    check: String,
    result: String,
    fix: Option<String>,
}

/// The report of `kubectl elector check`.
#[derive(Debug)]
struct ToldCheck {
    lines: Vec<ToldLine>,
    succeeded: bool,
}

/// Each fault has its line, and none is left when all are mended.
pub(super) async fn faults(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut elector = site.elector("elector-0", ["--leader-elect"]).await?;
    let candidate = testbed.candidate("first").version("1.1.0").start()?;
    // A new elector waits for the longest lease duration before it grants a lease that it never saw (R6).
    candidate.leads(LEASE_DURATION + PROMPTLY).await?;
    missing_policies(&testbed).await?;
    missing_rights(&testbed).await?;
    builtin_controller(&testbed).await?;
    other_account(&testbed).await?;
    dead_elector(&testbed, &mut elector).await?;
    site.restart(false).await?;
    let told = check(&testbed).await?;
    let fix = "kubectl apply -f manifests/components/crd/leasecandidates.yaml";
    told.has("error", "api", "no LeaseCandidates can be used", fix)
}

/// Before and after the policies are applied.
async fn missing_policies(testbed: &Testbed) -> Result<()> {
    let told = check(testbed).await?;
    let fix = "kubectl apply -k manifests/components/policies";
    let lack = "there is no ValidatingAdmissionPolicy elector-lease";
    told.has("warning", "policies", lack, fix)?;
    ensure!(told.succeeded, "a warning is no error: {told:#?}");
    let policies = paths::workspace().join("manifests/components/policies");
    testbed.site().apply("-k", &policies).await?;
    let told = check(testbed).await?;
    told.has(
        "ok",
        "policies",
        "all 5 admission policies are in force",
        "",
    )?;
    kubectl(
        testbed,
        "delete validatingadmissionpolicybinding elector-candidate-author",
    )
    .await?;
    let told = check(testbed).await?;
    let lack = "there is no ValidatingAdmissionPolicyBinding elector-candidate-author";
    told.has("warning", "policies", lack, fix)?;
    testbed.site().apply("-k", &policies).await?;

    // The report when all is well. The Pod is an object without a kubelet.
    let told = check(testbed).await?;
    for (check, result) in [
        (
            "api",
            "LeaseCandidates are of Kubernetes, coordination.k8s.io/",
        ),
        (
            "clocks",
            "the clocks of this machine and of the server agree",
        ),
        ("policies", "all 5 admission policies are in force"),
        ("rights", "you may look at leases and candidates"),
        (
            "rights",
            "electors may elect, as system:serviceaccount:elector-system:elector",
        ),
        (
            "builtin",
            "the controller that is built into kube-apiserver does not run",
        ),
        ("electors", "elector_elector-0_"),
        ("leases", "every lease has a leader: 1"),
    ] {
        told.has("ok", check, result, "")?;
    }
    ensure!(told.succeeded, "{told:#?}");
    Ok(())
}

/// Electors without a verb, and without the right to read the lock of the built-in controller.
async fn missing_rights(testbed: &Testbed) -> Result<()> {
    let role = "patch clusterrole elector --type=json --patch";
    let (leases, candidates) = ("/rules/0/verbs", "/rules/1/verbs");
    let patch = |path: &str, verbs: &str| {
        format!("{role} [{{\"op\":\"replace\",\"path\":\"{path}\",\"value\":[{verbs}]}}]")
    };
    kubectl(testbed, &patch(candidates, "\"list\",\"watch\",\"delete\"")).await?;
    let start = "electors may not patch leasecandidates.coordination.k8s.io in ";
    let fix = "kubectl apply -k manifests/overlays/native";
    told_until(testbed, ("error", "rights", start, fix)).await?;
    kubectl(testbed, &patch(leases, "\"get\",\"create\",\"update\"")).await?;
    let start =
        "electors may not list leases.coordination.k8s.io kube-system/leader-election-controller";
    let fix = "kubectl apply -k manifests/components/builtin-lock";
    told_until(testbed, ("error", "rights", start, fix)).await?;
    let rights = paths::workspace().join("manifests/base/rbac.yaml");
    testbed.site().apply("-f", &rights).await?;
    let start = "electors may elect";
    told_until(testbed, ("ok", "rights", start, "")).await
}

/// A lock of the built-in controller that is renewed.
async fn builtin_controller(testbed: &Testbed) -> Result<()> {
    let lock = "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\
                \"leader-election-controller\",\"namespace\":\"kube-system\"},\"spec\":{\"holderIdentity\":\"apiserver-1\",\
                \"leaseDurationSeconds\":3600,\"renewTime\":\"2099-01-01T00:00:00.000000Z\"}}";
    let path = testbed.folder().join("lock.json");
    std::fs::write(&path, lock)?;
    testbed.site().apply("-f", &path).await?;
    let told = check(testbed).await?;
    let start = "the built-in controller is alive, in apiserver-1";
    let fix = "kubectl apply -k manifests/overlays/replace-builtin";
    told.has("warning", "builtin", start, fix)?;
    kubectl(
        testbed,
        "delete lease leader-election-controller --namespace kube-system",
    )
    .await
}

/// A caller who may read nothing is told so in lines, and a warning names each right.
async fn other_account(testbed: &Testbed) -> Result<()> {
    let told = check_with(testbed, &["--as=stranger"]).await?;
    let start = "you may not list leases.coordination.k8s.io in ";
    told.has("warning", "rights", start, "have these granted to you")?;
    let needs = [
        "patch leases.coordination.k8s.io",
        "patch leasecandidates.coordination.k8s.io",
        "update leases.coordination.k8s.io",
        "operate leases.elector.dev",
    ];
    let lack = needs.map(|right| format!("{right} in {}", testbed.namespace()));
    let start = format!("you may not {}", lack.join(", "));
    told.has(
        "warning",
        "rights",
        &start,
        "the ClusterRole elector-operate",
    )?;
    let start = "failed to list leasecandidates.coordination.k8s.io";
    told.has("error", "leases", start, "have somebody look who may")?;
    ensure!(!told.succeeded, "{told:#?}");
    Ok(())
}

/// The elector dies, its lock is old, and a lease is stuck.
async fn dead_elector(testbed: &Testbed, elector: &mut TestProcess) -> Result<()> {
    elector.kill()?;
    let old = "patch lease elector --namespace elector-system --type=merge --patch \
               {\"spec\":{\"renewTime\":\"2026-01-01T00:00:00.000000Z\"}}";
    kubectl(testbed, old).await?;
    // A candidate that cannot be elected, and the Lease of a holder that is long gone.
    let stuck = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\
         \"metadata\":{{\"name\":\"stuck\",\"namespace\":\"{0}\"}},\"spec\":{{\"holderIdentity\":\"gone\",\
         \"leaseDurationSeconds\":15,\"renewTime\":\"2026-01-01T00:00:00.000000Z\"}}}},{{\"apiVersion\":\"{1}\",\"kind\":\
         \"LeaseCandidate\",\"metadata\":{{\"name\":\"standby\",\"namespace\":\"{0}\"}},\"spec\":{{\"leaseName\":\"stuck\",\
         \"binaryVersion\":\"1.0.0\",\"emulationVersion\":\"1.0.0\",\"strategy\":\"OldestEmulationVersion\"}}}}]}}",
        testbed.namespace(),
        testbed.site().candidate_api().api_version(),
    );
    let path = testbed.folder().join("stuck.json");
    std::fs::write(&path, stuck)?;
    testbed.site().apply("-f", &path).await?;
    let told = check(testbed).await?;
    let start = "no elector acts: elector_elector-0_";
    told.has(
        "error",
        "electors",
        start,
        "kubectl -n elector-system get pods",
    )?;
    let start = format!("{}/stuck has had no leader for ", testbed.namespace());
    let fix = format!("kubectl elector explain stuck -n {}", testbed.namespace());
    told.has("error", "leases", &start, &fix)?;
    ensure!(!told.succeeded, "{told:#?}");
    Ok(())
}

async fn check(testbed: &Testbed) -> Result<ToldCheck> {
    check_with(testbed, &[]).await
}

async fn check_with(testbed: &Testbed, flags: &[&str]) -> Result<ToldCheck> {
    let arguments = [&["check", "-o", "json"], flags].concat();
    let output = testbed.operate(&arguments).await?;
    let lines = serde_json::from_slice(&output.stdout).with_context(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("kubectl elector check says {stderr}")
    })?;
    let succeeded = output.status.success();
    Ok(ToldCheck { lines, succeeded })
}

/// Checks until there is such a line: the server's authorizer follows a change of a role after a moment.
async fn told_until(
    testbed: &Testbed,
    (level, about, start, fix): (&str, &str, &str, &str),
) -> Result<()> {
    let deadline = tokio::time::Instant::now() + PROMPTLY;
    loop {
        match check(testbed).await?.has(level, about, start, fix) {
            Err(error) if tokio::time::Instant::now() >= deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
            Ok(()) => return Ok(()),
        }
    }
}

/// Runs kubectl with the words of this line.
async fn kubectl(testbed: &Testbed, line: &str) -> Result<()> {
    let site: &TestSite = testbed.site();
    let mut command = site.command(&site.programs().kubectl);
    command.args(line.split_whitespace());
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {line}: {said}");
    Ok(())
}

// === impl ToldCheck ===

impl ToldCheck {
    /// Checks that there is such a line, by the beginning of its result and a part of its fix.
    fn has(&self, level: &str, about: &str, start: &str, fix: &str) -> Result<()> {
        let is_meant = |line: &&ToldLine| {
            let fixed = line.fix.as_deref().unwrap_or_default();
            (line.level.as_str(), line.check.as_str()) == (level, about)
                && line.result.starts_with(start)
                && fixed.contains(fix)
        };
        let found = self.lines.iter().find(is_meant);
        ensure!(
            found.is_some(),
            "no {level} of {about} says {start:?}, {fix:?}: {self:#?}"
        );
        Ok(())
    }
}
