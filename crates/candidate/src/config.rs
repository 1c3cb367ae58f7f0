//! The configuration of a candidate: its lease, its identity, what it offers, and how long it waits for what.

mod error;

use std::fmt;
use std::time::Duration;

use elector_protocol::{CandidateTiming, Identity, StrategyName, Version};

pub use self::error::ConfigError;
use crate::health::HealthTiming;
use crate::owner_pod::OwnerPod;

/// The configuration of a [`Candidate`](crate::Candidate).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The name of the lease that it wants.
    pub lease: String,
    /// The namespace of the lease. Unset by default: that of the cluster ([`elector_runtime::Cluster::namespace`]),
    /// which the kubeconfig's context or the service account names.
    pub namespace: Option<String>,
    /// Its identity: the name of its LeaseCandidate and the holder of the Lease, to be used by no other process. Unset
    /// by default: each candidate has a [`random_identity`](crate::random_identity) after its Pod or host
    /// ([`pod_or_host_name`](crate::pod_or_host_name)).
    pub identity: Option<Identity>,
    /// The version of its binary. [`Mode::Plain`] and [`Mode::Disabled`] do without.
    pub binary_version: Option<Version>,
    /// The version that it behaves as, no higher than the binary's. Unset by default: the binary version.
    pub emulation_version: Option<Version>,
    /// The strategy that it wishes the lease to be elected under: one of Elector's own, or that of another elector.
    /// [`StrategyName::oldest_emulation_version`].
    pub strategy: StrategyName,
    /// Its waits and deadlines. Lease duration 15 s, renew deadline 10 s, as client-go.
    pub timing: CandidateTiming,
    /// The time that the work has to stop. 10 s, while the lease is still held. After a loss the lease leaves less: see
    /// [`Self::stop_budget`].
    pub grace: Duration,
    /// True if candidates of client-go that take the Lease by themselves (`Coordinated: false`) compete for it too.
    /// False by default; [`Mode::Plain`] counts on it in any case. They write whole seconds, and take an emptied Lease
    /// at once, so less time is left to stop after a loss.
    pub client_go_peers: bool,
    /// True if Events on the Lease report the terms of this process: it became leader, handed over, released, or lost
    /// the lease, and why. False by default: its account needs the verb `create` of `events.events.k8s.io` for that. An
    /// Event that cannot be written is logged, and neither delays a term nor ends one. [`Mode::Disabled`] writes none.
    #[cfg(feature = "events")]
    pub record_events: bool,
    /// The action after a term that ended although no shutdown was asked for.
    pub after_term: AfterTerm,
    /// The action after the work has failed, by an error or a panic. [`AfterFailure::End`].
    pub after_failure: AfterFailure,
    /// The way in which it comes by its terms. [`Mode::Auto`].
    pub mode: Mode,
    /// The time for which a lease is free, by the candidate's own stop-watch, before [`Mode::Auto`] takes it: the time
    /// that an elector has. From 0 to 1 h; 5 s. Other modes have no use for it.
    pub fallback: Duration,
    /// The longest lease duration of any client that may hold this lease. Before a candidate takes a lease of which it
    /// cannot know how long its last holder may still believe, it waits for as long; a longer duration that it sees
    /// counts as well, and so does its own. From 1 s to 1 h; 15 s. [`Mode::Elected`] has no use for it.
    pub max_lease_duration: Duration,
    /// The time for which a Lease must have been missing, or have named no holder without being released, before a
    /// candidate takes it, in place of that longest duration. At most 1 h. Unset by default: less than the longest
    /// duration is safe only where no process can delete or empty the Lease of a living leader, and counts only for a
    /// Lease without a strategy, so not for one that candidates in [`Mode::Auto`] create. Refused in [`Mode::Elected`].
    pub absent_lease_grace: Option<Duration>,
    /// The Pod that the LeaseCandidate belongs to, in the namespace of the lease, so that Kubernetes deletes the one with
    /// the other. Unset by default; [`Mode::Plain`] has no LeaseCandidate.
    pub owner: Option<OwnerPod>,
    /// The period, timeout and threshold of the probe of [`Candidate::with_health`](crate::Candidate::with_health).
    /// Without a probe it has no use.
    pub health: HealthTiming,
}

