//! Two real kube-schedulers that stand for election.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{
    ClusterMode, EntryContent, HistoryEntry, Suite, TestProcess, TestSite, Testbed, between, now,
    revisions, warm_up,
};

use crate::{CLIENT_GO, NATIVE, PROMPTLY, crash_limit};

/// The lease of the schedulers, in `kube-system`.
pub(crate) const SCHEDULER: &str = "kube-scheduler";

pub(crate) fn add(suite: &mut Suite) {
    let gate_on = &[ClusterMode::GateOn];
    let mut own = suite.own(CLIENT_GO, NATIVE).every_change_on(gate_on);
    own.add("two_kube_schedulers", 150, two);
}

async fn two(outer: Arc<Testbed>) -> Result<()> {
    let site = outer.site();
    let flag = match site.mode() {
        ClusterMode::GateOn => "--replace-builtin",
        _ => "--system-namespaces",
    };
    let _elector = site.elector("elector", [flag]).await?;
    warm_up(site).await?;
    let (site, namespace) = (Arc::clone(site), "kube-system");
    let testbed = Testbed::open_for(site, namespace, SCHEDULER, CLIENT_GO).await?;
    let elected = elect(&testbed).await;
    outer.conclude(&testbed, elected).await
}

async fn elect(testbed: &Testbed) -> Result<()> {
    let (mut names, mut processes) = (Vec::new(), Vec::new());
    for process in ["scheduler-one", "scheduler-two"] {
        let start = testbed.note(process);
        let kubeconfig = testbed.site().kubeconfig();
        processes.push(scheduler(testbed.site(), process, &kubeconfig)?);
        // They choose their names; the next to register is the one that was started last.
        let name = registers(testbed, &names).await?;
        testbed.add_participant(&name, CLIENT_GO, SCHEDULER);
        testbed.figure("registered after", start.elapsed());
        names.push(name);
    }
    let either: Vec<&str> = names.iter().map(String::as_str).collect();
    let leader = leads(testbed, &either, PROMPTLY).await?;
    // Half a minute of equals, renewed every 2 s.
    testbed.stays(&leader, 15).await?;

    let position = names.iter().position(|name| *name == leader);
    let position = position.context("a stranger leads")?;
    let survivor = either[1 - position];
    testbed.note(&format!("kill {leader}"));
    let killed = processes[position].kill()?;
    let limit = crash_limit(CLIENT_GO);
    leads(testbed, &[survivor], limit + PROMPTLY).await?;
    let took = between(killed, now());
    testbed.figure("until the other leads", took);
    ensure!(took <= limit, "the other led after {took:?}");
    // A minute without a needless change.
    testbed.stays(survivor, 30).await?;
    let asked_to_yield = testbed.journal().read(|entries| {
        let records = revisions(entries, SCHEDULER).filter_map(|(lease, _)| lease.record().ok());
        records
            .filter(|record| record.preferred_holder.is_some())
            .count()
    });
    let holds = asked_to_yield == 0;
    ensure!(holds, "one of two equals was asked to make room");
    Ok(())
}

/// Waits until one of these has accepted the lease; which one.
pub(crate) async fn leads(testbed: &Testbed, names: &[&str], patience: Duration) -> Result<String> {
    let what = "a kube-scheduler accepts";
    let accepts = testbed.lease_until(what, patience, |lease| {
        let record = lease.record().ok()?;
        let holder = record.holder.clone()?.to_string();
        let accepted = names.contains(&holder.as_str()) && !record.is_unaccepted_grant();
        accepted.then_some(holder)
    });
    accepts.await
}

/// Waits until a candidate for the schedulers' lease registers that is not known yet; its name.
pub(crate) async fn registers(testbed: &Testbed, known: &[String]) -> Result<String> {
    let (what, patience) = ("a kube-scheduler registers", Duration::from_secs(30));
    let new = |entry: &HistoryEntry| match &entry.content {
        EntryContent::Candidate(name, candidate)
            if candidate.spec.lease_name == SCHEDULER && !known.contains(name) =>
        {
            Some(name.clone())
        }
        _ => None,
    };
    let look = |entries: &[HistoryEntry]| entries.iter().find_map(new);
    testbed.journal().until(what, patience, look).await
}

/// Starts one that finds the cluster by this kubeconfig.
pub(crate) fn scheduler(site: &TestSite, name: &str, kubeconfig: &Path) -> Result<TestProcess> {
    // Free for now; should another process take it in between, the scheduler says so in its log.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let mut command = site.command(&site.programs().interop()?.kube_scheduler);
    command.arg("--feature-gates=CoordinatedLeaderElection=true");
    command.args(["--leader-elect=true", "--bind-address=127.0.0.1"]);
    command.arg(format!("--secure-port={port}"));
    for flag in [
        "kubeconfig",
        "authentication-kubeconfig",
        "authorization-kubeconfig",
    ] {
        command.arg(format!("--{flag}={}", kubeconfig.display()));
    }
    let certificates = site.folder().join(format!("{name}-certificates"));
    command.arg(format!("--cert-dir={}", certificates.display()));
    TestProcess::spawn(name, command, site.folder(), |_| {})
}
