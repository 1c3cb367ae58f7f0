//! `elector candidate`: runs a command while it leads, or answers a program beside it who leads.

mod child;
mod current_term;
mod descendants;
mod endpoints;
mod events;
pub(crate) mod exec_child;
mod health_command;
mod http;
mod own_program;
pub(crate) mod pid1;
mod reaper;
mod routing;
mod stop_timer;
pub(crate) mod supervisor;
mod supervisor_pipe;
mod term_runner;

use std::ffi::OsString;
use std::io::Stdout;
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use elector_candidate::{
    Candidate, CandidateArgs, Cluster, Config, ConfigError, Error, Metrics, TermEnd,
};
use elector_runtime::{ClientArgs, LogArgs, connect, init_logging, shutdown_signal};

use self::child::Program;
use self::current_term::CurrentTerm;
use self::endpoints::{CandidateEndpointArgs, checks};
use self::events::EventLines;
use self::health_command::HealthArgs;
use self::http::HttpArgs;
use self::routing::RoutingArgs;
use self::term_runner::{ProgramBeside, TermRunner};
use crate::output;

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
#[derive(Debug, Args)]
pub(crate) struct CandidateCommandArgs {
    #[command(flatten)]
    candidate: CandidateArgs,

    /// Print one JSON line on standard output for each event: start, leading (with "acquired" where no elector granted
    /// the term), renewed, stopping, work-stopped, lost; with the holder, and the deadline until which this process leads
    /// unless another renewal succeeds. The command's own output then goes to standard error
    #[arg(long, env = "ELECTOR_EVENTS")]
    events: bool,

    #[command(flatten)]
    health: HealthArgs,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    routing: RoutingArgs,

    #[command(flatten)]
    endpoints: CandidateEndpointArgs,

    #[command(flatten)]
    client: ClientArgs,

