//! `kubectl elector check` on a real server: faults are planted one after the other, and what to do about each is read.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use elector_tests::rig::{Testbed, eventually};
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
    let _elector = site.elector("elector-0", ["--leader-elect"]).await?;
    let candidate = testbed.candidate("first").version("1.1.0").start()?;
    // A new elector waits for the longest lease duration before it grants a lease that it never saw (R6).
    candidate.leads(LEASE_DURATION + PROMPTLY).await?;
    before_installation(&testbed).await?;
    missing_policies(&testbed).await?;
    missing_rights(&testbed).await?;
    candidates_rights(&testbed).await?;
    written_words(&testbed).await?;
    bundled(&testbed).await?;
    other_account(&testbed).await
}

/// The server judges a Pod like the elector's, and has what an overlay needs.
async fn before_installation(testbed: &Testbed) -> Result<()> {
    // A quota of the namespace is what a cluster that limits the class asks with; here it leaves no room.
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "critical", "namespace": "elector-system"},
        "spec": {
            "hard": {"pods": "0"},
            "scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"]},
            ]},
        },
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "elector-system"},
    });
    apply(testbed, &account).await?;
    let report = check(testbed, &["--pre"]).await?;
    report.has_all_well(&[
        "policies: the server has validating admission policies",
        "availability: the server has the priority level leader-election",
        "installer: you have permission to create what an overlay has",
        "pods: a Pod of the priority class system-cluster-critical",
    ])?;
    apply(testbed, &quota).await?;
    // A controller counts it, of which there is none here.
    let counted = "kubectl patch resourcequota critical -n elector-system --subresource=status --type=merge \
                   -p '{\"status\": {\"hard\": {\"pods\": \"0\"}, \"used\": {\"pods\": \"0\"}}}'";
    testbed.site().shell(counted).await?;
    let why = "a Pod like the elector's is not admitted in elector-system";
    let refused = ["error", "pods", why, "raise the ResourceQuota"];
    let ask = || async { check(testbed, &["--pre"]).await?.has(refused) };
    eventually(PROMPTLY, ask).await?;
    let delete = "kubectl delete resourcequota critical -n elector-system";
    testbed.site().shell(delete).await.map(drop)
}

/// A candidate is of a Pod, whose account lacks every right; and who may write the Lease.
async fn candidates_rights(testbed: &Testbed) -> Result<()> {
    let (site, namespace) = (testbed.site(), testbed.namespace());
    site.pod_account(namespace, "poor", "poor-0").await?;
    let candidate = json!({
        "apiVersion": site.candidate_api().api_version(), "kind": "LeaseCandidate",
        "metadata": {"name": "poor-0", "namespace": namespace},
        "spec": {
            "leaseName": "poor", "binaryVersion": "1.0.0", "emulationVersion": "1.0.0",
            "strategy": "OldestEmulationVersion",
        },
    });
    apply(testbed, &candidate).await?;
    let lack = format!(
        "candidates for {namespace}/poor lack the permission to get leases.coordination.k8s.io {namespace}/poor, "
    );
    let fix = "bind the Role for candidates";
    let report = check(testbed, &["--lease=poor"]).await?;
    report.has(["error", "candidates", &lack, fix])?;
    let admins = format!(
        "Group system:masters may delete, patch, update {namespace}/poor, by ClusterRoleBinding"
    );
    report.has(["ok", "writers", &admins, ""])?;
    // The same of an account that never got as far as a candidate.
    let user = format!("--candidate-user=system:serviceaccount:{namespace}:poor");
    let report = check(testbed, &["--lease=other", &user]).await?;
    let lack = lack.replace("/poor", "/other");
    report.has(["error", "candidates", &lack, fix])?;
    let objects = "leasecandidate/poor-0 pod/poor-0 lease/poor";
    let delete =
        format!("kubectl delete {objects} -n {namespace} --ignore-not-found --grace-period=0");
    site.shell(&delete).await.map(drop)
}

