//! The election, the hand-over, and what happens when a candidate dies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_protocol::Occupancy;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Implementation, Suite,
    Testbed, between,
};
use kube::api::ListParams;

use crate::{CLIENT_GO, CLIENT_GO_MODES, COLD_START, MODES, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        for (implementations, modes) in [(OURS, MODES), (CLIENT_GO, CLIENT_GO_MODES)] {
            let lasts = Duration::from_secs(seconds);
            suite.add(
                name,
                ClusterChoice::Shared,
                implementations,
                modes,
                lasts,
                run,
            );
        }
    };
    add("cold_start_of_three_versions", 40, |testbed| {
        Box::pin(cold_start(testbed))
    });
    add("better_candidate_arrives", 45, |testbed| {
        Box::pin(better_arrives(testbed))
    });
    add("leader_is_killed", 25, |testbed| {
        Box::pin(leader_killed(testbed))
    });
    add("leader_is_terminated", 15, |testbed| {
        Box::pin(leader_terminated(testbed))
    });
    add("standby_is_killed", 45, |testbed| {
        Box::pin(standby_killed(testbed))
    });
    add("three_equal_candidates", 75, |testbed| {
        Box::pin(three_equals(testbed))
    });
}

async fn cold_start(testbed: Arc<Testbed>) -> Result<()> {
    let mut start = testbed.note("three versions start");
    let newest = testbed
        .candidate("newest")
        .version("1.3.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let middle = testbed
        .candidate("middle")
        .version("1.2.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let oldest = testbed
        .candidate("oldest")
        .version("1.1.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let rank = |name: &str| {
        [&oldest, &middle, &newest]
            .iter()
            .position(|candidate| candidate.name() == name)
    };
    for candidate in [&newest, &middle, &oldest] {
        start = start.max(candidate.says(EventKind::Start, 0, PROMPTLY).await?);
    }

    let (first, led) = testbed.first_leader(PROMPTLY).await?;
    let took = between(start, led);
    testbed.figure("somebody leads", took);
    let limit = match testbed.implementation() {
        Implementation::Elector => COLD_START,
        // A follower looks at its Lease every 2 to 4.4 s.
        Implementation::ClientGo => 2 * COLD_START,
    };
    ensure!(took <= limit, "nobody led for {took:?}");
    if testbed.implementation() == Implementation::ClientGo
        && testbed.site().mode() == ClusterMode::GateOff
    {
        // It cannot be asked to make room: the best that had registered when the choice was made stays.
        let choice = chosen_among(&testbed)?;
        if let Some(best) = choice.iter().min_by_key(|name| rank(name)) {
            ensure!(
                rank(&first) <= rank(best),
                "{first} leads, and {best} was there before"
            );
        }
        return testbed.stays(&first, 3).await;
    }
    let (led, patience) = match testbed.implementation() {
        Implementation::Elector => (oldest.leads(Duration::from_secs(10)).await?, 2),
        // Two leaders may have to make room, one after the other, each in its own time.
        Implementation::ClientGo => (oldest.leads(Duration::from_secs(60)).await?, 3),
    };
    testbed.figure("oldest leads", between(start, led));
    testbed.stays("oldest", patience).await
}

/// The candidates that had registered half a second before the lease was granted for the first time.
fn chosen_among(testbed: &Testbed) -> Result<Vec<String>> {
    testbed.journal().read(|entries| {
        let granted = entries.iter().find(|entry| match &entry.content {
            EntryContent::Lease(_, lease) => lease
                .spec
                .holder_identity
                .as_deref()
                .is_some_and(|holder| !holder.is_empty()),
            _ => false,
        });
        let granted = granted.context("the lease was never granted")?.at;
        let early =
            |entry: &&HistoryEntry| between(entry.at, granted) >= Duration::from_millis(500);
        Ok(entries
            .iter()
            .filter(early)
            .filter_map(|entry| match &entry.content {
                EntryContent::Candidate(name, _) => Some(name.clone()),
                _ => None,
            })
            .collect())
    })
}

/// Work that takes 0.3 s to stop, which the next leader has to wait for.
const SLOW_TO_STOP: &str = "trap 'sleep 0.3; exit 0' TERM; while :; do sleep 0.05; done";

async fn better_arrives(testbed: Arc<Testbed>) -> Result<()> {
    let holder = testbed
        .candidate("holder")
        .version("1.2.0")
        .work(&["sh", "-c", SLOW_TO_STOP])
        .start()?;
    holder.leads(PROMPTLY).await?;
    testbed.stays("holder", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let better = testbed.candidate("better").version("1.1.0").start()?;
    if testbed.implementation() == Implementation::ClientGo
        && testbed.site().mode() == ClusterMode::GateOff
    {
        let explanation = testbed
            .explained("that it cannot yield", PROMPTLY, |each| {
                each.reason.contains("better") && each.reason.contains("cannot be asked to yield")
            })
            .await?;
        let (holder, action) = (explanation.holder.as_str(), explanation.action.as_str());
        ensure!(holder == "holder" && action == "none", "{explanation:#?}");
        ensure!(
            explanation.of("better")?.rank == Some(1),
            "{explanation:#?}"
        );
        return testbed.stays("holder", 6).await;
    }
    let limit = match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(5),
        // It notices within 2 s, leads on for 10 s, and its record expires 15 s after its last renewal.
        Implementation::ClientGo => Duration::from_secs(5 + 12 + 15 + 5),
    };
    let led = better.leads(limit).await?;
    let stopped = holder
        .says(EventKind::WorkStopped, 0, Duration::from_secs(1))
        .await?;
    testbed.figure("until it leads", between(arrival, led));
    testbed.figure("gap", between(stopped, led));
    if testbed.implementation() == Implementation::Elector {
        ensure!(stopped <= led, "the holder worked on");
        ensure!(
            between(stopped, led) < Duration::from_secs(1),
            "the hand-over took {:?}",
            between(stopped, led)
        );
    }
    testbed.stays("better", 2).await
}

async fn leader_killed(testbed: Arc<Testbed>) -> Result<()> {
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let standby = testbed.candidate("standby").version("1.2.0").start()?;
    testbed.stays("leader", 2).await?;
    let killed = leader.kill()?;
    let led = standby
        .leads(crash_limit(testbed.implementation()) + Duration::from_secs(10))
        .await?;
    let took = between(killed, led);
    testbed.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(testbed.implementation()),
        "the next led after {took:?}"
    );
    testbed.stays("standby", 2).await
}

async fn leader_terminated(testbed: Arc<Testbed>) -> Result<()> {
    let mut leader = testbed
        .candidate("leader")
        .version("1.1.0")
        .flag_for(Implementation::ClientGo, "--release-on-cancel")
        .start()?;
    leader.leads(PROMPTLY).await?;
    let standby = testbed.candidate("standby").version("1.2.0").start()?;
    testbed.stays("leader", 1).await?;
    let asked = leader.terminate()?;
    let led = standby
        .leads(crash_limit(testbed.implementation()) + PROMPTLY)
        .await?;
    let limit = match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(2),
        // The elector asks for up to 5 s, it polls for up to 4.4 s.
        Implementation::ClientGo if was_released(&testbed) => Duration::from_secs(10),
        // Its release is tried once, and a renewal under way can come between.
        Implementation::ClientGo => crash_limit(Implementation::ClientGo),
    };
    let took = between(asked, led);
    testbed.figure("until the next leads", took);
    leader.ends_well(Duration::from_secs(5)).await?;
    ensure!(took <= limit, "the next led after {took:?}");
    if testbed.implementation() == Implementation::Elector
        && testbed.candidates().get_opt("leader").await?.is_some()
    {
        bail!("the leader left its candidate object behind");
    }
    testbed.stays("standby", 1).await
}

