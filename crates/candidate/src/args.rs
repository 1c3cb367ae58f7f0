//! The configuration of a candidate as flags and environment variables.

mod error;
mod mode;

use std::env;
use std::time::Duration;

use clap::{Args, ValueEnum};
use elector_api::parse_duration;
use elector_protocol::{CandidateTiming, Identity, StrategyName, Version};

pub use self::error::ArgsError;
use self::mode::ModeArgs;
use crate::config::{AfterFailure, AfterTerm, Config};
use crate::owner_pod::OwnerPod;

/// The flags of a candidate, to flatten into a program's own. `elector candidate` has the very same ones.
///
/// Each can be given as an environment variable too: `ELECTOR_` and its name, as `ELECTOR_BINARY_VERSION`. That of the
/// lease is `ELECTOR_LEASE_NAME`, because `elector candidate` tells its command what it holds as `ELECTOR_LEASE`.
///
/// ```
/// use clap::Parser;
/// use elector_candidate::CandidateArgs;
///
/// #[derive(Parser)]
/// struct Cli {
///     #[command(flatten)]
///     candidate: CandidateArgs,
/// }
///
/// let cli = Cli::parse_from(["program", "--lease", "web", "--grace-period", "3s"]);
/// let config = cli.candidate.config(Some(env!("CARGO_PKG_VERSION").parse()?))?;
/// assert_eq!(config.grace.as_secs(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Args, Clone, Debug)]
pub struct CandidateArgs {
    /// Namespace of the lease [default: that of the kubeconfig's context or of the service account]
    #[arg(short = 'n', long, value_name = "NAMESPACE", env = "ELECTOR_NAMESPACE")]
    pub namespace: Option<String>,

    /// Name of the lease
    #[arg(long, value_name = "NAME", env = "ELECTOR_LEASE_NAME")]
    pub lease: String,

    /// Identity: the name of the LeaseCandidate and the holder of the lease, to be used by no other process
    /// [default: the environment variable POD_NAME, else the host name, and a random part]
    #[arg(long, value_name = "ID", env = "ELECTOR_NAME")]
    pub name: Option<String>,

    /// Version of the binary, MAJOR.MINOR.PATCH; electors choose by it [default: that of the program, where it tells one]
    #[arg(long, value_name = "VERSION", env = "ELECTOR_BINARY_VERSION")]
    pub binary_version: Option<Version>,

    /// Version that it behaves as, no higher than the binary's [default: the binary version]
    #[arg(long, value_name = "VERSION", env = "ELECTOR_EMULATION_VERSION")]
    pub emulation_version: Option<Version>,

    /// Strategy that the lease is to be elected under: OldestEmulationVersion, elector.dev/newest-version,
    /// elector.dev/priority, elector.dev/sticky, or a name domain/name of another elector's, without which there is no
    /// leader then [default: OldestEmulationVersion]
    #[arg(long, value_name = "STRATEGY", env = "ELECTOR_STRATEGY")]
    pub strategy: Option<StrategyName>,

    /// Time for which others wait for a renewal before they take over; whole seconds, from 2s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration, env = "ELECTOR_LEASE_DURATION")]
    pub lease_duration: Duration,

