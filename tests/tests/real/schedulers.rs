//! Two real kube-schedulers that stand for election.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, HistoryEntry, Implementation, Suite, TestProcess,
    TestSite, Testbed, between, now, warm_up,
};

use crate::{CLIENT_GO, NATIVE, PROMPTLY, crash_limit};

/// The lease of the schedulers, in `kube-system`.
pub(crate) const SCHEDULER: &str = "kube-scheduler";

pub(crate) fn add(suite: &mut Suite) {
    let lasts = Duration::from_secs(150);
    suite.add(
        "two_kube_schedulers",
        ClusterChoice::Own,
        CLIENT_GO,
        NATIVE,
        lasts,
        |testbed| Box::pin(two(testbed)),
    );
}

async fn two(outer: Arc<Testbed>) -> Result<()> {
    let site = outer.site();
    let flags: &[&str] = match site.mode() {
        ClusterMode::GateOn => &["--replace-builtin"],
        ClusterMode::GateOff
        | ClusterMode::Custom
        | ClusterMode::Embedded
        | ClusterMode::EmbeddedOff => &["--system-namespaces"],
    };
    let _elector = site.elector("elector", flags.iter().copied()).await?;
    warm_up(site).await?;
    let testbed = Testbed::open_for(
        Arc::clone(site),
        "kube-system",
        SCHEDULER,
        Implementation::ClientGo,
    )
    .await?;
    let result = match elect(&testbed).await {
        Ok(()) => testbed.verdict().await,
        error => error,
    };
    for (name, figure) in testbed.figures() {
        outer.figure(&name, figure);
    }
    result.with_context(|| testbed.journal().text())
}

async fn elect(testbed: &Testbed) -> Result<()> {
    let mut processes = Vec::new();
    for process in ["scheduler-one", "scheduler-two"] {
        let start = now();
        let running = scheduler(testbed.site(), process, &testbed.site().kubeconfig())?;
        // They choose their names; the next to register is the one that was started last.
        let known: Vec<String> = processes
            .iter()
            .map(|(name, _): &(String, TestProcess)| name.clone())
            .collect();
        let name = testbed
            .journal()
            .until(
                "a kube-scheduler registers",
                Duration::from_secs(30),
                |entries| new_candidate(entries, &known),
            )
            .await?;
        testbed.add_participant(&name, Implementation::ClientGo, SCHEDULER);
        testbed.figure("registered after", between(start, now()));
        processes.push((name, running));
    }
    let names: Vec<String> = processes.iter().map(|(name, _)| name.clone()).collect();
    let leader = testbed
        .lease_until("a kube-scheduler accepts", PROMPTLY, |lease| {
            let record = lease.record().ok()?;
            let holder = record.holder.clone()?.to_string();
            (names.contains(&holder) && !record.is_unaccepted_grant()).then_some(holder)
        })
        .await?;
    let position = names
        .iter()
        .position(|name| *name == leader)
        .context("a stranger leads")?;
    // Half a minute of equals, renewed every 2 s.
    testbed.stays(&leader, 15).await?;

    let (_, mut dying) = processes.remove(position);
    let (survivor, _alive) = processes.remove(0);
    testbed.note(&format!("kill {leader}"));
    let killed = dying.kill()?;
    let limit = crash_limit(Implementation::ClientGo);
    let led = testbed
        .lease_until(
            "the other kube-scheduler accepts",
            limit + PROMPTLY,
            |lease| {
                let record = lease.record().ok()?;
                let theirs = record.holder.as_ref()?.as_str() == survivor;
                (theirs && !record.is_unaccepted_grant()).then(now)
            },
        )
        .await?;
    let took = between(killed, led);
    testbed.figure("until the other leads", took);
    ensure!(took <= limit, "the other led after {took:?}");
    // A minute without a needless change.
    testbed.stays(&survivor, 30).await?;
    let asked_to_yield = testbed.journal().read(|entries| {
        entries.iter().any(|entry| match &entry.content {
            EntryContent::Lease(name, lease) if name == SCHEDULER => lease
                .record()
                .is_ok_and(|record| record.preferred_holder.is_some()),
            _ => false,
        })
    });
    ensure!(!asked_to_yield, "one of two equals was asked to make room");
    Ok(())
}

/// The name of a candidate for the schedulers' lease that is not known yet.
pub(crate) fn new_candidate(entries: &[HistoryEntry], known: &[String]) -> Option<String> {
    entries.iter().find_map(|entry| match &entry.content {
        EntryContent::Candidate(name, candidate)
            if candidate.spec.lease_name == SCHEDULER && !known.contains(name) =>
        {
            Some(name.clone())
        }
        _ => None,
    })
}

/// Starts one that finds the cluster by this kubeconfig.
pub(crate) fn scheduler(site: &TestSite, name: &str, kubeconfig: &Path) -> Result<TestProcess> {
    let kubeconfig = kubeconfig
        .to_str()
        .context("the path of the kubeconfig is no text")?;
    // Free for now; should another process take it in between, the scheduler says so in its log.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let mut command = site.command(&site.programs().interop()?.kube_scheduler);
    command.args([
        "--feature-gates=CoordinatedLeaderElection=true",
        "--leader-elect=true",
    ]);
    command.args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
    for flag in [
        "kubeconfig",
        "authentication-kubeconfig",
        "authorization-kubeconfig",
    ] {
        command.arg(format!("--{flag}={kubeconfig}"));
    }
    let certificates = site.folder().join(format!("{name}-certificates"));
    command.arg(format!("--cert-dir={}", certificates.display()));
    TestProcess::spawn(name, command, site.folder(), |_| {})
}