/// One file has the installation and the election, and not the name of the namespace. There is no kubelet, so that no log
/// can be had, which the file says.
async fn bundled(testbed: &Testbed) -> Result<()> {
    let part_of = "app.kubernetes.io/part-of=elector";
    let label = ["label", "pod", "elector-0", "-n", "elector-system", part_of];
    testbed.site().kubectl(&label).await?;
    let path = testbed.folder().join("bundle.tar.gz");
    let path = path.to_str().context("a path that is no text")?;
    let made = testbed
        .operate(&["bundle", "-f", path, "--redact-namespaces"])
        .await?;
    ensure!(made.status.success(), "{made:?}");
    let unpacked = std::process::Command::new("tar")
        .args(["-xzOf", path])
        .output()?;
    let text = String::from_utf8(unpacked.stdout)?;
    for part in [
        "\"kind\": \"ValidatingAdmissionPolicyBinding\"",
        "\"kind\": \"ClusterRole\"",
        "\"kind\": \"LeaseCandidate\"",
        "\"gitVersion\": \"v1.",
        "failed to get pods/log elector-system/elector-0",
    ] {
        ensure!(text.contains(part), "{part} is not in the bundle");
    }
    let namespace = testbed.namespace();
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let holds = words.all(|word| word != namespace);
    ensure!(holds, "{namespace} is in the bundle");
    Ok(())
}

/// A word that is left has a line, with the command that ends it.
async fn written_words(testbed: &Testbed) -> Result<()> {
    let lease = testbed.lease_name();
    let said = testbed.operate(&["freeze", lease]).await?;
    ensure!(said.status.success(), "{said:?}");
    let namespace = testbed.namespace();
    let frozen = format!("{namespace}/{lease} is frozen until ");
    let fix = format!("kubectl elector unfreeze {lease} -n {namespace}");
    let report = check(testbed, &[]).await?;
    report.has(["warning", "words", &frozen, &fix])?;
    let said = testbed.operate(&["unfreeze", lease]).await?;
    ensure!(said.status.success(), "{said:?}");
    Ok(())
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
    let weaken = r#"kubectl patch validatingadmissionpolicy elector-lease --type=merge -p '{"spec": {"failurePolicy": "Ignore"}}'"#;
    testbed.site().shell(weaken).await?;
    let lack = "the ValidatingAdmissionPolicy elector-lease is not that of this version, in spec.failurePolicy";
    let report = check(testbed, &[]).await?;
    report.has(["warning", "policies", lack, fix])?;
    testbed.site().apply("-k", &policies).await?;

    // The report when all is well. The Pod is an object without a kubelet.
    let report = check(testbed, &[]).await?;
    report.has_all_well(&[
        "api: LeaseCandidates are of Kubernetes, coordination.k8s.io/",
        "clocks: the clocks of this machine and of the server agree",
        "policies: all 7 admission policies are in force",
        "rights: you have permission to read leases and candidates",
        "rights: electors have the permissions they need, as system:serviceaccount:elector-system:elector",
        "builtin: the controller that is built into kube-apiserver does not run",
        "electors: elector_elector-0_",
        "leases: every lease has a leader: 1",
    ])?;
    ensure!(report.succeeded, "{report:#?}");
    Ok(())
}

/// Electors without a verb, and without the right to read the lock of the built-in controller.
async fn missing_rights(testbed: &Testbed) -> Result<()> {
    let patch = async |rule: u32, verbs: &[&str]| {
        let path = format!("/rules/{rule}/verbs");
        let patch = json!([{"op": "replace", "path": path, "value": verbs}]);
        let patch = format!("kubectl patch clusterrole elector --type=json --patch '{patch}'");
        testbed.site().shell(&patch).await
    };
    patch(1, &["list", "watch", "delete"]).await?;
    let lack = "electors lack the permission to patch leasecandidates.coordination.k8s.io in ";
    let fix = "apply the overlay native";
    until(testbed, ["error", "rights", lack, fix]).await?;
    patch(0, &["get", "create", "update"]).await?;
    let lack = "electors lack the permission to list leases.coordination.k8s.io kube-system/leader-election-controller";
    let fix = "in the overlay namespaced the Role elector-builtin-lock";
    until(testbed, ["error", "rights", lack, fix]).await?;
    let rights = paths::workspace().join("manifests/base/rbac.yaml");
    testbed.site().apply("-f", &rights).await?;
    let mended = "electors have the permissions they need";
    until(testbed, ["ok", "rights", mended, ""]).await
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
    let fix = "the ClusterRole elector-operate";
    report.has(["warning", "rights", &lack, fix])?;
    let lack = "failed to list leasecandidates.coordination.k8s.io";
    let fix = "use an account with this permission";
    report.has(["error", "leases", lack, fix])?;
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
    /// Checks that these checks have such results, and no fault.
    fn has_all_well(&self, lines: &[&str]) -> Result<()> {
        lines.iter().try_for_each(|line| {
            let (check, result) = line.split_once(": ").context("no result")?;
            self.has(["ok", check, result, ""])
        })
    }

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
