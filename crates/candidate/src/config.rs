//! The configuration of a candidate: its lease, its identity, what it offers, and how long it waits for what.

mod error;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use self::error::ConfigError;
pub(crate) use self::error::Setting;
use crate::health::HealthTiming;
use crate::membership::PartMembership;
use crate::owner::Owner;
use crate::strategy;
use crate::timing::Timing;

/// The configuration of a [`Candidate`](crate::Candidate).
///
/// Values are plain, and checked where the candidate is made, or by [`Self::validate`]: the error names the setting.
///
/// ```
/// use std::time::Duration;
///
/// use elector_candidate::{Config, Timing};
///
/// let config = Config::new("web", env!("CARGO_PKG_VERSION"))
///     .namespace("team")
///     .timing(Timing::fast())
///     .grace(Duration::from_secs(2));
/// assert!(config.validate().is_ok());
///
/// let error = config.strategy("oldest").validate().unwrap_err();
/// assert_eq!(error.setting(), "strategy");
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) lease: String,
    pub(crate) namespace: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) process_name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) emulation_version: Option<String>,
    pub(crate) strategy: String,
    pub(crate) candidate_owner: Option<Owner>,
    pub(crate) lease_labels: BTreeMap<String, String>,
    pub(crate) lease_owner: Option<Owner>,
    pub(crate) timing: Timing,
    pub(crate) grace: Duration,
    pub(crate) client_go_peers: bool,
    #[cfg(feature = "events")]
    pub(crate) record_events: bool,
    pub(crate) instance_lock: Option<PathBuf>,
    pub(crate) one_term: bool,
    pub(crate) retry_work: bool,
    pub(crate) mode: Mode,
    pub(crate) fallback: Duration,
    pub(crate) max_lease_duration: Duration,
    pub(crate) absent_lease_grace: Option<Duration>,
    pub(crate) health: HealthTiming,
    /// Its place in a group, where it is one of the candidates of a member.
    pub(crate) membership: Option<PartMembership>,
    /// True where errors name flags.
    pub(crate) by_flags: bool,
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
    /// A candidate for the lease of that name, in [`Mode::Auto`], with the usual timing, that behaves as what it is. Its
    /// namespace and its identity are found by itself.
    ///
    /// `version` is that of the binary, `MAJOR.MINOR.PATCH`, by which electors choose: `env!("CARGO_PKG_VERSION")`.
    pub fn new(lease: impl Into<String>, version: impl fmt::Display) -> Self {
        Self {
            version: Some(version.to_string()),
            mode: Mode::Auto,
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
            process_name: None,
            version: None,
            emulation_version: None,
            strategy: strategy::OLDEST_EMULATION_VERSION.to_owned(),
            candidate_owner: None,
            lease_labels: BTreeMap::new(),
            lease_owner: None,
            timing: Timing::default(),
            grace: Duration::from_secs(10),
            client_go_peers: false,
            #[cfg(feature = "events")]
            record_events: false,
            instance_lock: None,
            one_term: false,
            retry_work: false,
            mode: Mode::Plain,
            fallback: Duration::from_secs(5),
            max_lease_duration: Duration::from_secs(15),
            absent_lease_grace: None,
            health: HealthTiming::default(),
            membership: None,
            by_flags: false,
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
        Self::plain(lease).absent_lease_grace(Duration::ZERO)
    }

    /// The namespace of the lease. Unset by default: that of the cluster
    /// ([`Cluster::namespace`](crate::Cluster::namespace)), which the kubeconfig's context or the service account names.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Its identity: the name of its LeaseCandidate and the holder of the Lease, which no other living process may use.
    /// Unset by default: [`Self::process_name`] and a random part, so that each life of a process has its own.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// The identity before its random part. Unset by default: the environment variable `POD_NAME`, else the name of the
    /// host. Admission policies let a Pod write only the LeaseCandidate that is named for it.
    #[must_use]
    pub fn process_name(mut self, name: impl Into<String>) -> Self {
        self.process_name = Some(name.into());
        self
    }

    /// The way in which it comes by its terms.
    #[must_use]
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The version that it behaves as, no higher than that of its binary, which is the default.
    #[must_use]
    pub fn emulation_version(mut self, version: impl fmt::Display) -> Self {
        self.emulation_version = Some(version.to_string());
        self
    }

    /// The strategy that it wishes the lease to be elected under: one of Elector's own ([`strategy`]), or the name
    /// `domain/name` of another elector's. [`strategy::OLDEST_EMULATION_VERSION`].
    #[must_use]
    pub fn strategy(mut self, strategy: impl Into<String>) -> Self {
        self.strategy = strategy.into();
        self
    }

    /// The object that the LeaseCandidate belongs to, in the namespace of the lease, so that Kubernetes deletes the one
    /// with the other. Unset by default; [`Mode::Plain`] has no LeaseCandidate.
    #[must_use]
    pub fn candidate_owner(mut self, owner: Owner) -> Self {
        self.candidate_owner = Some(owner);
        self
    }

    /// A label that the Lease is to have, in place of one of the same key that is there; a later call does the same here.
    /// None by default. Labels of others stay, and so do these when they are no longer set.
    ///
    /// It comes with the writes that this process makes anyway: the one that creates the Lease, and those by which it takes
    /// or renews a term. Where the server refuses such a write and takes the same one without it, twice, labels and owner
    /// are left out, with a warning in the log: no term hangs on them.
    #[must_use]
    pub fn lease_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.lease_labels.insert(key.into(), value.into());
        self
    }

    /// An object that the Lease is to belong to, in the namespace of the lease or in none, beside the owners that are
    /// there. Unset by default. It comes as [`Self::lease_label`] does.
    ///
    /// When no owner of the Lease is left, Kubernetes deletes the Lease, that of a living leader too: the leader stops, and
    /// the next one waits for the longest lease duration in use. So the owner is what outlives each of the processes, such
    /// as their Deployment, and not a Pod.
    #[must_use]
    pub fn lease_owner(mut self, owner: Owner) -> Self {
        self.lease_owner = Some(owner);
        self
    }

    /// Its waits and deadlines. Lease duration 15 s, renew deadline 10 s, as client-go.
    #[must_use]
    pub const fn timing(mut self, timing: Timing) -> Self {
        self.timing = timing;
        self
    }

    /// The time that the work has to stop. At most 1 h; 10 s, while the lease is still held. After a loss the lease
    /// leaves less: see [`Self::stop_budget`].
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The time for which a lease is free, by the candidate's own stop-watch, before [`Mode::Auto`] takes it: the time
    /// that an elector has. From 0 to 1 h; 5 s. Other modes have no use for it.
    #[must_use]
    pub const fn fallback(mut self, fallback: Duration) -> Self {
        self.fallback = fallback;
        self
    }

    /// The longest lease duration of any client that may hold this lease. Before a candidate takes a lease of which it
    /// cannot know how long its last holder may still believe, it waits for as long; a longer duration that it sees
    /// counts as well, and so does its own. From 1 s to 1 h; 15 s. [`Mode::Elected`] has no use for it.
    #[must_use]
    pub const fn max_lease_duration(mut self, duration: Duration) -> Self {
        self.max_lease_duration = duration;
        self
    }

    /// The time for which a Lease must have been missing, or have named no holder without being released, before a
    /// candidate takes it, in place of that longest duration. At most 1 h. Unset by default: less than the longest
    /// duration is safe only where no process can delete or empty the Lease of a living leader, and counts only for a
    /// Lease without a strategy, so not for one that candidates in [`Mode::Auto`] create. Refused in [`Mode::Elected`].
    #[must_use]
    pub const fn absent_lease_grace(mut self, grace: Duration) -> Self {
        self.absent_lease_grace = Some(grace);
        self
    }

    /// True if candidates of client-go that take the Lease by themselves (`Coordinated: false`) compete for it too.
    /// False by default; [`Mode::Plain`] counts on it in any case. They write whole seconds, and take an emptied Lease
    /// at once, so less time is left to stop after a loss.
    #[must_use]
    pub const fn client_go_peers(mut self, compete: bool) -> Self {
        self.client_go_peers = compete;
        self
    }

    /// A file on storage of this node, on which the process keeps a lock that its children inherit, and in which it notes the
    /// terms that it begins. Unset by default.
    ///
    /// A process that is started again after a crash obtains the lock when the one before and all that it started are dead.
    /// It then leads on at once, where the Lease still shows a term of that one, although that has not expired
    /// ([`TermOrigin::Rejoined`](crate::TermOrigin)). In all doubt it waits as always: the lock is held for longer than 2 s,
    /// the machine was booted anew, the file is new, damaged or cannot be written. The log says so in one line.
    ///
    /// Each process has a file of its own, on a disk of its node and not on a network: in a Pod an `emptyDir`, which
    /// containers that are started again keep. A child that closes the descriptors that it inherits must not outlive this
    /// process. Requests of the dead process that are still under way may be applied beside the work of the new one, which
    /// the fencing token tells apart.
    #[must_use]
    pub fn instance_lock(mut self, file: impl Into<PathBuf>) -> Self {
        self.instance_lock = Some(file.into());
        self
    }

    /// True if the run ends after a term that ended by a loss or a hand-over ([`Error::TermEnded`](crate::Error)), for
    /// processes that begin afresh rather than lead twice. False by default: the process stays a candidate and may lead
    /// again.
    #[must_use]
    pub const fn one_term(mut self, one_term: bool) -> Self {
        self.one_term = one_term;
        self
    }

    /// True if work that fails, by an error or a panic, is tried again. False by default: the run ends with the error. The
    /// term is given up in any case: the lease is never held for work that does not run.
    ///
    /// The process is no candidate for a while, and then one again. The pause is 1 s after the first failure and doubles
    /// up to 1 min, each less by up to a half at random; after work that went on for more than 1 min it is 1 s again. The
    /// error is logged, and reported as [`Event::WorkFailed`](crate::Event::WorkFailed). The run ends nevertheless where
    /// the work still runs, or where its term was the end of the run ([`Self::one_term`]).
    #[must_use]
    pub const fn retry_work(mut self, retry: bool) -> Self {
        self.retry_work = retry;
        self
    }

    /// The time from one question to the next of the probe of
    /// [`Candidate::with_health`](crate::Candidate::with_health). From 100 ms to 1 h; 10 s, as a livenessProbe has it. It
    /// is longer where an answer takes longer. A leader whose probe begins to fail is asked to stop after at most
    /// [`Self::health_failures`] times this, and the timeout.
    #[must_use]
    pub const fn health_period(mut self, period: Duration) -> Self {
        self.health.period = period;
        self
    }

    /// The time that an answer of the probe may take before it counts as a failure. From 10 ms to 1 h; 1 s.
    #[must_use]
    pub const fn health_timeout(mut self, timeout: Duration) -> Self {
        self.health.timeout = timeout;
        self
    }

    /// The number of failures of the probe, one after the other, that make a well process unwell. At least 1; 3. One
    /// success ends that.
    #[must_use]
    pub const fn health_failures(mut self, failures: u32) -> Self {
        self.health.failures = failures;
        self
    }

    /// True if Events on the Lease report the terms of this process: it became leader, handed over, released, or lost
    /// the lease, and why. False by default: its account needs the verb `create` of `events.events.k8s.io` for that. An
    /// Event that cannot be written is logged, and neither delays a term nor ends one. [`Mode::Disabled`] writes none.
    #[cfg(feature = "events")]
    #[must_use]
    pub const fn record_events(mut self, record: bool) -> Self {
        self.record_events = record;
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
        let margin = if self.has_client_go_peers() {
            WHOLE_SECOND
        } else {
            Duration::ZERO
        };
        (self.timing.effect_grace() * 3 / 4).saturating_sub(margin)
    }

    /// True if a candidate of this configuration needs a cluster: in all modes but [`Mode::Disabled`], where
    /// [`Cluster::none`](crate::Cluster::none) does.
    #[doc(hidden)]
    pub const fn needs_cluster(&self) -> bool {
        !matches!(self.mode, Mode::Disabled)
    }

    /// For the test kit and the command line: what was given.
    #[doc(hidden)]
    pub fn given_identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    #[doc(hidden)]
    pub const fn given_lease_duration(&self) -> Duration {
        self.timing.lease_duration()
    }

    #[doc(hidden)]
    pub const fn retries_work(&self) -> bool {
        self.retry_work
    }

    /// True if others may take the Lease by themselves, as client-go does.
    pub(crate) fn has_client_go_peers(&self) -> bool {
        self.client_go_peers || self.mode == Mode::Plain
    }

    /// Checks what does not depend on what others are told.
    pub(crate) fn validate_waits(&self) -> Result<(), ConfigError> {
        let second = Duration::from_secs(1);
        within(Setting::GRACE, self.grace, Duration::ZERO)?;
        within(Setting::FALLBACK, self.fallback, Duration::ZERO)?;
        within(Setting::MAX_LEASE_DURATION, self.max_lease_duration, second)?;
        let HealthTiming {
            period,
            timeout,
            failures,
        } = self.health;
        within(Setting::HEALTH_PERIOD, period, second / 10)?;
        within(Setting::HEALTH_TIMEOUT, timeout, second / 100)?;
        if failures == 0 {
            let rule = "is 0: must be at least 1";
            return Err(ConfigError::new(Setting::HEALTH_FAILURES, rule));
        }
        match self.absent_lease_grace {
            Some(_) if self.mode == Mode::Elected => Err(ConfigError::new(
                Setting::ABSENT_LEASE_GRACE,
                "is set, but the elected mode takes no lease: electors have this setting",
            )),
            Some(grace) => within(Setting::ABSENT_LEASE_GRACE, grace, Duration::ZERO),
            None => Ok(()),
        }
    }
}

