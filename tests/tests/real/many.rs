//! Two hundred leases with three candidates each, all at once; then a tenth of the leaders crashes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Implementation, Suite,
    Testbed, between, warm_up,
};

use crate::hosted::{Host, Hosted};
use crate::{OURS, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "two_hundred_leases_at_once",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff, ClusterMode::Embedded],
        Duration::from_secs(50),
        |testbed| Box::pin(two_hundred(testbed)),
    );
}

/// The number of leases.
const LEASES: usize = 200;

/// The number of candidates of each.
const STANDING: usize = 3;

/// The number of crashes of leaders.
const CRASHES: usize = LEASES / 10;

/// The longest time until all are led, on a machine that has a lot else to do.
const ALL_LED: Duration = Duration::from_secs(60);

async fn two_hundred(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let _elector = site
        .elector("elector", site.mode().elector_flags().iter().copied())
        .await?;
    warm_up(site).await?;
    let leases: Vec<String> = (0..LEASES)
        .map(|lease| format!("lease-{lease:03}"))
        .collect();
    testbed.admit(&leases).await?;
    let host = Host::connect(&testbed).await?;

    let start = testbed.note("start everybody");
    let mut candidates = BTreeMap::new();
    for turn in 0..STANDING {
        for lease in 0..LEASES {
            let name = format!("lease-{lease:03}-{turn}");
            let hosted = host.start(&format!("lease-{lease:03}"), &name, "1.0.0")?;
            candidates.insert(name, hosted);
        }
    }
    let mut leaders = Leaders::default();
    leaders
        .until(&testbed, "all are led", ALL_LED, |led| led.len() == LEASES)
        .await?;
    leaders.figures(&testbed, "led", |_| start);
    all_registered(&testbed).await?;

    let first = std::mem::take(&mut leaders.of_lease);
    let mut killed = BTreeMap::new();
    for (lease, (leader, _)) in first.iter().step_by(LEASES / CRASHES) {
        let candidate: Hosted = candidates.remove(leader).context("a stranger leads")?;
        killed.insert(
            lease.clone(),
            testbed.note(&format!("crash {}", candidate.name())),
        );
        candidate.crash().await;
    }
    let limit = crash_limit(Implementation::Elector) + ALL_LED;
    leaders
        .until(&testbed, "whoever crashed has a successor", limit, |led| {
            killed.keys().all(|lease| led.contains_key(lease))
        })
        .await?;
    // Where no candidate gets to renew for 10 s, the machine is to blame.
    let others = leaders.of_lease.len() - CRASHES;
    leaders
        .of_lease
        .retain(|lease, _| killed.contains_key(lease));
    let again = format!("led again (and {others} others)");
    leaders.figures(&testbed, &again, |lease| killed[lease]);
    Ok(())
}

/// Waits until each candidate has registered.
async fn all_registered(testbed: &Testbed) -> Result<()> {
    let (mut seen, mut registered) = (0, 0);
    let look = |entries: &[HistoryEntry]| {
        let new = entries[seen..].iter();
        registered += new
            .filter(
                |entry| matches!(&entry.content, EntryContent::Event(event) if event.kind == EventKind::Start),
            )
            .count();
        seen = entries.len();
        (registered == LEASES * STANDING).then_some(())
    };
    testbed
        .journal()
        .until("everybody is registered", ALL_LED, look)
        .await
}

/// The leader of each lease, and since when.
#[derive(Default)]
struct Leaders {
    of_lease: BTreeMap<String, (String, Timestamp)>,
    seen: usize,
}

// === impl Leaders ===

impl Leaders {
    /// Waits until those that have had a new leader satisfy `done`.
    async fn until(
        &mut self,
        testbed: &Testbed,
        what: &str,
        patience: Duration,
        done: impl Fn(&BTreeMap<String, (String, Timestamp)>) -> bool,
    ) -> Result<()> {
        let outcome = testbed.journal().until(what, patience, |entries| {
            for entry in &entries[self.seen..] {
                if let EntryContent::Event(event) = &entry.content
                    && event.kind == EventKind::Leading
                    && let Some(lease) = &event.lease
                {
                    let leader = (event.name.clone(), entry.at);
                    self.of_lease.insert(lease.name.to_string(), leader);
                }
            }
            self.seen = entries.len();
            done(&self.of_lease).then_some(())
        });
        let waited = outcome.await;
        waited.with_context(|| format!("{} have a new leader", self.of_lease.len()))
    }

    /// Tells how long it took, for the middle one and for the last one.
    fn figures(&self, testbed: &Testbed, what: &str, since: impl Fn(&str) -> Timestamp) {
        let mut took: Vec<Duration> = self
            .of_lease
            .iter()
            .map(|(lease, (_, at))| between(since(lease), *at))
            .collect();
        took.sort_unstable();
        if let (Some(median), Some(last)) = (took.get(took.len() / 2), took.last()) {
            testbed.figure(&format!("half {what}"), *median);
            testbed.figure(&format!("all {what}"), *last);
        }
    }
}
