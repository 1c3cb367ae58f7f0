//! The only writer: compare-and-swap on the very revision that was judged, one timeout, every outcome counted.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_api::{CandidateApi, Carrier, Lease, LeaseCandidate, LeaseMetadata};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, StrategyName};
use kube::api::{Api, PostParams, Preconditions};
use kube::core::DynamicResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cluster::Cluster;
use crate::request::{Cause, RequestError, Target, Verb};
use crate::write_outcome::{WriteCounts, WriteOutcome, Written};

mod judged_candidate;

pub use judged_candidate::JudgedCandidate;

/// Reads and writes single Leases and LeaseCandidates. Cheap to clone; clones share counts and what was learned.
///
/// There is no patch, no unconditional write and no delete of a Lease, so a caller cannot break R2 by mistake.
#[derive(Clone, Debug)]
pub struct Writer {
    cluster: Cluster,
    candidates: CandidateApi,
    timeout: Duration,
    /// The server's way with strategy and preferred holder, as far as it is known.
    carrier: Arc<Mutex<Carrier>>,
    counts: Arc<WriteCounts>,
    metadata: Arc<LeaseMetadata>,
}

// === impl Writer ===

impl Writer {
    /// A writer for that cluster, whose requests take no longer than the cluster's request timeout.
    pub fn new(cluster: Cluster, candidates: CandidateApi) -> Self {
        Self {
            timeout: cluster.request_timeout(),
            cluster,
            candidates,
            carrier: Arc::default(),
            counts: Arc::default(),
            metadata: Arc::default(),
        }
    }

    /// The same writer with another timeout, of one request and its answer.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// The same writer, counting there how its writes end.
    #[must_use]
    pub fn with_counts(&self, counts: Arc<WriteCounts>) -> Self {
        Self {
            counts,
            ..self.clone()
        }
    }

    /// The same writer, putting that on each Lease that it writes.
    #[must_use]
    pub fn with_metadata(&self, metadata: Arc<LeaseMetadata>) -> Self {
        Self {
            metadata,
            ..self.clone()
        }
    }

    /// The same writer for LeaseCandidates of another API.
    #[must_use]
    pub fn with_candidate_api(&self, candidates: CandidateApi) -> Self {
        Self {
            candidates,
            ..self.clone()
        }
    }

    /// Where it writes to.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Which LeaseCandidates it writes.
    pub const fn candidate_api(&self) -> CandidateApi {
        self.candidates
    }