/// Checks a wait, which may be an hour at most.
fn within(setting: Setting, wait: Duration, shortest: Duration) -> Result<(), ConfigError> {
    if (shortest..=LONGEST_WAIT).contains(&wait) {
        return Ok(());
    }
    let rule = match shortest {
        Duration::ZERO => "must be at most 1h".to_owned(),
        shortest => format!("must be from {shortest:?} to 1h"),
    };
    Err(ConfigError::new(setting, format!("is {wait:?}: {rule}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::new("web", "1.2.3").identity("web-0_1")
    }

    fn refusal(config: &Config) -> String {
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn the_work_ends_a_quarter_of_the_effect_grace_before_another_candidate_can_lead() {
        let budget = |lease_duration, renew_deadline, client_go_peers| {
            let seconds = Duration::from_secs;
            let timing = Timing::new(seconds(lease_duration), seconds(renew_deadline));
            let config = config().timing(timing).client_go_peers(client_go_peers);
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
    fn each_bad_setting_is_named_with_its_rule() {
        let seconds = Duration::from_secs;
        let unknown = "strategy is elector.dev/oldest: Elector has OldestEmulationVersion, \
                       elector.dev/newest-version, elector.dev/priority, elector.dev/sticky";
        let late = "renew_deadline is 14s: must be at most 4/5 of lease-duration and one second below it, so at most 12s";
        let malformed =
            "version is refused: the version \"1.2\" is not a semantic version MAJOR.MINOR.PATCH";
        let lease = "lease is refused: no Lease can have this name: metadata.name: Invalid value";
        for (config, text) in [
            (config().timing(Timing::new(seconds(15), seconds(14))), late),
            (
                Config::new("web", ""),
                "version is missing: electors choose",
            ),
            (Config::new("web", "1.2"), malformed),
            (
                config().emulation_version("2.0.0"),
                "version is refused: spec.binaryVersion: Invalid value: \"1.2.3\"",
            ),
            (
                config().emulation_version("1.2"),
                "emulation_version is refused: the version \"1.2\"",
            ),
            (config().strategy("elector.dev/oldest"), unknown),
            (
                config().strategy("mine"),
                "strategy is refused: the strategy \"mine\" is neither",
            ),
            (
                config().identity("a/b"),
                "identity is refused: metadata.name",
            ),
            (config().identity(""), "identity is empty"),
            (
                config().candidate_owner(Owner::pod("web-0", "")),
                "candidate_owner lacks its uid",
            ),
            (
                config().candidate_owner(Owner::new("apps/", "Pod", "web-0", "5f1e")),
                "candidate_owner is refused: metadata.ownerReferences.apiVersion: Invalid value: \"apps/\"",
            ),
            (
                config().lease_owner(Owner::new("apps/v1", "", "web", "5f1e")),
                "lease_owner lacks its kind",
            ),
            (
                config().lease_owner(Owner::new("apps/", "Deployment", "web", "5f1e")),
                "lease_owner is refused: metadata.ownerReferences.apiVersion: Invalid value: \"apps/\"",
            ),
            (
                config().lease_label("team", "a b"),
                "lease_label is refused: metadata.labels: Invalid value: \"a b\"",
            ),
            (config().grace(Duration::MAX), "grace is 1"),
            (config().fallback(Duration::MAX), "fallback is 1"),
            (
                config().max_lease_duration(Duration::ZERO),
                "max_lease_duration is 0ns: must be from 1s",
            ),
            (
                config().max_lease_duration(Duration::MAX),
                "max_lease_duration is 1",
            ),
            (
                config().health_period(Duration::ZERO),
                "health_period is 0ns: must be from 100ms to 1h",
            ),
            (
                config().health_timeout(seconds(7200)),
                "health_timeout is 7200s: must be from 10ms to 1h",
            ),
            (
                config().health_failures(0),
                "health_failures is 0: must be at least 1",
            ),
            (
                config().absent_lease_grace(Duration::MAX),
                "absent_lease_grace is 1",
            ),
            (
                config()
                    .mode(Mode::Elected)
                    .absent_lease_grace(Duration::ZERO),
                "absent_lease_grace is set, but",
            ),
            // The API server checks the name of a lease only where the Lease itself is written.
            (
                Config {
                    lease: "Web".to_owned(),
                    ..config()
                },
                lease,
            ),
        ] {
            let refusal = refusal(&config);
            assert!(refusal.starts_with(text), "{refusal}");
            assert!(refusal.starts_with(config.validate().unwrap_err().setting()));
        }
    }

    /// Nothing is registered in plain mode, so what an API server says of LeaseCandidates does not matter.
    #[test]
    fn a_plain_candidate_needs_neither_versions_nor_a_name_for_an_object() {
        let config = Config::plain("web").identity("Host 1/A");
        config.validate().unwrap();
        assert!(config.mode(Mode::Auto).validate().is_err());
        assert!(refusal(&Config::plain("Web")).starts_with("lease is refused"));
    }
}
