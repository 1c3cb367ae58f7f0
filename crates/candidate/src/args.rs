//! The configuration of a candidate as flags and environment variables.

mod mode;
mod timing;

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use elector_api::parse_duration;
use elector_protocol::{StrategyName, Version};

use self::mode::ModeArgs;
use self::timing::CandidateTimingArgs;
use crate::config::{Config, ConfigError, Setting};
use crate::owner::Owner;

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
/// let config = cli.candidate.config(env!("CARGO_PKG_VERSION"))?;
/// # let _ = config;
/// # Ok::<(), elector_candidate::ConfigError>(())
/// ```
#[derive(Args, Clone, Debug)]
pub struct CandidateArgs {
    /// Namespace of the lease [default: that of the kubeconfig's context or of the service account]
    #[arg(short = 'n', long, value_name = "NAMESPACE", env = "ELECTOR_NAMESPACE")]
    namespace: Option<String>,

    /// Name of the lease
    #[arg(long, value_name = "NAME", required = true, env = "ELECTOR_LEASE_NAME")]
    lease: Option<String>,

    /// Identity: the name of the LeaseCandidate and the holder of the lease, to be used by no other process
    /// [default: the environment variable POD_NAME, else the host name, and a random part]
    #[arg(long, value_name = "ID", env = "ELECTOR_NAME")]
    name: Option<String>,

    /// Version of the binary, MAJOR.MINOR.PATCH; electors choose by it [default: that of the program, where it tells one]
    #[arg(long, value_name = "VERSION", env = "ELECTOR_BINARY_VERSION")]
    binary_version: Option<Version>,

    /// Version that it behaves as, no higher than the binary's [default: the binary version]
    #[arg(long, value_name = "VERSION", env = "ELECTOR_EMULATION_VERSION")]
    emulation_version: Option<Version>,

    /// Strategy that the lease is to be elected under: OldestEmulationVersion, elector.dev/newest-version,
    /// elector.dev/priority, elector.dev/sticky, or a name domain/name of another elector's, without which there is no
    /// leader then [default: OldestEmulationVersion]
    #[arg(long, value_name = "STRATEGY", env = "ELECTOR_STRATEGY")]
    strategy: Option<StrategyName>,

    #[command(flatten)]
    timing: CandidateTimingArgs,

    /// Time that the work has to stop. After a loss no longer than until three quarters of the time from renew deadline
    /// to lease duration are over, in which no other candidate leads
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "ELECTOR_GRACE_PERIOD")]
    grace_period: Duration,

    /// Action after a term that ended by a loss or a hand-over
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = TypedAfterTerm::CampaignAgain, env = "ELECTOR_AFTER_TERM")]
    after_term: TypedAfterTerm,

    /// Action after the work has failed
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = TypedAfterFailure::End, env = "ELECTOR_AFTER_FAILURE")]
    after_failure: TypedAfterFailure,

    /// UID of the Pod that the environment variable POD_NAME names, in the namespace of the lease and not a static one: the
    /// LeaseCandidate belongs to it, so that Kubernetes deletes the one with the other [default: none]
    #[arg(long, value_name = "UID", env = "ELECTOR_POD_UID")]
    pod_uid: Option<String>,

    /// Label that the Lease is to have, KEY=VALUE; several with commas between them, or by several flags. Labels of others
    /// stay [default: none]
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = lease_label, env = "ELECTOR_LEASE_LABEL")]
    lease_label: Vec<LeaseLabel>,

    /// Object that the Lease is to belong to, API_VERSION/KIND/NAME/UID as in apps/v1/Deployment/web/UID, in the namespace
    /// of the lease or in none: Kubernetes deletes the Lease with it, under a leader too [default: none]
    #[arg(long, value_name = "OWNER", value_parser = lease_owner, env = "ELECTOR_LEASE_OWNER")]
    lease_owner: Option<Owner>,

    /// Candidates of client-go that take the lease by themselves compete for it too, as --mode plain expects in any
    /// case: less time is left to stop after a loss
    #[arg(long, env = "ELECTOR_CLIENT_GO_PEERS")]
    client_go_peers: bool,

    /// File on storage of this node alone, by which this process leads on at once after a crash: it has a lock that what the
    /// process starts inherits, and notes the terms that it begins [default: none, its lease has to expire]
    #[arg(long, value_name = "FILE", env = "ELECTOR_INSTANCE_LOCK")]
    instance_lock: Option<PathBuf>,

    /// Tell of its terms in Events on the Lease, for which its account needs the verb create of events.events.k8s.io
    #[cfg(feature = "events")]
    #[arg(long, env = "ELECTOR_RECORD_EVENTS")]
    record_events: bool,

    // Its heading would stand over the flags that follow without one.
    #[command(flatten)]
    mode: ModeArgs,
}

