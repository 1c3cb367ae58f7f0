//! Candidates whose elector is away: the quality of the choice suffers, and there is a leader.

mod minutes;
mod permission;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EventKind, HistoryEntry, RequiredFlag, ScenarioBody,
    StartedCandidate, Suite, Testbed, between, work_intervals,
};
use tokio::time::sleep;

use crate::{EVERYWHERE, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "elector_is_away_and_comes_back",
        ClusterChoice::Own,
        OURS,
        EVERYWHERE,
        Duration::from_secs(90),
        |testbed| Box::pin(beside_built_in(testbed, |testbed| Box::pin(away(testbed)))),
    );
    suite.add_with_flag(
        RequiredFlag::Long,
        "elector_is_away_for_minutes",
        ClusterChoice::Own,
        OURS,
        EVERYWHERE,
        Duration::from_secs(330),
        |testbed| {
            Box::pin(beside_built_in(testbed, |testbed| {
                Box::pin(minutes::away_for_minutes(testbed))
            }))
        },
    );
    suite.add(
        "elector_may_not_write_any_more",
        ClusterChoice::Own,
        OURS,
        // With the gate on, the built-in controller elects as soon as ours may not.
        &[ClusterMode::GateOff, ClusterMode::Custom],
        Duration::from_secs(110),
        |testbed| Box::pin(permission::may_not_write(testbed)),
    );
    suite.add(
        "no_lease_candidates_are_served",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(40),
        |testbed| Box::pin(not_served(testbed)),
    );
    suite.add(
        "strategy_of_another_elector_is_left_to_it",
        ClusterChoice::Shared,
        OURS,
        EVERYWHERE,
        Duration::from_secs(30),
        |testbed| Box::pin(foreign_strategy(testbed)),
    );
}

/// W of these candidates.
const SHORT_LEASE: Duration = Duration::from_secs(4);

/// The time that an elector has for its grant.
const FALLBACK: Duration = Duration::from_secs(5);

/// The longest gap after the death of a leader without an elector: with the gate on, a ping of the built-in controller
/// begins the wait for a grant anew, once.
fn without_an_elector(testbed: &Testbed) -> Duration {
    let waits = match testbed.site().mode() {
        ClusterMode::GateOn => 2,
        ClusterMode::GateOff
        | ClusterMode::Custom
        | ClusterMode::Embedded
        | ClusterMode::EmbeddedOff => 1,
    };
    SHORT_LEASE + FALLBACK * waits + Duration::from_secs(1)
}

/// Plays a scenario in which leaders die and are not stopped, and checks that no two led at once. With the gate on, the
/// built-in controller elects when our elector is away. It follows other rules, counts no terms for one, so that what is
/// written then is not judged by ours.
async fn beside_built_in(outer: Arc<Testbed>, play: ScenarioBody) -> Result<()> {
    let site = outer.site();
    let testbed = match site.mode() {
        ClusterMode::GateOn => {
            let testbed = Testbed::open(Arc::clone(site), "built-in", outer.implementation());
            Arc::new(testbed.await?)
        }
        ClusterMode::GateOff
        | ClusterMode::Custom
        | ClusterMode::Embedded
        | ClusterMode::EmbeddedOff => Arc::clone(&outer),
    };
    let played = play(Arc::clone(&testbed)).await;
    if site.mode() != ClusterMode::GateOn {
        played?;
        return testbed.journal().read(one_at_a_time);
    }
    for (name, figure) in testbed.figures() {
        outer.figure(&name, figure);
    }
    played
        .and_then(|()| testbed.journal().read(one_at_a_time))
        .with_context(|| testbed.journal().text())
}

/// No candidate says that it leads while another one does.
fn one_at_a_time(entries: &[HistoryEntry]) -> Result<()> {
    let mut entries = entries.to_vec();
    // Events from before a kill may have been read later.
    entries.sort_by_key(|entry| entry.at);
    let intervals = work_intervals(&entries);
    for (early, late) in intervals.iter().zip(intervals.iter().skip(1)) {
        ensure!(
            early.to.is_some_and(|end| end <= late.from),
            "{} led when {} began",
            early.name,
            late.name
        );
    }
    Ok(())
}

