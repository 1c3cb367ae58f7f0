//! `kubectl elector check` on a real server: faults are planted one after the other, and what to do about each is read.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use elector_tests::rig::{TestProcess, Testbed, eventually};
use serde_json::{Value, json};

use crate::{LEASE_DURATION, PROMPTLY};

/// A line of the report: its level, the check, the beginning of the result, and a part of what to do.
type ReportLine<'a> = [&'a str; 4];

/// The report of `kubectl elector check`.
#[derive(Debug)]
struct CheckReport {
    lines: Vec<Value>,
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
    let fix = "kubectl apply -f manifests/components/crd/leasecandidates.yaml";
    let line = ["error", "api", "no LeaseCandidates can be used", fix];
    check(&testbed, &[]).await?.has(line)
}

/// Before and after the policies are applied.
async fn missing_policies(testbed: &Testbed) -> Result<()> {
    let report = check(testbed, &[]).await?;
    let fix = "kubectl apply -k manifests/components/policies";
    let lack = "there is no ValidatingAdmissionPolicy elector-lease";
    report.has(["warning", "policies", lack, fix])?;
    ensure!(report.succeeded, "a warning is no error: {report:#?}");
    let policies = paths::workspace().join("manifests/components/policies");
    testbed.site().apply("-k", &policies).await?;
    let binding = "elector-candidate-author";
    let delete = ["delete", "validatingadmissionpolicybinding", binding];
    testbed.site().kubectl(&delete).await?;
    let lack = "there is no ValidatingAdmissionPolicyBinding elector-candidate-author";
    let report = check(testbed, &[]).await?;
    report.has(["warning", "policies", lack, fix])?;
    // One that is there by name, and weakened.
    let weaken = r#"{"spec":{"failurePolicy":"Ignore"}}"#;
    let weaken = [
        "patch",
        "validatingadmissionpolicy",
        "elector-lease",
        "--type=merge",
        "-p",
        weaken,
    ];
    testbed.site().kubectl(&weaken).await?;
    let lack = "the ValidatingAdmissionPolicy elector-lease is not that of this version, in spec.failurePolicy";
    let report = check(testbed, &[]).await?;
    report.has(["warning", "policies", lack, fix])?;
    testbed.site().apply("-k", &policies).await?;

    // The report when all is well. The Pod is an object without a kubelet.
    let report = check(testbed, &[]).await?;
    let elector =
        "electors have the permissions they need, as system:serviceaccount:elector-system:elector";
    for (check, result) in [
        (
            "api",
            "LeaseCandidates are of Kubernetes, coordination.k8s.io/",
        ),
        (
            "clocks",
            "the clocks of this machine and of the server agree",
        ),
        ("policies", "all 7 admission policies are in force"),
        (
            "rights",
            "you have permission to read leases and candidates",
        ),
        ("rights", elector),
        (
            "builtin",
            "the controller that is built into kube-apiserver does not run",
        ),
        ("electors", "elector_elector-0_"),
        ("leases", "every lease has a leader: 1"),
    ] {
        report.has(["ok", check, result, ""])?;
    }
    ensure!(report.succeeded, "{report:#?}");
    Ok(())
}

/// Electors without a verb, and without the right to read the lock of the built-in controller.
async fn missing_rights(testbed: &Testbed) -> Result<()> {
    let patch = async |rule: u32, verbs: &[&str]| {
        let path = format!("/rules/{rule}/verbs");
        let patch = json!([{"op": "replace", "path": path, "value": verbs}]).to_string();
        let role = [
            "patch",
            "clusterrole",
            "elector",
            "--type=json",
            "--patch",
            &patch,
        ];
        testbed.site().kubectl(&role).await
    };
    patch(1, &["list", "watch", "delete"]).await?;
    let lack = "electors lack the permission to patch leasecandidates.coordination.k8s.io in ";
    let fix = "kubectl apply -k manifests/overlays/native";
    until(testbed, ["error", "rights", lack, fix]).await?;
    patch(0, &["get", "create", "update"]).await?;
    let lack = "electors lack the permission to list leases.coordination.k8s.io kube-system/leader-election-controller";
    let fix = "kubectl apply -k manifests/components/builtin-lock";
    until(testbed, ["error", "rights", lack, fix]).await?;
    let rights = paths::workspace().join("manifests/base/rbac.yaml");
    testbed.site().apply("-f", &rights).await?;
    until(
        testbed,
        [
            "ok",
            "rights",
            "electors have the permissions they need",
            "",
        ],
    )
    .await
}

