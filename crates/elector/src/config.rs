//! The configuration of an elector: constants, scope, how it lives with the built-in controller.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{ElectorTiming, TimingError};

use crate::leader_election::{LeaderElection, LeaderElectionError};

/// The configuration of an [`Elector`](crate::Elector). [`Self::default`] is that of `elector run` without flags.
///
/// ```
/// use elector::{Config, Scope};
///
/// let config = Config {
///     scope: Scope::Namespaces(["team-a".into()].into()),
///     ..Config::default()
/// };
/// assert!(config.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The constants of the protocol.
    pub timing: ElectorTiming,
    /// Which namespaces it serves.
    pub scope: Scope,
    /// True if `kube-system` is served too. Implied by [`BuiltinController::Replace`].
    pub system_namespaces: bool,
    /// The relation to the elector that is built into kube-apiserver.
    pub builtin: BuiltinController,
    /// Leader election among the electors themselves. Off, where all of them act at the same time (R17).
    pub leader_election: Option<LeaderElection>,
    /// The name of this process in the Events that it records on Leases: that of its pod or host. A random part is
    /// added. `None`, the default, where it records none.
    pub event_host: Option<String>,
    /// The limit of leases written at the same time. 32; leases of one namespace are at most half of them, where more
    /// than one namespace is served.
    pub concurrent_elections: NonZeroUsize,
    /// The wait of a lease after its first failed write. 5 ms, doubling, as client-go.
    pub retry_base: Duration,
    /// The longest such wait. 5 s.
    pub retry_max: Duration,
}

/// Which namespaces are served. `kube-node-lease` never is: its leases are the heartbeats of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of them; `kube-system` only when asked for.
    AllNamespaces,
    /// These.
    Namespaces(BTreeSet<Arc<str>>),
}

/// The treatment of the controller that is built into kube-apiserver, where its feature gate is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuiltinController {
    /// Leave leases of its strategy to it while it is alive.
    Respect,
    /// Take its lock and keep it, so that it stands by; then elect and collect in its place.
    Replace {
        /// The name of this process in the lock: that of its pod or host.
        host: String,
    },
}

/// Why a configuration is refused. Each text fits after "failed to start: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A constant is out of its bounds.
    #[error("--{0}")]
    Timing(#[from] TimingError),
    /// The number of pre-emptions is out of its bounds.
    #[error("--preemptions is {0}: must be from 1 to {max}", max = ElectorTiming::PREEMPTIONS_MAX)]
    Preemptions(u8),
    /// Leader election among electors cannot be as configured.
    #[error(transparent)]
    LeaderElection(#[from] LeaderElectionError),
    /// The first wait after a failed write is out of its bounds.
    #[error("--retry-base is {0:?}: must be from 1ms to --retry-max")]
    RetryBase(Duration),
    /// The longest wait after failed writes is out of its bounds.
    #[error("--retry-max is {0:?}: must be from 1ms to 1m")]
    RetryMax(Duration),
    /// Namespaces were to be listed, and none was.
    #[error("--namespace is empty: name at least one")]
    NoNamespace,
    /// No namespace can have this name.
    #[error(
        "--namespace is {0:?}: must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending alphanumeric"
    )]
    NamespaceName(String),
    /// Node heartbeats are not elected.
    #[error(
        "--namespace is kube-node-lease: its leases are the heartbeats of nodes and are never elected"
    )]
    NodeLeases,
    /// The leases of the control plane are touched on request only.
    #[error("--namespace is kube-system: needs --system-namespaces or --replace-builtin as well")]
    SystemNamespace,
}

/// The namespace of the control plane's own leases.
pub(crate) const SYSTEM_NAMESPACE: &str = "kube-system";
/// The namespace of node heartbeats.
const NODE_LEASE_NAMESPACE: &str = "kube-node-lease";

// === impl Config ===

