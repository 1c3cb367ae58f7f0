//! Leadership while electors come and go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    ClusterMode, EntryContent, HistoryEntry, Implementation, StartedCandidate, Suite, Testbed,
    warm_up,
};
use tokio::time::sleep;

use crate::{COLD_START, EVERYWHERE, MODES, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut everywhere = suite.own(OURS, EVERYWHERE).every_change_on(&[]);
    everywhere.add("elector_is_killed_and_restarted", 120, restarted);
    // The lock of the built-in controller keeps two electors apart where the gate is on, and elsewhere both elect at once.
    let modes = &[ClusterMode::GateOn, ClusterMode::Custom];
    let mut most = suite.own(OURS, MODES).every_change_on(modes);
    most.add("two_electors_at_once", 90, two_at_once);
}

/// The lives of electors that are killed one after the other, in milliseconds.
const LIVES: [u64; 8] = [20, 60, 150, 400, 1_000, 2_000, 4_000, 100];

async fn restarted(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut first = site.start_elector("first-elector").await?;
    warm_up(site).await?;
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
        let mut elector = site.start_elector("short-lived-elector").await?;
        sleep(Duration::from_millis(life)).await;
        testbed.note(&format!("kill an elector after {life} ms"));
        elector.kill()?;
    }
    let mut second = site.start_elector("second-elector").await?;
    // Long enough for the second one to know every record for W_max and to have taken the built-in lock over.
    testbed.stays("leader", 11).await?;
    testbed.has_begun_terms(terms)?;
    for mut candidate in client_go {
        candidate.kill()?;
    }

    // And it does elect.
    let (killed, limit) = (leader.kill()?, crash_limit(OURS));
    testbed
        .leads_within(&standby, killed, limit, "until the next leads")
        .await?;
    let took = second.ends_promptly().await?;
    testbed.figure("until the elector has ended", took);
    testbed.stays("standby", 1).await
}

/// Two of client-go's candidates for a lease of their own, the first of which leads; none where there are none.
pub(crate) async fn two_of_client_go(testbed: &Testbed) -> Result<Vec<StartedCandidate>> {
    let site = testbed.site();
    if site.mode() == ClusterMode::Custom || site.programs().interop.is_none() {
        return Ok(Vec::new());
    }
    testbed.admit(&["client-go"]).await?;
    let start = |name, version| {
        let plan = testbed.candidate_of(Implementation::ClientGo, name);
        let plan = plan.lease("client-go").version(version);
        plan.flag("--rejoin").start()
    };
    let leader = start("client-go-1", "1.1.0")?;
    leader.leads(PROMPTLY).await?;
    let standby = start("client-go-2", "1.2.0")?;
    standby.begins().await?;
    Ok(vec![leader, standby])
}

/// Two electors decide everything twice; the later write ends in a conflict. No overlap, and no fight: the number of
/// writes is that of one elector, but for a handful.
async fn two_at_once(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut one = site.start_elector("one-elector").await?;
    let _other = site.start_elector("other-elector").await?;
    warm_up(site).await?;
    let start = testbed.note("two versions start");
    let mut worse = testbed.candidate("worse").version("1.2.0").start()?;
    testbed
        .leads_within(&worse, start, COLD_START, "one leads")
        .await?;
    let mut better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    worse.stops(start).await?;
    let last = testbed.candidate("last").version("1.3.0").start()?;
    testbed.stays("better", 3).await?;

    // Together with an elector, whichever of the two had more to do with it.
    one.kill()?;
    let (killed, limit) = (better.kill()?, crash_limit(OURS));
    worse.leads_since(killed, limit + PROMPTLY).await?;
    testbed.stays("worse", 3).await?;
    worse.terminate()?;
    last.leads(PROMPTLY).await?;
    testbed.stays("last", 1).await?;
    let _ = worse.process.exit(PROMPTLY).await?;
    // Born, three grants or hand-offs with their accepts, a preference or two, and a release. Each candidate is asked at
    // most once for each of the four changes, and each question may be settled once.
    few_writes(&testbed, 14, 24)
}

/// Checks how many revisions of the Lease are no renewals of one term, and how often candidates were pinged.
pub(crate) fn few_writes(testbed: &Testbed, most_signals: usize, most_pings: usize) -> Result<()> {
    let journal = testbed.journal();
    let (signals, pings) = journal.read(|entries| (signals(entries), pings(entries)));
    println!("{signals} writes of the lease that are no renewals, {pings} pings");
    let holds = signals <= most_signals;
    ensure!(holds, "{signals} writes of the lease that are no renewals");
    ensure!(pings <= most_pings, "{pings} pings");
    Ok(())
}

fn signals(entries: &[HistoryEntry]) -> usize {
    let records: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.content {
            EntryContent::Lease(_, lease) => lease.record().ok(),
            _ => None,
        })
        .collect();
    let signals = records.windows(2).filter(|pair| {
        let (before, record) = (&pair[0], &pair[1]);
        let same = record.holder == before.holder
            && record.term == before.term
            && record.token == before.token;
        !same || record.renew_time == before.renew_time
    });
    signals.count() + usize::from(!records.is_empty())
}

/// Changes of pingTime.
fn pings(entries: &[HistoryEntry]) -> usize {
    let mut last = BTreeMap::new();
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
