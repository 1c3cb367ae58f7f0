//! An overlay is applied, elects, survives a crash and is deleted; then unmodified client-go elects alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{ClusterMode, Implementation, StartedCandidate, Testbed, between, now};
use tokio::time::sleep;

use crate::installed::candidates::{NAMESPACE, candidate};
use crate::installed::controllers::controllers;
use crate::installed::installation::{Installation, NamespaceEnding};
use crate::installed::steps::{CRASH, ELECT, HAND_OVER, INSTALL, UNINSTALL, report};
use crate::{LEASE_DURATION, PROMPTLY, crash_limit};

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
    let judged = testbed.verdict().await;
    report(&outer, &testbed, overlay);
    lived.and(judged).with_context(|| testbed.journal().text())
}

async fn live(
    installation: &Installation,
    testbed: &Testbed,
    ending: NamespaceEnding,
) -> Result<()> {
    let install = testbed.note("apply the overlay");
    installation.apply().await?;
    let mut electors = installation.electors(testbed, "elector").await?;
    testbed.figure(INSTALL, between(install, now()));
    let start = testbed.note("two candidates start");
    let mut old = candidate(testbed, "old", "1.2.0").await?.start()?;
    // A fresh elector waits once for leases that it never saw (R6).
    let led = old.leads(LEASE_DURATION * 2 + PROMPTLY).await?;
    testbed.figure(ELECT, between(start, led));
    testbed.stays("old", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let mut better = candidate(testbed, "better", "1.1.0").await?.start()?;
    let led = better.leads(PROMPTLY).await?;
    testbed.figure(HAND_OVER, between(arrival, led));
    testbed.stays("better", 2).await?;

    if testbed.site().mode() == ClusterMode::GateOn {
        // The built-in controller is waited out by each elector for itself: the standby has seen it go 15 s ago, too.
        sleep(LEASE_DURATION).await;
    }
    testbed.note("the leader and the acting elector are killed");
    let from = testbed.journal().len();
    electors
        .first_mut()
        .context("there is no elector")?
        .kill()?;
    let killed = better.kill()?;
    let limit = crash_limit(Implementation::Elector);
    let led = old.leads_again(from, limit + PROMPTLY).await?;
    let took = between(killed, led);
    testbed.figure(CRASH, took);
    ensure!(took <= limit, "the next led after {took:?}");
    testbed.stays("old", 2).await?;

    let delete = testbed.note("delete the overlay");
    installation.delete().await?;
    for mut elector in electors.into_iter().skip(1) {
        let (status, took) = elector.terminate(PROMPTLY).await?;
        ensure!(status.success(), "an elector ended with {status}");
        ensure!(
            took <= Duration::from_secs(2),
            "an elector ended after {took:?}"
        );
    }
    installation.is_gone(ending).await?;
    testbed.figure(UNINSTALL, between(delete, now()));
    testbed.stays("old", 2).await?;

    testbed.note("client-go elects alone");
    let mut plain = plain(testbed, "plain")?;
    old.terminate()?;
    plain
        .leads(crash_limit(Implementation::ClientGo) + PROMPTLY)
        .await?;
    old.ends_well(PROMPTLY).await?;
    testbed.stays("plain", 2).await?;
    let next = self::plain(testbed, "next")?;
    plain.kill()?;
    next.leads(crash_limit(Implementation::ClientGo) + PROMPTLY)
        .await?;
    testbed.stays("next", 1).await
}

fn plain(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(Implementation::ClientGo, name);
    candidate
        .plain()
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .flag("--retry-period=1s")
        .flag("--rejoin")
        .start()
}
