//! Writes of a candidate that need nothing of it but which revision was judged.

use std::sync::Arc;

use elector_api::LeaseCandidate;
use elector_protocol::{Identity, ResourceVersion, Timestamp, Uid};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};

use super::{Writer, resource, revision};
use crate::request::{Target, Verb};
use crate::write_outcome::{WriteOutcome, Written};

/// The revision of a candidate that was judged: all that a ping or a deletion takes, so that a caller who knows
/// thousands of candidates need not keep one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedCandidate {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Identity,
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
}

// === impl Writer ===

impl Writer {
    /// Pings the very revision of a candidate that was judged. A merge patch that names it: R2 is about Leases, and
    /// what else the object says is carried over by the server.
    pub async fn ping_candidate(
        &self,
        judged: &JudgedCandidate,
        ping: Timestamp,
    ) -> WriteOutcome<LeaseCandidate> {
        let target = self.target_of(Verb::Patch, judged);
        let outcome = if judged.version == ResourceVersion(0) {
            self.unsent(target, "the object has no resourceVersion")
        } else {
            let patch = LeaseCandidate::ping_patch(&judged.uid, judged.version, ping);
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
            let api: Api<LeaseCandidate> = self.candidates_in(&judged.namespace);
            let request = api.patch(judged.name.as_str(), &parameters, &patch);
            let answer = self
                .cluster
                .call(target.clone(), self.timeout, request)
                .await;
            let uid = judged.uid.to_string();
            let answer = answer.and_then(|reply| self.believable(&target, reply, Some(&uid)));
            self.outcome(Verb::Patch, answer)
        };
        self.counts
            .count(Written::Candidate, Verb::Patch, outcome.kind());
        self.candidate_outcome(outcome)
    }

    /// Deletes the very revision of a candidate that was judged.
    pub async fn collect_candidate(&self, judged: &JudgedCandidate) -> WriteOutcome<()> {
        let preconditions = Preconditions {
            uid: Some(judged.uid.to_string()),
            resource_version: Some(judged.version.to_string()),
        };
        let target = self.target_of(Verb::Delete, judged);
        self.delete(target, preconditions).await
    }

    /// Deletes this very revision of a candidate.
    pub async fn delete_candidate(&self, candidate: &LeaseCandidate) -> WriteOutcome<()> {
        let target = self.target(Verb::Delete, &self.candidates, candidate);
        match revision(candidate) {
            Ok(preconditions) => self.delete(target, preconditions).await,
            Err(why) => {
                let outcome = self.unsent(target, why);
                self.counts
                    .count(Written::Candidate, Verb::Delete, outcome.kind());
                outcome
            }
        }
    }

    async fn delete(&self, target: Target, preconditions: Preconditions) -> WriteOutcome<()> {
        let namespace = target.namespace.clone().unwrap_or_default();
        let name = target.name.clone().unwrap_or_default();
        let api = self.candidates_in(&namespace);
        let parameters = DeleteParams::default().preconditions(preconditions);
        let request = api.delete(&name, &parameters);
        let answer = self.cluster.call(target, self.timeout, request).await;
        let outcome = self.outcome(Verb::Delete, answer.map(drop));
        self.counts
            .count(Written::Candidate, Verb::Delete, outcome.kind());
        outcome
    }

    fn candidates_in(&self, namespace: &str) -> Api<LeaseCandidate> {
        Api::namespaced_with(self.cluster.client().clone(), namespace, &self.candidates)
    }

    fn target_of(&self, verb: Verb, judged: &JudgedCandidate) -> Target {
        Target {
            verb,
            resource: resource::<LeaseCandidate>(&self.candidates).into(),
            namespace: Some(judged.namespace.clone()),
            name: Some(judged.name.as_str().into()),
        }
    }
}
