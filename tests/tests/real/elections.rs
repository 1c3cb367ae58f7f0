//! Who is elected, how leadership is handed over, and what happens when somebody dies.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_protocol::Occupancy;
use elector_tests::rig::{
    EntryContent, EventKind, Ground, HistoryEntry, Implementation, Mode, Suite, World, between,
};
use kube::api::ListParams;

use crate::{CLIENT_GO, COLD_START, MODES, OURS, PROMPTLY, STAGES, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, play| {
        for (implementations, modes) in [(OURS, MODES), (CLIENT_GO, STAGES)] {
            let lasts = Duration::from_secs(seconds);
            suite.add(name, Ground::Shared, implementations, modes, lasts, play);
        }
    };
    add("cold_start_of_three_versions", 40, |world| {
        Box::pin(cold_start(world))
    });
    add("better_candidate_arrives", 45, |world| {
        Box::pin(better_arrives(world))
    });
    add("leader_is_killed", 25, |world| {
        Box::pin(leader_killed(world))
    });
    add("leader_is_terminated", 15, |world| {
        Box::pin(leader_terminated(world))
    });
    add("standby_is_killed", 45, |world| {
        Box::pin(standby_killed(world))
    });
    add("three_equal_candidates", 75, |world| {
        Box::pin(three_equals(world))
    });
}

