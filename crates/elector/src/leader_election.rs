//! The configuration of leader election among the electors themselves: one of them acts, the others stand by.

use std::time::Duration;

use elector_api::names::dns_subdomain;
use elector_protocol::{CandidateTiming, Identity, LeaseKey, TimingError};

use crate::builtin::{LOCK_NAME, LOCK_NAMESPACE};

/// Leader election among electors. Safety does not need it (R17): it saves the conflicts of electors that decide at the
/// same time, and makes one of them the author of all writes.
///
/// The elector that holds the lease acts. The others watch, so that each of them knows how long every record has been
/// there, and write nothing but an acquisition of this lease once it is free. One that takes over acts at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// The Lease that the active elector holds. No candidate may name it. `elector-system/elector`.
    pub lease: LeaseKey,
    /// The name of this process in the lease: that of its pod or host. A random part is added.
    pub host: String,
    /// The wait of others for a renewal before they take over. 15 s; whole seconds.
    pub lease_duration: Duration,
    /// The time to act after an elector sent its newest successful renewal. 10 s; at most 4/5 of the lease duration and
    /// one second below it. Renewals are due every third of it.
    pub renew_deadline: Duration,
    /// The longest pause between failed requests for the lease. 2 s; from 250 ms to a third of the renew deadline.
    pub retry_period: Duration,
}

/// Why leader election among electors is refused as configured. Each text fits after "failed to start: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderElectionError {
    /// A duration is out of its bounds.
    #[error("--leader-elect-{0}")]
    Timing(#[from] TimingError),
    /// No Lease can have this name.
    #[error(
        "--leader-elect-resource-name is {0:?}: must be a lowercase RFC 1123 subdomain of at most 253 characters"
    )]
    Name(String),
    /// No namespace can have this name.
    #[error(
        "--leader-elect-resource-namespace is {0:?}: must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending alphanumeric"
    )]
    Namespace(String),
    /// The Lease is the lock of the built-in controller.
    #[error(
        "--leader-elect-resource-name is {LOCK_NAME} in {LOCK_NAMESPACE}: that is the lock of the built-in controller, which --replace-builtin takes"
    )]
    BuiltinLock,
}

/// The least renew deadline: a renewal needs time for an attempt and for another one.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

// === impl LeaderElection ===

impl LeaderElection {
    /// The namespace of the Lease where that of the process is not known.
    pub const DEFAULT_NAMESPACE: &str = "elector-system";
    /// The name of the Lease.
    pub const DEFAULT_NAME: &str = "elector";

    /// The usual durations, for the Lease `elector-system/elector`.
    pub fn new(host: impl Into<String>) -> Self {
        let timing = CandidateTiming::default();
        Self {
            lease: LeaseKey::new(Self::DEFAULT_NAMESPACE, Self::DEFAULT_NAME),
            host: host.into(),
            lease_duration: timing.lease_duration,
            renew_deadline: timing.renew_deadline,
            retry_period: timing.retry_period,
        }
    }

    /// Checks every value against its bounds.
    ///
    /// # Errors
    ///
    /// Names the first value that breaks a rule, with the rule.
    pub fn validate(&self) -> Result<(), LeaderElectionError> {
        if self.renew_deadline < SHORTEST_DEADLINE {
            return Err(LeaderElectionError::Timing(TimingError {
                name: "renew-deadline",
                value: self.renew_deadline,
                rule: format!("must be at least {SHORTEST_DEADLINE:?}"),
            }));
        }
        self.timing().validate()?;
        let (namespace, name) = (&self.lease.namespace, &self.lease.name);
        let label =
            |text: &str| text.len() <= 63 && !text.contains('.') && dns_subdomain(text).is_empty();
        if !label(namespace) {
            return Err(LeaderElectionError::Namespace(namespace.to_string()));
        }
        if !dns_subdomain(name).is_empty() {
            return Err(LeaderElectionError::Name(name.to_string()));
        }
        if (namespace.as_ref(), name.as_ref()) == (LOCK_NAMESPACE, LOCK_NAME) {
            return Err(LeaderElectionError::BuiltinLock);
        }
        Ok(())
    }

    /// The timing of the holder of the Lease.
    pub(crate) fn timing(&self) -> CandidateTiming {
        CandidateTiming {
            retry_period: self.retry_period,
            ..CandidateTiming::of(self.lease_duration, self.renew_deadline)
        }
    }

    /// The identity of one life of this process (R1).
    pub(crate) fn identity(&self, random: u64) -> Identity {
        Identity::of_elector(&self.host, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl Fn(&mut LeaderElection)) -> Result<(), String> {
        let mut election = LeaderElection::new("pod");
        change(&mut election);
        election.validate().map_err(|error| error.to_string())
    }

    fn lease(namespace: &'static str, name: &'static str) -> Result<(), String> {
        with(move |election| election.lease = LeaseKey::new(namespace, name))
    }

    #[test]
    fn the_usual_values_of_kubernetes_are_taken() {
        assert_eq!(with(|_| {}), Ok(()));
        let longest = with(|election| {
            election.lease_duration = Duration::from_secs(137);
            election.renew_deadline = Duration::from_secs(107);
            election.retry_period = Duration::from_secs(26);
        });
        let shortest = with(|election| {
            election.renew_deadline = Duration::from_secs(1);
            election.retry_period = Duration::from_millis(250);
        });
        assert_eq!((longest, shortest), (Ok(()), Ok(())));
        assert_eq!(lease("kube-system", "elector.example"), Ok(()));
    }

    #[test]
    fn each_bad_value_is_one_line_that_names_its_flag() {
        for (found, text) in [
            (
                with(|election| election.renew_deadline = Duration::from_secs(13)),
                "--leader-elect-renew-deadline is 13s: must be at most 4/5 of lease-duration and one second below it, so at most 12s",
            ),
            (
                with(|election| election.renew_deadline = Duration::from_millis(200)),
                "--leader-elect-renew-deadline is 200ms: must be at least 1s",
            ),
            (
                with(|election| election.lease_duration = Duration::from_millis(15_500)),
                "--leader-elect-lease-duration is 15.5s: must be whole seconds, the resolution of leaseDurationSeconds",
            ),
            (
                with(|election| election.retry_period = Duration::from_secs(4)),
                "--leader-elect-retry-period is 4s: must be from 250ms to 3.333333333s",
            ),
            (
                lease("a.b", "elector"),
                "--leader-elect-resource-namespace is \"a.b\": must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending alphanumeric",
            ),
            (
                lease("", "elector"),
                "--leader-elect-resource-namespace is \"\": must be a DNS label: 1 to 63 of a-z 0-9 -, beginning and ending alphanumeric",
            ),
            (
                lease("ns", "Elector"),
                "--leader-elect-resource-name is \"Elector\": must be a lowercase RFC 1123 subdomain of at most 253 characters",
            ),
            (
                lease("kube-system", "leader-election-controller"),
                "--leader-elect-resource-name is leader-election-controller in kube-system: that is the lock of the built-in controller, which --replace-builtin takes",
            ),
        ] {
            assert_eq!(found, Err(text.to_owned()));
        }
    }
}
