//! Annotators that annotate a Lease as fast as the server takes it: no election waits for them, and no leader is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::{Carrier, Lease};
use elector_tests::rig::{
    CandidateBuilder, EventKind, JournalMark, StartedCandidate, Suite, Testbed, client_of, events,
    warm_up,
};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{FALLBACK, GATE_OFF, LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long("lease_is_annotated_all_the_time", 130, |testbed| {
        annotated(testbed, CandidateMode::Elected)
    });
    own.add_long("lease_without_elector_is_annotated", 150, |testbed| {
        annotated(testbed, CandidateMode::Auto)
    });
    own.add_long("lease_of_plain_candidates_is_annotated", 145, |testbed| {
        annotated(testbed, CandidateMode::Plain)
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
    _connections: JoinSet<()>,
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

const ANNOTATION: &str = "example.com/stranger";

/// A born Lease, a held one and a released one, each annotated all the time.
async fn annotated(testbed: Arc<Testbed>, mode: CandidateMode) -> Result<()> {
    let testbed = &*testbed;
    let site = testbed.site();
    let (unproven, fallback) = match mode {
        CandidateMode::Elected => (Duration::ZERO, Duration::ZERO),
        CandidateMode::Auto => (LEASE_DURATION, FALLBACK),
        CandidateMode::Plain => (LEASE_DURATION, Duration::ZERO),
    };
    let mut elector = None;
    if mode == CandidateMode::Elected {
        elector = Some(site.start_elector("elector").await?);
        warm_up(site).await?;
    }
    testbed.admit(&["quiet"]).await?;
    let quiet = testbed.candidate("undisturbed").lease("quiet").plain();
    let quiet = quiet.start()?;
    quiet.leads(LEASE_DURATION + PROMPTLY).await?;
    let undisturbed = testbed.journal().mark();

    let born = Lease::born(&testbed.key(), None, Carrier::Unknown);
    let (leases, parameters) = (testbed.leases(), PostParams::default());
    leases.create(&parameters, &born).await?;
    let strangers = Annotators::start(testbed).await?;
    let (mut first, began) = mode.start(testbed, "first", "2.0.0").await?;
    let limit = unproven + fallback + TOLERANCE;
    testbed
        .leads_within(&first, began, limit, "first start")
        .await?;
    sleep(HEALTHY).await;
    led_on(testbed, &["first", "undisturbed"])?;

    let (mut second, began) = mode.start(testbed, "second", "1.0.0").await?;
    if mode == CandidateMode::Elected {
        testbed
            .leads_within(&second, began, TOLERANCE, "hand-over")
            .await?;
        std::mem::swap(&mut first, &mut second);
    }
    let killed = first.kill()?;
    let limit = LEASE_DURATION + fallback + TOLERANCE;
    testbed
        .leads_within(&second, killed, limit, "fail-over")
        .await?;

    let (third, _) = mode.start(testbed, "third", "3.0.0").await?;
    let ended = second.terminate()?;
    let limit = fallback + TOLERANCE;
    testbed
        .leads_within(&third, ended, limit, "release")
        .await?;
    let rate = strangers.rate();
    testbed.amount("annotations a second", rate.to_string());
    testbed.figure("undisturbed", undisturbed.elapsed());
    led_on(testbed, &["undisturbed"])?;
    drop((strangers, elector));
    ensure!(rate >= 50, "{rate} annotations a second are no disturbance");
    Ok(())
}

/// Each of these has begun to lead once, and its work goes on.
fn led_on(testbed: &Testbed, names: &[&str]) -> Result<()> {
    for name in names {
        let count = |kind| {
            testbed.journal().read(|entries| {
                let all = events(entries, kind);
                all.filter(|(event, _)| event.name == *name).count()
            })
        };
        let (began, stopped) = (count(EventKind::Leading), count(EventKind::WorkStopped));
        ensure!(
            (began, stopped) == (1, 0),
            "{name} began to lead {began} times, and stopped {stopped} times"
        );
    }
    Ok(())
}

// === impl CandidateMode ===

impl CandidateMode {
    /// Starts a candidate, and waits until it runs; since when it does.
    async fn start(
        self,
        testbed: &Testbed,
        name: &str,
        version: &str,
    ) -> Result<(StartedCandidate, JournalMark)> {
        let candidate = testbed.candidate(name).version(version);
        let candidate: CandidateBuilder<'_> = match self {
            Self::Elected => candidate.flag("--mode=elected"),
            Self::Auto => candidate,
            Self::Plain => candidate.plain(),
        };
        let (candidate, mut mark) = (candidate.start()?, testbed.journal().mark());
        mark.at = candidate.begins().await?;
        Ok((candidate, mark))
    }
}

// === impl Annotators ===

impl Annotators {
    async fn start(testbed: &Testbed) -> Result<Self> {
        let written = Arc::new(AtomicU64::new(0));
        let mut connections = JoinSet::new();
        for number in 0..CONNECTIONS {
            let client = client_of(&testbed.site().kubeconfig()).await?;
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
                    written.fetch_add(u64::from(applied.is_ok()), Ordering::Relaxed);
                }
            });
        }
        Ok(Self {
            _connections: connections,
            written,
            begun: Instant::now(),
        })
    }

    /// The number of annotations written a second.
    fn rate(&self) -> u64 {
        self.written.load(Ordering::Relaxed) / self.begun.elapsed().as_secs().max(1)
    }
}

async fn patch(leases: &Api<Lease>, name: &str, mark: String) -> kube::Result<Lease> {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {ANNOTATION: mark}}}));
    leases.patch(name, &PatchParams::default(), &patch).await
}

async fn put(leases: &Api<Lease>, name: &str, mark: String) -> kube::Result<Lease> {
    let mut lease = leases.get(name).await?;
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(ANNOTATION.to_owned(), mark);
    leases.replace(name, &PostParams::default(), &lease).await
}