/// A label as it is typed.
#[derive(Clone, Debug)]
struct LeaseLabel {
    key: String,
    value: String,
}

/// The action after a term, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedAfterTerm {
    /// The process stays a candidate and may lead again
    CampaignAgain,
    /// The process ends, with an exit code other than 0
    Return,
}

/// The action after a failure, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedAfterFailure {
    /// The process ends, with an exit code other than 0
    End,
    /// The process is a candidate again after a pause, from 1s doubling up to 1m
    Retry,
}

// === impl CandidateArgs ===

impl CandidateArgs {
    /// The configuration with what was typed. `version` is that of the program, for where no flag names another; an empty
    /// text stands for none.
    ///
    /// # Errors
    ///
    /// When a flag has no effect in this mode, or a value breaks a rule that can be checked without a cluster; the text
    /// names the flag and the rule.
    pub fn config(&self, version: impl fmt::Display) -> Result<Config, ConfigError> {
        let lease = self.lease.as_deref().unwrap_or_default();
        let config = self.config_of(lease, version)?;
        config.validate()?;
        Ok(config)
    }

    /// The same for another lease than the one that was typed, not checked: for `elector candidate --group`, where none is.
    #[doc(hidden)]
    pub fn config_of(
        &self,
        lease: &str,
        version: impl fmt::Display,
    ) -> Result<Config, ConfigError> {
        let config = self.unchecked(lease, &version);
        config.map_err(|error| error.named_by_flag(true))
    }

    /// The time that the work has to stop, as it was typed.
    #[doc(hidden)]
    pub const fn grace_period(&self) -> Duration {
        self.grace_period
    }

    fn unchecked(&self, lease: &str, version: &dyn fmt::Display) -> Result<Config, ConfigError> {
        self.mode.check(&[
            (Setting::VERSION, self.binary_version.is_some()),
            (Setting::EMULATION_VERSION, self.emulation_version.is_some()),
            (Setting::STRATEGY, self.strategy.is_some()),
            (Setting::CANDIDATE_OWNER, self.pod_uid.is_some()),
        ])?;
        let own_version = || Some(version.to_string()).filter(|version| !version.is_empty());
        let given_version = self.binary_version.as_ref().map(Version::to_string);
        let config = Config {
            namespace: self.namespace.clone(),
            identity: self.name.clone(),
            version: given_version.or_else(own_version),
            emulation_version: self.emulation_version.as_ref().map(Version::to_string),
            candidate_owner: self.owner(env::var("POD_NAME").ok())?,
            lease_owner: self.lease_owner.clone(),
            instance_lock: self.instance_lock.clone(),
            by_flags: true,
            ..Config::plain(lease)
        };
        let config = match &self.strategy {
            Some(strategy) => config.strategy(strategy.to_string()),
            None => config,
        };
        let labels = self.lease_label.iter();
        let config = labels.fold(config, |config, label| {
            config.lease_label(label.key.as_str(), label.value.as_str())
        });
        let config = config
            .timing(self.timing.timing())
            .grace(self.grace_period)
            .client_go_peers(self.client_go_peers)
            .one_term(self.after_term == TypedAfterTerm::Return)
            .retry_work(self.after_failure == TypedAfterFailure::Retry);
        #[cfg(feature = "events")]
        let config = config.record_events(self.record_events);
        Ok(self.mode.apply(config))
    }

    fn owner(&self, pod_name: Option<String>) -> Result<Option<Owner>, ConfigError> {
        let Some(uid) = self.pod_uid.as_deref() else {
            return Ok(None);
        };
        match pod_name.filter(|name| !name.is_empty()) {
            Some(name) => Ok(Some(Owner::pod(name, uid))),
            None => Err(ConfigError::new(
                Setting::CANDIDATE_OWNER,
                "needs the name of the Pod in the environment variable POD_NAME",
            )),
        }
    }
}

fn lease_label(text: &str) -> Result<LeaseLabel, String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = parts.ok_or("must be KEY=VALUE")?;
    Ok(LeaseLabel {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

fn lease_owner(text: &str) -> Result<Owner, String> {
    // An apiVersion may have a slash, and comes first.
    let parts: Vec<_> = text.rsplitn(4, '/').collect();
    match parts[..] {
        [uid, name, kind, api_version] if !parts.contains(&"") => {
            Ok(Owner::new(api_version, kind, name, uid))
        }
        _ => Err("must be API_VERSION/KIND/NAME/UID, as apps/v1/Deployment/web/UID".to_owned()),
    }
}

#[cfg(test)]
mod tests;