    /// The carrier of strategy and preferred holder, as far as the answers to writes have shown.
    pub fn carrier(&self) -> Carrier {
        // Each value of a poisoned lock is one that was learned.
        *self.carrier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts of the writes so far, by outcome.
    pub fn counts(&self) -> &Arc<WriteCounts> {
        &self.counts
    }

    /// The Lease of that name from a quorum read, `None` where there is none.
    ///
    /// # Errors
    ///
    /// When the server gives no usable answer.
    pub async fn read_lease(&self, key: &LeaseKey) -> Result<Option<Lease>, RequestError> {
        self.read(&(), &key.namespace, &key.name).await
    }

    /// The candidate of that name from a quorum read, `None` where there is none.
    ///
    /// # Errors
    ///
    /// When the server gives no usable answer.
    pub async fn read_candidate(
        &self,
        namespace: &str,
        name: &Identity,
    ) -> Result<Option<LeaseCandidate>, RequestError> {
        let found = self
            .read(&self.candidates, namespace, name.as_str())
            .await?;
        Ok(found.map(|candidate| self.of_this_api(candidate)))
    }

    /// Replaces the very revision that was judged by another record (R2).
    pub async fn put_lease(&self, judged: &Lease, record: &LeaseRecord) -> WriteOutcome<Lease> {
        let mut lease = judged.with_record(record, self.carrier());
        self.metadata.put_on(&mut lease);
        let outcome = self.put(Written::Lease, &(), &lease).await;
        self.learn(&lease, &outcome);
        outcome
    }

    /// The error of a write of that Lease that has had no answer for that time, and may have one yet.
    pub(crate) fn unanswered(&self, key: &LeaseKey, after: Duration) -> RequestError {
        let target = Target {
            verb: Verb::Update,
            resource: resource::<Lease>(&()).into(),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
        };
        self.cluster.error(target, Cause::TimedOut(after))
    }

    /// Creates a born Lease, the only thing that a POST may create (R2).
    pub async fn post_lease(
        &self,
        key: &LeaseKey,
        strategy: Option<&StrategyName>,
    ) -> WriteOutcome<Lease> {
        let mut lease = Lease::born(key, strategy, self.carrier());
        self.metadata.put_on(&mut lease);
        self.post_born_lease(&lease).await
    }

    /// The same, of a Lease that was born with labels.
    pub async fn post_born_lease(&self, lease: &Lease) -> WriteOutcome<Lease> {
        let outcome = self.post(Written::Lease, &(), lease).await;
        self.learn(lease, &outcome);
        outcome
    }

    /// Replaces the very revision of a candidate that `candidate` was made from.
    pub async fn put_candidate(&self, candidate: &LeaseCandidate) -> WriteOutcome<LeaseCandidate> {
        let candidate = self.of_this_api(candidate.clone());
        let outcome = self
            .put(Written::Candidate, &self.candidates, &candidate)
            .await;
        self.candidate_outcome(outcome)
    }

    /// Creates a candidate.
    pub async fn post_candidate(&self, candidate: &LeaseCandidate) -> WriteOutcome<LeaseCandidate> {
        let candidate = self.of_this_api(candidate.clone());
        let outcome = self
            .post(Written::Candidate, &self.candidates, &candidate)
            .await;
        self.candidate_outcome(outcome)
    }

    async fn read<K>(
        &self,
        kind: &K::DynamicType,
        namespace: &str,
        name: &str,
    ) -> Result<Option<K>, RequestError>
    where
        K: Resource<Scope = DynamicResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let target = Target {
            verb: Verb::Get,
            resource: resource::<K>(kind).into(),
            namespace: Some(namespace.into()),
            name: Some(name.into()),
        };
        let api: Api<K> = Api::namespaced_with(self.cluster.client().clone(), namespace, kind);
        let request = api.get(name);
        match self
            .cluster
            .call(target.clone(), self.timeout, request)
            .await
        {
            Ok(object) => self.believable(&target, object, None).map(Some),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn put<K>(&self, written: Written, kind: &K::DynamicType, object: &K) -> WriteOutcome<K>
    where
        K: Resource<Scope = DynamicResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let target = self.target(Verb::Update, kind, object);
        let outcome = match revision(object) {
            Ok(_) => {
                let (api, name) = (self.api(kind, object), object.name_any());
                let parameters = PostParams::default();
                let request = api.replace(&name, &parameters, object);
                let answer = self
                    .cluster
                    .call(target.clone(), self.timeout, request)
                    .await;
                let answer = answer
                    .and_then(|reply| self.believable(&target, reply, object.meta().uid.as_ref()));
                self.outcome(Verb::Update, answer)
            }
            // Without both, this would be an unconditional write.
            Err(why) => self.unsent(target, why),
        };
        self.counts.count(written, Verb::Update, outcome.kind());
        outcome
    }

    async fn post<K>(&self, written: Written, kind: &K::DynamicType, object: &K) -> WriteOutcome<K>
    where
        K: Resource<Scope = DynamicResourceScope> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let target = self.target(Verb::Create, kind, object);
        let api = self.api(kind, object);
        let parameters = PostParams::default();
        let request = api.create(&parameters, object);
        let answer = self
            .cluster
            .call(target.clone(), self.timeout, request)
            .await;
        let answer = answer.and_then(|reply| self.believable(&target, reply, None));
        let outcome = self.outcome(Verb::Create, answer);
        self.counts.count(written, Verb::Create, outcome.kind());
        outcome
    }