/// A lock of the built-in controller that is renewed.
async fn builtin_controller(testbed: &Testbed) -> Result<()> {
    let (name, namespace) = ("leader-election-controller", "kube-system");
    let lock = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "holderIdentity": "apiserver-1", "leaseDurationSeconds": 3600, "renewTime": "2099-01-01T00:00:00.000000Z",
        },
    });
    apply(testbed, &lock).await?;
    let alive = "the built-in controller is alive, in apiserver-1";
    let fix = "kubectl apply -k manifests/overlays/replace-builtin";
    let report = check(testbed, &[]).await?;
    report.has(["warning", "builtin", alive, fix])?;
    let delete = ["delete", "lease", name, "--namespace", namespace];
    testbed.site().kubectl(&delete).await.map(drop)
}

/// A caller who may read nothing reads so in lines, and a warning names each right.
async fn other_account(testbed: &Testbed) -> Result<()> {
    let report = check(testbed, &["--as=stranger"]).await?;
    let lack = "you lack the permission to list leases.coordination.k8s.io in ";
    report.has(["warning", "rights", lack, "ask for these permissions"])?;
    let needs = [
        "patch leases.coordination.k8s.io",
        "patch leasecandidates.coordination.k8s.io",
        "update leases.coordination.k8s.io",
        "operate leases.elector.dev",
    ];
    let lack = needs.map(|right| format!("{right} in {}", testbed.namespace()));
    let lack = format!("you lack the permission to {}", lack.join(", "));
    report.has([
        "warning",
        "rights",
        &lack,
        "the ClusterRole elector-operate",
    ])?;
    let lack = "failed to list leasecandidates.coordination.k8s.io";
    report.has([
        "error",
        "leases",
        lack,
        "use an account with this permission",
    ])?;
    ensure!(!report.succeeded, "{report:#?}");
    Ok(())
}

/// The elector dies, its lock is old, and a lease is stuck.
async fn dead_elector(testbed: &Testbed, elector: &mut TestProcess) -> Result<()> {
    elector.kill()?;
    let (namespace, long_ago) = (testbed.namespace(), "2026-01-01T00:00:00.000000Z");
    let old = json!({"spec": {"renewTime": long_ago}}).to_string();
    let patch = [
        "patch",
        "lease",
        "elector",
        "-n",
        "elector-system",
        "--type=merge",
        "-p",
        &old,
    ];
    testbed.site().kubectl(&patch).await?;
    // A candidate that cannot be elected, and the Lease of a holder that is long gone.
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "stuck", "namespace": namespace},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15, "renewTime": long_ago},
    });
    let candidate = json!({
        "apiVersion": testbed.site().candidate_api().api_version(), "kind": "LeaseCandidate",
        "metadata": {"name": "standby", "namespace": namespace},
        "spec": {
            "leaseName": "stuck", "binaryVersion": "1.0.0", "emulationVersion": "1.0.0",
            "strategy": "OldestEmulationVersion",
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [lease, candidate]});
    apply(testbed, &list).await?;
    let report = check(testbed, &[]).await?;
    let none = "no elector is active: elector_elector-0_";
    let fix = "kubectl -n elector-system get pods";
    report.has(["error", "electors", none, fix])?;
    let stuck = format!("{namespace}/stuck has had no leader for ");
    let fix = format!("kubectl elector explain stuck -n {namespace}");
    report.has(["error", "leases", &stuck, &fix])?;
    ensure!(!report.succeeded, "{report:#?}");
    Ok(())
}

async fn apply(testbed: &Testbed, object: &Value) -> Result<()> {
    let path = testbed.folder().join("planted.json");
    std::fs::write(&path, object.to_string())?;
    testbed.site().apply("-f", &path).await
}

async fn check(testbed: &Testbed, flags: &[&str]) -> Result<CheckReport> {
    let arguments = [&["check", "-o", "json"], flags].concat();
    let output = testbed.operate(&arguments).await?;
    let lines = serde_json::from_slice(&output.stdout).with_context(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("kubectl elector check says {stderr}")
    })?;
    let succeeded = output.status.success();
    Ok(CheckReport { lines, succeeded })
}

/// Checks until there is such a line: the server's authorizer follows a change of a role after a moment.
async fn until(testbed: &Testbed, line: ReportLine<'_>) -> Result<()> {
    let ask = || async { check(testbed, &[]).await?.has(line) };
    eventually(PROMPTLY, ask).await
}

// === impl CheckReport ===

impl CheckReport {
    /// Checks that there is such a line.
    fn has(&self, line: ReportLine<'_>) -> Result<()> {
        let [level, check, result, fix] = line;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = self.lines.iter().any(|each| {
            each["level"] == level
                && each["check"] == check
                && text(&each["result"]).starts_with(result)
                && text(&each["fix"]).contains(fix)
        });
        ensure!(found, "there is no line {line:?}: {self:#?}");
        Ok(())
    }
}
