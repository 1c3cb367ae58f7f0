//! A client-go leader on a server that drops `spec.preferredHolder`, and an elector that may reserve its lease.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    Candidate, EventKind, Ground, Implementation, Mode, Process, Suite, World, between, warm_up,
};

use crate::{CLIENT_GO, LEASE_DURATION, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, modes, play| {
        let lasts = Duration::from_secs(110);
        suite.add(name, Ground::Own, CLIENT_GO, modes, lasts, play);
    };
    add(
        "lease_is_reserved_from_client_go",
        &[Mode::GateOff, Mode::EmbeddedOff],
        |world| Box::pin(for_client_go(world)),
    );
    add(
        "lease_is_reserved_for_one_of_ours",
        &[Mode::GateOff],
        |world| Box::pin(for_ours(world)),
    );
}

/// What `holderIdentity` says while the lease is reserved.
const PLACEHOLDER: &str = "elector.dev:reserved-from:holder";

/// How long client-go leads on once it can renew no more: its renew deadline, and a retry period before it counts.
const LEADS_ON: Duration = Duration::from_secs(12);

/// Another client-go candidate follows. Without leave to reserve, nothing changes.
async fn for_client_go(world: Arc<World>) -> Result<()> {
    let mut timid = elector(&world, "timid-elector", &[])?;
    warm_up(world.site()).await?;
    let holder = world.candidate("holder").version("1.2.0").start()?;
    holder.leads(PROMPTLY).await?;
    world.stays("holder", 1).await?;
    let better = world.candidate("better").version("1.1.0").start()?;
    world
        .explained("that it cannot yield", PROMPTLY, |each| {
            each.reason.contains("cannot be asked to yield")
        })
        .await?;
    world.stays("holder", 4).await?;
    ensure!(world.terms() == 1, "{} terms began", world.terms());
    timid.terminate(PROMPTLY).await?;

    let start = world.note("an elector that may reserve takes over");
    let _elector = elector(&world, "elector", &["--reserve"])?;
    // client-go polls every 2 to 4.4 s.
    reserved(&world, &holder, &better, start, Duration::from_secs(6)).await
}

/// A candidate of ours follows a client-go one that releases at the end: what it releases is not its lease any more.
async fn for_ours(world: Arc<World>) -> Result<()> {
    let _elector = elector(&world, "elector", &["--reserve"])?;
    warm_up(world.site()).await?;
    let holder = world
        .candidate("holder")
        .version("1.2.0")
        .flag_for(Implementation::ClientGo, "--release-on-cancel")
        .start()?;
    holder.leads(PROMPTLY).await?;
    world.stays("holder", 1).await?;
    let start = world.note("a better candidate starts");
    let better = world
        .candidate_of(Implementation::Elector, "better")
        .version("1.1.0")
        .start()?;
    reserved(&world, &holder, &better, start, Duration::from_secs(2)).await
}

fn elector(world: &World, name: &str, more: &[&'static str]) -> Result<Process> {
    let flags = world.site().mode().elector_flags();
    world
        .site()
        .elector(name, flags.iter().chain(more).copied())
}

/// The lease is reserved from one and granted to the other, who accepts within `accepts`. Nobody's works overlap.
async fn reserved(
    world: &World,
    holder: &Candidate,
    better: &Candidate,
    start: Timestamp,
    accepts: Duration,
) -> Result<()> {
    let term = world.lease()?.spec.lease_transitions;
    let (since, seconds) = world
        .lease_until("the lease is reserved", PROMPTLY, |lease| {
            let reserved = lease.spec.holder_identity.as_deref() == Some(PLACEHOLDER);
            let spec = &lease.spec;
            reserved.then_some((spec.renew_time?, spec.lease_duration_seconds))
        })
        .await?;
    world.figure("until it is reserved", between(start, since));
    ensure!(seconds == Some(15), "reserved for {seconds:?} s");
    let explanation = world
        .explained("the reservation", PROMPTLY, |each| {
            each.reason
                .starts_with("reserved for better: holder could not be asked to yield")
        })
        .await?;
    let told = (explanation.holder.as_str(), explanation.action.as_str());
    ensure!(told == (PLACEHOLDER, "wait"), "{explanation:#?}");

    let stopped = holder
        .says(EventKind::WorkStopped, 0, LEADS_ON + PROMPTLY)
        .await?;
    world.figure("until the holder has stopped", between(since, stopped));
    let led = better.leads(LEASE_DURATION + accepts + PROMPTLY).await?;
    world.figure("until the better one leads", between(since, led));
    ensure!(stopped <= led, "the holder worked on");
    let took = between(since, led);
    ensure!(
        (LEASE_DURATION..=LEASE_DURATION + accepts).contains(&took),
        "it led {took:?} after the reservation"
    );
    let next = world.lease()?.spec.lease_transitions;
    ensure!(
        next == term.map(|term| term + 2),
        "a reservation is a term: {term:?}, {next:?}"
    );
    world.stays("better", 2).await
}