    /// Time for which it believes that it leads after its newest successful renewal; at most 4/5 of the lease duration
    /// and one second below it. Renewals are due every third of this
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "ELECTOR_RENEW_DEADLINE")]
    pub renew_deadline: Duration,

    /// The longest pause between failed renewals; from 250ms to a third of the renew deadline [default: 2s, or that
    /// third where it is less]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, env = "ELECTOR_RETRY_PERIOD")]
    pub retry_period: Option<Duration>,

    /// Time that the work has to stop. After a loss no longer than until three quarters of the time from renew deadline
    /// to lease duration are over, in which no other candidate leads
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "ELECTOR_GRACE_PERIOD")]
    pub grace_period: Duration,

    /// Action after a term that ended by a loss or a hand-over
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = TypedAfterTerm::CampaignAgain, env = "ELECTOR_AFTER_TERM")]
    after_term: TypedAfterTerm,

    /// Action after the work has failed
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = TypedAfterFailure::End, env = "ELECTOR_AFTER_FAILURE")]
    after_failure: TypedAfterFailure,

    /// UID of the Pod that the environment variable POD_NAME names, in the namespace of the lease and not a static one: the
    /// LeaseCandidate belongs to it, so that Kubernetes deletes the one with the other [default: none]
    #[arg(long, value_name = "UID", env = "ELECTOR_POD_UID")]
    pub pod_uid: Option<String>,

    /// Candidates of client-go that take the lease by themselves compete for it too, as --mode plain expects in any
    /// case: less time is left to stop after a loss
    #[arg(long, env = "ELECTOR_CLIENT_GO_PEERS")]
    pub client_go_peers: bool,

    /// Tell of its terms in Events on the Lease, for which its account needs the verb create of events.events.k8s.io
    #[cfg(feature = "events")]
    #[arg(long, env = "ELECTOR_RECORD_EVENTS")]
    pub record_events: bool,

    // Its heading would stand over the flags that follow without one.
    #[command(flatten)]
    mode: ModeArgs,
}

/// [`AfterTerm`] as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedAfterTerm {
    /// The process stays a candidate and may lead again
    CampaignAgain,
    /// The process ends, with an exit code other than 0
    Return,
}

/// [`AfterFailure`] as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedAfterFailure {
    /// The process ends, with an exit code other than 0
    End,
    /// The process is a candidate again after a pause, from 1s doubling up to 1m
    Retry,
}

// === impl CandidateArgs ===

impl CandidateArgs {
    /// The configuration with what was typed. `own_version` is that of the program, for where no flag names another.
    ///
    /// # Errors
    ///
    /// When a flag has no effect in this mode, or a value breaks a rule that can be checked without a cluster; the text
    /// names flag or value, and the rule.
    pub fn config(&self, own_version: Option<Version>) -> Result<Config, ArgsError> {
        self.mode.check(&[
            ("--binary-version", self.binary_version.is_some()),
            ("--emulation-version", self.emulation_version.is_some()),
            ("--strategy", self.strategy.is_some()),
            ("--pod-uid", self.pod_uid.is_some()),
        ])?;
        let mut config = Config::plain(self.lease.as_str());
        config.namespace.clone_from(&self.namespace);
        if let Some(name) = &self.name {
            config.identity = Some(Identity::new(name.as_str()).ok_or(ArgsError::EmptyName)?);
        }
        config.binary_version = self.binary_version.clone().or(own_version);
        config.emulation_version.clone_from(&self.emulation_version);
        if let Some(strategy) = &self.strategy {
            config.strategy.clone_from(strategy);
        }
        config.timing = CandidateTiming::of(self.lease_duration, self.renew_deadline);
        if let Some(retry_period) = self.retry_period {
            config.timing.retry_period = retry_period;
        }
        config.grace = self.grace_period;
        config.client_go_peers = self.client_go_peers;
        config.owner = self.owner(env::var("POD_NAME").ok())?;
        #[cfg(feature = "events")]
        {
            config.record_events = self.record_events;
        }
        config.after_term = match self.after_term {
            TypedAfterTerm::CampaignAgain => AfterTerm::CampaignAgain,
            TypedAfterTerm::Return => AfterTerm::Return,
        };
        config.after_failure = match self.after_failure {
            TypedAfterFailure::End => AfterFailure::End,
            TypedAfterFailure::Retry => AfterFailure::Retry,
        };
        self.mode.apply(&mut config);
        config.validate()?;
        Ok(config)
    }

    fn owner(&self, pod_name: Option<String>) -> Result<Option<OwnerPod>, ArgsError> {
        let Some(uid) = self.pod_uid.as_deref() else {
            return Ok(None);
        };
        match pod_name.filter(|name| !name.is_empty()) {
            Some(name) => Ok(Some(OwnerPod::new(name, uid))),
            None => Err(ArgsError::NamelessPod),
        }
    }
}

#[cfg(test)]
mod tests;