/// The way in which a candidate comes by its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    /// needs neither an elector nor LeaseCandidates, and accepts no grant: versions and strategy are not announced to any
    /// process. A missing Lease is waited for, unless the configuration is [`Config::as_client_go`].
    Plain,
    /// There is no election: the work runs at once, as long as the process does, in a term whose number and token are 0,
    /// and its guard says yes. No request is sent, and one warning is logged. For a process that is known to be alone, as
    /// on the machine of a developer: nothing keeps two of them apart.
    Disabled,
}

/// The action after a term that ended by a loss or a hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AfterTerm {
    /// The process stays a candidate and may lead again.
    #[default]
    CampaignAgain,
    /// The run ends, for processes that begin afresh rather than lead twice.
    Return,
}

/// The action after the work has failed, by an error or a panic. Its term is given up in any case: the lease is never
/// held for work that does not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AfterFailure {
    /// The run ends, and gives the error.
    #[default]
    End,
    /// The process is no candidate for a while, and then one again. The pause is 1 s after the first failure and doubles
    /// up to 1 min, each less by up to a half at random; after work that went on for more than 1 min it is 1 s again. The
    /// error is logged, and told as [`Event::WorkFailed`](crate::Event::WorkFailed). The run ends nevertheless where the
    /// work still runs, or where its term was the end of the run ([`AfterTerm::Return`]).
    Retry,
}

/// The span by which the renewTime of a client-go holder may lag behind its write.
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
            Self::Disabled => "disabled",
        })
    }
}

impl Mode {
    /// True if a candidate in this mode registers a LeaseCandidate.
    pub(crate) const fn registers(self) -> bool {
        matches!(self, Self::Auto | Self::Elected)
    }
}

// === impl Config ===

