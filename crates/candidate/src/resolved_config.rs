//! The configuration of a candidate with nothing left to be found, and what others are told of it.

use std::time::Duration;

use elector_api::{
    CandidateApi, Lease, LeaseCandidate, LeaseMetadata, validate_candidate, validate_lease,
};
use elector_protocol::holder::{
    Acquisition, HolderConfig, HolderMode, Loss, StopReason, TakeoverPolicy,
};
use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseKey, LifeId, StrategyName, Version,
};
use elector_runtime::Cluster as ApiServer;

use crate::config::{Config, ConfigError, Mode, Setting};
use crate::identity::{pod_or_host_name, random_identity};
use crate::owner::Owner;
use crate::term_state::WorkLimits;

/// The given configuration, and the values found where nothing was given.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedConfig {
    /// The lease that it wants.
    pub(crate) lease: LeaseKey,
    /// Its identity.
    pub(crate) identity: Identity,
    /// The version of its binary, empty where none is told.
    version: String,
    emulation_version: String,
    strategy: StrategyName,
    /// The constants of the protocol.
    pub(crate) timing: CandidateTiming,
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
        ResolvedConfig::new(self.clone(), "default", ApiServer::REQUEST_TIMEOUT).map(drop)
    }
}

// === impl ResolvedConfig ===

impl ResolvedConfig {
    /// Finds what was not given, and checks everything that can be checked without asking the cluster, whose own
    /// namespace is `namespace`, and whose requests take no longer than that.
    pub(crate) fn new(
        given: Config,
        namespace: &str,
        request_timeout: Duration,
    ) -> Result<Self, ConfigError> {
        let by_flags = given.by_flags;
        let resolved = Self::resolve(given, namespace, request_timeout);
        resolved.map_err(|error| error.named_by_flag(by_flags))
    }

    fn resolve(
        given: Config,
        namespace: &str,
        request_timeout: Duration,
    ) -> Result<Self, ConfigError> {
        let timing = given.timing.resolved(request_timeout);
        timing.validate()?;
        given.validate_waits()?;
        let identity = match (&given.identity, &given.process_name) {
            (Some(identity), _) => Identity::new(identity.as_str())
                .ok_or_else(|| ConfigError::new(Setting::IDENTITY, "is empty"))?,
            (None, Some(name)) => random_identity(name),
            (None, None) => random_identity(&pod_or_host_name()),
        };
        let (mut version, mut emulation_version) = (String::new(), String::new());
        let mut strategy = StrategyName::oldest_emulation_version();
        if given.mode.registers() {
            version = parsed_version(Setting::VERSION, given.version.as_deref())?;
            emulation_version = match &given.emulation_version {
                None => version.clone(),
                given => parsed_version(Setting::EMULATION_VERSION, given.as_deref())?,
            };
            strategy = parsed_strategy(&given.strategy)?;
        }
        let config = Self {
            lease: LeaseKey::new(
                given.namespace.as_deref().unwrap_or(namespace),
                &*given.lease,
            ),
            identity,
            version,
            emulation_version,
            strategy,
            timing,
            given,
        };
        // Of all APIs the one that lets in the most names.
        config.check_objects(CandidateApi::V1Beta1)?;
        Ok(config)
    }

    /// Checks what others are told, where the LeaseCandidates are those of this API.
    pub(crate) fn validate_in(&self, api: CandidateApi) -> Result<(), ConfigError> {
        let checked = self.check_objects(api);
        checked.map_err(|error| error.named_by_flag(self.given.by_flags))
    }

