//! The cluster changes under its elector and candidates: LeaseCandidates come and go, in one API and in another.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::CandidateApi;
use elector_tests::rig::{
    Candidate, EntryContent, Ground, HistoryEntry, Implementation, Mode, Process, Suite, World,
    between, definition, warm_up,
};

use crate::{OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, play| {
        let lasts = Duration::from_secs(seconds);
        suite.add(name, Ground::Own, OURS, &[Mode::Custom], lasts, play);
    };
    add(
        "definition_is_removed_and_installed_while_led",
        100,
        |world| Box::pin(removed_and_installed(world)),
    );
    add("native_candidates_come_and_go_while_led", 200, |world| {
        Box::pin(come_and_go(world))
    });
}

/// The longest lease duration here.
const LONG: Duration = Duration::from_secs(30);

/// How long a candidate may take to notice a better API: it asks every 60 to 75 s.
const NOTICED: Duration = Duration::from_secs(75 + 10);

/// An elector that elects, and two candidates one of which leads. `flags` are for the candidates.
async fn led(world: &World, flags: &[&str]) -> Result<(Process, Candidate, Candidate)> {
    let site = world.site();
    let elector = site.elector("elector", site.mode().elector_flags().iter().copied())?;
    warm_up(site).await?;
    let start = |name, version| {
        let plan = world.candidate(name).version(version);
        flags
            .iter()
            .fold(plan, |plan, flag| plan.flag(flag))
            .start()
    };
    let leader = start("leader", "1.1.0")?;
    // The Lease has to be absent for as long as any of them may hold it (R6).
    leader.leads(LONG + PROMPTLY).await?;
    let standby = start("standby", "1.2.0")?;
    registered(world, "standby", site.candidate_api(), 0, PROMPTLY).await?;
    Ok((elector, leader, standby))
}

/// Waits until a candidate's object is there in this API, in an entry of the journal after the first `from`.
async fn registered(
    world: &World,
    name: &str,
    api: CandidateApi,
    from: usize,
    patience: Duration,
) -> Result<()> {
    let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(found, object) if found == name && object.api == api);
    let what = format!("{name} is registered in {api}");
    world
        .journal()
        .until(&what, patience, |entries| {
            entries[from..].iter().any(there).then_some(())
        })
        .await
}

/// Without LeaseCandidates nobody can be elected, but whoever leads leads on; with them all is as before.
async fn removed_and_installed(world: Arc<World>) -> Result<()> {
    let (_elector, mut leader, standby) = led(&world, &[]).await?;
    let client = world.site().client().clone();

    world.note("remove the definition");
    definition::remove(&client).await?;
    world.stays("leader", 4).await?;

    let seen = world.journal().len();
    world.note("install the definition");
    definition::install(&client).await?;
    world.site().record(CandidateApi::Elector).await?;
    for name in ["leader", "standby"] {
        // Its longest pause after failures is 5 s.
        registered(&world, name, CandidateApi::Elector, seen, PROMPTLY).await?;
    }
    world.stays("leader", 2).await?;
    ensure!(world.terms() == 1, "{} terms began", world.terms());

    let killed = leader.kill()?;
    let led = standby
        .leads(crash_limit(Implementation::Elector) + PROMPTLY)
        .await?;
    let took = between(killed, led);
    world.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(Implementation::Elector),
        "the next led after {took:?}"
    );
    world.stays("standby", 1).await
}

/// The API server is restarted with LeaseCandidates of its own, and again without. The lease is a long one, so that
/// its holder outlives the restarts, in which nobody can renew.
async fn come_and_go(world: Arc<World>) -> Result<()> {
    let long = ["--lease-duration=30s", "--renew-deadline=24s"];
    let (_elector, mut leader, standby) = led(&world, &long).await?;
    let native = CandidateApi::V1Beta1;

    restart(&world, true).await?;
    world.site().record(native).await?;
    for name in ["leader", "standby"] {
        registered(&world, name, native, 0, NOTICED).await?;
        gone(&world, name, CandidateApi::Elector).await?;
    }
    world.stays("leader", 1).await?;
    ensure!(world.terms() == 1, "{} terms began", world.terms());

    // The elector knows the standby where it is now.
    leader.terminate()?;
    standby.leads(PROMPTLY).await?;
    leader.ends_well(PROMPTLY).await?;

    let seen = world.journal().len();
    restart(&world, false).await?;
    registered(
        &world,
        "standby",
        CandidateApi::Elector,
        seen,
        Duration::from_secs(30),
    )
    .await?;
    world.stays("standby", 1).await?;
    ensure!(world.terms() == 2, "{} terms began", world.terms());

    let better = world.candidate("better").version("1.0.0").start()?;
    better.leads(PROMPTLY * 3).await?;
    world.stays("better", 1).await
}

/// Restarts the API server.
async fn restart(world: &World, serve_candidates: bool) -> Result<()> {
    let own = if serve_candidates { "with" } else { "without" };
    world.note(&format!(
        "restart the API server {own} candidates of its own"
    ));
    world.site().restart(serve_candidates).await
}

/// Waits until a candidate has cleaned up in the API that it used before.
async fn gone(world: &World, name: &str, api: CandidateApi) -> Result<()> {
    let what = format!("{name} has left {api}");
    let newest = |entries: &[HistoryEntry]| {
        entries.iter().rev().find_map(|entry| match &entry.content {
            EntryContent::Candidate(found, object) if found == name && object.api == api => {
                Some(false)
            }
            EntryContent::CandidateGone(found, object) if found == name && object.api == api => {
                Some(true)
            }
            _ => None,
        })
    };
    let left = |entries: &[HistoryEntry]| newest(entries).filter(|gone| *gone).map(|_| ());
    world.journal().until(&what, PROMPTLY, left).await
}