/// True if the lease was seen released.
fn was_released(testbed: &Testbed) -> bool {
    let released = |entry: &HistoryEntry| match &entry.content {
        EntryContent::Lease(_, lease) => lease
            .record()
            .is_ok_and(|record| record.occupancy() == Occupancy::Released),
        _ => false,
    };
    testbed
        .journal()
        .read(|entries| entries.iter().any(released))
}

/// The better of two standbys dies unnoticed: nothing changes, and later no lease waits for it.
async fn standby_killed(testbed: Arc<Testbed>) -> Result<()> {
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let mut better = testbed.candidate("better").version("1.2.0").start()?;
    registered(&testbed, "better").await?;
    let worse = testbed.candidate("worse").version("1.3.0").start()?;
    registered(&testbed, "worse").await?;
    better.kill()?;
    testbed.stays("leader", 3).await?;
    ensure!(testbed.terms() == 1, "{} terms began", testbed.terms());
    let killed = leader.kill()?;
    let led = worse
        .leads(crash_limit(testbed.implementation()) + PROMPTLY)
        .await?;
    let took = between(killed, led);
    testbed.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(testbed.implementation()),
        "the next led after {took:?}"
    );
    testbed.stays("worse", 1).await
}

/// Equal candidates do not take turns: one term in a minute, and no leader is even asked to make room.
async fn three_equals(testbed: Arc<Testbed>) -> Result<()> {
    let _candidates = [
        testbed.candidate("one").start()?,
        testbed.candidate("two").start()?,
        testbed.candidate("three").start()?,
    ];
    let (leader, _) = testbed.first_leader(PROMPTLY).await?;
    let changes = |entries: &[HistoryEntry]| {
        let holder = |entry: &HistoryEntry| match &entry.content {
            EntryContent::Lease(_, lease) => lease.spec.holder_identity.clone(),
            _ => None,
        };
        let others = entries
            .iter()
            .filter_map(holder)
            .find(|holder| !holder.is_empty() && *holder != leader);
        let preferred = entries.iter().find_map(|entry| match &entry.content {
            EntryContent::Lease(_, lease) => lease
                .record()
                .ok()?
                .preferred_holder
                .map(|name| name.to_string()),
            _ => None,
        });
        others.or(preferred)
    };
    let minute = Duration::from_secs(60);
    testbed
        .journal()
        .never("a needless change among equals", minute, changes)
        .await?;
    let term = testbed.lease()?.record()?.term;
    ensure!(
        term.0 == 1 && testbed.terms() == 1,
        "term {term}, {} beginnings",
        testbed.terms()
    );
    let registered = testbed
        .candidates()
        .list(&ListParams::default())
        .await?
        .items
        .len();
    ensure!(registered == 3, "{registered} candidates are registered");
    testbed.stays(&leader, 1).await
}

/// Waits until a candidate's object is there.
async fn registered(testbed: &Testbed, candidate: &str) -> Result<()> {
    let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(name, _) if name == candidate);
    let what = format!("{candidate} is registered");
    testbed
        .journal()
        .until(&what, PROMPTLY, |entries| {
            entries.iter().any(there).then_some(())
        })
        .await
}
