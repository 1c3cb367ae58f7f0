//! Annotators that annotate a Lease as fast as the server takes it: no election waits for them, and no leader is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_api::{Carrier, Lease};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    CandidateBuilder, ClusterChoice, ClusterMode, EntryContent, EventKind, RequiredFlag,
    StartedCandidate, Suite, Testbed, between, warm_up,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        let (choice, modes) = (ClusterChoice::Own, &[ClusterMode::GateOff]);
        let lasts = Duration::from_secs(seconds);
        suite.add_with_flag(RequiredFlag::Long, name, choice, OURS, modes, lasts, run);
    };
    add("lease_is_annotated_all_the_time", 130, |testbed| {
        Box::pin(annotated(testbed, CandidateMode::Elected))
    });
    add("lease_without_elector_is_annotated", 150, |testbed| {
        Box::pin(annotated(testbed, CandidateMode::Auto))
    });
    add("lease_of_plain_candidates_is_annotated", 145, |testbed| {
        Box::pin(annotated(testbed, CandidateMode::Plain))
    });
}

/// The mode of the candidates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CandidateMode {
    Elected,
    Auto,
    Plain,
}

/// Four connections that annotate a Lease by turns of PATCH and PUT, until they are dropped.
struct Annotators {
    connections: JoinSet<()>,
    written: Arc<AtomicU64>,
    begun: Instant,
}

/// The number of connections.
const CONNECTIONS: u32 = 4;

/// The most annotations a second that all of them write.
const MOST: u32 = 500;

/// The time for which the leader has to lead on.
const HEALTHY: Duration = Duration::from_secs(60);

/// The most by which anything may come late.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The time for which an auto candidate waits for an elector.
const FALLBACK: Duration = Duration::from_secs(5);

/// A born Lease, a held one and a released one, each annotated all the time.
async fn annotated(testbed: Arc<Testbed>, mode: CandidateMode) -> Result<()> {
    let site = testbed.site();
    let elector = match mode {
        CandidateMode::Elected => {
            let flags = site.mode().elector_flags().iter().copied();
            let elector = site.elector("elector", flags).await?;
            warm_up(site).await?;
            Some(elector)
        }
        CandidateMode::Auto | CandidateMode::Plain => None,
    };
    let (unproven, fallback) = match mode {
        CandidateMode::Elected => (Duration::ZERO, Duration::ZERO),
        CandidateMode::Auto => (LEASE_DURATION, FALLBACK),
        CandidateMode::Plain => (LEASE_DURATION, Duration::ZERO),
    };
    testbed.admit(&["quiet"]).await?;
    let quiet = testbed.candidate("undisturbed").lease("quiet").plain();
    let quiet = quiet.start()?;
    let begun = leads(&testbed, &quiet, LEASE_DURATION + PROMPTLY).await?;

    let born = Lease::born(&testbed.key(), None, Carrier::Unknown);
    testbed
        .leases()
        .create(&PostParams::default(), &born)
        .await?;
    let strangers = Annotators::start(&testbed).await?;
    let mut first = mode.candidate(&testbed, "first", "2.0.0").start()?;
    let in_time = InTime { testbed: &testbed };
    let at = in_time.start_of(&first).await?;
    in_time
        .leads(&first, at, unproven + fallback, "first start")
        .await?;
    sleep(HEALTHY).await;
    in_time.led_on(&["first", "undisturbed"])?;

    let mut second = mode.candidate(&testbed, "second", "1.0.0").start()?;
    let at = in_time.start_of(&second).await?;
    if mode == CandidateMode::Elected {
        in_time
            .leads(&second, at, Duration::ZERO, "hand-over")
            .await?;
        std::mem::swap(&mut first, &mut second);
    }
    let killed = first.kill()?;
    let wait = LEASE_DURATION + fallback;
    in_time.leads(&second, killed, wait, "fail-over").await?;

    let third = mode.candidate(&testbed, "third", "3.0.0").start()?;
    in_time.start_of(&third).await?;
    let told = second.terminate()?;
    in_time.leads(&third, told, fallback, "release").await?;
    let rate = strangers.rate();
    testbed.amount("annotations a second", rate.to_string());
    testbed.figure("undisturbed", between(begun, elector_tests::rig::now()));
    in_time.led_on(&["undisturbed"])?;
    drop((strangers, elector));
    ensure!(rate >= 50, "{rate} annotations a second are no disturbance");
    Ok(())
}

/// The events due in a testbed whose journal grows too fast to be looked through with each entry.
struct InTime<'t> {
    testbed: &'t Testbed,
}

// === impl InTime ===

