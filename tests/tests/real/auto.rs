//! Candidates whose elector is away: the quality of the choice suffers, and there is a leader.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{ClusterMode, StartedCandidate, Suite, Testbed, warm_up};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};

use crate::restored::one_at_a_time;
use crate::{EVERYWHERE, FALLBACK, GATE_OFF, OURS, PROMPTLY, SHORT_LEASE, WITHOUT_GATE};

pub(crate) fn add(suite: &mut Suite) {
    let mut everywhere = suite.own(OURS, EVERYWHERE).every_change_on(&[]);
    everywhere.add("elector_is_away_and_comes_back", 90, away);
    // With the gate on, the built-in controller elects as soon as ours may not.
    let mut without_gate = suite.own(OURS, WITHOUT_GATE).every_change_on(GATE_OFF);
    without_gate.add("elector_may_not_write_any_more", 110, may_not_write);
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("no_lease_candidates_are_served", 40, not_served);
}

/// The longest gap after the death of a leader without an elector: with the gate on, a ping of the built-in controller
/// begins the wait for a grant anew, once.
fn without_an_elector(testbed: &Testbed) -> Duration {
    let waits = 1 + u32::from(testbed.site().mode() == ClusterMode::GateOn);
    SHORT_LEASE + FALLBACK * waits + Duration::from_secs(1)
}

fn start(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    testbed.candidate(name).version(version).short().start()
}

/// Kills the leader; the next one leads in time.
async fn fails_over(
    testbed: &Testbed,
    leader: &mut StartedCandidate,
    next: &StartedCandidate,
    figure: &str,
) -> Result<()> {
    let (killed, limit) = (leader.kill()?, without_an_elector(testbed));
    testbed.leads_within(next, killed, limit, figure).await?;
    testbed.stays(next.name(), 2).await
}

/// Leaders die and are not stopped, and no two lead at once. With the gate on, the built-in controller elects when our
/// elector is away. It follows other rules, counts no terms for one, so that what is written then is not judged by ours.
async fn away(outer: Arc<Testbed>) -> Result<()> {
    if outer.site().mode() != ClusterMode::GateOn {
        return away_and_back(&outer).await;
    }
    let testbed = outer.open_beside("built-in").await?;
    let played = away_and_back(&testbed).await;
    for (name, figure) in testbed.figures() {
        outer.figure(&name, figure);
    }
    played.with_context(|| testbed.journal().text())
}

/// Without an elector each leader that dies is replaced; with one, the best leads again. With the gate on, the elector
/// that is built into kube-apiserver is in charge of a cluster without ours, and grants what its strategy allows.
async fn away_and_back(testbed: &Testbed) -> Result<()> {
    let (site, limit) = (testbed.site(), without_an_elector(testbed));
    testbed.write_released(("example.com/note", "kept")).await?;
    let begun = testbed.note("two start without an elector");
    let mut middle = start(testbed, "middle", "1.2.0")?;
    testbed
        .leads_within(&middle, begun, limit, "first leader")
        .await?;
    let worst = start(testbed, "worst", "1.3.0")?;
    worst.begins().await?;
    testbed.stays("middle", 3).await?;
    fails_over(testbed, &mut middle, &worst, "without an elector").await?;

    let mut best = start(testbed, "best", "1.1.0")?;
    best.begins().await?;
    if site.mode() != ClusterMode::GateOn {
        testbed.stays("worst", 2).await?;
    }
    let back = testbed.note("the elector comes back");
    let mut elector = site.start_elector("elector").await?;
    best.leads(Duration::from_secs(60)).await?;
    testbed.figure("until the best leads again", back.elapsed());
    testbed.stays("best", 3).await?;

    testbed.note("kill elector and leader");
    elector.kill()?;
    fails_over(testbed, &mut best, &worst, "elector and leader killed").await?;
    one_at_a_time(testbed, 4)
}

/// A cluster that knows nothing of LeaseCandidates.
async fn not_served(testbed: Arc<Testbed>) -> Result<()> {
    testbed.note("restart without LeaseCandidates");
    testbed.site().restart(false).await?;
    testbed.write_released(("example.com/note", "kept")).await?;
    let begun = testbed.note("two start");
    let mut first = start(&testbed, "first", "1.2.0")?;
    let limit = without_an_elector(&testbed);
    testbed
        .leads_within(&first, begun, limit, "first leader")
        .await?;
    let second = start(&testbed, "second", "1.1.0")?;
    second.begins().await?;
    testbed.stays("first", 3).await?;
    fails_over(&testbed, &mut first, &second, "after a crash").await
}

/// Its verbs on Leases by `manifests/base`, and those left without the right to write.
const ALL: [&str; 5] = ["get", "list", "watch", "create", "update"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// The time until the best leads again once the elector may write: it tries again after a pause that doubles up to 5 s.
const BEST_AGAIN: Duration = Duration::from_secs(15);

/// With its rights the elector elects; without them leaders that die are replaced all the same; with them again, the best
/// leads again.
async fn may_not_write(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut elector = site.start_elector("elector").await?;
    warm_up(site).await?;
    let mut best = start(&testbed, "best", "1.1.0")?;
    best.leads(PROMPTLY).await?;
    let mut next = start(&testbed, "next", "1.2.0")?;
    next.begins().await?;
    testbed.stays("best", 2).await?;

    testbed.note("the elector may not write Leases any more");
    grant(&testbed, &READ).await?;
    fails_over(&testbed, &mut best, &next, "after a crash").await?;
    elector
        .writes(&["forbidden", "update", "leases"], PROMPTLY)
        .await?;
    let last = start(&testbed, "last", "1.3.0")?;
    last.begins().await?;
    testbed.stays("next", 2).await?;
    fails_over(&testbed, &mut next, &last, "after another crash").await?;
    let best = start(&testbed, "best-again", "1.1.0")?;
    best.begins().await?;
    testbed.stays("last", 3).await?;

    let back = testbed.note("the elector may write Leases again");
    grant(&testbed, &ALL).await?;
    let figure = "until the best leads again";
    testbed
        .leads_within(&best, back, BEST_AGAIN, figure)
        .await?;
    testbed.stays("best-again", 3).await?;
    elector.ends_promptly().await.map(drop)
}

/// Lets the service account of electors do this with Leases, and no more.
async fn grant(testbed: &Testbed, verbs: &[&str]) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(testbed.site().client().clone());
    let mut role = roles.get("elector").await?;
    let mut rules = role.rules.iter_mut().flatten();
    let rule = rules.find(|rule| {
        let mut resources = rule.resources.iter().flatten();
        resources.any(|resource| resource == "leases")
    });
    let rule = rule.context("the ClusterRole says nothing of leases")?;
    rule.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    let parameters = PostParams::default();
    roles.replace("elector", &parameters, &role).await?;
    Ok(())
}
