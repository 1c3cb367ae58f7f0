//! One run: what happens in it, and what is measured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::Timestamp;
use elector_tests::rig::{TestSite, Testbed, between, revisions};
use tokio::time::sleep;

use super::args::{MeasuredCase, RunKind};
use super::results::Figures;
use super::unelected::{Unelected, all_begin};
use super::{fleet, quiet};

/// For what takes longest: a client-go leader that makes room, and expires.
const PATIENCE: Duration = Duration::from_secs(90);

/// The time for which equal candidates are watched.
const WATCHED: Duration = Duration::from_secs(150);

/// Runs one in a namespace of its own.
pub(crate) async fn one(site: Arc<TestSite>, run: u32, kind: RunKind) -> Result<Figures> {
    if let Some(leases) = kind.case.fleet() {
        return fleet::elect(&site, leases, kind.subject).await;
    }
    let namespace = format!("{}-{run}", kind.label());
    let testbed = Testbed::open(site, &namespace, kind.subject.implementation()).await?;
    let figures = match kind.case {
        MeasuredCase::ColdStart => cold_start(&testbed, kind).await,
        MeasuredCase::HandOver => hand_over(&testbed).await,
        MeasuredCase::Crash => crash(&testbed, run, kind).await,
        MeasuredCase::Equal => equal(&testbed, kind).await,
        _ => quiet::requests(&testbed, kind).await,
    };
    let figures = figures.with_context(|| testbed.journal().text())?;
    if kind.subject.is_elected_by_us() {
        testbed.verdict().await?;
    }
    Ok(figures)
}

async fn cold_start(testbed: &Testbed, kind: RunKind) -> Result<Figures> {
    let start = testbed.note("start");
    let candidates = [
        kind.candidate(testbed, "newest").version("1.3.0").start()?,
        kind.candidate(testbed, "middle").version("1.2.0").start()?,
        kind.candidate(testbed, "oldest").version("1.1.0").start()?,
    ];
    all_begin(&candidates).await?;
    let (_, led) = testbed.first_leader(PATIENCE).await.context(Unelected)?;
    Ok(vec![("start to first leader", seconds(start.at, led))])
}

async fn hand_over(testbed: &Testbed) -> Result<Figures> {
    let holder = testbed.candidate("holder").version("1.2.0").start()?;
    holder.begins().await?;
    holder.leads(PATIENCE).await.context(Unelected)?;
    testbed.stays("holder", 1).await?;
    let arrival = testbed.note("a better one arrives");
    let better = testbed.candidate("better").version("1.1.0").start()?;
    better.begins().await?;
    let led = better.leads(PATIENCE).await.context(Unelected)?;
    let stopped = holder.stops(arrival).await?;
    let mut figures = vec![
        ("arrival to new leader", seconds(arrival.at, led)),
        ("work stopped to new leader", seconds(stopped, led)),
    ];
    let preferred = testbed.journal().read(|entries| {
        let mut revisions = revisions(entries, testbed.lease_name());
        revisions.find_map(|(lease, at)| {
            let preferred = lease.record().ok()?.preferred_holder?;
            (preferred.as_str() == "better").then_some(at)
        })
    });
    if let Some(preferred) = preferred {
        figures.push(("preference to new leader", seconds(preferred, led)));
    }
    Ok(figures)
}

async fn crash(testbed: &Testbed, run: u32, kind: RunKind) -> Result<Figures> {
    let mut leader = kind.candidate(testbed, "leader").version("1.1.0").start()?;
    leader.begins().await?;
    leader.leads(PATIENCE).await.context(Unelected)?;
    let standbys = [
        kind.candidate(testbed, "second").version("1.2.0").start()?,
        kind.candidate(testbed, "third").version("1.3.0").start()?,
    ];
    all_begin(&standbys).await?;
    testbed.stays("leader", 2).await?;
    // The phases of the renew interval in equal measure: the age of the last renewal decides the result.
    sleep(Duration::from_millis(u64::from(run) * 1237 % 3300)).await;
    let renewed = testbed
        .lease()?
        .spec
        .renew_time
        .context("the leader has not renewed")?;
    let killed = leader.kill()?;
    let led = testbed.leader_since(killed, PATIENCE).await;
    let (_, led) = led.context(Unelected)?;
    Ok(vec![
        ("kill to new leader", seconds(killed.at, led)),
        ("last renewal to new leader", seconds(renewed, led)),
    ])
}

async fn equal(testbed: &Testbed, kind: RunKind) -> Result<Figures> {
    let candidates = [
        kind.candidate(testbed, "one").start()?,
        kind.candidate(testbed, "two").start()?,
        kind.candidate(testbed, "three").start()?,
    ];
    all_begin(&candidates).await?;
    testbed.first_leader(PATIENCE).await.context(Unelected)?;
    sleep(WATCHED).await;
    Ok(vec![("terms in 150 s", testbed.terms() as f64)])
}

fn seconds(earlier: Timestamp, later: Timestamp) -> f64 {
    // The other way round it is an overlap, which must not look like a zero.
    between(earlier, later).as_secs_f64() - between(later, earlier).as_secs_f64()
}
