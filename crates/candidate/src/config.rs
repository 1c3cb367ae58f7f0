//! The configuration of a candidate: its lease, its identity, what it offers, and how long it waits for what.

use std::time::Duration;

use elector_api::{
    CandidateApi, FieldError, Lease, LeaseCandidate, validate_candidate, validate_lease,
};
use elector_protocol::{CandidateTiming, Identity, LeaseKey, TimingError};

/// The configuration of a [`Candidate`](crate::Candidate).
#[derive(Clone, Debug)]
pub struct Config {
    /// The lease that it wants.
    pub lease: LeaseKey,
    /// Its identity: the name of its LeaseCandidate and the holder of the Lease. One identity, one living process;
    /// [`crate::random_identity`] makes one.
    pub identity: Identity,
    /// The version of its binary, a strict semantic version `MAJOR.MINOR.PATCH`.
    pub binary_version: String,
    /// The version that it behaves as, no higher than the binary's. Defaults to the binary version.
    pub emulation_version: String,
    /// The strategy that it wishes the lease to be elected under. `OldestEmulationVersion`.
    pub strategy: String,
    /// How long it waits for what. Lease duration 15 s, renew deadline 10 s, as client-go.
    pub timing: CandidateTiming,
    /// How long the work may take to stop after it was told to. 10 s; after a loss no longer than the effect grace,
    /// lease duration minus renew deadline.
    pub grace: Duration,
    /// What happens when a term has ended although the process was not told to end.
    pub after_term: AfterTerm,
}

/// What happens when a term has ended by a loss or a hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AfterTerm {
    /// The process stays a candidate and may lead again.
    #[default]
    CampaignAgain,
    /// The run ends, for processes that begin afresh rather than lead twice.
    Return,
}

/// Why a candidate cannot be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A constant is outside of its bounds. The text names the rule.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The API server would not take the LeaseCandidate. The text names the field.
    #[error("{0}")]
    Candidate(FieldError),
    /// The API server would take the LeaseCandidate but never a Lease of the name that it wants. The text names the
    /// rule.
    #[error("the lease {name:?} cannot exist: {error}")]
    Lease {
        /// The name of the lease.
        name: String,
        /// What an API server says of it.
        error: FieldError,
    },
    /// The grace is too long to be waited for.
    #[error("grace-period is {0:?}: must be at most 1h")]
    Grace(Duration),
}

// === impl Config ===

impl Config {
    /// A candidate for `lease` under the built-in strategy, with the usual timing, that behaves as what it is.
    pub fn new(lease: LeaseKey, identity: Identity, version: impl Into<String>) -> Self {
        let version = version.into();
        Self {
            lease,
            identity,
            emulation_version: version.clone(),
            binary_version: version,
            strategy: "OldestEmulationVersion".to_owned(),
            timing: CandidateTiming::default(),
            grace: Duration::from_secs(10),
            after_term: AfterTerm::default(),
        }
    }

    /// Checks everything that can be checked without a cluster.
    ///
    /// # Errors
    ///
    /// Names the first setting that breaks a rule, and the rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        // Of all APIs the one that lets in the most names.
        self.validate_in(CandidateApi::V1Beta1)
    }

    /// The same, where the LeaseCandidates are those of this API.
    ///
    /// # Errors
    ///
    /// As those of [`Self::validate`].
    pub(crate) fn validate_in(&self, api: CandidateApi) -> Result<(), ConfigError> {
        self.timing.validate()?;
        if self.grace > Duration::from_secs(3600) {
            return Err(ConfigError::Grace(self.grace));
        }
        let mut errors = validate_candidate(&self.object(api));
        // What was said comes before what follows from it.
        errors.sort_by_key(|error| error.field != "spec.binaryVersion");
        if let Some(error) = errors.into_iter().next() {
            return Err(ConfigError::Candidate(error));
        }
        match validate_lease(&Lease::named(&self.lease))
            .into_iter()
            .next()
        {
            Some(error) => Err(ConfigError::Lease {
                name: self.lease.name.as_ref().to_owned(),
                error,
            }),
            None => Ok(()),
        }
    }

    /// How long the work may take to stop after the lease was lost: no longer than no other candidate can lead.
    pub(crate) fn grace_after_loss(&self) -> Duration {
        let effects = self.timing.lease_duration - self.timing.renew_deadline;
        self.grace.min(effects)
    }

    /// The LeaseCandidate as this process writes it, without its times.
    pub(crate) fn object(&self, api: CandidateApi) -> LeaseCandidate {
        self.offer(LeaseCandidate::named(api, &self.lease, &self.identity))
    }

    /// An existing LeaseCandidate with what this process offers.
    pub(crate) fn offer(&self, mut candidate: LeaseCandidate) -> LeaseCandidate {
        candidate
            .spec
            .binary_version
            .clone_from(&self.binary_version);
        candidate
            .spec
            .emulation_version
            .clone_from(&self.emulation_version);
        candidate
            .with_strategy(&self.strategy)
            .marked(self.timing.lease_duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let identity = Identity::new("web-0_1").unwrap();
        Config::new(LeaseKey::new("default", "web"), identity, "1.2.3")
    }

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = config();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_usual_candidate_is_valid() {
        config().validate().unwrap();
        assert_eq!(config().grace_after_loss(), Duration::from_secs(5));
    }

    #[test]
    fn each_bad_setting_is_named() {
        assert_eq!(
            refusal(|config| config.timing.renew_deadline = Duration::from_secs(14)),
            "renew-deadline is 14s: must be at most 4/5 of lease-duration and one second below it, so at most 12s"
        );
        assert!(
            refusal(|config| config.binary_version = "1.2".into())
                .starts_with("spec.binaryVersion")
        );
        assert!(refusal(|config| config.emulation_version = "2.0.0".into()).starts_with("spec."));
        assert!(refusal(|config| config.strategy = "mine".into()).starts_with("spec.strategy"));
        assert!(
            refusal(|config| config.identity = Identity::new("a/b").unwrap())
                .starts_with("metadata.name")
        );
        assert!(refusal(|config| config.grace = Duration::MAX).starts_with("grace-period"));
        // The API server checks the name of a lease only where the Lease itself is written.
        assert!(
            refusal(|config| config.lease = LeaseKey::new("default", "Web"))
                .starts_with("the lease \"Web\" cannot exist: metadata.name: Invalid value")
        );
    }
}
