//! The configuration of a candidate with nothing left to be found, and what others are told of it.

use elector_api::{CandidateApi, Lease, LeaseCandidate, validate_candidate, validate_lease};
use elector_protocol::holder::{
    Acquisition, HolderConfig, HolderMode, Loss, StopReason, TakeoverPolicy,
};
use elector_protocol::{Identity, Instant, LeaseKey, Version};

use crate::config::{Config, ConfigError, Mode};
use crate::identity::{pod_or_host_name, random_identity};
use crate::term_state::StopLimits;

/// The given configuration, and the values found where nothing was given.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedConfig {
    /// The lease that it wants.
    pub(crate) lease: LeaseKey,
    /// Its identity.
    pub(crate) identity: Identity,
    /// The rest, as it was given.
    pub(crate) given: Config,
}

/// The prefix of the names of Elector's own strategies; names of other domains belong to others.
const OUR_STRATEGIES: &str = "elector.dev/";

// === impl Config ===

impl Config {
    /// Checks everything that can be checked without a cluster.
    ///
    /// # Errors
    ///
    /// Names the first setting that breaks a rule, and the rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ResolvedConfig::new(self.clone(), "default").map(drop)
    }
}

// === impl ResolvedConfig ===

impl ResolvedConfig {
    /// Finds what was not given, and checks everything that can be checked without asking the cluster, whose own
    /// namespace is `namespace`.
    pub(crate) fn new(given: Config, namespace: &str) -> Result<Self, ConfigError> {
        given.timing.validate()?;
        given.validate_waits()?;
        let identity = given.identity.clone();
        let config = Self {
            lease: LeaseKey::new(
                given.namespace.as_deref().unwrap_or(namespace),
                &*given.lease,
            ),
            identity: identity.unwrap_or_else(|| random_identity(&pod_or_host_name())),
            given,
        };
        // Of all APIs the one that lets in the most names.
        config.validate_in(CandidateApi::V1Beta1)?;
        Ok(config)
    }

