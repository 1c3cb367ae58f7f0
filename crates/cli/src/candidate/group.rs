//! `elector candidate --group`: a command for each part that this process leads.

use std::collections::BTreeMap;
use std::io::Stdout;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use elector_candidate::{
    Cluster, Config, GroupCandidate, GroupHandle, Leadership, LeaseKey, Metrics, shutdown_signal,
};
use elector_runtime::connect;

use super::child::Program;
use super::command_args::CandidateCommandArgs;
use super::endpoints::checks;
use super::events::{EventLines, print_renewals};
use super::run_end::{exit_code, grace_after_loss};
use super::term_runner::run_command;

/// Runs a command for each part that this process comes to lead, until a signal.
pub(super) async fn run_group(
    args: CandidateCommandArgs,
    config: Config,
) -> anyhow::Result<ExitCode> {
    let signal = shutdown_signal()?;
    let cluster = match connect(&args.client).await {
        Err(_) if !config.needs_cluster() => Cluster::none(),
        connected => connected?.into(),
    };
    let program = args.program();
    if program.is_some()
        && let Some(line) = grace_after_loss(args.candidate.grace_period(), &config)
    {
        tracing::info!("{line}");
    }
    let candidate = GroupCandidate::new(config, args.group.parts(), cluster)?;
    let handle = candidate.handle();
    let ending = Arc::new(AtomicBool::new(false));
    let shutdown = async {
        signal.await;
        ending.store(true, Ordering::Relaxed);
    };
    let metrics = Metrics::default();
    let candidate = args.health.probe_group(candidate, args.group.name());
    let candidate = candidate.with_metrics(metrics.clone());
    let checks = {
        let (live, ready) = (handle.clone(), handle.clone());
        let live = move || live.check_live();
        checks(live, move || ready.check_ready(), Arc::clone(&ending))
    };
    let _endpoints = args.endpoints.serve(Arc::new(checks), metrics).await?;
    let lines = event_lines(&handle, args.events);
    let candidate = candidate.observed_by(move |lease, event| {
        if let Some(lines) = lines.get(lease) {
            lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .tell(event);
        }
    });
    let work = |leadership: Leadership| lead_part(leadership, program.clone());
    match candidate.run(work, shutdown).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => exit_code(error),
    }
}

/// The lines of each part, which is what a reader takes for a candidate.
fn event_lines(
    handle: &GroupHandle,
    wanted: bool,
) -> BTreeMap<LeaseKey, Arc<Mutex<EventLines<Stdout>>>> {
    let lines = handle.parts().iter().map(|part| {
        let out = wanted.then(std::io::stdout);
        let lines = EventLines::new(out, part.clone());
        (part.lease().clone(), print_renewals(lines, part))
    });
    lines.collect()
}

/// The work of a term of a part: the command, or just the lease.
async fn lead_part(leadership: Leadership, program: Option<Program>) -> anyhow::Result<()> {
    let Some(program) = program else {
        leadership.stopped().await;
        return Ok(());
    };
    run_command(&leadership, program, &[], true).await?;
    Ok(())
}