impl Config {
    /// Checks every value against its bounds.
    ///
    /// # Errors
    ///
    /// Names the first value that breaks a rule, with the rule.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.timing.validate()?;
        if !(1..=ElectorTiming::PREEMPTIONS_MAX).contains(&self.timing.preemptions) {
            return Err(ConfigError::Preemptions(self.timing.preemptions));
        }
        let millisecond = Duration::from_millis(1);
        if !(millisecond..=Duration::from_secs(60)).contains(&self.retry_max) {
            return Err(ConfigError::RetryMax(self.retry_max));
        }
        if !(millisecond..=self.retry_max).contains(&self.retry_base) {
            return Err(ConfigError::RetryBase(self.retry_base));
        }
        if let Some(election) = &self.leader_election {
            election.validate()?;
        }
        let Scope::Namespaces(namespaces) = &self.scope else {
            return Ok(());
        };
        if namespaces.is_empty() {
            return Err(ConfigError::NoNamespace);
        }
        for namespace in namespaces {
            match namespace.as_ref() {
                NODE_LEASE_NAMESPACE => return Err(ConfigError::NodeLeases),
                SYSTEM_NAMESPACE if !self.serves_system() => {
                    return Err(ConfigError::SystemNamespace);
                }
                name if !is_dns_label(name) => {
                    return Err(ConfigError::NamespaceName(name.to_owned()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The limit of leases of one namespace written at the same time.
    pub(crate) fn concurrent_elections_of_namespace(&self) -> NonZeroUsize {
        match &self.scope {
            Scope::Namespaces(names) if names.len() == 1 => self.concurrent_elections,
            _ => self
                .concurrent_elections
                .div_ceil(const { NonZeroUsize::new(2).expect("two is not zero") }),
        }
    }

    /// True if leases of `kube-system` are served.
    pub(crate) fn serves_system(&self) -> bool {
        self.system_namespaces || matches!(self.builtin, BuiltinController::Replace { .. })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            timing: ElectorTiming::default(),
            scope: Scope::AllNamespaces,
            system_namespaces: false,
            builtin: BuiltinController::Respect,
            leader_election: None,
            event_host: None,
            concurrent_elections: const { NonZeroUsize::new(32).expect("32 is not zero") },
            retry_base: Duration::from_millis(5),
            retry_max: Duration::from_secs(5),
        }
    }
}

fn is_dns_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| plain(*byte))
        && bytes.last().is_some_and(|byte| plain(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(names: &[&str]) -> Config {
        Config {
            scope: Scope::Namespaces(names.iter().map(|name| Arc::from(*name)).collect()),
            ..Config::default()
        }
    }

    #[test]
    fn each_bad_value_is_one_line_that_names_its_flag() {
        let timing = |change: fn(&mut ElectorTiming)| {
            let mut config = Config::default();
            change(&mut config.timing);
            config
        };
        let retry = |base, max| Config {
            retry_base: Duration::from_millis(base),
            retry_max: Duration::from_millis(max),
            ..Config::default()
        };
        for (config, text) in [
            (
                timing(|timing| timing.accept_window = Duration::from_millis(500)),
                "--accept-window is 500ms: must be from 1s to 60s",
            ),
            (
                timing(|timing| timing.preemptions = 61),
                "--preemptions is 61: must be from 1 to 60",
            ),
            (
                timing(|timing| timing.preemption_window = Duration::from_millis(999)),
                "--preemption-window is 999ms: must be from 1s to 3600s",
            ),
            (
                retry(0, 5000),
                "--retry-base is 0ns: must be from 1ms to --retry-max",
            ),
            (
                retry(6000, 5000),
                "--retry-base is 6s: must be from 1ms to --retry-max",
            ),
            (
                retry(5, 61_000),
                "--retry-max is 61s: must be from 1ms to 1m",
            ),
            (namespaces(&[]), "--namespace is empty: name at least one"),
            (
                namespaces(&["a", "-b"]),
                "--namespace is \"-b\": must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending alphanumeric",
            ),
            (
                namespaces(&["kube-node-lease"]),
                "--namespace is kube-node-lease: its leases are the heartbeats of nodes and are never elected",
            ),
            (
                namespaces(&["kube-system"]),
                "--namespace is kube-system: needs --system-namespaces or --replace-builtin as well",
            ),
        ] {
            assert_eq!(config.validate().unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn one_namespace_of_several_has_half_of_the_concurrent_elections() {
        for (names, limit) in [(&["a"][..], 32), (&["a", "b"], 16)] {
            let config = namespaces(names);
            assert_eq!(config.concurrent_elections_of_namespace().get(), limit);
        }
    }

    #[test]
    fn system_leases_are_served_on_request() {
        let asked = Config {
            system_namespaces: true,
            ..namespaces(&["kube-system"])
        };
        let implied = Config {
            builtin: BuiltinController::Replace { host: "pod".into() },
            ..namespaces(&["kube-system", "a"])
        };
        assert_eq!((asked.validate(), implied.validate()), (Ok(()), Ok(())));
        assert_eq!(Config::default().validate(), Ok(()));
    }
}
