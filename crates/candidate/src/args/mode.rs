//! The mode of a candidate, as flags, and the flags that go together.

use std::time::Duration;

use clap::{Args, ValueEnum};
use elector_api::parse_duration;

use crate::config::{Config, ConfigError, Mode, Setting};

/// The flags of the mode.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How it comes to lead")]
pub(super) struct ModeArgs {
    /// Way in which it comes to lead
    #[arg(long, value_enum, value_name = "MODE", default_value_t = TypedMode::Auto, env = "ELECTOR_MODE")]
    mode: TypedMode,

    /// With --mode auto: how long the lease must have been free before it is taken without an elector; an elector that
    /// pings meanwhile is given as long once more. From 0s to 1h [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, env = "ELECTOR_FALLBACK_AFTER")]
    fallback_after: Option<Duration>,

    /// With --mode auto and plain: the longest lease duration that any client uses for this lease. A lease whose last
    /// holder may still believe that it leads is not taken earlier. From 1s to 1h [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, env = "ELECTOR_MAX_LEASE_DURATION")]
    max_lease_duration: Option<Duration>,

    /// With --mode auto and plain: how long the lease must have been missing, or emptied by others than its holder,
    /// before it is taken. Below the longest lease duration in use this is unsafe, unless nothing can delete or empty the
    /// lease of a living leader, and counts only for a lease without a strategy. From 0s to 1h [default: the longest lease
    /// duration in use]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, env = "ELECTOR_ABSENT_LEASE_GRACE")]
    absent_lease_grace: Option<Duration>,
}

/// A mode as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TypedMode {
    /// An elector chooses; where none acts, the candidate takes the lease once that has been free for --fallback-after
    Auto,
    /// An elector chooses, and without one there is no leader
    Elected,
    /// The candidate takes the lease as soon as that is free, as client-go does, beside which it may stand. Needs neither
    /// an elector nor the API of LeaseCandidates
    Plain,
    /// As plain, and a lease that is missing or was emptied is taken at once, as client-go does. After the lease of a
    /// living leader was deleted or emptied two may lead, for up to the renew deadline; one candidate in this mode takes
    /// the guarantee from all others of its lease
    AsClientGo,
    /// There is no election: the work runs at once, beside that of any other process, and no request is sent
    Disabled,
}

// === impl ModeArgs ===

impl ModeArgs {
    /// Fails where a flag was given that this mode has no use for. `offers` are the flags for what a LeaseCandidate says,
    /// and whether they were given.
    pub(super) fn check(&self, offers: &[(Setting, bool)]) -> Result<(), ConfigError> {
        let (fallback, longest, grace) = (
            (Setting::FALLBACK, self.fallback_after.is_some()),
            (
                Setting::MAX_LEASE_DURATION,
                self.max_lease_duration.is_some(),
            ),
            (
                Setting::ABSENT_LEASE_GRACE,
                self.absent_lease_grace.is_some(),
            ),
        );
        let (unused, reason) = match self.mode {
            // A disabled election may be enabled again by this flag alone.
            TypedMode::Auto | TypedMode::Disabled => return Ok(()),
            TypedMode::Elected => (
                vec![fallback, longest, grace],
                "takes no lease itself, and waits for none: electors have such flags",
            ),
            TypedMode::Plain | TypedMode::AsClientGo if fallback.1 => (
                vec![fallback],
                "takes the lease as soon as that is free, and waits for no elector",
            ),
            TypedMode::AsClientGo if grace.1 => (vec![grace], "takes a missing lease at once"),
            TypedMode::Plain | TypedMode::AsClientGo => (
                offers.to_vec(),
                "registers no LeaseCandidate, so no elector reads this",
            ),
        };
        match unused.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                let mode = self.mode.name();
                let rule =
                    format!("does not go with --mode {mode}: a candidate in this mode {reason}");
                Err(ConfigError::new(flag, rule))
            }
            None => Ok(()),
        }
    }

    /// The configuration with what was typed.
    pub(super) fn apply(&self, config: Config) -> Config {
        let config = Config {
            mode: self.mode.into(),
            fallback: self.fallback_after.unwrap_or(config.fallback),
            max_lease_duration: self.max_lease_duration.unwrap_or(config.max_lease_duration),
            ..config
        };
        match (self.mode, self.absent_lease_grace) {
            (TypedMode::AsClientGo, _) => config.absent_lease_grace(Duration::ZERO),
            (_, Some(grace)) => config.absent_lease_grace(grace),
            (_, None) => config,
        }
    }
}

// === impl TypedMode ===

impl TypedMode {
    fn name(self) -> &'static str {
        match self {
            Self::AsClientGo => "as-client-go",
            Self::Auto => "auto",
            Self::Elected => "elected",
            Self::Plain => "plain",
            Self::Disabled => "disabled",
        }
    }
}

// === impl Mode ===

impl From<TypedMode> for Mode {
    fn from(name: TypedMode) -> Self {
        match name {
            TypedMode::Auto => Self::Auto,
            TypedMode::Elected => Self::Elected,
            TypedMode::Plain | TypedMode::AsClientGo => Self::Plain,
            TypedMode::Disabled => Self::Disabled,
        }
    }
}
