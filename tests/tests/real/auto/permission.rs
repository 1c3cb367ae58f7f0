//! An elector that runs and may not write Leases any more.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{EventKind, TestProcess, Testbed, between, warm_up};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};

use super::{follows, start};
use crate::PROMPTLY;

/// The name of its ClusterRole in `manifests/base`.
const ELECTOR: &str = "elector";

/// Its verbs on Leases by `manifests/base`, and those left without the right to write.
const ALL: [&str; 5] = ["get", "list", "watch", "create", "update"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// The time until the best leads again once the elector may write: it tries again after a pause that doubles up to 5 s.
const BEST_AGAIN: Duration = Duration::from_secs(15);

/// With its rights the elector elects; without them leaders that die are replaced all the same; with them again, the best
/// leads again.
pub(super) async fn may_not_write(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let mut elector = site
        .elector("elector", site.mode().elector_flags().iter().copied())
        .await?;
    warm_up(site).await?;
    let mut best = start(&testbed, "best", "1.1.0")?;
    best.leads(PROMPTLY).await?;
    let mut next = start(&testbed, "next", "1.2.0")?;
    next.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("best", 2).await?;

    testbed.note("the elector may not write Leases any more");
    grant(&testbed, &READ).await?;
    let (seen, killed) = (testbed.journal().len(), best.kill()?);
    follows(&testbed, &next, (seen, killed), "after a crash").await?;
    refused(&mut elector).await?;
    let last = start(&testbed, "last", "1.3.0")?;
    last.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("next", 2).await?;
    let (seen, killed) = (testbed.journal().len(), next.kill()?);
    follows(&testbed, &last, (seen, killed), "after another crash").await?;
    let best = start(&testbed, "best-again", "1.1.0")?;
    best.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("last", 3).await?;

    let back = testbed.note("the elector may write Leases again");
    grant(&testbed, &ALL).await?;
    let led = best.leads(BEST_AGAIN).await?;
    testbed.figure("until the best leads again", between(back, led));
    testbed.stays("best-again", 3).await?;
    let (status, _) = elector.terminate(PROMPTLY).await?;
    ensure!(status.success(), "the elector ended with {status}");
    Ok(())
}

/// Lets the service account do this with Leases, and no more.
async fn grant(testbed: &Testbed, verbs: &[&str]) -> Result<()> {
    let roles: Api<ClusterRole> = Api::all(testbed.site().client().clone());
    let mut role = roles.get(ELECTOR).await?;
    let of_leases = |resources: &Option<Vec<String>>| {
        let resources = resources.as_deref().unwrap_or_default();
        resources.iter().any(|resource| resource == "leases")
    };
    let mut rules = role.rules.iter_mut().flatten();
    let rule = rules.find(|rule| of_leases(&rule.resources));
    let rule = rule.context("the ClusterRole says nothing of leases")?;
    rule.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    roles
        .replace(ELECTOR, &PostParams::default(), &role)
        .await?;
    Ok(())
}

/// The elector has tried to write the Lease and says what it lacks.
async fn refused(elector: &mut TestProcess) -> Result<()> {
    let what = ["forbidden", "update", "leases"];
    let says = |output: &str| {
        let mut lines = output.lines();
        lines
            .any(|line| what.iter().all(|word| line.contains(word)))
            .then_some(())
    };
    elector
        .output_until("that it may not update leases", PROMPTLY, says)
        .await
}
