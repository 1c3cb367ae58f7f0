//! The cluster changes under its elector and candidates: LeaseCandidates come and go, in one API and in another.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::CandidateApi;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, HistoryEntry, Implementation, StartedCandidate,
    Suite, TestProcess, Testbed, between, definition, warm_up,
};

use crate::{OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        let lasts = Duration::from_secs(seconds);
        suite.add(
            name,
            ClusterChoice::Own,
            OURS,
            &[ClusterMode::Custom],
            lasts,
            run,
        );
    };
    add(
        "definition_is_removed_and_installed_while_led",
        100,
        |testbed| Box::pin(removed_and_installed(testbed)),
    );
    add("native_candidates_come_and_go_while_led", 200, |testbed| {
        Box::pin(come_and_go(testbed))
    });
}

/// The longest lease duration here.
const LONG: Duration = Duration::from_secs(30);

/// The time within which a candidate notices a better API: it asks every 60 to 75 s.
const NOTICED: Duration = Duration::from_secs(75 + 10);

/// An elector that elects, and two candidates one of which leads. `flags` are for the candidates.
async fn led(
    testbed: &Testbed,
    flags: &[&str],
) -> Result<(TestProcess, StartedCandidate, StartedCandidate)> {
    let site = testbed.site();
    let elector = site
        .elector("elector", site.mode().elector_flags().iter().copied())
        .await?;
    warm_up(site).await?;
    let start = |name, version| {
        let plan = testbed.candidate(name).version(version);
        flags
            .iter()
            .fold(plan, |plan, flag| plan.flag(flag))
            .start()
    };
    let leader = start("leader", "1.1.0")?;
    // The Lease has to be absent for as long as any of them may hold it (R6).
    leader.leads(LONG + PROMPTLY).await?;
    let standby = start("standby", "1.2.0")?;
    registered(testbed, "standby", site.candidate_api(), 0, PROMPTLY).await?;
    Ok((elector, leader, standby))
}

/// Waits until a candidate's object is there in this API, in an entry of the journal after the first `from`.
async fn registered(
    testbed: &Testbed,
    name: &str,
    api: CandidateApi,
    from: usize,
    patience: Duration,
) -> Result<()> {
    let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(found, object) if found == name && object.api == api);
    let what = format!("{name} is registered in {api}");
    testbed
        .journal()
        .until(&what, patience, |entries| {
            entries[from..].iter().any(there).then_some(())
        })
        .await
}

/// Without LeaseCandidates there is no election, but a leader leads on; with them all is as before.
async fn removed_and_installed(testbed: Arc<Testbed>) -> Result<()> {
    let (_elector, mut leader, standby) = led(&testbed, &[]).await?;
    let client = testbed.site().client().clone();

    testbed.note("remove the definition");
    definition::remove(&client).await?;
    testbed.stays("leader", 4).await?;

    let seen = testbed.journal().len();
    testbed.note("install the definition");
    definition::install(&client).await?;
    testbed.site().record(CandidateApi::Elector).await?;
    for name in ["leader", "standby"] {
        // Its longest pause after failures is 5 s.
        registered(&testbed, name, CandidateApi::Elector, seen, PROMPTLY).await?;
    }
    testbed.stays("leader", 2).await?;
    ensure!(testbed.terms() == 1, "{} terms began", testbed.terms());

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
    testbed.stays("standby", 1).await
}

/// The API server is restarted with LeaseCandidates of its own, and again without. The lease is a long one, so that
/// its holder outlives the restarts, in which no holder can renew.
async fn come_and_go(testbed: Arc<Testbed>) -> Result<()> {
    let long = ["--lease-duration=30s", "--renew-deadline=24s"];
    let (_elector, mut leader, standby) = led(&testbed, &long).await?;
    let native = CandidateApi::V1Beta1;

    restart(&testbed, true).await?;
    testbed.site().record(native).await?;
    for name in ["leader", "standby"] {
        registered(&testbed, name, native, 0, NOTICED).await?;
        gone(&testbed, name, CandidateApi::Elector).await?;
    }
    testbed.stays("leader", 1).await?;
    ensure!(testbed.terms() == 1, "{} terms began", testbed.terms());

    // The elector knows the standby where it is now.
    leader.terminate()?;
    standby.leads(PROMPTLY).await?;
    leader.ends_well(PROMPTLY).await?;

    let seen = testbed.journal().len();
    restart(&testbed, false).await?;
    registered(
        &testbed,
        "standby",
        CandidateApi::Elector,
        seen,
        Duration::from_secs(30),
    )
    .await?;
    testbed.stays("standby", 1).await?;
    ensure!(testbed.terms() == 2, "{} terms began", testbed.terms());

    let better = testbed.candidate("better").version("1.0.0").start()?;
    better.leads(PROMPTLY * 3).await?;
    testbed.stays("better", 1).await
}

/// Restarts the API server.
async fn restart(testbed: &Testbed, serve_candidates: bool) -> Result<()> {
    let own = if serve_candidates { "with" } else { "without" };
    testbed.note(&format!(
        "restart the API server {own} candidates of its own"
    ));
    testbed.site().restart(serve_candidates).await
}

/// Waits until a candidate has cleaned up in the API that it used before.
async fn gone(testbed: &Testbed, name: &str, api: CandidateApi) -> Result<()> {
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
    testbed.journal().until(&what, PROMPTLY, left).await
}