async fn cold_start(world: Arc<World>) -> Result<()> {
    let start = world.note("three versions start");
    let newest = world
        .candidate("newest")
        .version("1.3.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let middle = world
        .candidate("middle")
        .version("1.2.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let oldest = world
        .candidate("oldest")
        .version("1.1.0")
        .flag_for(Implementation::ClientGo, "--rejoin")
        .start()?;
    let rank = |name: &str| {
        [&oldest, &middle, &newest]
            .iter()
            .position(|candidate| candidate.name() == name)
    };

    let (first, led) = world.first_leader(PROMPTLY).await?;
    let took = between(start, led);
    world.figure("somebody leads", took);
    ensure!(took <= COLD_START, "nobody led for {took:?}");
    if world.implementation() == Implementation::ClientGo && world.site().mode() == Mode::GateOff {
        // It cannot be asked to make room: the best that had registered when the choice was made stays.
        let choice = chosen_among(&world)?;
        if let Some(best) = choice.iter().min_by_key(|name| rank(name)) {
            ensure!(
                rank(&first) <= rank(best),
                "{first} leads, and {best} was there before"
            );
        }
        return world.stays(&first, 3).await;
    }
    let (led, patience) = match world.implementation() {
        Implementation::Elector => (oldest.leads(Duration::from_secs(10)).await?, 2),
        // Two leaders may have to make room, one after the other, each in its own time.
        Implementation::ClientGo => (oldest.leads(Duration::from_secs(60)).await?, 3),
    };
    world.figure("oldest leads", between(start, led));
    world.stays("oldest", patience).await
}

/// The candidates that had registered half a second before the lease was granted for the first time.
fn chosen_among(world: &World) -> Result<Vec<String>> {
    world.journal().read(|entries| {
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

/// Work that takes 0.3 s to stop, which whoever comes next has to wait for.
const SLOW_TO_STOP: &str = "trap 'sleep 0.3; exit 0' TERM; while :; do sleep 0.05; done";

async fn better_arrives(world: Arc<World>) -> Result<()> {
    let holder = world
        .candidate("holder")
        .version("1.2.0")
        .work(&["sh", "-c", SLOW_TO_STOP])
        .start()?;
    holder.leads(PROMPTLY).await?;
    world.stays("holder", 1).await?;
    let arrival = world.note("a better candidate starts");
    let better = world.candidate("better").version("1.1.0").start()?;
    if world.implementation() == Implementation::ClientGo && world.site().mode() == Mode::GateOff {
        let explanation = world
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
        return world.stays("holder", 6).await;
    }
    let limit = match world.implementation() {
        Implementation::Elector => Duration::from_secs(5),
        // It notices within 2 s, leads on for 10 s, and its record expires 15 s after its last renewal.
        Implementation::ClientGo => Duration::from_secs(5 + 12 + 15 + 5),
    };
    let led = better.leads(limit).await?;
    let stopped = holder
        .says(EventKind::WorkStopped, 0, Duration::from_secs(1))
        .await?;
    world.figure("until it leads", between(arrival, led));
    world.figure("gap", between(stopped, led));
    if world.implementation() == Implementation::Elector {
        ensure!(stopped <= led, "the holder worked on");
        ensure!(
            between(stopped, led) < Duration::from_secs(1),
            "the hand-over took {:?}",
            between(stopped, led)
        );
    }
    world.stays("better", 2).await
}

async fn leader_killed(world: Arc<World>) -> Result<()> {
    let mut leader = world.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let standby = world.candidate("standby").version("1.2.0").start()?;
    world.stays("leader", 2).await?;
    let killed = leader.kill()?;
    let led = standby
        .leads(crash_limit(world.implementation()) + Duration::from_secs(10))
        .await?;
    let took = between(killed, led);
    world.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(world.implementation()),
        "the next led after {took:?}"
    );
    world.stays("standby", 2).await
}

async fn leader_terminated(world: Arc<World>) -> Result<()> {
    let mut leader = world
        .candidate("leader")
        .version("1.1.0")
        .flag_for(Implementation::ClientGo, "--release-on-cancel")
        .start()?;
    leader.leads(PROMPTLY).await?;
    let standby = world.candidate("standby").version("1.2.0").start()?;
    world.stays("leader", 1).await?;
    let asked = leader.terminate()?;
    let led = standby
        .leads(crash_limit(world.implementation()) + PROMPTLY)
        .await?;
    let limit = match world.implementation() {
        Implementation::Elector => Duration::from_secs(2),
        // The elector asks for up to 5 s, it polls for up to 4.4 s.
        Implementation::ClientGo if was_released(&world) => Duration::from_secs(10),
        // Its release is tried once, and a renewal under way can come between.
        Implementation::ClientGo => crash_limit(Implementation::ClientGo),
    };
    let took = between(asked, led);
    world.figure("until the next leads", took);
    leader.ends_well(Duration::from_secs(5)).await?;
    ensure!(took <= limit, "the next led after {took:?}");
    if world.implementation() == Implementation::Elector
        && world.candidates().get_opt("leader").await?.is_some()
    {
        bail!("the leader left its candidate object behind");
    }
    world.stays("standby", 1).await
}

/// Whether the lease was seen released.
fn was_released(world: &World) -> bool {
    let released = |entry: &HistoryEntry| match &entry.content {
        EntryContent::Lease(_, lease) => lease
            .record()
            .is_ok_and(|record| record.occupancy() == Occupancy::Released),
        _ => false,
    };
    world.journal().read(|entries| entries.iter().any(released))
}

/// The better of two standbys dies unnoticed: nothing changes, and later nobody waits for it.
async fn standby_killed(world: Arc<World>) -> Result<()> {
    let mut leader = world.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let mut better = world.candidate("better").version("1.2.0").start()?;
    registered(&world, "better").await?;
    let worse = world.candidate("worse").version("1.3.0").start()?;
    registered(&world, "worse").await?;
    better.kill()?;
    world.stays("leader", 3).await?;
    ensure!(world.terms() == 1, "{} terms began", world.terms());
    let killed = leader.kill()?;
    let led = worse
        .leads(crash_limit(world.implementation()) + PROMPTLY)
        .await?;
    let took = between(killed, led);
    world.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(world.implementation()),
        "the next led after {took:?}"
    );
    world.stays("worse", 1).await
}

/// Equal candidates do not take turns: one term in a minute, and nobody is even asked to make room.
async fn three_equals(world: Arc<World>) -> Result<()> {
    let _candidates = [
        world.candidate("one").start()?,
        world.candidate("two").start()?,
        world.candidate("three").start()?,
    ];
    let (leader, _) = world.first_leader(PROMPTLY).await?;
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
    world
        .journal()
        .never("a needless change among equals", minute, changes)
        .await?;
    let term = world.lease()?.record()?.term;
    ensure!(
        term.0 == 1 && world.terms() == 1,
        "term {term}, {} beginnings",
        world.terms()
    );
    let registered = world
        .candidates()
        .list(&ListParams::default())
        .await?
        .items
        .len();
    ensure!(registered == 3, "{registered} candidates are registered");
    world.stays(&leader, 1).await
}

/// Waits until a candidate's object is there.
async fn registered(world: &World, candidate: &str) -> Result<()> {
    let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(name, _) if name == candidate);
    let what = format!("{candidate} is registered");
    world
        .journal()
        .until(&what, PROMPTLY, |entries| {
            entries.iter().any(there).then_some(())
        })
        .await
}
