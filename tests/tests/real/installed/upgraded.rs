//! An overlay of an earlier version becomes that of this one, and goes back, as its users do it: the manifests first, then
//! the electors one after the other. Candidates of both versions lead meanwhile.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{TestProcess, Testbed};

use crate::installed::candidates::{BetterAndBetter, NAMESPACE};
use crate::installed::installation::Installation;
use crate::installed::steps::{BACK, UPGRADE, report};
use crate::{LEASE_DURATION, PROMPTLY};

/// The longest hand-over just after another elector began to act: with `replace-builtin` it waits until a term of the
/// built-in controller that it may have missed is over.
const BY_A_NEW_ELECTOR: Duration = LEASE_DURATION.saturating_mul(2).saturating_add(PROMPTLY);

pub(super) async fn upgraded_and_back(outer: Arc<Testbed>, overlay: &'static str) -> Result<()> {
    let site = outer.site();
    let programs = site.programs();
    let earlier = programs.earlier_version.clone();
    let earlier = earlier.context("there is no earlier version")?;
    let earlier = Installation::of(site, earlier, overlay)?;
    let this = Installation::of(site, programs.version(), overlay)?;
    let testbed = outer.open_beside(NAMESPACE).await?;
    let lived = live(&earlier, &this, &testbed).await;
    report(&outer, &testbed, overlay);
    outer.conclude(&testbed, lived).await
}

async fn live(earlier: &Installation, this: &Installation, testbed: &Testbed) -> Result<()> {
    earlier.apply().await?;
    let electors = earlier.electors(testbed, "earlier").await?;
    let mut candidates = BetterAndBetter::new(testbed);
    // A fresh elector waits once for leases that it never saw (R6).
    candidates
        .next(&earlier.program(), "elected before", BY_A_NEW_ELECTOR)
        .await?;
    let electors = replace(earlier, this, UPGRADE, electors, &mut candidates).await?;
    replace(this, earlier, BACK, electors, &mut candidates)
        .await
        .map(drop)
}

/// Applies `to`, and replaces one elector of `from` after the other by one of it. The lease is handed over by the electors
/// of `from` under the manifests of `to`, by electors of which one is of each version, and by those of `to`.
async fn replace(
    from: &Installation,
    to: &Installation,
    step: &'static str,
    electors: Vec<TestProcess>,
    candidates: &mut BetterAndBetter<'_>,
) -> Result<Vec<TestProcess>> {
    let testbed = candidates.testbed;
    let template = to.template()?;
    let holds = usize::try_from(template.replicas)? == electors.len();
    ensure!(holds, "the versions have different numbers of electors");
    let start = testbed.note(step);
    to.apply_over().await?;
    let when = format!("{step}: manifests");
    candidates.next(&to.program(), &when, PROMPTLY).await?;
    let mut replaced = Vec::new();
    for (replica, mut elector) in electors.into_iter().enumerate() {
        let next = format!("{step}-{replica}");
        if template.surges {
            replaced.push(to.another(testbed, &next).await?);
        }
        testbed.note("end an elector");
        elector.ends_promptly().await?;
        if !template.surges {
            replaced.push(to.another(testbed, &next).await?);
        }
        let (build, electors) = if replica == 0 {
            (from, "both versions")
        } else {
            (to, "electors")
        };
        let when = format!("{step}: {electors}");
        candidates
            .next(&build.program(), &when, BY_A_NEW_ELECTOR)
            .await?;
    }
    testbed.figure(step, start.elapsed());
    Ok(replaced)
}