impl InTime<'_> {
    /// When a candidate has started.
    async fn start_of(&self, candidate: &StartedCandidate) -> Result<Timestamp> {
        said(self.testbed, candidate, EventKind::Start, PROMPTLY).await
    }

    /// Waits until a candidate leads once more, and checks that it does so in time.
    async fn leads(
        &self,
        candidate: &StartedCandidate,
        since: Timestamp,
        due: Duration,
        figure: &str,
    ) -> Result<()> {
        let deadline = Instant::now() + due + PROMPTLY;
        let took = loop {
            let led = self.newest(candidate.name(), EventKind::Leading);
            match led.filter(|led| *led > since) {
                Some(led) => break between(since, led),
                None if Instant::now() > deadline => {
                    bail!("{figure}: {} does not lead", candidate.name())
                }
                None => sleep(Duration::from_millis(20)).await,
            }
        };
        self.testbed.figure(figure, took);
        ensure!(took <= due + TOLERANCE, "{figure}: after {took:?}");
        Ok(())
    }

    /// Each of these has begun to lead once, and its work goes on.
    fn led_on(&self, names: &[&str]) -> Result<()> {
        for name in names {
            let count = |kind| self.events(name, kind).len();
            let (began, stopped) = (count(EventKind::Leading), count(EventKind::WorkStopped));
            ensure!(
                (began, stopped) == (1, 0),
                "{name} began to lead {began} times, and stopped {stopped} times"
            );
        }
        Ok(())
    }

    fn newest(&self, name: &str, kind: EventKind) -> Option<Timestamp> {
        self.events(name, kind).last().copied()
    }

    fn events(&self, name: &str, kind: EventKind) -> Vec<Timestamp> {
        self.testbed.journal().read(|entries| {
            let told = entries.iter().filter_map(|entry| match &entry.content {
                EntryContent::Event(event) if event.name == name && event.kind == kind => {
                    Some(entry.at)
                }
                _ => None,
            });
            told.collect()
        })
    }
}

async fn leads(
    testbed: &Testbed,
    candidate: &StartedCandidate,
    patience: Duration,
) -> Result<Timestamp> {
    said(testbed, candidate, EventKind::Leading, patience).await
}

/// When a candidate said that for the first time.
async fn said(
    testbed: &Testbed,
    candidate: &StartedCandidate,
    kind: EventKind,
    patience: Duration,
) -> Result<Timestamp> {
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        let told = InTime { testbed }.events(candidate.name(), kind);
        if let Some(at) = told.first() {
            return Ok(*at);
        }
        sleep(Duration::from_millis(20)).await;
    }
    bail!("{} does not say {kind:?}", candidate.name())
}

// === impl CandidateMode ===

impl CandidateMode {
    fn candidate<'t>(
        self,
        testbed: &'t Testbed,
        name: &str,
        version: &str,
    ) -> CandidateBuilder<'t> {
        let candidate = testbed.candidate(name);
        match self {
            Self::Elected => candidate.version(version).flag("--mode=elected"),
            Self::Auto => candidate.version(version),
            Self::Plain => candidate.plain(),
        }
    }
}

// === impl Annotators ===

impl Annotators {
    async fn start(testbed: &Testbed) -> Result<Self> {
        let written = Arc::new(AtomicU64::new(0));
        let mut connections = JoinSet::new();
        for number in 0..CONNECTIONS {
            let kubeconfig = Kubeconfig::read_from(testbed.site().kubeconfig())?;
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
            let client = Client::try_from(config).context("connect a stranger")?;
            let leases: Api<Lease> = Api::namespaced_with(client, testbed.namespace(), &());
            let name = testbed.lease_name().to_owned();
            let written = Arc::clone(&written);
            connections.spawn(async move {
                let mut turns = interval(Duration::from_secs(1) * CONNECTIONS / MOST);
                turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for turn in 0_u64.. {
                    turns.tick().await;
                    let mark = format!("{number}-{turn}");
                    let applied = if number == 0 {
                        put(&leases, &name, mark).await
                    } else {
                        patch(&leases, &name, mark).await
                    };
                    if applied {
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        Ok(Self {
            connections,
            written,
            begun: Instant::now(),
        })
    }

    /// The number of annotations written a second.
    fn rate(&self) -> u64 {
        debug_assert!(!self.connections.is_empty());
        self.written.load(Ordering::Relaxed) / self.begun.elapsed().as_secs().max(1)
    }
}

const ANNOTATION: &str = "example.com/stranger";

async fn patch(leases: &Api<Lease>, name: &str, mark: String) -> bool {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: mark}}}));
    let parameters = PatchParams::default();
    leases.patch(name, &parameters, &patch).await.is_ok()
}

async fn put(leases: &Api<Lease>, name: &str, mark: String) -> bool {
    let Ok(mut lease) = leases.get(name).await else {
        return false;
    };
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION.to_owned(), mark);
    let parameters = PostParams::default();
    leases.replace(name, &parameters, &lease).await.is_ok()
}
