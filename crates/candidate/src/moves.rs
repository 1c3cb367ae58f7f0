//! Registering elsewhere, when LeaseCandidates come to be served by another API. The Lease stays where it is, and so
//! does everything that is believed because of it.

use elector_api::{CandidateApi, LeaseCandidate};
use elector_protocol::registration::Registration;
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::{Scope, Watch, WatchOptions, Writer, watch_candidates};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::intake::Way;
use crate::session::Session;

// === impl Session ===

impl<T: Send + 'static, E: Send + 'static> Session<T, E> {
    /// Watches the own LeaseCandidate.
    pub(crate) fn watch_candidate(&self) -> Watch<LeaseCandidate> {
        let namespace = self.config.lease.namespace.clone();
        let own = LeaseKey::new(namespace, self.config.identity.as_str());
        watch_candidates(
            self.writer.cluster(),
            self.writer.candidate_api(),
            &Scope::Object(own),
            &WatchOptions::candidate(self.seed),
        )
    }

    /// Registers in another API from now on, unless its name cannot be registered there.
    pub(crate) fn move_to(&mut self, api: CandidateApi) -> bool {
        let (before, candidate) = (self.writer.candidate_api(), &self.config.identity);
        if let Err(error) = self.config.validate_in(api) {
            tracing::warn!(
                %candidate,
                "failed to register in {api}, which is to be used in place of {before}: {error}"
            );
            return false;
        }
        tracing::info!(%candidate, %before, now = %api, "candidates are served by another API; registering there");
        let registered = self.registration.is_registered();
        self.farewell_request = self
            .object
            .take()
            .filter(|_| registered)
            .map(|object| leave(self.writer.clone(), object));
        self.writer = self.writer.with_candidate_api(api);
        self.registration = Registration::new(self.config.lease.name.clone());
        self.candidate_request = None;
        self.registered = false;
        for way in [Way::Candidate, Way::CandidateWatch] {
            self.failures.forget(way.as_str());
        }
        true
    }
}

/// Deletes what this process registered before, if that is still to be had; nobody else would.
fn leave(writer: Writer, object: LeaseCandidate) -> BoxFuture<'static, ()> {
    async move {
        let metadata = &object.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let Some(name) = metadata.name.as_deref().and_then(Identity::new) else {
            return;
        };
        // An elector may have asked it in the meantime.
        let found = match writer.read_candidate(&namespace, &name).await {
            Ok(found) => found,
            Err(error) => return tracing::debug!("failed to {error}"),
        };
        let Some(newest) = found.filter(|found| found.metadata.uid == metadata.uid) else {
            return;
        };
        let outcome = writer.delete_candidate(&newest).await;
        if let Some(error) = outcome.error() {
            tracing::debug!("failed to {error}");
        }
    }
    .boxed()
}