    /// Checks what others are told, where the LeaseCandidates are those of this API.
    pub(crate) fn validate_in(&self, api: CandidateApi) -> Result<(), ConfigError> {
        if self.given.mode.registers() {
            self.validate_candidate(api)?;
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

    /// True if another holder may lead already when the lease was lost in this way.
    pub(crate) fn is_succeeded(&self, loss: &Loss) -> bool {
        match loss {
            Loss::DeadlinePassed | Loss::NewTerm => false,
            // An elector waits before it grants what it cannot judge; client-go does not.
            Loss::Taken { by: None } | Loss::Deleted | Loss::StoreRestored => {
                self.given.has_client_go_peers()
            }
            // Nothing else says that there is none, not even what is not known here.
            _ => true,
        }
    }

    /// When work is to be gone that is asked to stop now for this reason, and whose limits are those. After a loss it has
    /// what is left of the lease: counted from the last deadline that it was told, and not from now, because this process
    /// may have been paused.
    pub(crate) fn stop_by(&self, reason: &StopReason, limits: StopLimits, now: Instant) -> Instant {
        let grace = self.given.grace;
        match reason {
            StopReason::Lost(loss) if self.is_succeeded(loss) => now,
            StopReason::HandOver { .. } | StopReason::ShutDown => now.after(grace),
            _ => limits.stop_by(now, grace),
        }
    }

    fn validate_candidate(&self, api: CandidateApi) -> Result<(), ConfigError> {
        let strategy = &self.given.strategy;
        if self.given.binary_version.is_none() {
            return Err(ConfigError::MissingVersion);
        }
        let mut errors = validate_candidate(&self.object(api));
        // The error of what was given comes before errors that follow from it.
        errors.sort_by_key(|error| error.field != "spec.binaryVersion");
        let is_ours = |text: &str| text.starts_with(OUR_STRATEGIES);
        match errors.into_iter().next() {
            Some(error) => Err(ConfigError::Candidate(error)),
            None if is_ours(strategy.as_str()) && strategy.strategy().is_none() => {
                Err(ConfigError::Strategy(strategy.clone()))
            }
            None => Ok(()),
        }
    }

    /// The configuration of the machine that holds the lease.
    pub(crate) fn holder(&self) -> HolderConfig {
        let acquisition = |strategy| Acquisition {
            strategy,
            max_lease_duration: self.given.max_lease_duration,
            absent_lease_grace: self.given.absent_lease_grace,
            takeover: TakeoverPolicy::None,
        };
        HolderConfig {
            identity: self.identity.clone(),
            timing: self.given.timing.clone(),
            mode: match self.given.mode {
                // A disabled election has no machine that would ask.
                Mode::Elected | Mode::Disabled => HolderMode::Elected,
                Mode::Auto => HolderMode::Auto {
                    fallback: self.given.fallback,
                    acquisition: acquisition(Some(self.given.strategy.clone())),
                },
                Mode::Plain => HolderMode::Plain(acquisition(None)),
            },
        }
    }

    /// The LeaseCandidate as this process writes it, without its times.
    pub(crate) fn object(&self, api: CandidateApi) -> LeaseCandidate {
        let candidate = LeaseCandidate::named(api, &self.lease, &self.identity);
        self.offer(match &self.given.owner {
            Some(pod) => candidate.owned_by_pod(&pod.name, &pod.uid),
            None => candidate,
        })
    }

    /// An existing LeaseCandidate with what this process offers.
    pub(crate) fn offer(&self, mut candidate: LeaseCandidate) -> LeaseCandidate {
        let text = |version: &Option<_>| {
            version
                .as_ref()
                .map_or_else(String::new, Version::to_string)
        };
        let given = &self.given;
        candidate.spec.binary_version = text(&given.binary_version);
        candidate.spec.emulation_version = match &given.emulation_version {
            None => candidate.spec.binary_version.clone(),
            given => text(given),
        };
        candidate
            .with_strategy(given.strategy.as_str())
            .marked(given.timing.lease_duration)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An elector waits before it grants what was emptied or deleted, so that the work has its time; client-go does not.
    /// A process that renews the term under the same name leads already; one that was granted a new term had to wait.
    #[test]
    fn after_a_loss_the_work_has_what_the_lease_leaves_unless_another_may_lead_already() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let stop_by = |client_go_peers, reason: &StopReason| {
            let mut config = Config::new("web", "1.2.3".parse().unwrap());
            (config.client_go_peers, config.grace) = (client_go_peers, Duration::from_secs(60));
            let config = ResolvedConfig::new(config, "ns").unwrap();
            let limits = StopLimits::of(at(10), Duration::from_secs(3));
            config.stop_by(reason, limits, at(7)).since(at(0)).as_secs()
        };
        let by = Identity::new("other");
        for (loss, alone, beside_client_go) in [
            (Loss::DeadlinePassed, 13, 13),
            (Loss::NewTerm, 13, 13),
            (Loss::Taken { by: None }, 13, 7),
            (Loss::Deleted, 13, 7),
            (Loss::StoreRestored, 13, 7),
            (Loss::Taken { by }, 7, 7),
            (Loss::NameShared, 7, 7),
        ] {
            let reason = StopReason::Lost(loss);
            let times = (stop_by(false, &reason), stop_by(true, &reason));
            assert_eq!(times, (alone, beside_client_go), "{reason:?}");
        }
        assert_eq!(
            stop_by(true, &StopReason::ShutDown),
            67,
            "the lease is held"
        );
    }

    #[test]
    fn what_is_not_given_is_found_and_what_is_given_stays() {
        let usual = Config::new("web", "1.0.0".parse().unwrap());
        let one = ResolvedConfig::new(usual.clone(), "team").unwrap();
        assert_eq!(one.lease, LeaseKey::new("team", "web"));
        let host = pod_or_host_name();
        let name = one.identity.as_str();
        assert!(
            name.len() > 17 && (name.contains(&host) || host.is_empty()),
            "{name} at {host}"
        );
        let other = ResolvedConfig::new(usual.clone(), "team").unwrap();
        assert_ne!(
            one.identity, other.identity,
            "a configuration may be used twice"
        );
        let me = Identity::new("me").unwrap();
        let given = usual.in_namespace("other").identified_as(me.clone());
        let resolved = ResolvedConfig::new(given, "team").unwrap();
        let lease = LeaseKey::new("other", "web");
        assert_eq!((resolved.lease, resolved.identity), (lease, me));
    }
}
