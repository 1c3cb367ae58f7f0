//! Two hundred leases in one process: all at once, until a tenth of the leaders crashes; and one after the other, so that
//! each time is that of a hand-over and not of a queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{
    ClusterMode, EventKind, HistoryEntry, Suite, Testbed, between, events, warm_up,
};

use crate::hosted_candidates::Host;
use crate::{GATE_OFF, LEASE_DURATION, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let modes = &[ClusterMode::GateOff, ClusterMode::Embedded];
    let mut both = suite.own(OURS, modes).every_change_on(&[]).alone();
    both.add("two_hundred_leases_at_once", 50, at_once);
    let mut own = suite.own(OURS, GATE_OFF).alone();
    own.add_long("hand_overs_of_two_hundred_leases", 150, one_by_one);
}

/// The number of leases.
const LEASES: usize = 200;

/// The candidates of each, where all come at once.
const STANDING: [&str; 3] = ["one", "two", "three"];

/// Of this number of leaders, one crashes.
const CRASHES: usize = 10;

/// The longest time until all are led.
const ALL_LED: Duration = Duration::from_secs(60);

/// Starts these candidates of each lease, and says who leads it first, and after which time.
async fn start_all<'w>(
    testbed: &'w Testbed,
    candidates: &[&str],
) -> Result<(Host<'w>, BTreeMap<String, String>, Vec<Duration>)> {
    let site = testbed.site();
    testbed.keep(site.start_elector("elector").await?);
    warm_up(site).await?;
    let leases: Vec<_> = (0..LEASES)
        .map(|lease| format!("lease-{lease:03}"))
        .collect();
    let host = Host::connect(testbed, &leases).await?;
    let start = testbed.note("start all candidates");
    for candidate in candidates {
        for lease in &leases {
            host.start(lease, &format!("{lease}-{candidate}"), "1.9.0")?;
        }
    }
    let (mut leaders, mut took) = (BTreeMap::new(), Vec::new());
    for lease in leases {
        let (leader, at) = host.leader_since(&lease, start, ALL_LED).await?;
        took.push(between(start.at, at));
        leaders.insert(lease, leader);
    }
    Ok((host, leaders, took))
}

async fn at_once(testbed: Arc<Testbed>) -> Result<()> {
    let (host, leaders, mut took) = start_all(&testbed, &STANDING).await?;
    percentiles(&testbed, "led", &mut took);
    let registered = |entries: &[HistoryEntry]| {
        let count = events(entries, EventKind::Start).count();
        (count == LEASES * STANDING.len()).then_some(())
    };
    let journal = testbed.journal();
    let what = "all candidates are registered";
    journal.until(what, ALL_LED, registered).await?;

    let mut crashed = Vec::new();
    for (lease, leader) in leaders.iter().step_by(CRASHES) {
        crashed.push((lease, testbed.note(&format!("crash {leader}"))));
        host.take(leader)?.crash().await;
    }
    // Where no candidate gets to renew for 10 s, the machine is to blame.
    let limit = crash_limit(OURS) + ALL_LED;
    for (lease, crash) in crashed {
        let (_, at) = host.leader_since(lease, crash, limit).await?;
        took.push(between(crash.at, at));
    }
    percentiles(&testbed, "led again", &mut took);
    Ok(())
}

async fn one_by_one(testbed: Arc<Testbed>) -> Result<()> {
    let (host, mut leaders, mut took) = start_all(&testbed, &["one", "other"]).await?;
    took.clear();
    let journal = testbed.journal();
    for (lease, leader) in &mut leaders {
        let ended = journal.mark();
        host.take(leader)?.release().await?;
        let (next, gap) = host.gap_since(lease, ended, PROMPTLY).await?;
        *leader = next;
        took.push(gap);
    }
    percentiles(&testbed, "a leader ends", &mut took);

    for (lease, leader) in &mut leaders {
        let arrival = journal.mark();
        host.start(lease, &format!("{lease}-better"), "1.0.0")?;
        let (next, gap) = host.gap_since(lease, arrival, PROMPTLY).await?;
        *leader = next;
        took.push(gap);
    }
    percentiles(&testbed, "a better candidate comes", &mut took);

    let mut renewals = Vec::new();
    let crash = journal.mark();
    for (lease, leader) in &leaders {
        host.take(leader)?.crash().await;
        let record = testbed.leases().get(lease).await?.spec;
        let renewed = record.renew_time.context("a leader that never renewed")?;
        renewals.push((lease, renewed));
    }
    for (lease, renewed) in renewals {
        let limit = crash_limit(OURS) + PROMPTLY;
        let (_, at) = host.leader_since(lease, crash, limit).await?;
        took.push(between(renewed, at).saturating_sub(LEASE_DURATION));
    }
    let what = "a leader has crashed, counted from the expiry";
    percentiles(&testbed, what, &mut took);
    Ok(())
}

/// Reports the median and the one below which 99 of 100 are, and begins anew.
pub(crate) fn percentiles(testbed: &Testbed, what: &str, took: &mut Vec<Duration>) {
    took.sort_unstable();
    for percent in [50, 99] {
        let rank = (took.len() * percent).div_ceil(100);
        testbed.figure(&format!("{what}: p{percent}"), took[rank - 1]);
    }
    took.clear();
}
