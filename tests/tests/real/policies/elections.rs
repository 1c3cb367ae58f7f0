//! Elections among accounts that have the rights of the manifests and no more.

use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    ClusterMode, Implementation, TestAccount, TestProcess, Testbed, output_of, warm_up,
};
use serde_json::Value;

use super::accounts::{bind, subject};
use crate::PROMPTLY;
use crate::schedulers::{self, SCHEDULER};

/// Our candidates, client-go's and a kube-scheduler are elected, and no policy refuses any of them a write.
pub(super) async fn go_on(testbed: &Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut flags = vec![
        "--leader-elect",
        "--leader-elect-resource-namespace=elector-system",
    ];
    match site.mode() {
        ClusterMode::GateOn => flags.push("--replace-builtin"),
        ClusterMode::Custom => {}
        _ => flags.push("--system-namespaces"),
    }
    // No Lease of this cluster was ever led.
    flags.push("--absent-lease-grace=0s");
    let mut processes = vec![site.elector("elector-0", flags).await?];
    warm_up(site).await?;
    processes.extend(ours(testbed).await?);
    processes.push(named_for_its_pod(testbed).await?);
    processes.push(plain(testbed).await?);
    processes.extend(operated(testbed).await?);
    // There is one kube-scheduler, which may not know the LeaseCandidates of other releases, and the client-go of 1.31
    // reads them cluster-wide, for which a Role is not enough.
    let programs = site.programs();
    let interop = programs.interop.is_some() && programs.release.is_none();
    if site.mode() != ClusterMode::Custom && interop {
        processes.push(client_go(testbed).await?);
        processes.push(scheduler(testbed).await?);
    }
    for process in processes {
        let output = process.output()?;
        let holds = !output.contains("denied request");
        ensure!(holds, "a policy refuses something: {output}");
    }
    Ok(())
}

/// Grant, accept, renewal, hand-over, release.
async fn ours(testbed: &Testbed) -> Result<Vec<TestProcess>> {
    let first = pod(testbed, "web-0").await?;
    let second = pod(testbed, "web-1").await?;
    let newer = testbed.candidate_of(Implementation::Elector, "web-0");
    let first = newer.version("1.2.0").account(&first).start()?;
    first.leads(PROMPTLY).await?;
    testbed.stays("web-0", 1).await?;
    let older = testbed.candidate_of(Implementation::Elector, "web-1");
    let mut second = older.version("1.1.0").account(&second).start()?;
    second.leads(PROMPTLY).await?;
    testbed.stays("web-1", 1).await?;
    let ended = second.ends().await?;
    first.leads_since(ended, PROMPTLY).await?;
    Ok(vec![first.process, second.process])
}

/// A candidate that is given no name takes that of its Pod, so that the policies let it stand.
async fn named_for_its_pod(outer: &Testbed) -> Result<TestProcess> {
    let testbed = beside(outer, "named", Implementation::Elector).await?;
    let account = pod(&testbed, "web.0").await?;
    let mut command = account.command(&testbed.site().programs().elector);
    command.args(["candidate", "--namespace", testbed.namespace()]);
    command.args(["--lease", testbed.lease_name(), "--binary-version=1.0.0"]);
    let process = TestProcess::spawn("web.0", command, testbed.folder(), |_| {})?;
    testbed
        .lease_until("the candidate of the Pod accepts", PROMPTLY, |lease| {
            let record = lease.record().ok()?;
            let named = record.holder.as_ref()?.as_str().starts_with("web.0-");
            (named && record.has_token()).then_some(())
        })
        .await?;
    Ok(process)
}