    /// Objects decode with any content, so an answer from something that is no API server is known by what it lacks.
    fn believable<K: Resource>(
        &self,
        target: &Target,
        reply: K,
        uid: Option<&String>,
    ) -> Result<K, RequestError> {
        let found = revision(&reply).and_then(|_| {
            let same = uid.is_none() || uid == reply.meta().uid.as_ref();
            same.then_some(()).ok_or("it is about another object")
        });
        match found {
            Ok(()) => Ok(reply),
            Err(why) => {
                let cause = Cause::Unreadable(why.to_owned());
                Err(self.cluster.error(target.clone(), cause))
            }
        }
    }

    fn unsent<T>(&self, target: Target, why: &str) -> WriteOutcome<T> {
        WriteOutcome::Refused(self.cluster.error(target, Cause::NotSent(why.to_owned())))
    }

    fn outcome<T>(&self, verb: Verb, answer: Result<T, RequestError>) -> WriteOutcome<T> {
        let error = match answer {
            Ok(reply) => return WriteOutcome::Done(reply),
            Err(error) => error,
        };
        let already_exists =
            matches!(&error.cause, Cause::Status { reason, .. } if reason == "AlreadyExists");
        match error.code() {
            Some(409) if already_exists => WriteOutcome::AlreadyExists,
            Some(409) => WriteOutcome::Conflict,
            // To a POST this means that the namespace is gone, which no re-read of the object heals.
            Some(404) if verb != Verb::Create => WriteOutcome::Gone,
            _ if error.may_have_been_applied() => WriteOutcome::Unknown(error),
            _ => WriteOutcome::Refused(error),
        }
    }

    fn learn(&self, written: &Lease, outcome: &WriteOutcome<Lease>) {
        let WriteOutcome::Done(reply) = outcome else {
            return;
        };
        let Some(learned) = Carrier::learned_from(written, reply) else {
            return;
        };
        let known = self.carrier.lock();
        let before =
            std::mem::replace(&mut *known.unwrap_or_else(PoisonError::into_inner), learned);
        if before != learned {
            let carrier = match learned {
                Carrier::Fields => "fields",
                _ => "annotations",
            };
            tracing::info!(
                carrier,
                server = self.cluster.url(),
                "learned how strategy and preferred holder travel"
            );
        }
    }

    fn candidate_outcome(
        &self,
        outcome: WriteOutcome<LeaseCandidate>,
    ) -> WriteOutcome<LeaseCandidate> {
        match outcome {
            WriteOutcome::Done(candidate) => WriteOutcome::Done(self.of_this_api(candidate)),
            other => other,
        }
    }

    fn of_this_api(&self, mut candidate: LeaseCandidate) -> LeaseCandidate {
        candidate.api = self.candidates;
        candidate
    }

    fn api<K>(&self, kind: &K::DynamicType, object: &K) -> Api<K>
    where
        K: Resource<Scope = DynamicResourceScope>,
    {
        let namespace = object.meta().namespace.as_deref().unwrap_or_default();
        Api::namespaced_with(self.cluster.client().clone(), namespace, kind)
    }

    fn target<K: Resource>(&self, verb: Verb, kind: &K::DynamicType, object: &K) -> Target {
        let text = |text: &Option<String>| Some(text.as_deref().unwrap_or_default().into());
        Target {
            verb,
            resource: resource::<K>(kind).into(),
            namespace: text(&object.meta().namespace),
            name: text(&object.meta().name),
        }
    }
}

/// `leases.coordination.k8s.io`, as errors name a resource.
pub(crate) fn resource<K: Resource>(kind: &K::DynamicType) -> String {
    format!("{}.{}", K::plural(kind), K::group(kind))
}

/// uid and resourceVersion, without which there is no compare-and-swap. Zero means "any" to the server.
fn revision<K: Resource>(object: &K) -> Result<Preconditions, &'static str> {
    let meta = object.meta();
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty() && text != "0");
    match (given(&meta.uid), given(&meta.resource_version)) {
        (Some(uid), Some(version)) => Ok(Preconditions {
            uid: Some(uid),
            resource_version: Some(version),
        }),
        (None, _) => Err("the object has no uid"),
        _ => Err("the object has no resourceVersion"),
    }
}

#[cfg(test)]
mod tests;
