//! `elector candidate`: runs a command while it leads, or answers a program beside it who leads.

mod child;
mod command_args;
mod current_term;
mod descendants;
mod endpoints;
mod events;
pub(crate) mod exec_child;
mod group;
mod group_args;
mod health_command;
mod http;
mod own_program;
pub(crate) mod pid1;
mod reaper;
mod routing;
mod run_end;
mod stop_timer;
pub(crate) mod supervisor;
mod supervisor_socket;
mod term_runner;
mod warm_command;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use anyhow::Context as _;
use elector_candidate::{Candidate, Cluster, Config, Metrics};
use elector_runtime::{connect, init_logging, shutdown_signal};

pub(crate) use self::command_args::CandidateCommandArgs;
use self::current_term::CurrentTerm;
use self::endpoints::checks;
use self::events::{EventLines, print_renewals};
use self::group::run_group;
use self::run_end::{WRONG_USAGE, exit_code, grace_after_loss};
use self::term_runner::{ProgramBeside, TermRunner};
use self::warm_command::WarmCommand;
use crate::output;

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
    let code = runtime.block_on(async {
        match args.group.name() {
            Some(_) => run_group(args, config).await,
            None => run_candidate(args, config).await,
        }
    });
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
    let lines = print_renewals(EventLines::new(out, handle.clone()), &handle);
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
    let (live, ready) = (handle.clone(), handle);
    let live = move || live.check_live();
    let checks = match &answers {
        Some(answers) => {
            candidate = answers.reporting_to(candidate);
            let stays_out = answers.stays_out();
            // A process that stays out for a while of its own will is well.
            let ready = move || match ready.check_ready() {
                Err(unwell) if !stays_out() => Err(unwell),
                _ => Ok(()),
            };
            checks(live, ready, Arc::clone(&ending))
        }
        None => checks(live, move || ready.check_ready(), Arc::clone(&ending)),
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
    let (program, warm) = match program {
        Some(program) if args.http.keeps_command_warm() => {
            let started = WarmCommand::start(program, environment.clone());
            (None, Some(started.context("run the command")?))
        }
        program => (program, None),
    };
    let runner = TermRunner {
        grace: args.candidate.grace_period(),
        sidecar: args.http.is_on().then(|| ProgramBeside {
            program_ends_first: args.http.ends_after_program(),
            ending: Arc::clone(&ending),
        }),
        program,
        warm: warm.clone(),
        environment,
        retries,
        current,
        routing,
    };
    if let Some(routing) = &runner.routing {
        routing.tidy().await;
    }
    let candidate = candidate.observed_by(move |_, event| {
        lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .tell(event);
    });
    let work = |leadership| runner.clone().run(leadership);
    let shutdown = async {
        match &warm {
            Some(warm) => tokio::select! {
                () = shutdown => {}
                _ = warm.exited() => {}
            },
            None => shutdown.await,
        }
    };
    let ended = candidate.run(work, shutdown).await;
    let mut code = None;
    if let Some(warm) = warm {
        warm.terminate();
        let exited = warm.exited().await;
        code = (!ending.load(Ordering::Relaxed)).then_some(exited);
    }
    match ended {
        Ok(outcome) => {
            let code = code.or(outcome.value.flatten());
            Ok(code.map_or(ExitCode::SUCCESS, ExitCode::from))
        }
        Err(error) => exit_code(error),
    }
}

#[cfg(test)]
mod tests;
