//! The election, the hand-over, and what happens when a candidate dies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Occupancy;
use elector_tests::rig::{
    EntryContent, Implementation, StartedCandidate, Suite, Testbed, between, revisions,
};

use crate::{CLIENT_GO, CLIENT_GO_MODES, COLD_START, MODES, OURS, PROMPTLY, crash_limit, upgrade};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, MODES).and(CLIENT_GO, CLIENT_GO_MODES);
    shared.add("cold_start_of_three_versions", 40, cold_start);
    shared.add("better_candidate_arrives", 45, better_arrives);
    shared.add("leader_is_killed", 25, leader_killed);
    shared.add("leader_is_terminated", 15, leader_terminated);
}

async fn cold_start(testbed: Arc<Testbed>) -> Result<()> {
    let mut start = testbed.note("three versions start");
    let candidate = |name, version| {
        let candidate = testbed.candidate(name).version(version);
        candidate.flag_for(CLIENT_GO, "--rejoin").start()
    };
    let newest = candidate("newest", "1.3.0")?;
    let middle = candidate("middle", "1.2.0")?;
    let oldest = candidate("oldest", "1.1.0")?;
    let by_age = [&oldest, &middle, &newest];
    let rank = |name: &str| by_age.iter().position(|each| each.name() == name);
    for candidate in by_age {
        start.at = start.at.max(candidate.begins().await?);
    }

    let (first, led) = testbed.first_leader(PROMPTLY).await?;
    let took = between(start.at, led);
    testbed.figure("one leads", took);
    // A follower of client-go looks at its Lease every 2 to 4.4 s; and two of its leaders may have to make room, one after
    // the other, each in its own time.
    let (limit, patience, renewals) = match testbed.implementation() {
        Implementation::Elector => (COLD_START, Duration::from_secs(10), 2),
        Implementation::ClientGo => (2 * COLD_START, Duration::from_secs(60), 3),
    };
    ensure!(took <= limit, "no candidate led for {took:?}");
    if upgrade::cannot_yield(&testbed) {
        // It cannot be asked to make room: the best that had registered when the choice was made stays.
        let choice = chosen_among(&testbed)?;
        if let Some(best) = choice.iter().min_by_key(|name| rank(name)) {
            let holds = rank(&first) <= rank(best);
            ensure!(holds, "{first} leads, and {best} was there before");
        }
        return testbed.stays(&first, 3).await;
    }
    let led = oldest.leads(patience).await?;
    testbed.figure("oldest leads", between(start.at, led));
    testbed.stays("oldest", renewals).await
}

/// The candidates that had registered half a second before the lease was granted for the first time.
fn chosen_among(testbed: &Testbed) -> Result<Vec<String>> {
    testbed.journal().read(|entries| {
        let mut revisions = revisions(entries, testbed.lease_name());
        let granted = revisions.find(|(lease, _)| {
            let holder = lease.spec.holder_identity.as_deref();
            holder.is_some_and(|holder| !holder.is_empty())
        });
        let (_, granted) = granted.context("the lease was never granted")?;
        let half = Duration::from_millis(500);
        let early = entries
            .iter()
            .filter(|entry| between(entry.at, granted) >= half);
        let names = early.filter_map(|entry| match &entry.content {
            EntryContent::Candidate(name, _) => Some(name.clone()),
            _ => None,
        });
        Ok(names.collect())
    })
}

/// Work that takes 0.3 s to stop, which the next leader has to wait for.
const SLOW_TO_STOP: &str = "trap 'sleep 0.3; exit 0' TERM; while :; do sleep 0.05; done";

async fn better_arrives(testbed: Arc<Testbed>) -> Result<()> {
    let holder = testbed.candidate("holder").version("1.2.0");
    let holder = holder.work(&["sh", "-c", SLOW_TO_STOP]).start()?;
    holder.leads(PROMPTLY).await?;
    testbed.stays("holder", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let better = testbed.candidate("better").version("1.1.0").start()?;
    if upgrade::cannot_yield(&testbed) {
        let explanation = testbed.explained("that it cannot yield", PROMPTLY, |each| {
            let reason = each["reason"].as_str().unwrap_or_default();
            reason.contains("better") && reason.contains("cannot be asked to yield")
        });
        let explanation = explanation.await?;
        let standings = explanation["candidates"].as_array().into_iter().flatten();
        let best = standings.filter(|each| each["rank"] == 1);
        let best: Vec<_> = best.map(|each| &each["name"]).collect();
        let holds = explanation["holder"] == "holder" && explanation["action"] == "none";
        ensure!(holds, "{explanation:#}");
        ensure!(best == ["better"], "{explanation:#}");
        return testbed.stays("holder", 6).await;
    }
    let limit = upgrade::yields_within(&testbed);
    let figure = "until it leads";
    let led = testbed
        .leads_within(&better, arrival, limit, figure)
        .await?;
    let stopped = holder.stops(arrival).await?;
    let gap = between(stopped, led);
    testbed.figure("gap", gap);
    if testbed.implementation() == OURS {
        ensure!(stopped <= led, "the holder worked on");
        // Far below a lease duration, after which it would be no hand-over.
        let limit = Duration::from_secs(5);
        ensure!(gap < limit, "the hand-over took {gap:?}");
    }
    testbed.stays("better", 2).await
}

/// A leader, and a standby.
async fn two(testbed: &Testbed) -> Result<[StartedCandidate; 2]> {
    let leader = testbed.candidate("leader").version("1.1.0");
    let leader = leader.flag_for(CLIENT_GO, "--release-on-cancel").start()?;
    leader.leads(PROMPTLY).await?;
    let standby = testbed.candidate("standby").version("1.2.0").start()?;
    testbed.stays("leader", 2).await?;
    Ok([leader, standby])
}

async fn leader_killed(testbed: Arc<Testbed>) -> Result<()> {
    let [mut leader, standby] = two(&testbed).await?;
    let limit = crash_limit(testbed.implementation());
    let killed = leader.kill()?;
    testbed
        .leads_within(&standby, killed, limit, "until the next leads")
        .await?;
    testbed.stays("standby", 2).await
}

async fn leader_terminated(testbed: Arc<Testbed>) -> Result<()> {
    let [mut leader, standby] = two(&testbed).await?;
    let asked = leader.terminate()?;
    let longest = crash_limit(testbed.implementation());
    let led = standby.leads(longest + PROMPTLY).await?;
    let limit = match testbed.implementation() {
        Implementation::Elector => PROMPTLY,
        // The elector asks for up to 5 s, it polls for up to 4.4 s.
        Implementation::ClientGo if was_released(&testbed) => Duration::from_secs(10),
        // Its release is tried once, and a renewal under way can come between.
        Implementation::ClientGo => longest,
    };
    let took = between(asked.at, led);
    testbed.figure("until the next leads", took);
    leader.ends_well().await?;
    ensure!(took <= limit, "the next led after {took:?}");
    if testbed.implementation() == OURS {
        let left = testbed.candidates().get_opt("leader").await?;
        ensure!(left.is_none(), "the leader left its candidate object");
    }
    testbed.stays("standby", 1).await
}

/// True if the lease was seen released.
fn was_released(testbed: &Testbed) -> bool {
    testbed.journal().read(|entries| {
        let mut revisions = revisions(entries, testbed.lease_name());
        revisions.any(|(lease, _)| {
            let record = lease.record();
            record.is_ok_and(|record| record.occupancy() == Occupancy::Released)
        })
    })
}
