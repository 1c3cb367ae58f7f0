//! API servers of two releases behind one address and with one store, as while a control plane is upgraded: leaders lead
//! on, and no process fights for its API of LeaseCandidates.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::CandidateApi;
use elector_cluster::cluster::ApiserverBeside;
use elector_cluster::release::Release;
use elector_tests::rig::{LoadBalancer, Suite, Testbed, definition, eventually};

use crate::migration::{NAMES, led, stands};
use crate::{GATE_OFF, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long("api_servers_are_upgraded_one_by_one", 150, upgraded);
    own.add_long("native_candidates_go_one_api_server_at_a_time", 300, go);
}

/// The number of times that all connections are cut, after which each of them may lead to the other API server.
const CUTS: u64 = 6;

/// The pauses of an elector between two questions for a better API, in seconds.
const ASKS_EVERY: u64 = 30;

/// Two API servers behind the address of the site.
struct MixedControlPlane {
    older: ApiserverBeside,
    newer: ApiserverBeside,
    address: LoadBalancer,
}

/// Both serve the same API, and the newer one is alone at last.
async fn upgraded(testbed: Arc<Testbed>) -> Result<()> {
    let plane = MixedControlPlane::start(&testbed, true).await?;
    let (elector, mut leader, standby) = led(&testbed, &[]).await?;
    plane.mix(&testbed).await?;

    let (killed, limit) = (leader.kill()?, crash_limit(OURS));
    testbed
        .leads_within(&standby, killed, limit, "until the next leads")
        .await?;
    let better = testbed.candidate("better").version("1.0.0").start()?;
    better.leads(PROMPTLY).await?;

    testbed.note("the newer API server alone");
    plane.address.route(vec![plane.newer.address()]);
    drop(plane.older);
    testbed.stays("better", 4).await?;
    testbed.has_begun_terms(3)?;
    let output = elector.output()?;
    let moved = output.contains("served by another API");
    ensure!(!moved, "the elector left its API:\n{output}");
    is_no_restore(&output)?;
    testbed.keep((plane.newer, plane.address));
    Ok(())
}

/// The newer one serves LeaseCandidates as custom resources alone, as those will that come without v1beta1; the definition
/// was applied before.
async fn go(testbed: Arc<Testbed>) -> Result<()> {
    let (site, custom) = (testbed.site(), CandidateApi::Elector);
    let plane = MixedControlPlane::start(&testbed, false).await?;
    definition::install(site.client()).await?;
    site.record(custom).await?;
    let (elector, mut leader, standby) = led(&testbed, &[]).await?;

    let mixed = testbed.note("both API servers");
    plane.mix(&testbed).await?;
    let moves = elector.output()?.matches("served by another API").count();
    // Each cut and each question for a better API may bring it to the other one, from where one answer brings it back.
    let most = 2 * (CUTS + mixed.elapsed().as_secs() / ASKS_EVERY + 1);
    testbed.amount("moves of the elector from API to API", moves.to_string());
    ensure!(u64::try_from(moves)? <= most, "it moved {moves} times");

    testbed.note("the newer API server alone");
    plane.address.route(vec![plane.newer.address()]);
    drop(plane.older);
    for name in NAMES {
        stands(&testbed, name, custom, mixed, true).await?;
    }
    testbed.stays(NAMES[0], 2).await?;
    testbed.has_begun_terms(1)?;

    leader.terminate()?;
    standby.leads(PROMPTLY).await?;
    leader.ends_well().await?;
    let better = testbed.candidate("better").version("1.0.0").start()?;
    better.leads(PROMPTLY * 3).await?;
    testbed.stays("better", 1).await?;
    is_no_restore(&elector.output()?)?;
    testbed.keep((plane.newer, plane.address));
    Ok(())
}

/// An API server whose cache is behind that of the other is no store that was restored from a backup.
fn is_no_restore(output: &str) -> Result<()> {
    let holds = !output.contains("restored to an older version");
    ensure!(holds, "the elector dropped what it had watched:\n{output}");
    Ok(())
}

// === impl MixedControlPlane ===

impl MixedControlPlane {
    /// Puts two API servers in the place of the site's; at first all connections lead to the older one. The newer one
    /// serves LeaseCandidates of its own, or does not.
    async fn start(testbed: &Testbed, newer_serves: bool) -> Result<Self> {
        let site = testbed.site();
        let older = site.start_beside(site.release(), true).await?;
        let newer = site.start_beside(Some(Release::NEXT), newer_serves).await?;
        site.stop().await?;
        let address = site.url().strip_prefix("https://");
        let address = address.context("a site without an address")?.parse()?;
        let address = LoadBalancer::listen(address, vec![older.address()]).await?;
        // Of the connections to the server that was killed, those that the client does not know to be closed go first.
        let answered = || async { Ok(site.client().apiserver_version().await?) };
        eventually(PROMPTLY, answered).await?;
        Ok(Self {
            older,
            newer,
            address,
        })
    }

    /// Lets connections lead to both by turns, again and again; the first leader leads on.
    async fn mix(&self, testbed: &Testbed) -> Result<()> {
        for cut in 1..=CUTS {
            testbed.note(&format!("cut all connections, time {cut}"));
            let both = vec![self.older.address(), self.newer.address()];
            self.address.route(both);
            testbed.stays(NAMES[0], 2).await?;
        }
        testbed.has_begun_terms(1)
    }
}
