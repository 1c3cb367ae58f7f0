//! `elector candidate --group`: a command for each part that this process leads.

use std::collections::BTreeMap;
use std::io::Stdout;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use elector_candidate::{
    Cluster, Config, Error, GroupCandidate, GroupHandle, Leadership, LeaseKey, Metrics, Parts,
    shutdown_signal,
};
use elector_runtime::connect;

use super::child::Program;
use super::endpoints::checks;
use super::events::EventLines;
use super::term_runner::run_command;
use super::{CandidateCommandArgs, WRONG_USAGE, failure, grace_after_loss};
use crate::output;

/// The parts of a group that this process stands for.
#[derive(Args, Debug)]
pub(super) struct GroupArgs {
    /// Name of a group, in the place of a lease: this process stands for each of its parts, whose leases are called
    /// NAME-PART, and runs the command once for each part that it leads. A command whose part is lost is stopped alone;
    /// one that exits gives its part back, and this process pauses for that part, from 1s doubling up to 1m
    #[arg(
        long,
        value_name = "NAME",
        requires = "part",
        conflicts_with_all = ["lease", "http"],
        env = "ELECTOR_GROUP"
    )]
    group: Option<String>,

    /// Name of a part of the group, to be given for each part, and the same in all processes
    #[arg(
        long,
        value_name = "PART",
        requires = "group",
        value_delimiter = ',',
        env = "ELECTOR_PARTS"
    )]
    part: Vec<String>,
}

// === impl GroupArgs ===

impl GroupArgs {
    /// The name of the group, if there is one.
    pub(super) fn name(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Its parts.
    pub(super) fn parts(&self) -> Parts {
        Parts::named(self.part.iter().map(String::as_str))
    }
}

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
    let mut lines = event_lines(&handle, args.events);
    lines.values_mut().for_each(EventLines::start);
    let candidate = candidate.observed_by(move |lease, event| {
        if let Some(lines) = lines.get_mut(lease) {
            lines.tell(event);
        }
    });
    let work = |leadership: Leadership| lead_part(leadership, program.clone());
    match candidate.run(work, shutdown).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The API that the cluster serves takes fewer names than others.
        Err(Error::Config(error)) => {
            output::print_error(error);
            Ok(ExitCode::from(WRONG_USAGE))
        }
        Err(error) => Err(failure(error)),
    }
}

/// The lines of each part, which is what a reader takes for a candidate.
fn event_lines(handle: &GroupHandle, wanted: bool) -> BTreeMap<LeaseKey, EventLines<Stdout>> {
    let lines = handle.parts().iter().map(|part| {
        let out = wanted.then(std::io::stdout);
        (part.lease().clone(), EventLines::new(out, part.clone()))
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
