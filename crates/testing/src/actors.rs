//! Other actors of the cluster: holders that are no candidates, strangers, candidates that only register.

use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate, Rfc3339};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::Clock as _;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use crate::test_cluster::LEASES;
use crate::test_cluster::{PROGRAM, TestCluster};
use crate::time::{millis, pass, seconds};

/// Something that goes on beside the test until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct BackgroundTask(JoinHandle<()>);

// === impl BackgroundTask ===

impl BackgroundTask {
    /// Begins it.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl TestCluster ===

/// None of this is for programs: it changes with the tests of this workspace.
#[doc(hidden)]
impl TestCluster {
    /// Creates an object or changes the one that is there, past every rule.
    pub fn edit(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Map<String, Value>),
    ) {
        self.server().put(resource, (namespace, name), change);
    }

    /// Deletes an object.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn delete(&self, resource: &str, namespace: &str, name: &str) {
        assert!(
            self.server().remove(resource, (namespace, name)),
            "{resource} {namespace}/{name} is not there"
        );
    }

    /// An object as it is stored.
    #[must_use]
    pub fn read(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.server().object(resource, (namespace, name))
    }

    /// The holder of a lease: nothing where there is no Lease, an empty text where it is unheld.
    #[must_use]
    pub fn holder(&self, namespace: &str, name: &str) -> Option<String> {
        let lease = self.lease(namespace, name).object()?;
        Some(lease.spec.holder_identity.unwrap_or_default())
    }

    /// The term of a lease.
    #[must_use]
    pub fn term(&self, namespace: &str, name: &str) -> Option<i32> {
        self.lease(namespace, name).object()?.spec.lease_transitions
    }

    /// Waits until a lease is held by this one, and says how long that took.
    ///
    /// # Panics
    ///
    /// When it is not held by it after two minutes.
    pub async fn held_by(&self, namespace: &str, name: &str, holder: &str) -> Duration {
        let start = tokio::time::Instant::now();
        let what = format!("{holder} holds {namespace}/{name}");
        self.wait_for(&what, seconds(120), |cluster| {
            cluster.holder(namespace, name).as_deref() == Some(holder)
        })
        .await;
        start.elapsed()
    }

    /// Creates a Lease with this spec, or gives the one that is there another.
    pub fn put_lease(&self, namespace: &str, name: &str, spec: Value) {
        self.edit(LEASES, namespace, name, |fields| {
            fields["spec"] = spec;
        });
    }

    /// Creates a Lease as it was elsewhere, its uid included.
    pub fn copy(&self, lease: &Lease) {
        let key = lease.key();
        let spec = serde_json::to_value(&lease.spec).unwrap();
        let uid = lease.metadata.uid.clone().unwrap();
        self.edit(LEASES, &key.namespace, &key.name, |fields| {
            fields["spec"] = spec;
            fields["metadata"]["uid"] = uid.into();
        });
    }

    /// Renews a Lease for a holder that is no candidate of ours, for the usual duration.
    pub fn renew(&self, namespace: &str, name: &str, holder: &str) {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "renewTime": Rfc3339(self.clock().wall()).to_string(),
        });
        self.put_lease(namespace, name, spec);
    }

    /// Renews a Lease every two seconds.
    pub fn keep(
        &self,
        namespace: &'static str,
        name: &'static str,
        holder: &'static str,
    ) -> BackgroundTask {
        let cluster = self.clone();
        BackgroundTask::spawn(async move {
            loop {
                cluster.renew(namespace, name, holder);
                pass(seconds(2)).await;
            }
        })
    }

    /// Has a stranger annotate a Lease for as long as it is there, 333 times a second at uneven intervals. The way of the
    /// program under test is as long meanwhile as on a busy API server: one write in sixty comes before the next
    /// annotation, and the watch brings some annotations after the reply to the write that they came before.
    pub fn annotate_all_the_time(
        &self,
        namespace: &'static str,
        name: &'static str,
    ) -> BackgroundTask {
        self.faults(PROGRAM).latency(millis(6), millis(8));
        self.faults(PROGRAM).watch_latency(millis(4));
        let cluster = self.clone();
        BackgroundTask::spawn(async move {
            let mut random = 1_u64;
            loop {
                pass(millis(1)).await;
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if random.is_multiple_of(3) && cluster.holder(namespace, name).is_some() {
                    cluster.edit(LEASES, namespace, name, |fields| {
                        fields["metadata"]["annotations"]["stranger"] = random.to_string().into();
                    });
                }
            }
        })
    }

    /// Deletes a Lease.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn delete_lease(&self, namespace: &str, name: &str) {
        self.lease(namespace, name).delete();
    }

    /// Makes so many revisions of something else.
    pub fn make_revisions(&self, count: usize) {
        for _ in 0..count {
            self.put_lease("default", "other", json!({}));
        }
    }

    /// Registers a marked candidate, which does nothing more, where candidates register now.
    pub fn register(&self, namespace: &str, name: &str, lease: &str, version: &str) {
        self.register_for(namespace, name, lease, version, OLDEST);
    }

    /// The same with another strategy.
    pub fn register_for(
        &self,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
        strategy: &str,
    ) {
        let object = self.unmarked(namespace, name, lease, version);
        let object = object.with_strategy(strategy).marked(seconds(15));
        self.put_candidate(self.candidates(), &object);
    }

    /// The LeaseCandidate of an unmarked candidate of the built-in strategy, just renewed.
    pub(crate) fn unmarked(
        &self,
        namespace: &str,
        name: &str,
        lease: &str,
        version: &str,
    ) -> LeaseCandidate {
        let (key, identity) = (
            LeaseKey::new(namespace, lease),
            Identity::new(name).unwrap(),
        );
        let mut object = LeaseCandidate::named(CandidateApi::V1Beta1, &key, &identity);
        object.spec.binary_version = version.to_owned();
        object.spec.emulation_version = version.to_owned();
        object
            .with_strategy(OLDEST)
            .with_renewal(self.clock().wall())
    }

    /// Acknowledges every ping of a candidate that registered.
    pub fn acknowledge(&self, namespace: &'static str, name: &'static str) -> BackgroundTask {
        let cluster = self.clone();
        BackgroundTask::spawn(async move {
            loop {
                pass(millis(200)).await;
                cluster.acknowledge_once(cluster.candidates(), namespace, name);
            }
        })
    }

    /// Registers a candidate that acknowledges every ping and does nothing more.
    pub fn candidate(
        &self,
        namespace: &'static str,
        name: &'static str,
        lease: &str,
        version: &str,
    ) -> BackgroundTask {
        self.register(namespace, name, lease, version);
        self.acknowledge(namespace, name)
    }

    /// Acknowledges the ping of a candidate, if there is one.
    pub fn acknowledge_once(&self, resource: &str, namespace: &str, name: &str) {
        let object = self.read(resource, namespace, name);
        let Some(object) = object.map(LeaseCandidate::from_value) else {
            return;
        };
        let (ping, renew) = (object.spec.ping_time, object.spec.renew_time);
        if let Some(ping) = ping
            && Some(ping) > renew
            && object.faults().is_empty()
        {
            let wall = self.clock().wall();
            self.put_candidate(resource, &object.with_renewal(ping.max(wall)));
        }
    }

    /// Stores a candidate; what the server keeps of the metadata stays.
    pub(crate) fn put_candidate(&self, resource: &str, object: &LeaseCandidate) {
        let metadata = &object.metadata;
        let (namespace, name) = (
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap(),
        );
        let object = serde_json::to_value(object).unwrap();
        self.edit(resource, &namespace, &name, |fields| {
            fields["spec"] = object["spec"].clone();
            for part in ["annotations", "labels"] {
                if !object["metadata"][part].is_null() {
                    fields["metadata"][part] = object["metadata"][part].clone();
                }
            }
        });
    }
}

/// The strategy of the built-in controller.
const OLDEST: &str = "OldestEmulationVersion";
