//! A namespace that is filled with candidates of every unpleasant kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_api::{CandidateApi, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey};
use elector_tests::rig::{TestSite, now};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Candidates in a namespace of their own, written as an administrator, whom nothing holds back.
pub(super) struct Flood {
    api: CandidateApi,
    objects: Api<LeaseCandidate>,
    namespace: String,
}

/// The number of candidates of each kind.
#[derive(Clone, Copy)]
pub(super) struct FloodSize {
    /// Candidates with annotations of [`BALLAST`], a hundred for each lease.
    pub(super) large: usize,
    /// Candidates that never answer, fifty for each lease.
    pub(super) silent: usize,
    /// Candidates that are being deleted and never go.
    pub(super) undead: usize,
    /// Candidates for leases whose names no Lease can have.
    pub(super) illegal: usize,
}

/// Candidates whose versions change without end. Dropping it ends that.
pub(super) struct Restless {
    _tasks: JoinSet<()>,
    changes: Arc<AtomicUsize>,
}

/// The size that the annotations of one object may have, 256 KiB, less that of their names.
const BALLAST: usize = (256 << 10) - 1024;
/// The number of requests of the flood that are under way at the same time.
const SIDE_BY_SIDE: usize = 16;
/// The number of candidates that change their versions.
const RESTLESS: usize = 10;
/// The time between two changes of each.
const CHANGES_EVERY: Duration = Duration::from_millis(200);

const STRATEGY: &str = "OldestEmulationVersion";

// === impl Flood ===

impl Flood {
    /// In that namespace, which exists.
    pub(super) fn new(site: &TestSite, namespace: &str) -> Self {
        let (api, client) = (site.candidate_api(), site.client().clone());
        Self {
            api,
            objects: Api::namespaced_with(client, namespace, &api),
            namespace: namespace.to_owned(),
        }
    }

    /// Writes all of it; returns how many the server refused of those with illegal names.
    pub(super) async fn pour(&self, size: FloodSize) -> Result<usize> {
        let ballast = "x".repeat(BALLAST);
        self.create(size.large, |index| {
            let mut large = self.candidate("large", index, &format!("large-{}", index / 100))?;
            let annotations = large.metadata.annotations.get_or_insert_default();
            annotations.insert("example.com/ballast".to_owned(), ballast.clone());
            Ok(large)
        })
        .await?;
        self.create(size.silent, |index| {
            self.candidate("silent", index, &format!("silent-{}", index / 50))
        })
        .await?;
        self.create(size.undead, |index| {
            let mut undead = self.candidate("undead", index, "undead")?;
            undead.metadata.finalizers = Some(vec!["example.com/never".to_owned()]);
            Ok(undead)
        })
        .await?;
        for index in 0..size.undead {
            let name = format!("undead-{index:05}");
            let deleted = self.objects.delete(&name, &DeleteParams::default()).await;
            deleted.context("failed to delete a candidate")?;
        }
        self.create_illegal(size.illegal).await
    }

    /// Candidates of one lease that are alive, each of which changes its version five times a second.
    pub(super) async fn change(&self) -> Result<Restless> {
        self.create(RESTLESS, |index| {
            self.candidate("restless", index, "restless")
        })
        .await?;
        let (mut tasks, changes) = (JoinSet::new(), Arc::<AtomicUsize>::default());
        for index in 0..RESTLESS {
            let name = format!("restless-{index:05}");
            tasks.spawn(restless(self.objects.clone(), name, Arc::clone(&changes)));
        }
        Ok(Restless {
            _tasks: tasks,
            changes,
        })
    }

    fn candidate(&self, kind: &str, index: usize, lease: &str) -> Result<LeaseCandidate> {
        let key = LeaseKey::new(self.namespace.as_str(), lease);
        let name = Identity::new(format!("{kind}-{index:05}")).context("an empty name")?;
        let mut object = LeaseCandidate::named(self.api, &key, &name);
        "1000.0.0".clone_into(&mut object.spec.binary_version);
        "1.0.0".clone_into(&mut object.spec.emulation_version);
        Ok(object.with_strategy(STRATEGY).with_renewal(now()))
    }

    async fn create(
        &self,
        count: usize,
        make: impl Fn(usize) -> Result<LeaseCandidate>,
    ) -> Result<()> {
        let make = &make;
        stream::iter((0..count).map(|index| async move {
            let created = self
                .objects
                .create(&PostParams::default(), &make(index)?)
                .await;
            created.map(drop).context("failed to create a candidate")
        }))
        .buffer_unordered(SIDE_BY_SIDE)
        .try_collect()
        .await
    }

    async fn create_illegal(&self, count: usize) -> Result<usize> {
        let names = ["UPPER CASE", "a/../../b", "\u{1b}[31mred", "a\nb"];
        let mut refused = 0;
        for index in 0..count {
            let lease = names.get(index % (names.len() + 1)).copied();
            let lease = lease.map_or_else(|| "l".repeat(300), ToOwned::to_owned);
            let object = self.candidate("illegal", index, &lease)?;
            match self.objects.create(&PostParams::default(), &object).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 422 => refused += 1,
                Err(error) => return Err(error).context("an illegal name"),
            }
        }
        Ok(refused)
    }
}

// === impl Restless ===

impl Restless {
    /// The number of changes so far.
    pub(super) fn changes(&self) -> usize {
        self.changes.load(Ordering::Relaxed)
    }
}

/// Changes the version of this candidate again and again.
async fn restless(objects: Api<LeaseCandidate>, name: String, changes: Arc<AtomicUsize>) {
    let mut ticks = interval(CHANGES_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for turn in 0_u32.. {
        ticks.tick().await;
        let patch = json!({"spec": {
            "emulationVersion": format!("1.{}.0", turn % 1000),
            "renewTime": elector_api::Rfc3339(now()).to_string(),
        }});
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        if objects.patch(&name, &parameters, &patch).await.is_ok() {
            changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}