/// The words of a person with the role `elector-operate` and nothing more; electors and leaders write past them, and
/// leave them as they are.
async fn operated(outer: &Testbed) -> Result<Vec<TestProcess>> {
    let testbed = beside(outer, "operated", Implementation::Elector).await?;
    let (site, namespace) = (testbed.site(), testbed.namespace());
    let operator = site.unbound_account(namespace, "operator").await?;
    let subjects = [subject("ServiceAccount", "operator", Some(namespace))];
    let role = ("ClusterRole", "elector-operate");
    bind(site.client(), namespace, "operators", role, &subjects).await?;
    let says = async |words: &[&str]| {
        let mut command = operator.command(&site.programs().kubectl_elector);
        command.args(words).args(["--namespace", namespace]);
        output_of(command).await
    };
    let lease = testbed.lease_name();
    let account = pod(&testbed, "web-0").await?;
    let best = testbed.candidate("web-0").version("1.1.0");
    let best = best.account(&account).start()?;
    best.leads(PROMPTLY).await?;
    let account = pod(&testbed, "web-1").await?;
    let other = testbed.candidate("web-1").version("1.2.0");
    let other = other.account(&account).start()?;
    let known = |explained: &Value| {
        let mut candidates = explained["candidates"].as_array().into_iter().flatten();
        candidates.any(|each| each["name"] == "web-1")
    };
    testbed
        .explained("another candidate", PROMPTLY, known)
        .await?;
    says(&["prefer", lease, "web-1"]).await?;
    other.leads(PROMPTLY).await?;
    testbed.stays("web-1", 1).await?;
    says(&["freeze", lease]).await?;
    says(&["prefer", lease, "--undo"]).await?;
    testbed.stays("web-1", 1).await?;
    says(&["stand-down", "web-1"]).await?;
    let thawed = testbed.note("unfreeze");
    says(&["unfreeze", lease]).await?;
    best.leads_since(thawed, PROMPTLY).await?;
    testbed.verdict().await?;
    Ok(vec![best.process, other.process])
}

/// An acquisition (R18).
async fn plain(outer: &Testbed) -> Result<TestProcess> {
    let testbed = beside(outer, "plain", Implementation::Elector).await?;
    let account = pod(&testbed, "web-0").await?;
    let candidate = testbed
        .candidate("web-0")
        .plain()
        .flag("--absent-lease-grace=0s")
        .account(&account)
        .start()?;
    candidate.leads(PROMPTLY).await?;
    testbed.stays("web-0", 1).await?;
    testbed.verdict().await?;
    Ok(candidate.process)
}

async fn client_go(outer: &Testbed) -> Result<TestProcess> {
    let testbed = beside(outer, "client-go", Implementation::ClientGo).await?;
    let account = pod(&testbed, "web-0").await?;
    let candidate = testbed.candidate("web-0_x").account(&account).start()?;
    candidate.leads(PROMPTLY).await?;
    testbed.stays("web-0_x", 2).await?;
    testbed.verdict().await?;
    Ok(candidate.process)
}

/// It is no Pod, and has the rights that Kubernetes and the policies give to its user.
async fn scheduler(outer: &Testbed) -> Result<TestProcess> {
    let site = outer.site();
    let account = site.user_account("system:kube-scheduler", None).await?;
    let client_go = Implementation::ClientGo;
    let testbed = Testbed::open_for(Arc::clone(site), "kube-system", SCHEDULER, client_go).await?;
    let process = schedulers::scheduler(site, "scheduler", account.kubeconfig())?;
    let name = schedulers::registers(&testbed, &[]).await?;
    schedulers::leads(&testbed, &[&name], PROMPTLY).await?;
    testbed.stays(&name, 2).await?;
    Ok(process)
}

async fn beside(outer: &Testbed, name: &str, implementation: Implementation) -> Result<Testbed> {
    let namespace = format!("{}-{name}", outer.namespace());
    Testbed::open(Arc::clone(outer.site()), &namespace, implementation).await
}

async fn pod(testbed: &Testbed, name: &str) -> Result<TestAccount> {
    let (site, namespace) = (testbed.site(), testbed.namespace());
    site.pod_account(namespace, "web", name).await
}
