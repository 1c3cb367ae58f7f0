//! An overlay is applied, elects, survives a crash and is deleted; then unmodified client-go elects alone.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use elector_tests::rig::{ClusterMode, Implementation, StartedCandidate, Testbed, between};
use tokio::time::sleep;

use crate::installed::candidates::{NAMESPACE, candidate};
use crate::installed::installation::{Installation, NamespaceEnding, controllers};
use crate::installed::steps::{CRASH, ELECT, HAND_OVER, INSTALL, UNINSTALL, report};
use crate::{CLIENT_GO, LEASE_DURATION, OURS, PROMPTLY, crash_limit};

pub(super) async fn whole_life(
    outer: Arc<Testbed>,
    overlay: &'static str,
    ending: NamespaceEnding,
) -> Result<()> {
    let site = outer.site();
    let _controllers = match ending {
        NamespaceEnding::ByKubernetes => Some(controllers(site, "namespace-controller").await?),
        NamespaceEnding::OfAllElse => None,
    };
    let version = site.programs().version();
    let installation = Installation::of(site, version, overlay)?;
    let testbed = Testbed::open(Arc::clone(site), NAMESPACE, Implementation::ClientGo).await?;
    let lived = live(&installation, &testbed, ending).await;
    report(&outer, &testbed, overlay);
    outer.conclude(&testbed, lived).await
}

async fn live(
    installation: &Installation,
    testbed: &Testbed,
    ending: NamespaceEnding,
) -> Result<()> {
    let install = testbed.note("apply the overlay");
    installation.apply().await?;
    let mut electors = installation.electors(testbed, "elector").await?;
    testbed.figure(INSTALL, install.elapsed());
    let start = testbed.note("two candidates start");
    let mut old = candidate(testbed, "old", "1.2.0").await?.start()?;
    // A fresh elector waits once for leases that it never saw (R6).
    let led = old.leads(LEASE_DURATION * 2 + PROMPTLY).await?;
    testbed.figure(ELECT, between(start.at, led));
    testbed.stays("old", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let mut better = candidate(testbed, "better", "1.1.0").await?.start()?;
    let led = better.leads(PROMPTLY).await?;
    testbed.figure(HAND_OVER, between(arrival.at, led));
    testbed.stays("better", 2).await?;

    if testbed.site().mode() == ClusterMode::GateOn {
        // The built-in controller is waited out by each elector for itself: the standby has seen it go 15 s ago, too.
        sleep(LEASE_DURATION).await;
    }
    testbed.note("the leader and the acting elector are killed");
    electors
        .first_mut()
        .context("there is no elector")?
        .kill()?;
    let killed = better.kill()?;
    testbed
        .leads_within(&old, killed, crash_limit(OURS), CRASH)
        .await?;
    testbed.stays("old", 2).await?;

    let delete = testbed.note("delete the overlay");
    installation.delete().await?;
    for mut elector in electors.into_iter().skip(1) {
        elector.ends_promptly().await?;
    }
    installation.is_gone(ending).await?;
    testbed.figure(UNINSTALL, delete.elapsed());
    testbed.stays("old", 2).await?;

    testbed.note("client-go elects alone");
    let patience = crash_limit(CLIENT_GO) + PROMPTLY;
    let mut plain = plain(testbed, "plain")?;
    old.terminate()?;
    plain.leads(patience).await?;
    old.ends_well().await?;
    testbed.stays("plain", 2).await?;
    let next = self::plain(testbed, "next")?;
    plain.kill()?;
    next.leads(patience).await?;
    testbed.stays("next", 1).await
}

fn plain(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(Implementation::ClientGo, name);
    candidate.plain().short().flag("--rejoin").start()
}
