//! A cluster with one lease, for the tests of a candidate for it.

use std::ops::Deref;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_apiserver::Faults;
use elector_protocol::{Instant, LeaseKey, LeaseRecord};
use elector_runtime::Cluster;
use serde_json::Value;

use crate::history;
use crate::requests::SentRequest;
use crate::stored_lease::StoredLease;
use crate::test_cluster::{CANDIDATES, CUSTOM_CANDIDATES, LEASES};
use crate::test_cluster::{PROGRAM, TestCluster};

/// A cluster with the born Lease `default/web`, and the candidate `me` for it. Clones are the same one.
#[derive(Clone, Debug)]
pub struct OneLease {
    cluster: TestCluster,
    stored: StoredLease,
}

const NAMESPACE: &str = "default";
const LEASE: &str = "web";

// === impl OneLease ===

impl OneLease {
    /// A cluster whose candidates are served there; the server drops the fields of the gate.
    #[must_use]
    pub fn new(served: &[CandidateApi]) -> Self {
        let cluster = TestCluster::new();
        cluster.serve(served);
        let stored = cluster.lease(NAMESPACE, LEASE);
        stored.create();
        Self { cluster, stored }
    }

    /// The connection of the candidate.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.connected()
    }

    /// The faults that befall the candidate.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.cluster.faults(PROGRAM)
    }

    /// The lease.
    #[must_use]
    pub fn key() -> LeaseKey {
        LeaseKey::new(NAMESPACE, LEASE)
    }

    /// The Lease as it stands.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        self.stored.object()
    }

    /// The record of the Lease.
    #[must_use]
    pub fn record(&self) -> LeaseRecord {
        self.stored.record()
    }

    /// Writes the Lease as an elector or a stranger does.
    pub fn write(&self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        self.stored.write(change);
    }

    /// Grants the lease.
    pub fn grant(&self, to: &str) {
        self.stored.grant(to);
    }

    /// Asks the holder to make room for this one.
    pub fn prefer(&self, whom: &str) {
        self.stored.prefer(whom);
    }

    /// Changes nothing that is judged.
    pub fn label(&self) {
        self.edit(LEASES, NAMESPACE, LEASE, |fields| {
            fields["metadata"]["labels"]["seen"] = "yes".into();
        });
    }

    /// Writes something into the spec of the Lease, as a stranger does.
    pub fn overwrite_lease(&self, field: &str, value: Value) {
        self.edit(LEASES, NAMESPACE, LEASE, |fields| {
            fields["spec"][field] = value;
        });
    }

    /// Deletes the Lease.
    pub fn delete_lease(&self) {
        self.stored.delete();
    }

    /// Puts the store back, but for the record of the Lease.
    pub fn restore_all_but_the_record(&self, backup: &elector_apiserver::Backup) {
        let last = self.record();
        self.restore(backup);
        self.write(|_| last);
    }

    /// The LeaseCandidate `me`, where built-in or custom ones are kept.
    #[must_use]
    pub fn candidate(&self, api: CandidateApi) -> Option<LeaseCandidate> {
        self.candidate_fields(api, "me")
            .map(LeaseCandidate::from_value)
    }

    /// The LeaseCandidate of this name as it is stored.
    #[must_use]
    pub fn candidate_fields(&self, api: CandidateApi, name: &str) -> Option<Value> {
        self.read(resource(api), NAMESPACE, name)
    }

    /// Registers an object.
    pub fn register_object(&self, api: CandidateApi, object: &LeaseCandidate) {
        self.put_candidate(resource(api), object);
    }

    /// Deletes the LeaseCandidate `me`.
    pub fn delete_candidate(&self, api: CandidateApi) {
        self.delete(resource(api), NAMESPACE, "me");
    }

    /// Pings a candidate, a microsecond after its newest acknowledgement.
    pub fn ping(&self, api: CandidateApi, name: &str) {
        let object = LeaseCandidate::from_value(self.candidate_fields(api, name).unwrap());
        let ping = object.spec.renew_time.unwrap().next().unwrap();
        self.put_candidate(resource(api), &object.with_ping(ping));
    }

    /// Writes something into the spec of the candidate `me`, as a stranger does.
    pub fn overwrite_candidate(&self, field: &str, value: Value) {
        self.edit(CANDIDATES, NAMESPACE, "me", |fields| {
            fields["spec"][field] = value;
        });
    }

    /// The requests for one object since then: `what` is `PUT leases/web`, `GET leasecandidates/me`, ….
    #[must_use]
    pub fn object_requests_since(&self, then: Instant) -> Vec<SentRequest> {
        let requests = self.requests_since(then, &[]).into_iter();
        let requests = requests.filter_map(|request| {
            let what = request.object.clone()?;
            Some(SentRequest { what, ..request })
        });
        requests.collect()
    }

    /// When the candidate last sent that request for one object.
    #[must_use]
    pub fn last(&self, what: &str) -> Instant {
        let requests = self.requests();
        let mut requests = requests.iter().rev();
        let like = |request: &&SentRequest| request.object.as_deref() == Some(what);
        requests.find(like).unwrap().at
    }

    /// The history of the lease and its candidates, oldest first: `grant me`, `accept`, `renew`, `release`, `prefer`,
    /// `delete lease`, `register`, `withdraw`, `ping`, `acknowledge`.
    #[must_use]
    pub fn history(&self) -> Vec<String> {
        history::named(self.server().changes())
    }
}

impl Deref for OneLease {
    type Target = TestCluster;

    fn deref(&self) -> &TestCluster {
        &self.cluster
    }
}

fn resource(api: CandidateApi) -> &'static str {
    match api {
        CandidateApi::Elector => CUSTOM_CANDIDATES,
        _ => CANDIDATES,
    }
}