impl Config {
    /// A candidate for the lease of that name under the built-in strategy, with the usual timing, that behaves as what
    /// it is. Its namespace and its identity are found by itself.
    ///
    /// ```
    /// use elector_candidate::Config;
    ///
    /// let config = Config::new("web", env!("CARGO_PKG_VERSION").parse()?);
    /// config.validate()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(lease: impl Into<String>, version: Version) -> Self {
        Self {
            binary_version: Some(version),
            mode: Mode::default(),
            ..Self::plain(lease)
        }
    }

    /// A process that stands for the lease of that name in [`Mode::Plain`], with the usual timing. It has no versions to
    /// tell.
    pub fn plain(lease: impl Into<String>) -> Self {
        Self {
            lease: lease.into(),
            namespace: None,
            identity: None,
            binary_version: None,
            emulation_version: None,
            strategy: StrategyName::oldest_emulation_version(),
            timing: CandidateTiming::default(),
            grace: Duration::from_secs(10),
            client_go_peers: false,
            #[cfg(feature = "events")]
            record_events: false,
            after_term: AfterTerm::default(),
            after_failure: AfterFailure::default(),
            mode: Mode::Plain,
            fallback: Duration::from_secs(5),
            max_lease_duration: Duration::from_secs(15),
            absent_lease_grace: None,
            owner: None,
            health: HealthTiming::default(),
        }
    }

    /// A process that stands for the lease of that name as client-go's plain election does: in [`Mode::Plain`], and where
    /// no Lease exists, or one that was emptied, it waits for nothing ([`Self::absent_lease_grace`] is zero). The first
    /// start of a program takes no longer than its requests.
    ///
    /// The price: after the Lease of a living leader was deleted or emptied, two processes may believe that they lead, for
    /// up to the renew deadline. One such process takes the guarantee from all others of its lease, whatever they wait
    /// for: one mode for a lease. A Lease with a strategy belongs to elected candidates, so it is waited for as
    /// [`Self::plain`] does.
    pub fn as_client_go(lease: impl Into<String>) -> Self {
        Self {
            absent_lease_grace: Some(Duration::ZERO),
            ..Self::plain(lease)
        }
    }

    /// The same for a lease in this namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same under this identity, which no other living process may use.
    #[must_use]
    pub fn identified_as(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The span after the end of the belief in which the work may still act: three quarters of the time from renew
    /// deadline to lease duration (3.75 s by default), and one second less beside client-go.
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

    /// True if others may take the Lease by themselves, as client-go does.
    pub(crate) fn has_client_go_peers(&self) -> bool {
        self.client_go_peers || self.mode == Mode::Plain
    }

    /// Checks what does not depend on what others are told.
    pub(crate) fn validate_waits(&self) -> Result<(), ConfigError> {
        if self.grace > LONGEST_WAIT {
            return Err(ConfigError::Grace(self.grace));
        }
        if self.fallback > LONGEST_WAIT {
            return Err(ConfigError::Fallback(self.fallback));
        }
        if !(Duration::from_secs(1)..=LONGEST_WAIT).contains(&self.max_lease_duration) {
            return Err(ConfigError::MaxLeaseDuration(self.max_lease_duration));
        }
        if !self.health.has_valid_period() {
            return Err(ConfigError::HealthPeriod(self.health.period));
        }
        if !self.health.has_valid_timeout() {
            return Err(ConfigError::HealthTimeout(self.health.timeout));
        }
        match self.absent_lease_grace {
            Some(_) if self.mode == Mode::Elected => Err(ConfigError::UnusedAbsentLeaseGrace),
            Some(grace) if grace > LONGEST_WAIT => Err(ConfigError::AbsentLeaseGrace(grace)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let identity = Identity::new("web-0_1").unwrap();
        Config::new("web", "1.2.3".parse().unwrap()).identified_as(identity)
    }

    fn refusal(change: impl FnOnce(&mut Config)) -> String {
        let mut config = config();
        change(&mut config);
        config.validate().unwrap_err().to_string()
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
        let plain = Config::plain("web");
        assert_eq!(plain.stop_budget().as_millis(), 2_750);
    }

    #[test]
    fn each_bad_setting_is_named() {
        assert_eq!(
            refusal(|config| config.timing.renew_deadline = Duration::from_secs(14)),
            "renew-deadline is 14s: must be at most 4/5 of lease-duration and one second below it, so at most 12s"
        );
        assert!(refusal(|config| config.binary_version = None).starts_with("binary-version is"));
        let above = "2.0.0".parse().ok();
        assert!(refusal(|config| config.emulation_version = above).starts_with("spec."));
        let unknown: StrategyName = "elector.dev/oldest".parse().unwrap();
        assert_eq!(
            refusal(|config| config.strategy = unknown),
            "strategy is elector.dev/oldest: Elector has OldestEmulationVersion, elector.dev/newest-version, \
             elector.dev/priority, elector.dev/sticky"
        );
        assert!(
            refusal(|config| config.identity = Identity::new("a/b")).starts_with("metadata.name")
        );
        assert!(refusal(|config| config.grace = Duration::MAX).starts_with("grace-period"));
        assert!(refusal(|config| config.fallback = Duration::MAX).starts_with("fallback-after"));
        for bad in [Duration::ZERO, Duration::MAX] {
            let text = refusal(|config| config.max_lease_duration = bad);
            assert!(text.starts_with("max-lease-duration"), "{text}");
        }
        let text = refusal(|config| config.health.period = Duration::ZERO);
        assert_eq!(text, "health-period is 0ns: must be from 100ms to 1h");
        let text = refusal(|config| config.health.timeout = Duration::from_secs(7200));
        assert_eq!(text, "health-timeout is 7200s: must be from 10ms to 1h");
        let text = refusal(|config| config.absent_lease_grace = Some(Duration::MAX));
        assert!(text.starts_with("absent-lease-grace is 1"), "{text}");
        let text = refusal(|config| {
            config.mode = Mode::Elected;
            config.absent_lease_grace = Some(Duration::ZERO);
        });
        assert!(text.starts_with("absent-lease-grace is set, but"), "{text}");
        // The API server checks the name of a lease only where the Lease itself is written.
        assert!(
            refusal(|config| config.lease = "Web".into())
                .starts_with("the lease \"Web\" cannot exist: metadata.name: Invalid value")
        );
    }

    /// Nothing is registered in plain mode, so what an API server says of LeaseCandidates does not matter.
    #[test]
    fn a_plain_candidate_needs_neither_versions_nor_a_name_for_an_object() {
        let config = Config::plain("web").identified_as(Identity::new("Host 1/A").unwrap());
        config.validate().unwrap();
        let registered = Config {
            mode: Mode::Auto,
            ..config
        };
        assert!(registered.validate().is_err());
        assert!(matches!(
            Config::plain("Web").validate(),
            Err(ConfigError::Lease { .. })
        ));
    }
}
