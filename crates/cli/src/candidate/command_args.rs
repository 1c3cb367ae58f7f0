//! The flags of `elector candidate`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use elector_candidate::{CandidateArgs, Config, ConfigError, GroupCandidate};
use elector_runtime::{ClientArgs, LogArgs};

use super::child::Program;
use super::endpoints::CandidateEndpointArgs;
use super::group_args::GroupArgs;
use super::health_command::HealthArgs;
use super::http::HttpArgs;
use super::routing::RoutingArgs;

/// Runs a command while it leads.
///
/// Registers a LeaseCandidate and waits to be elected; where no elector acts, it takes the lease itself once that has
/// been free for 5s (--mode has other ways). For each term the command is started anew; when the term ends, it gets
/// SIGTERM, after the grace period SIGKILL goes to it and to all that it has started, and only when nothing of that is
/// left the lease is handed to the successor or released. Its environment tells ELECTOR_LEASE (namespace/name),
/// ELECTOR_HOLDER, ELECTOR_TERM and ELECTOR_TOKEN, the fencing token. Without a command, the lease is just held; with
/// --http a program beside it asks who leads.
///
/// A command that exits by itself ends the candidate: the lease is released, and its exit code is passed on (128 and
/// the number of the signal that killed it); with --after-failure retry, one that fails is run again. SIGTERM and SIGINT end it cleanly with exit code 0, a second one at once.
/// Other exit codes: 1 failed, 2 wrong usage, 126 and 127 the command cannot be run or does not exist.
///
/// With --group and --part, this process stands for several leases at once, and runs the command for each that it leads,
/// which ELECTOR_PART tells its part. A command that exits gives back its part alone; the process goes on.
#[derive(Debug, Args)]
#[command(mut_arg("lease", |lease| lease.required(false).required_unless_present("group")))]
pub(crate) struct CandidateCommandArgs {
    #[command(flatten)]
    pub(super) candidate: CandidateArgs,

    #[command(flatten)]
    pub(super) group: GroupArgs,

    /// Print one JSON line on standard output for each event: start, leading (with "acquired" where no elector granted
    /// the term, and "resumed" where nobody had taken the lease since the last one lapsed), renewed, stopping, work-stopped, lost; with the holder, and the deadline until which this process leads
    /// unless another renewal succeeds. The command's own output then goes to standard error
    #[arg(long, env = "ELECTOR_EVENTS")]
    pub(super) events: bool,

    #[command(flatten)]
    pub(super) health: HealthArgs,

    #[command(flatten)]
    pub(super) http: HttpArgs,

    #[command(flatten)]
    pub(super) routing: RoutingArgs,

    #[command(flatten)]
    pub(super) endpoints: CandidateEndpointArgs,

    #[command(flatten)]
    pub(super) client: ClientArgs,

    #[command(flatten)]
    pub(super) log: LogArgs,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The time past the command's grace that the work may take, for SIGKILL to do its work.
const KILL_MARGIN: Duration = Duration::from_secs(2);

// === impl CandidateCommandArgs ===

impl CandidateCommandArgs {
    /// The configuration with what was typed. Needs no cluster.
    pub(super) fn config(&self) -> Result<Config, ConfigError> {
        let grace = self.candidate.grace_period().saturating_add(KILL_MARGIN);
        let config = match self.group.name() {
            Some(group) => self.candidate.config_of(group, "")?,
            None => self.candidate.config("")?,
        };
        let config = self.health.apply(config.grace(grace));
        match self.group.name() {
            Some(_) => GroupCandidate::validate(&config, &self.group.parts())?,
            None => config.validate()?,
        }
        Ok(config)
    }

    /// The command, where there is one.
    pub(super) fn program(&self) -> Option<Program> {
        (!self.command.is_empty()).then(|| Program {
            command: self.command.clone(),
            grace: self.candidate.grace_period(),
            output_to_stderr: self.events,
        })
    }
}
