//! Leaders whose work is unwell, or wedged: another one leads, and probes say what is the matter.

mod wedged;

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{ClusterChoice, StartedCandidate, Suite, Testbed, between, now};
use kube::ResourceExt;
use kube::api::ListParams;
use tokio::time::sleep;

use crate::scraped::{address, get};
use crate::{COLD_START, LEASE_DURATION, MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "unwell_leader_hands_over_and_comes_back",
        ClusterChoice::Shared,
        OURS,
        MODES,
        Duration::from_secs(30),
        |testbed| Box::pin(unwell(testbed)),
    );
    wedged::add(suite);
}

/// A candidate of `elector candidate` that answers probes, and is unwell while there is a file of its name.
struct ProbedCandidate {
    candidate: StartedCandidate,
    health: SocketAddr,
    is_unwell: PathBuf,
    /// Where its health command writes under which term it leads.
    term: PathBuf,
}

/// The time until the next one leads: two failures of a probe that is asked five times a second, the end of the work,
/// and the hand-over. The rest is for a machine that is busy with other scenarios.
const HANDS_OVER: Duration = Duration::from_secs(5);

/// SIGTERM is answered after a second.
const SLOW_TO_END: &str = "trap 'sleep 1; exit 0' TERM; while :; do sleep 0.05; done";

// === impl ProbedCandidate ===

impl ProbedCandidate {
    async fn start(testbed: &Testbed, name: &str, flags: &[&str], work: &[&str]) -> Result<Self> {
        let file = |what: &str| testbed.folder().join(format!("{what}-{name}"));
        let (is_unwell, term) = (file("unwell"), file("term"));
        let command = format!(
            "echo \"$ELECTOR_TERM\" > {}; test ! -e {} || {{ echo no cloud; exit 1; }}",
            term.display(),
            is_unwell.display()
        );
        let mut builder = testbed
            .candidate(name)
            .work(work)
            .flag("--health-probe-bind-address=127.0.0.1:0")
            .flag("--logging-format=json")
            .flag(&format!("--health-command={command}"))
            .flag("--health-period=200ms")
            .flag("--health-timeout=5s")
            .flag("--health-failure-threshold=2");
        for flag in flags {
            builder = builder.flag(flag);
        }
        let mut candidate = builder.start()?;
        let health = address(&mut candidate.process, "serving health").await?;
        Ok(Self {
            candidate,
            health,
            is_unwell,
            term,
        })
    }

    /// Waits until this path is answered with this status.
    async fn answers(&self, path: &str, status: u16) -> Result<String> {
        let deadline = Instant::now() + PROMPTLY;
        loop {
            let (code, body) = get(self.health, path).await?;
            if code == status {
                return Ok(body);
            }
            let name = self.candidate.name();
            ensure!(Instant::now() < deadline, "{name} {path}: {code} {body}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// The term under which its health command was asked last.
    fn probed_term(&self) -> String {
        let term = fs::read_to_string(&self.term).unwrap_or_default();
        term.trim().to_owned()
    }
}

async fn unwell(testbed: Arc<Testbed>) -> Result<()> {
    let sleeps = ["sleep", "100000"];
    let first = ProbedCandidate::start(&testbed, "first", &[], &sleeps).await?;
    first
        .candidate
        .leads(COLD_START + LEASE_DURATION + PROMPTLY)
        .await?;
    let work = ["sh", "-c", SLOW_TO_END];
    let mut second = ProbedCandidate::start(&testbed, "second", &[], &work).await?;
    // Readiness is not leadership.
    for candidate in [&first, &second] {
        candidate.answers("/livez", 200).await?;
        candidate.answers("/readyz", 200).await?;
    }
    registered(&testbed, &["first", "second"]).await?;
    let led = testbed.lease()?.spec.lease_transitions.unwrap_or_default();
    until("the health command knows the term", || {
        first.probed_term() == led.to_string()
    })
    .await?;
    until("a standby has none", || {
        second.term.exists() && second.probed_term().is_empty()
    })
    .await?;

    let failing = now();
    fs::write(&first.is_unwell, "")?;
    let next = second.candidate.leads(HANDS_OVER + PROMPTLY).await?;
    let took = between(failing, next);
    testbed.figure("from the first failure to the next leader", took);
    ensure!(took <= HANDS_OVER, "the next one leads after {took:?}");
    let said = first.answers("/readyz/health", 500).await?;
    ensure!(said.contains("unwell: exit status: 1: no cloud"), "{said}");
    first.answers("/livez", 200).await?;
    let log = first.candidate.process.output()?;
    ensure!(
        log.contains("unwell: withdrawn until the health probe passes"),
        "{log}"
    );
    ensure!(
        log.contains("unwell: exit status: 1: no cloud; released"),
        "{log}"
    );
    testbed.stays("second", 1).await?;
    registered(&testbed, &["second"]).await?;

    let mended = now();
    fs::remove_file(&first.is_unwell)?;
    first.answers("/readyz", 200).await?;
    registered(&testbed, &["first", "second"]).await?;
    testbed.figure(
        "from the mending to a candidate again",
        between(mended, now()),
    );
    let seen = testbed.journal().len();
    second.candidate.terminate()?;
    let said = second.answers("/readyz", 500).await?;
    ensure!(said.contains("[-]shutdown failed"), "{said}");
    second.answers("/livez", 200).await?;
    first.candidate.leads_again(seen, PROMPTLY).await?;
    second.candidate.ends_well(PROMPTLY).await?;
    Ok(())
}

/// Waits until these are the candidates, and no others.
async fn registered(testbed: &Testbed, names: &[&str]) -> Result<()> {
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let listed = testbed.candidates().list(&ListParams::default()).await;
        let listed = listed.context("failed to list the candidates")?.items;
        let found: BTreeSet<_> = listed.iter().map(ResourceExt::name_any).collect();
        if found.iter().eq(names) {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{found:?} are registered");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let deadline = Instant::now() + PROMPTLY;
    while !condition() {
        ensure!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
