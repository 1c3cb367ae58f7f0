//! Registering elsewhere, when LeaseCandidates come to be served by another API. The Lease stays where it is, and so
//! does everything that is believed because of it.

use elector_api::CandidateApi;
use elector_runtime::{RequestSlot, Writer};

use crate::config::Config;
use crate::session::failures::{ServerPath, SessionFailures};
use crate::session::registration::RegistrationShell;
use crate::session::requests::removal_request;

/// The way from one API to another.
#[derive(Default)]
pub(crate) struct Migration {
    /// The removal of the LeaseCandidate from the API that is of no use any more.
    pub(crate) removal: RequestSlot<()>,
}

// === impl Migration ===

impl Migration {
    /// Registers in another API from now on, unless the name cannot be registered there, and says whether it does.
    pub(crate) fn start(
        &mut self,
        api: CandidateApi,
        config: &Config,
        registration: &mut RegistrationShell,
        writer: &mut Writer,
        failures: &mut SessionFailures,
    ) -> bool {
        let (before, candidate) = (writer.candidate_api(), &config.identity);
        if let Err(error) = config.validate_in(api) {
            tracing::warn!(
                %candidate,
                "failed to register in {api}, which is to be used in place of {before}: {error}"
            );
            return false;
        }
        tracing::info!(%candidate, %before, now = %api, "candidates are served by another API; registering there");
        let left = std::mem::replace(registration, RegistrationShell::new(config));
        self.removal.clear();
        if let Some(object) = left.into_object() {
            self.removal.send(removal_request(writer.clone(), object));
        }
        *writer = writer.with_candidate_api(api);
        failures.forget(ServerPath::CandidateRequests);
        failures.forget(ServerPath::CandidateWatch);
        true
    }
}
