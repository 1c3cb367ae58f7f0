//! The cluster changes under its elector and candidates: LeaseCandidates come and go, in one API and in another.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_api::CandidateApi;
use elector_tests::rig::{
    EntryContent, HistoryEntry, JournalMark, StartedCandidate, Suite, TestProcess, Testbed,
    definition, warm_up,
};

use crate::{CUSTOM, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, CUSTOM);
    let removed = removed_and_installed;
    own.add(
        "definition_is_removed_and_installed_while_led",
        100,
        removed,
    );
    own.add("native_candidates_come_and_go_while_led", 200, come_and_go);
}

/// The longest lease duration here.
const LONG: Duration = Duration::from_secs(30);

/// The time within which a candidate notices a better API: it asks every 60 to 75 s.
const NOTICED: Duration = Duration::from_secs(75 + 10);

/// The candidates.
pub(crate) const NAMES: [&str; 2] = ["leader", "standby"];

/// An elector that elects, and two candidates the first of which leads. `flags` are for the candidates.
pub(crate) async fn led(
    testbed: &Testbed,
    flags: &[&str],
) -> Result<(TestProcess, StartedCandidate, StartedCandidate)> {
    let site = testbed.site();
    let elector = site.start_elector("elector").await?;
    warm_up(site).await?;
    let start = |name, version| {
        let plan = testbed.candidate(name).version(version);
        let plan = flags.iter().fold(plan, |plan, flag| plan.flag(flag));
        plan.start()
    };
    let leader = start(NAMES[0], "1.1.0")?;
    // The Lease has to be absent for as long as any of them may hold it (R6).
    leader.leads(LONG + PROMPTLY).await?;
    let standby = start(NAMES[1], "1.2.0")?;
    testbed.registered(NAMES[1], JournalMark::BEGINNING).await?;
    Ok((elector, leader, standby))
}

/// Waits until a candidate's object is there in this API after that mark, or until it is gone.
pub(crate) async fn stands(
    testbed: &Testbed,
    name: &str,
    api: CandidateApi,
    mark: JournalMark,
    there: bool,
) -> Result<()> {
    let newest = |entries: &[HistoryEntry]| {
        let mut entries = mark.since(entries).iter().rev();
        entries.find_map(|entry| match &entry.content {
            EntryContent::Candidate(found, object) if found == name && object.api == api => {
                Some(true)
            }
            EntryContent::CandidateGone(found, object) if found == name && object.api == api => {
                Some(false)
            }
            _ => None,
        })
    };
    let look = |entries: &[HistoryEntry]| (newest(entries) == Some(there)).then_some(());
    let what = format!("it is {there} that {name} stands in {api}");
    testbed.journal().until(&what, NOTICED, look).await
}

/// Without LeaseCandidates there is no election, but a leader leads on; with them all is as before.
async fn removed_and_installed(testbed: Arc<Testbed>) -> Result<()> {
    let (_elector, mut leader, standby) = led(&testbed, &[]).await?;
    let client = testbed.site().client();
    testbed.note("remove the definition");
    definition::remove(client).await?;
    testbed.stays("leader", 4).await?;

    let installed = testbed.note("install the definition");
    definition::install(client).await?;
    testbed.site().record(CandidateApi::Elector).await?;
    for name in NAMES {
        // Its longest pause after failures is 5 s.
        testbed.registered(name, installed).await?;
    }
    testbed.stays("leader", 2).await?;
    testbed.has_begun_terms(1)?;

    let (killed, limit) = (leader.kill()?, crash_limit(OURS));
    testbed
        .leads_within(&standby, killed, limit, "until the next leads")
        .await?;
    testbed.stays("standby", 1).await
}

/// The API server is restarted with LeaseCandidates of its own, and again without. The lease is a long one, so that
/// its holder outlives the restarts, in which no holder can renew.
async fn come_and_go(testbed: Arc<Testbed>) -> Result<()> {
    let (site, custom) = (testbed.site(), CandidateApi::Elector);
    let long = ["--lease-duration=30s", "--renew-deadline=24s"];
    let (_elector, mut leader, standby) = led(&testbed, &long).await?;
    let native = CandidateApi::V1Beta1;

    let restarted = testbed.note("restart the API server with candidates of its own");
    site.restart(true).await?;
    site.record(native).await?;
    for name in NAMES {
        stands(&testbed, name, native, restarted, true).await?;
        stands(&testbed, name, custom, restarted, false).await?;
    }
    testbed.stays("leader", 1).await?;
    testbed.has_begun_terms(1)?;

    // The elector knows the standby where it is now.
    leader.terminate()?;
    standby.leads(PROMPTLY).await?;
    leader.ends_well().await?;

    let restarted = testbed.note("restart the API server without candidates of its own");
    site.restart(false).await?;
    stands(&testbed, NAMES[1], custom, restarted, true).await?;
    testbed.stays("standby", 1).await?;
    testbed.has_begun_terms(2)?;

    let better = testbed.candidate("better").version("1.0.0").start()?;
    better.leads(PROMPTLY * 3).await?;
    testbed.stays("better", 1).await
}
