//! A Lease as it is stored, and what other actors do to it.

use std::time::Duration;

use elector_api::{Carrier, Lease};
use elector_protocol::{Identity, LeaseKey, LeaseRecord};
use elector_runtime::Clock as _;

use crate::test_cluster::LEASES;
use crate::test_cluster::TestCluster;

/// A Lease in the store of an [`TestCluster`], and what other actors of the cluster do to it: in no time, and past
/// every rule of the API server. Programs that watch it hear of it at once.
#[derive(Clone, Debug)]
pub struct StoredLease {
    cluster: TestCluster,
    key: LeaseKey,
}

/// The time in which the candidate that an elector has chosen is to accept.
const GRANT: Duration = Duration::from_secs(5);

// === impl TestCluster ===

impl TestCluster {
    /// A Lease of the cluster, be it there or not.
    #[must_use]
    pub fn lease(&self, namespace: &str, name: &str) -> StoredLease {
        let (cluster, key) = (self.clone(), LeaseKey::new(namespace, name));
        StoredLease { cluster, key }
    }
}

// === impl StoredLease ===

impl StoredLease {
    /// The holder that it names. `None` where it names none, and where there is no Lease.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        let holder = self.object()?.spec.holder_identity?;
        (!holder.is_empty()).then_some(holder)
    }

    /// Another holder is written into it, and nothing else, as by `kubectl edit` or a program that knows no rule. The
    /// process that led has lost it, and the new holder never renews it.
    ///
    /// # Panics
    ///
    /// When there is no such Lease.
    pub fn overwrite_holder(&self, holder: &str) {
        let _there = self.lease();
        let put = self.cluster.server();
        put.put(LEASES, self.place(), |fields| {
            fields["spec"]["holderIdentity"] = holder.into();
        });
    }

    /// It is deleted.
    ///
    /// # Panics
    ///
    /// When there is no such Lease.
    pub fn delete(&self) {
        let deleted = self.cluster.server().remove(LEASES, self.place());
        assert!(deleted, "{}", self.missing());
    }

    /// An elector asks the holder to make room for another candidate. The holder stops its work, and then grants the lease
    /// itself.
    ///
    /// # Panics
    ///
    /// When there is no such Lease, or the text is no identity: it is empty.
    pub fn prefer(&self, candidate: &str) {
        let candidate = identity(candidate);
        self.write(|record| record.preferring(Some(candidate), None));
    }

    /// An elector grants it to a candidate, which has 5 s to accept. Where there is no such Lease, it creates it first.
    ///
    /// # Panics
    ///
    /// When the text is no identity: it is empty.
    pub fn grant(&self, candidate: &str) {
        let (candidate, now) = (identity(candidate), self.cluster.clock().wall());
        if self.object().is_none() {
            self.create();
        }
        self.write(|record| record.granted(candidate, GRANT, now));
    }

    fn store(&self, lease: &Lease) {
        let next = serde_json::to_value(lease).expect("a Lease is made of what JSON has");
        self.cluster.server().put(LEASES, self.place(), |fields| {
            fields["spec"] = next["spec"].clone();
            fields["metadata"]["annotations"] = next["metadata"]["annotations"].clone();
        });
    }

    fn lease(&self) -> Lease {
        let lease = self.object();
        lease.unwrap_or_else(|| panic!("{}", self.missing()))
    }

    fn place(&self) -> (&str, &str) {
        (&self.key.namespace, &self.key.name)
    }

    fn missing(&self) -> String {
        format!(
            "there is no Lease {}: has its program led yet (`TestProgram::leads`)?",
            self.key
        )
    }
}

/// None of this is for programs: it changes with the tests of this workspace.
#[doc(hidden)]
impl StoredLease {
    /// Its namespace and its name.
    #[must_use]
    pub const fn key(&self) -> &LeaseKey {
        &self.key
    }

    /// The Lease as it is stored, where there is one.
    #[must_use]
    pub fn object(&self) -> Option<Lease> {
        let object = self.cluster.server().object(LEASES, self.place());
        object.map(Lease::from_value)
    }

    /// Its record.
    ///
    /// # Panics
    ///
    /// When there is no such Lease, or it cannot be read.
    #[must_use]
    pub fn record(&self) -> LeaseRecord {
        let record = self.lease().record();
        record.unwrap_or_else(|fault| panic!("the Lease {} is {fault:?}", self.key))
    }

    /// Another record is written into it, as by an elector.
    ///
    /// # Panics
    ///
    /// When there is no such Lease, or it cannot be read.
    pub fn write(&self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        let record = change(&self.record());
        self.store(&self.lease().with_record(&record, Carrier::Annotations));
    }

    /// It is created, born as an elector creates it.
    pub fn create(&self) {
        self.store(&Lease::born(&self.key, None, Carrier::Annotations));
    }
}

fn identity(text: &str) -> Identity {
    Identity::new(text).unwrap_or_else(|| panic!("{text:?} is no identity: it is empty"))
}
