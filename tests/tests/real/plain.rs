//! Plain candidates, which need no elector, and share a lease with client-go's plain election.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use elector_tests::rig::{JournalMark, StartedCandidate, Suite, Testbed};
use kube::api::ListParams;

use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, GATE_OFF, OURS, PROMPTLY, SHORT_LEASE};

pub(crate) fn add(suite: &mut Suite) {
    let mut everywhere = suite.shared(OURS, EVERYWHERE).every_change_on(GATE_OFF);
    everywhere.add("plain_candidates_follow_each_other", 25, among_ours);
    let mut shared = suite
        .shared(CLIENT_GO, CLIENT_GO_MODES)
        .every_change_on(GATE_OFF);
    shared.add("plain_candidates_beside_client_go", 40, with_client_go);
}

/// The longest gap from a crash to the next plain candidate of ours, on a machine that is busy with all the other scenarios.
const AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(2));

/// The same for client-go, which looks every 1 s to 2.2 s, at records of whole seconds.
const CLIENT_GO_AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(4));

/// The longest gap from a release to the next one of ours: before the lease of one that is not released would expire.
const AFTER_A_RELEASE: Duration = Duration::from_secs(2);

/// The number of releases of which ours has to be the first to take one.
const RELEASES: usize = 4;

/// The annotation that the test writes, as a deployment tool might.
const NOTE: (&str, &str) = ("example.com/note", "kept");

fn ours(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    testbed.candidate_of(OURS, name).plain().short().start()
}

fn theirs(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(CLIENT_GO, name).plain().short();
    candidate.flag("--rejoin").start()
}

/// Labels and annotations of strangers are there, whoever has written the Lease since.
fn is_kept(testbed: &Testbed) -> Result<()> {
    let lease = testbed.lease()?;
    let has = |map: &Option<BTreeMap<String, String>>| {
        let value = map.as_ref().and_then(|map| map.get(NOTE.0));
        value.map(String::as_str) == Some(NOTE.1)
    };
    ensure!(has(&lease.metadata.labels), "a label is gone");
    ensure!(has(&lease.metadata.annotations), "an annotation is gone");
    Ok(())
}

/// Ends the leader; the next one leads soon after the end of its work.
async fn hands_over(
    testbed: &Testbed,
    leader: &mut StartedCandidate,
    next: &StartedCandidate,
) -> Result<()> {
    let mut released: JournalMark = leader.terminate()?;
    released.at = leader.stops(released).await?;
    let figure = "from the end of the work to the next";
    testbed
        .leads_within(next, released, AFTER_A_RELEASE, figure)
        .await?;
    leader.ends_well().await
}

async fn among_ours(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(NOTE).await?;
    let start = testbed.note("a plain candidate starts");
    let mut first = ours(&testbed, "first")?;
    testbed
        .leads_within(&first, start, PROMPTLY, "cold start")
        .await?;
    let mut second = ours(&testbed, "second")?;
    second.begins().await?;
    testbed.stays("first", 3).await?;
    hands_over(&testbed, &mut first, &second).await?;

    let third = ours(&testbed, "third")?;
    third.begins().await?;
    testbed.stays("second", 3).await?;
    let (killed, figure) = (second.kill()?, "from the kill to the next");
    testbed
        .leads_within(&third, killed, AFTER_A_CRASH, figure)
        .await?;
    testbed.stays("third", 2).await?;
    is_kept(&testbed)?;
    let candidates = testbed.candidates();
    let registered = candidates.list(&ListParams::default()).await?.items;
    ensure!(registered.is_empty(), "a plain candidate registered");
    Ok(())
}

async fn with_client_go(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(NOTE).await?;
    let mut first = ours(&testbed, "first")?;
    first.leads(PROMPTLY).await?;
    let mut theirs_one = theirs(&testbed, "theirs-1")?;
    theirs_one.begins().await?;
    // It respects our lease.
    testbed.stays("first", 4).await?;

    // It takes the lease of ours that has died.
    let (killed, figure) = (first.kill()?, "from our crash to client-go");
    testbed
        .leads_within(&theirs_one, killed, CLIENT_GO_AFTER_A_CRASH, figure)
        .await?;
    let mut second = ours(&testbed, "second")?;
    second.begins().await?;
    // We respect its lease, and take it when it has died.
    testbed.stays("theirs-1", 3).await?;
    let (killed, figure) = (theirs_one.kill()?, "from client-go's crash to ours");
    testbed
        .leads_within(&second, killed, AFTER_A_CRASH, figure)
        .await?;

    // Released while two wait: one of ours is there in milliseconds, client-go looks once in a while. The moment of that look
    // may be the very one of a release, so ours has to be the first in one of a few.
    let mut theirs_first = Vec::new();
    for attempt in 0..RELEASES {
        let third = ours(&testbed, &format!("third-{attempt}"))?;
        third.begins().await?;
        let name = format!("theirs-2-{attempt}");
        let mut theirs_two = theirs(&testbed, &name)?;
        theirs_two.begins().await?;
        testbed.stays(second.name(), 3).await?;
        let led = hands_over(&testbed, &mut second, &third).await;
        let Err(late) = led else {
            testbed.stays(third.name(), 3).await?;
            return is_kept(&testbed);
        };
        // Nothing but that look excuses it.
        let held = testbed.lease()?.spec.holder_identity.clone();
        ensure!(held.as_deref() == Some(&name), "{late:#}");
        theirs_first.push(name);
        second.ends_well().await?;
        let (killed, figure) = (theirs_two.kill()?, "from client-go's crash to ours");
        testbed
            .leads_within(&third, killed, AFTER_A_CRASH, figure)
            .await?;
        second = third;
    }
    bail!("client-go was the first after each release: {theirs_first:?}")
}
