//! Events on the Lease, as `kubectl describe lease` shows them.

use std::sync::Arc;

use anyhow::Result;
use elector_tests::rig::{Suite, Testbed, now};

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, MODES);
    shared.add("election_is_reported_in_events", 20, reported);
}

/// A leader is elected, hands over to a better one, that one releases the lease, and a stranger takes it: each is a line of
/// the elector, and one of each candidate where its account may write Events.
async fn reported(testbed: Arc<Testbed>) -> Result<()> {
    let start = |name, version| {
        let candidate = testbed.candidate(name).version(version);
        candidate.flag("--record-events").start()
    };
    let mut silent = start("silent", "1.3.0")?;
    silent.leads(PROMPTLY).await?;
    let refusal = [
        "create events.events.k8s.io in namespace ",
        "RBAC does not grant the verb create",
    ];
    silent.process.writes(&refusal, PROMPTLY).await?;
    testbed.stays("silent", 1).await?;
    testbed.admit_events().await?;

    let first = start("first", "1.2.0")?;
    first.leads(PROMPTLY).await?;
    let mut better = start("better", "1.1.0")?;
    better.leads(PROMPTLY).await?;
    for parts in [
        [
            "Normal LeadershipHandedOver",
            "elector.dev/candidate first handed the lease over to better after term 2",
        ],
        [
            "Normal HandedOver",
            "elector.dev/elector better leads in term 3: first handed over",
        ],
    ] {
        testbed.describes(&parts, PROMPTLY).await?;
    }
    let ended = better.ends().await?;
    first.leads_since(ended, PROMPTLY).await?;
    let lease = testbed.lease_name();
    testbed
        .overwrite(lease, |lease| {
            lease.spec.holder_identity = Some("stranger".to_owned());
            lease.spec.lease_duration_seconds = Some(1);
            lease.spec.acquire_time = Some(now());
            lease.spec.renew_time = Some(now());
        })
        .await?;
    for line in [
        "Normal Elected … elector.dev/elector silent leads in term 1:  … silent is the only candidate",
        "Normal Released … elector.dev/elector no leader:  … better released it",
        "Normal Elected … elector.dev/elector first leads in term 4:  … the lease is released",
        "Normal BecameLeader … elector.dev/candidate better became leader in term 3, token ",
        "Normal LeadershipReleased … elector.dev/candidate better released the lease after term 3",
        "Normal BecameLeader … elector.dev/candidate first became leader in term 4, token ",
        "Warning LeadershipLost … elector.dev/candidate first lost the lease in term 4, taken: stranger holds the lease",
    ] {
        let parts: Vec<_> = line.split(" … ").collect();
        testbed.describes(&parts, PROMPTLY).await?;
    }
    Ok(())
}
