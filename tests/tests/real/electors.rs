//! Leadership while electors come and go.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Implementation,
    StartedCandidate, Suite, TestProcess, Testbed, between, warm_up,
};
use tokio::time::sleep;

use crate::{COLD_START, EVERYWHERE, MODES, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, modes, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Own,
            OURS,
            modes,
            Duration::from_secs(seconds),
            run,
        );
    };
    add(
        "elector_is_killed_and_restarted",
        EVERYWHERE,
        120,
        |testbed| Box::pin(restarted(testbed)),
    );
    add("two_electors_at_once", MODES, 90, |testbed| {
        Box::pin(two_at_once(testbed))
    });
}

/// Starts an elector for the whole cluster of the scenario.
async fn elector(testbed: &Testbed, name: &str) -> Result<TestProcess> {
    testbed.note(&format!("start {name}"));
    let site = testbed.site();
    site.elector(name, site.mode().elector_flags().iter().copied())
        .await
}

async fn restarted(testbed: Arc<Testbed>) -> Result<()> {
    let mut first = elector(&testbed, "first-elector").await?;
    warm_up(testbed.site()).await?;
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let standby = testbed.candidate("standby").version("1.2.0").start()?;
    let client_go = two_of_client_go(&testbed).await?;
    let terms = testbed.terms();
    testbed.stays("leader", 1).await?;

    testbed.note("kill the elector");
    first.kill()?;
    testbed.stays("leader", 2).await?;
    // No candidate has to notice, at whatever moment the next ones are killed.
    for life in LIVES {
        let mut elector = elector(&testbed, "short-lived-elector").await?;
        sleep(life).await;
        testbed.note(&format!("kill an elector after {life:?}"));
        elector.kill()?;
    }
    let mut second = elector(&testbed, "second-elector").await?;
    // Long enough for the second one to know every record for W_max and to have taken the built-in lock over.
    testbed.stays("leader", 11).await?;
    ensure!(
        testbed.terms() == terms,
        "{} terms began where {terms} had before",
        testbed.terms()
    );
    for mut candidate in client_go {
        candidate.kill()?;
    }

    // And it does elect.
    let killed = leader.kill()?;
    let led = standby
        .leads(crash_limit(Implementation::Elector) + PROMPTLY)
        .await?;
    let took = between(killed, led);
    testbed.figure("until the next leads", took);
    ensure!(
        took <= crash_limit(Implementation::Elector),
        "the next led after {took:?}"
    );
    let (status, took) = second.terminate(Duration::from_secs(10)).await?;
    testbed.figure("until the elector has ended", took);
    ensure!(status.success(), "the elector ended with {status}");
    ensure!(
        took <= Duration::from_secs(2),
        "the elector ended after {took:?}"
    );
    testbed.stays("standby", 1).await
}

/// For how long electors live that are killed one after the other.
const LIVES: [Duration; 8] = [
    Duration::from_millis(20),
    Duration::from_millis(60),
    Duration::from_millis(150),
    Duration::from_millis(400),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_millis(100),
];

/// Two of client-go's candidates for a lease of their own, the first of which leads; none where there are none.
async fn two_of_client_go(testbed: &Testbed) -> Result<Vec<StartedCandidate>> {
    let mode = testbed.site().mode();
    if mode == ClusterMode::Custom || testbed.site().programs().interop.is_none() {
        return Ok(Vec::new());
    }
    testbed.admit(&["client-go"]).await?;
    let start = |name, version| {
        let plan = testbed
            .candidate_of(Implementation::ClientGo, name)
            .lease("client-go");
        plan.version(version).start()
    };
    let leader = start("client-go-1", "1.1.0")?;
    leader.leads(PROMPTLY).await?;
    let standby = start("client-go-2", "1.2.0")?;
    standby.says(EventKind::Start, 0, PROMPTLY).await?;
    Ok(vec![leader, standby])
}

/// Two electors decide everything twice; the later write ends in a conflict. No overlap, and no fight: the number of
/// writes is that of one elector, but for a handful.
async fn two_at_once(testbed: Arc<Testbed>) -> Result<()> {
    let mut one = elector(&testbed, "one-elector").await?;
    let _other = elector(&testbed, "other-elector").await?;
    warm_up(testbed.site()).await?;
    let start = testbed.note("two versions start");
    let mut worse = testbed.candidate("worse").version("1.2.0").start()?;
    let (_, led) = testbed.first_leader(PROMPTLY).await?;
    testbed.figure("somebody leads", between(start, led));
    ensure!(
        between(start, led) <= COLD_START,
        "nobody led for {:?}",
        between(start, led)
    );
    let mut better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    worse.says(EventKind::WorkStopped, 0, PROMPTLY).await?;
    let last = testbed.candidate("last").version("1.3.0").start()?;
    testbed.stays("better", 3).await?;

    let seen = testbed.journal().len();
    // Together with an elector, whichever of the two had more to do with it.
    one.kill()?;
    better.kill()?;
    worse
        .leads_again(seen, crash_limit(Implementation::Elector) + PROMPTLY)
        .await?;
    testbed.stays("worse", 3).await?;
    worse.terminate()?;
    last.leads(PROMPTLY).await?;
    testbed.stays("last", 1).await?;
    let _ = worse.process.exit(PROMPTLY).await?;

    let (signals, pings) = testbed
        .journal()
        .read(|entries| (signals(entries), pings(entries)));
    // Born, three grants or hand-offs with their accepts, a preference or two, and a release.
    ensure!(
        signals <= 14,
        "{signals} writes of the lease that are no renewals"
    );
    // Each candidate is asked at most once for each of the four changes, and each question may be settled once.
    ensure!(pings <= 24, "{pings} questions");
    Ok(())
}

/// Revisions of the Lease that are no renewals of one term.
pub(crate) fn signals(entries: &[HistoryEntry]) -> usize {
    let mut records = entries.iter().filter_map(|entry| match &entry.content {
        EntryContent::Lease(_, lease) => lease.record().ok(),
        _ => None,
    });
    let Some(mut before) = records.next() else {
        return 0;
    };
    let mut count = 1;
    for record in records {
        let renewal = record.holder == before.holder
            && record.term == before.term
            && record.token == before.token
            && record.renew_time != before.renew_time;
        count += usize::from(!renewal);
        before = record;
    }
    count
}

/// Changes of pingTime.
pub(crate) fn pings(entries: &[HistoryEntry]) -> usize {
    let mut last = std::collections::BTreeMap::new();
    let mut count = 0;
    for entry in entries {
        let EntryContent::Candidate(name, candidate) = &entry.content else {
            continue;
        };
        if let Some(ping) = candidate.spec.ping_time {
            count += usize::from(last.insert(name, ping) != Some(ping));
        }
    }
    count
}
