//! The configuration of a candidate: its lease, its identity, what it offers, and how long it waits for what.

use std::fmt;
use std::time::Duration;

use elector_api::{
    CandidateApi, FieldError, Lease, LeaseCandidate, validate_candidate, validate_lease,
};
use elector_protocol::holder::{Acquisition, Displaced, HolderConfig, HolderMode, Loss};
use elector_protocol::{CandidateTiming, Identity, LeaseKey, StrategyName, TimingError};

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
    /// The strategy that it wishes the lease to be elected under: one of [`StrategyName::KNOWN`], or that of another
    /// elector. `OldestEmulationVersion`.
    pub strategy: String,
    /// How long it waits for what. Lease duration 15 s, renew deadline 10 s, as client-go.
    pub timing: CandidateTiming,
    /// How long the work may take to stop after it was told to. 10 s, while the lease is still held. After a loss the
    /// lease leaves less: see [`Self::stop_budget`].
    pub grace: Duration,
    /// Whether candidates of client-go that take the Lease by themselves (`Coordinated: false`) compete for it too.
    /// False; [`Mode::Plain`] counts on it in any case. They write whole seconds, and take an emptied Lease at once, so
    /// less time is left to stop after a loss.
    pub client_go_peers: bool,
    /// What happens when a term has ended although the process was not told to end.
    pub after_term: AfterTerm,
    /// How it comes by its terms. [`Mode::Auto`].
    pub mode: Mode,
    /// How long a lease is free, by the candidate's own stop-watch, before [`Mode::Auto`] takes it: the time that an
    /// elector has. From 0 to 1 h; 5 s. Other modes have no use for it.
    pub fallback: Duration,
    /// The longest lease duration of any client that may hold this lease. Before a candidate takes a lease of which it
    /// cannot know how long its last holder may still believe, it waits for as long; a longer duration that it sees
    /// counts as well, and so does its own. From 1 s to 1 h; 15 s. [`Mode::Elected`] has no use for it.
    pub max_lease_duration: Duration,
    /// How long a Lease must have been missing, or have named no holder without being released, before a candidate takes
    /// it, in place of that longest duration. At most 1 h. Unset by default: less than the longest duration is safe only
    /// where no process can delete or empty the Lease of a living leader. Refused in [`Mode::Elected`].
    pub absent_lease_grace: Option<Duration>,
}

/// How a candidate comes by its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An elector chooses among the candidates. Where none acts, the candidate takes a lease itself once that has been
    /// free for [`Config::fallback`]: an elector that is away costs the quality of the choice, not the leader.
    ///
    /// A lease whose strategy belongs to another elector is never taken.
    #[default]
    Auto,
    /// An elector chooses among the candidates. Without one, no candidate leads.
    Elected,
    /// The candidate takes the lease as soon as that is free, as client-go does, and may share it with client-go. It
    /// needs neither an elector nor LeaseCandidates, and accepts no grant: versions and strategy are not told to any
    /// process.
    Plain,
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
    /// No elector decides leases of this strategy: the name is one of Elector's, which has no such strategy.
    #[error("strategy is {0:?}: Elector has {known}", known = StrategyName::KNOWN.join(", "))]
    Strategy(String),
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
    /// An elector would be waited for too long.
    #[error("fallback-after is {0:?}: must be at most 1h")]
    Fallback(Duration),
    /// No lease duration of any client is so short, or so long.
    #[error("max-lease-duration is {0:?}: must be from 1s to 1h")]
    MaxLeaseDuration(Duration),
    /// A missing Lease would be waited for too long.
    #[error("absent-lease-grace is {0:?}: must be at most 1h")]
    AbsentLeaseGrace(Duration),
    /// A candidate that takes no lease waits for none.
    #[error(
        "absent-lease-grace is set, but the elected mode takes no lease: electors have this setting"
    )]
    UnusedAbsentLeaseGrace,
}

/// What the names of Elector's own strategies begin with; names of other domains belong to others.
const OUR_STRATEGIES: &str = "elector.dev/";
/// What the renewTime of a client-go holder may lag behind its write.
const WHOLE_SECOND: Duration = Duration::from_secs(1);
/// The longest of the waits that can be set.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

