//! Events on the Lease, as `kubectl describe lease` shows them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_tests::rig::{ClusterChoice, Suite, Testbed};

use crate::taken::take;
use crate::{EVERYWHERE, MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let lasts = Duration::from_secs(15);
    let (name, choice) = ("election_is_told_in_events", ClusterChoice::Shared);
    suite.add(name, choice, OURS, EVERYWHERE, lasts, |testbed| {
        Box::pin(told(testbed))
    });
    let (name, choice) = (
        "candidates_tell_of_their_terms_in_events",
        ClusterChoice::Shared,
    );
    suite.add(name, choice, OURS, MODES, lasts, |testbed| {
        Box::pin(told_by_candidates(testbed))
    });
}

/// Candidates tell of their terms on the Lease, where their account may, each apart from what the elector tells of the
/// same change.
async fn told_by_candidates(testbed: Arc<Testbed>) -> Result<()> {
    let start = |name, version| {
        let candidate = testbed.candidate(name).version(version);
        candidate.flag("--record-events").start()
    };
    let mut silent = start("silent", "1.3.0")?;
    silent.leads(PROMPTLY).await?;
    let refused = |output: &str| {
        let refusal = "create events.events.k8s.io in namespace ";
        let mut lines = output.lines();
        lines
            .any(|line| {
                line.contains(refusal) && line.contains("RBAC does not grant the verb create")
            })
            .then_some(())
    };
    let process = &mut silent.process;
    process.output_until("a refusal", PROMPTLY, refused).await?;
    testbed.stays("silent", 1).await?;
    testbed.admit_events().await?;

    let first = start("first", "1.2.0")?;
    first.leads(PROMPTLY).await?;
    let mut better = start("better", "1.1.0")?;
    better.leads(PROMPTLY).await?;
    let by_elector = "elector.dev/elector better leads in term 3: first handed over";
    let by_candidate = [
        "Normal LeadershipHandedOver",
        "elector.dev/candidate first handed the lease over to better after term 2",
    ];
    testbed.describes(&by_candidate, PROMPTLY).await?;
    testbed
        .describes(&["Normal HandedOver", by_elector], PROMPTLY)
        .await?;
    let seen = testbed.journal().len();
    better.terminate()?;
    better.ends_well(PROMPTLY).await?;
    first.leads_again(seen, PROMPTLY).await?;
    take(&testbed).await?;
    for parts in [
        [
            "Normal BecameLeader",
            "elector.dev/candidate better became leader in term 3, token ",
        ],
        [
            "Normal LeadershipReleased",
            "elector.dev/candidate better released the lease after term 3",
        ],
        [
            "Normal BecameLeader",
            "elector.dev/candidate first became leader in term 4, token ",
        ],
        [
            "Warning LeadershipLost",
            "elector.dev/candidate first lost the lease in term 4, taken: stranger holds the lease",
        ],
    ] {
        testbed.describes(&parts, PROMPTLY).await?;
    }
    Ok(())
}

/// A leader is elected, hands over to a better one, and that one releases the lease: each is a line.
async fn told(testbed: Arc<Testbed>) -> Result<()> {
    let first = testbed.candidate("first").version("1.2.0").start()?;
    first.leads(PROMPTLY).await?;
    let mut better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    let seen = testbed.journal().len();
    better.terminate()?;
    first.leads_again(seen, PROMPTLY).await?;
    for parts in [
        [
            "Normal Elected",
            "elector.dev/elector first leads in term 1: ",
            "first is the only candidate",
        ],
        [
            "Normal HandedOver",
            "elector.dev/elector better leads in term 2: ",
            "first handed over",
        ],
        [
            "Normal Released",
            "elector.dev/elector no leader: ",
            "better released it",
        ],
        [
            "Normal Elected",
            "elector.dev/elector first leads in term 3: ",
            "the lease is released",
        ],
    ] {
        testbed.describes(&parts, PROMPTLY).await?;
    }
    Ok(())
}
