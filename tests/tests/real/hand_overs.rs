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
    let mut both = suite.own(OURS, modes).every_change_on(&[]);
    both.add("two_hundred_leases_at_once", 50, at_once);
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long("hand_overs_of_two_hundred_leases", 150, one_by_one);
}

/// The number of leases.
const LEASES: usize = 200;

/// The number of candidates of each, where all come at once.
const STANDING: usize = 3;

/// Of this number of leaders, one crashes.
const CRASHES: usize = 10;

/// The longest time until all are led, on a machine that has a lot else to do.
const ALL_LED: Duration = Duration::from_secs(60);

fn leases() -> Vec<String> {
    let names = (0..LEASES).map(|lease| format!("lease-{lease:03}"));
    names.collect()
}

async fn at_once(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let _elector = site.start_elector("elector").await?;
    warm_up(site).await?;
    let leases = leases();
    let host = Host::connect(&testbed, &leases).await?;
    let start = testbed.note("start all candidates");
    for turn in 0..STANDING {
        for lease in &leases {
            host.start(lease, &format!("{lease}-{turn}"), "1.0.0")?;
        }
    }
    let (mut leaders, mut took) = (Vec::new(), Vec::new());
    for lease in &leases {
        let (leader, at) = host.leader_since(lease, start, ALL_LED).await?;
        took.push(between(start.at, at));
        leaders.push((lease, leader));
    }
    percentiles(&testbed, "led", &mut took);
    let registered = |entries: &[HistoryEntry]| {
        let count = events(entries, EventKind::Start).count();
        (count == LEASES * STANDING).then_some(())
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
    let (site, journal) = (testbed.site(), testbed.journal());
    let _elector = site.start_elector("elector").await?;
    warm_up(site).await?;
    let leases = leases();
    let host = Host::connect(&testbed, &leases).await?;
    let start = journal.mark();
    for lease in &leases {
        for candidate in ["one", "other"] {
            host.start(lease, &format!("{lease}-{candidate}"), "1.9.0")?;
        }
    }
    let mut leaders = BTreeMap::new();
    for lease in &leases {
        let (leader, _) = host.leader_since(lease, start, ALL_LED).await?;
        leaders.insert(lease, leader);
    }

    let mut took = Vec::new();
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
