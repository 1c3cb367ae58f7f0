//! Registering where LeaseCandidates come to be served, or elsewhere when that is another API. The Lease stays where it
//! is, and so does everything that is believed because of it.

use elector_runtime::{RequestSlot, Writer};

use crate::config::ConfigError;
use crate::resolved_config::ResolvedConfig;
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
    /// Registers with this writer from now on, unless the name cannot be registered there, and says whether it does.
    ///
    /// # Errors
    ///
    /// When this process is of no use where it is not registered: it neither was before, nor leads.
    pub(crate) fn start(
        &mut self,
        writer: Writer,
        config: &ResolvedConfig,
        registration: &mut RegistrationShell,
        failures: &mut SessionFailures,
        leads: bool,
    ) -> Result<bool, ConfigError> {
        let (before, api) = (registration.api(), writer.candidate_api());
        let candidate = &config.identity;
        if let Err(error) = config.validate_in(api) {
            if before.is_none() && !leads {
                return Err(error);
            }
            let before = before.map_or_else(|| "none".to_owned(), |before| before.to_string());
            tracing::warn!(
                %candidate,
                "failed to register in {api}, which is to be used in place of {before}: {error}"
            );
            return Ok(false);
        }
        if let Some(before) = before {
            tracing::info!(%candidate, %before, now = %api, "candidates are served by another API; registering there");
        }
        let left = std::mem::replace(registration, RegistrationShell::new(config, Some(writer)));
        self.removal.clear();
        if let Some((writer, object)) = left.into_object() {
            self.removal.send(removal_request(writer, object));
        }
        failures.forget(ServerPath::CandidateRequests);
        failures.forget(ServerPath::CandidateWatch);
        Ok(true)
    }
}