fn start(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    testbed
        .candidate(name)
        .version(version)
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .start()
}

/// Waits until it leads, in an entry after the first `from`, and checks that it does so within the limit.
async fn follows(
    testbed: &Testbed,
    candidate: &StartedCandidate,
    (from, died): (usize, Timestamp),
    figure: &str,
) -> Result<()> {
    let limit = without_an_elector(testbed);
    let led = candidate.leads_again(from, limit + PROMPTLY).await?;
    let took = between(died, led);
    testbed.figure(figure, took);
    ensure!(took <= limit, "{figure}: after {took:?}");
    Ok(())
}

/// Without an elector each leader that dies is replaced; with one, the best leads again. With the gate on, the elector
/// that is built into kube-apiserver is in charge of a cluster without ours, and grants what its strategy allows.
async fn away(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(("example.com/note", "kept")).await?;
    let begun = testbed.note("two start without an elector");
    let mut middle = start(&testbed, "middle", "1.2.0")?;
    follows(&testbed, &middle, (0, begun), "first leader").await?;
    let worst = start(&testbed, "worst", "1.3.0")?;
    worst.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("middle", 3).await?;
    let (seen, killed) = (testbed.journal().len(), middle.kill()?);
    follows(&testbed, &worst, (seen, killed), "without an elector").await?;
    testbed.stays("worst", 2).await?;

    let best = start(&testbed, "best", "1.1.0")?;
    best.says(EventKind::Start, 0, PROMPTLY).await?;
    if testbed.site().mode() != ClusterMode::GateOn {
        testbed.stays("worst", 2).await?;
    }
    let site = testbed.site();
    let back = testbed.note("the elector comes back");
    let mut elector = site
        .elector("elector", site.mode().elector_flags().iter().copied())
        .await?;
    let led = best.leads(Duration::from_secs(60)).await?;
    testbed.figure("until the best leads again", between(back, led));
    testbed.stays("best", 3).await?;

    testbed.note("kill elector and leader");
    let seen = testbed.journal().len();
    elector.kill()?;
    let mut best = best;
    let killed = best.kill()?;
    follows(
        &testbed,
        &worst,
        (seen, killed),
        "elector and leader killed",
    )
    .await?;
    testbed.stays("worst", 2).await
}

/// A cluster that knows nothing of LeaseCandidates.
async fn not_served(testbed: Arc<Testbed>) -> Result<()> {
    testbed.note("restart without LeaseCandidates");
    testbed.site().restart(false).await?;
    testbed.write_released(("example.com/note", "kept")).await?;
    let begun = testbed.note("two start");
    let mut first = start(&testbed, "first", "1.2.0")?;
    follows(&testbed, &first, (0, begun), "first leader").await?;
    let second = start(&testbed, "second", "1.1.0")?;
    second.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("first", 3).await?;
    let (seen, killed) = (testbed.journal().len(), first.kill()?);
    follows(&testbed, &second, (seen, killed), "after a crash").await?;
    testbed.stays("second", 2).await
}

/// No elector of that strategy is there. What it would choose by is not known here, so no candidate leads.
async fn foreign_strategy(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(("example.com/note", "kept")).await?;
    let candidate = testbed
        .candidate("candidate")
        .strategy("example.com/by-temperature")
        .start()?;
    candidate.says(EventKind::Start, 0, PROMPTLY).await?;
    // Three times as long as it takes where the strategy is ours.
    sleep(FALLBACK * 3).await;
    ensure!(testbed.terms() == 0, "a candidate leads");
    let holder = testbed.lease()?.spec.holder_identity.clone();
    ensure!(holder.unwrap_or_default().is_empty(), "the lease is held");
    Ok(())
}
