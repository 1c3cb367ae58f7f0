//! Events on the Lease, as `kubectl describe lease` shows them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_tests::rig::{ClusterChoice, Suite, Testbed};

use crate::{EVERYWHERE, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let lasts = Duration::from_secs(15);
    let (name, choice) = ("election_is_told_in_events", ClusterChoice::Shared);
    suite.add(name, choice, OURS, EVERYWHERE, lasts, |testbed| {
        Box::pin(told(testbed))
    });
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
            "elector.dev/elector nobody leads: ",
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