    #[command(flatten)]
    log: LogArgs,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The time past the command's grace that the work may take, for SIGKILL to do its work.
const KILL_MARGIN: Duration = Duration::from_secs(2);

/// The exit code for wrong usage, as clap has it.
const WRONG_USAGE: u8 = 2;

/// Runs the sub-command.
pub(crate) fn run(args: CandidateCommandArgs) -> anyhow::Result<ExitCode> {
    // Before anything else: a flag that no cluster takes needs no cluster to be refused.
    let config = match args.config() {
        Ok(config) => config,
        Err(error) => {
            output::print_error(error);
            return Ok(ExitCode::from(WRONG_USAGE));
        }
    };
    if rustix::process::getpid().is_init() {
        return pid1::run_again();
    }
    init_logging(&args.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let code = runtime.block_on(run_candidate(args, config));
    // Nothing of a candidate is left, save perhaps a look-up of the server's address that blocks a thread.
    runtime.shutdown_background();
    code
}

async fn run_candidate(args: CandidateCommandArgs, config: Config) -> anyhow::Result<ExitCode> {
    let signal = shutdown_signal().context("catch signals")?;
    let connected = match connect(&args.client).await {
        Err(_) if !config.needs_cluster() => None,
        connected => Some(connected?),
    };
    let cluster = connected.clone().map_or_else(Cluster::none, Cluster::from);
    let program = args.program();
    if program.is_some()
        && let Some(line) = grace_after_loss(args.candidate.grace_period(), &config)
    {
        tracing::info!("{line}");
    }
    let routed = connected.as_ref().filter(|_| config.needs_cluster());
    let (retries, time_out) = (config.retries_work(), config.given_lease_duration());
    let candidate = Candidate::new(config, cluster)?;
    let handle = candidate.handle();
    let routing = args.routing.routing(routed, handle.lease())?;
    let out = args.events.then(std::io::stdout);
    let lines = EventLines::new(out, handle.clone());
    let ending = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ending);
    let shutdown = async {
        let signal = signal.await;
        asked.store(true, Ordering::Relaxed);
        // On a thread of its own: the command is asked to stop even where this line cannot be written.
        drop(tokio::task::spawn_blocking(move || {
            tracing::info!(%signal, "shutting down");
        }));
    };
    let (metrics, current) = (Metrics::default(), CurrentTerm::new());
    let mut candidate = args.health.probe(candidate.with_metrics(metrics.clone()));
    let answers = args.http.answers(handle.clone(), current.clone())?;
    let checks = match &answers {
        Some(answers) => {
            candidate = answers.reporting_to(candidate);
            checks(handle, Arc::clone(&ending), answers.stays_out())
        }
        None => checks(handle, Arc::clone(&ending), || false),
    };
    let checks = Arc::new(checks);
    let mut endpoints = args
        .endpoints
        .serve(Arc::clone(&checks), metrics.clone())
        .await?;
    let environment = match answers {
        Some(answers) => {
            let http = &args.http;
            http.serve(answers, time_out, checks, metrics, &mut endpoints)
                .await?
        }
        None => Vec::new(),
    };
    let runner = TermRunner {
        grace: args.candidate.grace_period(),
        sidecar: args.http.is_on().then(|| ProgramBeside {
            program_ends_first: args.http.ends_after_program(),
            ending,
        }),
        program,
        environment,
        retries,
        current,
        routing,
    };
    if let Some(routing) = &runner.routing {
        routing.tidy().await;
    }
    let candidate = args.print_events(candidate, lines);
    let work = |leadership| runner.clone().run(leadership);
    match candidate.run(work, shutdown).await {
        Ok(outcome) => Ok(outcome
            .value
            .flatten()
            .map_or(ExitCode::SUCCESS, ExitCode::from)),
        // The API that the cluster serves takes fewer names than others.
        Err(Error::Config(error)) => {
            output::print_error(error);
            Ok(ExitCode::from(WRONG_USAGE))
        }
        Err(error) => Err(failure(error)),
    }
}

/// The notice of a grace that a loss does not leave, in words.
fn grace_after_loss(grace: Duration, config: &Config) -> Option<String> {
    let left = config.stop_budget();
    (grace > left).then(|| {
        format!(
            "grace-period {grace:?}: after a loss at most {left:?} of it are left, because the command is killed before \
             another candidate can lead; after a pause, or once another holder is known, nothing is left"
        )
    })
}

/// The words for a run that failed.
fn failure(error: Error) -> anyhow::Error {
    match &error {
        Error::TermEnded(TermEnd::WorkStillRuns) => anyhow!("stop the command: it still runs"),
        Error::Panicked { message, .. } => anyhow!("run the command: {message}"),
        Error::TermEnded(_) | Error::Unwell { .. } => {
            anyhow::Error::from(error).context("keep running")
        }
        _ => error.into(),
    }
}

// === impl CandidateCommandArgs ===

impl CandidateCommandArgs {
    /// The configuration with what was typed. Needs no cluster.
    fn config(&self) -> Result<Config, ConfigError> {
        let grace = self.candidate.grace_period().saturating_add(KILL_MARGIN);
        let config = self.candidate.config("")?.grace(grace);
        let config = self.health.apply(config);
        config.validate()?;
        Ok(config)
    }

    /// The candidate, whose events and renewals are printed from now on, if that is wanted.
    fn print_events(&self, candidate: Candidate, mut lines: EventLines<Stdout>) -> Candidate {
        lines.start();
        if !self.events {
            return candidate;
        }
        let lines = Arc::new(Mutex::new(lines));
        let mut known = candidate.handle().watch();
        let renewed = Arc::clone(&lines);
        // Nothing waits for it, and it ends with the run. A parent that does not read misses renewals, and delays nothing.
        drop(tokio::spawn(async move {
            while known.changed().await.is_ok() {
                if events::has_room(std::io::stdout().as_fd())
                    && let Ok(mut lines) = renewed.try_lock()
                {
                    lines.note_renewal();
                }
            }
        }));
        candidate.observed_by(move |_, event| lock(&lines).tell(event))
    }

    fn program(&self) -> Option<Program> {
        (!self.command.is_empty()).then(|| Program {
            command: self.command.clone(),
            grace: self.candidate.grace_period(),
            output_to_stderr: self.events,
        })
    }
}

/// The lines, also where a thread that printed one has panicked.
fn lock<T>(lines: &Mutex<T>) -> MutexGuard<'_, T> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