// === impl Mode ===

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Elected => "elected",
            Self::Plain => "plain",
        })
    }
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
            client_go_peers: false,
            after_term: AfterTerm::default(),
            mode: Mode::default(),
            fallback: Duration::from_secs(5),
            max_lease_duration: Duration::from_secs(15),
            absent_lease_grace: None,
        }
    }

    /// A process that stands for `lease` in [`Mode::Plain`], with the usual timing. It has no versions to tell.
    pub fn plain(lease: LeaseKey, identity: Identity) -> Self {
        Self {
            mode: Mode::Plain,
            ..Self::new(lease, identity, "")
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
        self.validate_waits()?;
        // In plain mode there is no LeaseCandidate that could break a rule.
        if self.mode != Mode::Plain {
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

    /// How long after the end of the belief the work may still act: three quarters of the time from renew deadline to
    /// lease duration (3.75 s by default), and one second less beside client-go.
    ///
    /// The stop of the work after a loss does not begin when the loss is noticed. It ends this long after the deadline
    /// of the belief, on the holder's clock, and so a quarter of that time before another candidate can lead. A process
    /// that was paused for longer has nothing left of it: its work is dropped at once. So it is as soon as another
    /// holder is known to lead.
    pub fn stop_budget(&self) -> Duration {
        let CandidateTiming {
            lease_duration,
            renew_deadline,
            ..
        } = self.timing;
        let margin = if self.has_client_go_peers() {
            WHOLE_SECOND
        } else {
            Duration::ZERO
        };
        let alone = lease_duration.saturating_sub(renew_deadline);
        (alone * 3 / 4).saturating_sub(margin)
    }

    /// Whether another holder may lead already when the lease was lost in this way.
    pub(crate) fn is_succeeded(&self, loss: &Loss) -> bool {
        match loss {
            Loss::Taken { by: Some(_) } | Loss::NameShared => true,
            // An elector waits before it grants what it cannot judge; client-go does not.
            Loss::Taken { by: None } | Loss::Deleted | Loss::StoreRestored => {
                self.has_client_go_peers()
            }
            Loss::DeadlinePassed | Loss::NewTerm => false,
        }
    }

    fn has_client_go_peers(&self) -> bool {
        self.client_go_peers || self.mode == Mode::Plain
    }

    fn validate_waits(&self) -> Result<(), ConfigError> {
        if self.grace > LONGEST_WAIT {
            return Err(ConfigError::Grace(self.grace));
        }
        if self.fallback > LONGEST_WAIT {
            return Err(ConfigError::Fallback(self.fallback));
        }
        if !(Duration::from_secs(1)..=LONGEST_WAIT).contains(&self.max_lease_duration) {
            return Err(ConfigError::MaxLeaseDuration(self.max_lease_duration));
        }
        match self.absent_lease_grace {
            Some(_) if self.mode == Mode::Elected => Err(ConfigError::UnusedAbsentLeaseGrace),
            Some(grace) if grace > LONGEST_WAIT => Err(ConfigError::AbsentLeaseGrace(grace)),
            _ => Ok(()),
        }
    }

    fn validate_candidate(&self, api: CandidateApi) -> Result<(), ConfigError> {
        let mut errors = validate_candidate(&self.object(api));
        // What was said comes before what follows from it.
        errors.sort_by_key(|error| error.field != "spec.binaryVersion");
        let is_ours = |text: &str| text.starts_with(OUR_STRATEGIES);
        match errors.into_iter().next() {
            Some(error) => Err(ConfigError::Candidate(error)),
            None if is_ours(&self.strategy) && !StrategyName::KNOWN.contains(&&*self.strategy) => {
                Err(ConfigError::Strategy(self.strategy.clone()))
            }
            None => Ok(()),
        }
    }

    /// What the machine that holds the lease is told.
    pub(crate) fn holder(&self) -> HolderConfig {
        let acquisition = |strategy| Acquisition {
            strategy,
            max_lease_duration: self.max_lease_duration,
            absent_lease_grace: self.absent_lease_grace,
            displaced: Displaced::None,
        };
        HolderConfig {
            identity: self.identity.clone(),
            timing: self.timing.clone(),
            mode: match self.mode {
                Mode::Elected => HolderMode::Elected,
                Mode::Auto => HolderMode::Auto {
                    fallback: self.fallback,
                    acquisition: acquisition(StrategyName::parse(&self.strategy).ok()),
                },
                Mode::Plain => HolderMode::Plain(acquisition(None)),
            },
        }
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
    }

    #[test]
    fn the_work_ends_a_quarter_of_the_effect_grace_before_another_candidate_can_lead() {
        let budget = |lease_duration, renew_deadline, client_go_peers| {
            let seconds = Duration::from_secs;
            let config = Config {
                timing: CandidateTiming::of(seconds(lease_duration), seconds(renew_deadline)),
                client_go_peers,
                ..config()
            };
            config.stop_budget().as_millis()
        };
        assert_eq!(budget(15, 10, false), 3_750);
        assert_eq!(budget(15, 10, true), 2_750);
        assert_eq!(budget(2, 1, false), 750);
        assert_eq!(budget(2, 1, true), 0, "nothing is left");
        let plain = Config::plain(config().lease, config().identity);
        assert_eq!(plain.stop_budget().as_millis(), 2_750);
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
        assert_eq!(
            refusal(|config| config.strategy = "elector.dev/oldest".into()),
            "strategy is \"elector.dev/oldest\": Elector has OldestEmulationVersion, elector.dev/newest-version, \
             elector.dev/priority, elector.dev/sticky"
        );
        assert!(
            refusal(|config| config.identity = Identity::new("a/b").unwrap())
                .starts_with("metadata.name")
        );
        assert!(refusal(|config| config.grace = Duration::MAX).starts_with("grace-period"));
        assert!(refusal(|config| config.fallback = Duration::MAX).starts_with("fallback-after"));
        for bad in [Duration::ZERO, Duration::MAX] {
            let text = refusal(|config| config.max_lease_duration = bad);
            assert!(text.starts_with("max-lease-duration"), "{text}");
        }
        let text = refusal(|config| config.absent_lease_grace = Some(Duration::MAX));
        assert!(text.starts_with("absent-lease-grace is 1"), "{text}");
        let text = refusal(|config| {
            config.mode = Mode::Elected;
            config.absent_lease_grace = Some(Duration::ZERO);
        });
        assert!(text.starts_with("absent-lease-grace is set, but"), "{text}");
        // The API server checks the name of a lease only where the Lease itself is written.
        assert!(
            refusal(|config| config.lease = LeaseKey::new("default", "Web"))
                .starts_with("the lease \"Web\" cannot exist: metadata.name: Invalid value")
        );
    }

    /// Nothing is registered in plain mode, so what an API server says of LeaseCandidates does not matter.
    #[test]
    fn a_plain_candidate_needs_neither_versions_nor_a_name_for_an_object() {
        let lease = LeaseKey::new("default", "web");
        let config = Config::plain(lease.clone(), Identity::new("Host 1/A").unwrap());
        config.validate().unwrap();
        let registered = Config {
            mode: Mode::Auto,
            ..config
        };
        assert!(registered.validate().is_err());
        let named = Identity::new("me").unwrap();
        let nameless = Config::plain(LeaseKey::new("default", "Web"), named);
        assert!(matches!(
            nameless.validate(),
            Err(ConfigError::Lease { .. })
        ));
    }

    #[test]
    fn a_lease_is_created_with_the_candidates_own_strategy_and_in_plain_mode_with_none() {
        let strategy_of = |mode| {
            let strategy = "example.com/mine".to_owned();
            let config = Config {
                mode,
                strategy,
                ..config()
            };
            match config.holder().mode {
                HolderMode::Elected => None,
                HolderMode::Auto { acquisition, .. } | HolderMode::Plain(acquisition) => {
                    Some(acquisition.strategy)
                }
            }
        };
        let own = StrategyName::parse("example.com/mine").unwrap();
        assert_eq!(strategy_of(Mode::Auto), Some(Some(own)));
        assert_eq!(strategy_of(Mode::Plain), Some(None));
        assert_eq!(strategy_of(Mode::Elected), None);
    }
}