    fn check_objects(&self, api: CandidateApi) -> Result<(), ConfigError> {
        if self.given.mode.registers() {
            check_owner(
                Setting::CANDIDATE_OWNER,
                self.given.candidate_owner.as_ref(),
            )?;
            match validate_candidate(&self.object(api)).first() {
                Some(error)
                    if error.field == "spec.emulationVersion"
                        && self.given.emulation_version.is_some() =>
                {
                    let setting = Setting::EMULATION_VERSION;
                    return Err(ConfigError::new(setting, format!("is refused: {error}")));
                }
                Some(error) => return Err(ConfigError::refused(error)),
                None => {}
            }
        }
        check_owner(Setting::LEASE_OWNER, self.given.lease_owner.as_ref())?;
        let mut lease = Lease::named(&self.lease);
        self.lease_metadata().put_on(&mut lease);
        match validate_lease(&lease).first() {
            Some(error) if error.field == "metadata.namespace" => Err(ConfigError::refused(error)),
            Some(error) if error.field == "metadata.labels" => Err(ConfigError::new(
                Setting::LEASE_LABEL,
                format!("is refused: {error}"),
            )),
            Some(error) if error.field.starts_with("metadata.ownerReferences") => Err(
                ConfigError::new(Setting::LEASE_OWNER, format!("is refused: {error}")),
            ),
            Some(error) => Err(ConfigError::new(
                Setting::LEASE,
                format!("is refused: no Lease can have this name: {error}"),
            )),
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
    pub(crate) fn stop_by(&self, reason: &StopReason, limits: WorkLimits, now: Instant) -> Instant {
        let grace = self.given.grace;
        match reason {
            StopReason::Lost(loss) if self.is_succeeded(loss) => now,
            StopReason::HandOver { .. } | StopReason::ShutDown => now.after(grace),
            _ => limits.stop_by(now, grace),
        }
    }

    /// The configuration of the machine that holds the lease, in this life of the process's instance, if it has one.
    pub(crate) fn holder(&self, life: Option<LifeId>) -> HolderConfig {
        let acquisition = |strategy| Acquisition {
            strategy,
            max_lease_duration: self.given.max_lease_duration,
            absent_lease_grace: self.given.absent_lease_grace,
            takeover: TakeoverPolicy::None,
        };
        HolderConfig {
            identity: self.identity.clone(),
            timing: self.timing.clone(),
            mode: match self.given.mode {
                // A disabled election has no machine that would ask.
                Mode::Elected | Mode::Disabled => HolderMode::Elected,
                Mode::Auto => HolderMode::Auto {
                    fallback: self.given.fallback,
                    acquisition: acquisition(Some(self.strategy.clone())),
                },
                Mode::Plain => HolderMode::Plain(acquisition(None)),
            },
            life,
        }
    }

    /// The labels and the owner that the Lease is to carry.
    pub(crate) fn lease_metadata(&self) -> LeaseMetadata {
        LeaseMetadata {
            labels: self.given.lease_labels.clone(),
            owner: self.given.lease_owner.as_ref().map(Owner::reference),
        }
    }

    /// The LeaseCandidate as this process writes it, without its times.
    pub(crate) fn object(&self, api: CandidateApi) -> LeaseCandidate {
        let mut candidate = LeaseCandidate::named(api, &self.lease, &self.identity);
        let owner = self.given.candidate_owner.as_ref().map(Owner::reference);
        candidate.metadata.owner_references = owner.map(|owner| vec![owner]);
        self.offer(candidate)
    }

    /// An existing LeaseCandidate with what this process offers.
    pub(crate) fn offer(&self, mut candidate: LeaseCandidate) -> LeaseCandidate {
        candidate.spec.binary_version.clone_from(&self.version);
        candidate
            .spec
            .emulation_version
            .clone_from(&self.emulation_version);
        let candidate = candidate
            .with_strategy(self.strategy.as_str())
            .marked(self.timing.lease_duration);
        match &self.given.membership {
            Some(membership) => membership.mark(candidate),
            None => candidate,
        }
    }
}

fn check_owner(setting: Setting, owner: Option<&Owner>) -> Result<(), ConfigError> {
    match owner.and_then(Owner::missing) {
        Some(part) => Err(ConfigError::new(setting, format!("lacks its {part}"))),
        None => Ok(()),
    }
}

fn parsed_version(setting: Setting, text: Option<&str>) -> Result<String, ConfigError> {
    match text {
        None | Some("") => Err(ConfigError::new(
            setting,
            "is missing: electors choose by it, unless the mode is plain or disabled",
        )),
        Some(text) => match text.parse::<Version>() {
            Ok(version) => Ok(version.to_string()),
            Err(error) => Err(ConfigError::new(setting, format!("is refused: {error}"))),
        },
    }
}

fn parsed_strategy(text: &str) -> Result<StrategyName, ConfigError> {
    let refused = |rule| ConfigError::new(Setting::STRATEGY, rule);
    let strategy = text.parse::<StrategyName>();
    let strategy = strategy.map_err(|error| refused(format!("is refused: {error}")))?;
    if text.starts_with(OUR_STRATEGIES) && strategy.strategy().is_none() {
        let known = StrategyName::KNOWN.join(", ");
        return Err(refused(format!("is {strategy}: Elector has {known}")));
    }
    Ok(strategy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(config: Config, namespace: &str) -> ResolvedConfig {
        ResolvedConfig::new(config, namespace, Duration::MAX).unwrap()
    }

    /// An elector waits before it grants what was emptied or deleted, so that the work has its time; client-go does not.
    /// A process that renews the term under the same name leads already; one that was granted a new term had to wait.
    #[test]
    fn after_a_loss_the_work_has_what_the_lease_leaves_unless_another_may_lead_already() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let stop_by = |client_go_peers, reason: &StopReason| {
            let config = Config::new("web", "1.2.3").grace(Duration::from_secs(60));
            let config = resolved(config.client_go_peers(client_go_peers), "ns");
            let limits = WorkLimits::of(at(10), Duration::from_secs(3));
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
        let usual = Config::new("web", "1.0.0");
        let one = resolved(usual.clone(), "team");
        assert_eq!(one.lease, LeaseKey::new("team", "web"));
        let host = pod_or_host_name();
        let name = one.identity.as_str();
        let holds = name.len() > 17 && (name.contains(&host) || host.is_empty());
        assert!(holds, "{name} at {host}");
        let other = resolved(usual.clone(), "team");
        assert_ne!(
            one.identity, other.identity,
            "a configuration may be used twice"
        );
        let named = resolved(usual.clone().process_name("pod-7"), "team");
        assert!(named.identity.as_str().starts_with("pod-7-"), "{named:?}");
        let given = resolved(usual.namespace("other").identity("me"), "team");
        assert_eq!(given.lease, LeaseKey::new("other", "web"));
        assert_eq!(given.identity.as_str(), "me");
    }

    #[test]
    fn a_version_of_zeros_is_named_by_the_setting_that_gave_it() {
        let one = Config::new("web", "1.0.0").emulation_version("0.0.0");
        let zero = Config::new("web", "0.0.0");
        for (config, setting) in [(zero, "version"), (one, "emulation_version")] {
            let error = ResolvedConfig::new(config, "ns", Duration::MAX).unwrap_err();
            assert_eq!(error.setting(), setting, "{error}");
        }
    }

    #[test]
    fn a_namespace_that_no_lease_can_have_is_named_by_its_setting_in_each_mode() {
        for mode in [Mode::Auto, Mode::Elected, Mode::Plain] {
            let config = Config::new("web", "1.0.0").mode(mode).namespace("Team");
            let error = ResolvedConfig::new(config, "ns", Duration::MAX).unwrap_err();
            assert_eq!(error.setting(), "namespace", "{error}");
        }
    }
}
