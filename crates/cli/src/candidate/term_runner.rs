//! The work of a term: the command, or just the lease for a program beside this process.

use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use elector_candidate::Leadership;
use tokio::sync::oneshot;

use super::child::{self, Program, RunningCommand, SupervisedExit};
use super::current_term::{CurrentTerm, TermEntry};
use super::routing::LeaderRouting;
use super::warm_command::WarmCommand;

/// The end of a term's work by itself: the exit code to pass on, or none where there was no command.
pub(super) type CommandExit = Option<u8>;

/// The work of a candidate in each of its terms.
#[derive(Clone, Debug)]
pub(super) struct TermRunner {
    /// The command of a term, where there is one.
    pub(super) program: Option<Program>,
    /// The command that runs in no term too, where there is one.
    pub(super) warm: Option<WarmCommand>,
    /// Variables for the command on top of those of the term.
    pub(super) environment: Vec<(&'static str, String)>,
    /// True if a command that fails is run again.
    pub(super) retries: bool,
    pub(super) current: CurrentTerm,
    /// The time that the program has to stop while the lease is held.
    pub(super) grace: Duration,
    /// The program beside this process, where it is asked about the lease.
    pub(super) sidecar: Option<ProgramBeside>,
    /// Where traffic is sent in a term, if it is.
    pub(super) routing: Option<LeaderRouting>,
}

/// A program that asks who leads, and that this process cannot stop.
#[derive(Clone, Debug)]
pub(super) struct ProgramBeside {
    /// True if this process is asked to end only once the program has.
    pub(super) program_ends_first: bool,
    /// True once this process was asked to end.
    pub(super) ending: Arc<AtomicBool>,
}

// === impl TermRunner ===

impl TermRunner {
    /// Runs from the beginning of a term until it stops.
    pub(super) async fn run(self, leadership: Leadership) -> anyhow::Result<CommandExit> {
        // Before the command can learn of the term: from then on this process may be stopped at any moment.
        let limited = match &self.warm {
            Some(warm) => {
                let limited = warm.limit_to(&leadership).await;
                Some(limited.context("tell the supervisor of the command its limits")?)
            }
            None => None,
        };
        let entry = self.current.enter(leadership.clone(), self.grace);
        let (work_ends, work_ended) = oneshot::channel();
        let routed = self.routing.clone().map(|routing| {
            let routed = routing.route(leadership.clone(), work_ended);
            leadership.spawn(routed)
        });
        let ended = match (self.program.clone(), limited) {
            (Some(program), _) => self.run_command(&leadership, program).await,
            (None, limited) => {
                let held = self.hold(&leadership, &entry);
                match limited {
                    Some(limited) => limited.stopped(held).await,
                    None => drop(held.await),
                }
                Ok(None)
            }
        };
        drop(work_ends);
        if let Some(routed) = routed {
            // Before the lease is given away. A panic is reported by the term.
            let _ = routed.await;
        }
        ended
    }

    /// Holds the lease until the term is to stop, and then for as long as the program beside may take. Returns whether it
    /// acts no more.
    async fn hold(&self, leadership: &Leadership, entry: &TermEntry) -> bool {
        leadership.stopped().await;
        let Some(beside) = &self.sidecar else {
            return true;
        };
        let is_ending = beside.ending.load(Ordering::Relaxed);
        if is_ending && let Some(warm) = &self.warm {
            warm.terminate();
        }
        (is_ending && beside.program_ends_first) || entry.program_stopped().await
    }

    async fn run_command(
        &self,
        leadership: &Leadership,
        program: Program,
    ) -> anyhow::Result<CommandExit> {
        let environment = &self.environment;
        let status = run_command(leadership, program, environment, self.retries).await?;
        Ok(Some(child::exit_code(status)))
    }
}

/// Runs the command of a term until it ends or the term is to stop. One that fails by itself is an error where it `retries`.
pub(super) async fn run_command(
    leadership: &Leadership,
    program: Program,
    variables: &[(&'static str, String)],
    retries: bool,
) -> anyhow::Result<ExitStatus> {
    let mut environment = environment(leadership);
    environment.extend(variables.iter().cloned());
    let run = || async {
        let (program, environment) = (program.clone(), environment.clone());
        let mut running = RunningCommand::start(leadership, program, environment)
            .await
            .context("run the command")?;
        let end = tokio::select! {
            biased;
            _ = leadership.stopped() => running.stop().await,
            end = running.exit() => end,
        };
        end.context("wait for the command")
    };
    let status = run_to_end(leadership, run).await?;
    if retries && !status.success() && leadership.stop_reason().is_none() {
        bail!("run the command: {status}");
    }
    tracing::info!(part = leadership.part(), %status, "the command has ended");
    Ok(status)
}

/// Runs the command; then again, if its supervisor stopped it by itself and the term goes on.
async fn run_to_end<F>(
    leadership: &Leadership,
    mut run: impl FnMut() -> F,
) -> anyhow::Result<ExitStatus>
where
    F: Future<Output = anyhow::Result<SupervisedExit>>,
{
    loop {
        let (status, was_stopped) = run().await?;
        // The supervisor may have been the first to see that the belief is over.
        if !leadership.is_leader() {
            leadership.stopped().await;
        }
        if !was_stopped || leadership.stop_reason().is_some() {
            return Ok(status);
        }
        tracing::warn!(
            part = leadership.part(), %status,
            "the command was stopped, because its supervisor heard of a renewal too late: running it again in this term"
        );
    }
}

fn environment(leadership: &Leadership) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("ELECTOR_LEASE", leadership.lease().to_string()),
        ("ELECTOR_HOLDER", leadership.identity().to_string()),
        ("ELECTOR_TERM", leadership.term().to_string()),
        ("ELECTOR_TOKEN", leadership.token().to_string()),
    ];
    let part = leadership.part().map(str::to_owned);
    variables.extend(part.map(|part| ("ELECTOR_PART", part)));
    variables
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::os::unix::process::ExitStatusExt as _;

    use elector_candidate::StopReason;
    use elector_testing::TestTerm;

    use super::*;

    #[tokio::test]
    async fn a_command_that_its_supervisor_stopped_runs_again_in_a_term_that_goes_on() {
        let term = TestTerm::new();
        let leadership = term.leadership();
        let ended = async |was_stopped: &[bool]| {
            let mut runs = (1..).zip(was_stopped);
            let run = || {
                let (run, was_stopped) = runs.next().unwrap();
                ready(Ok((ExitStatus::from_raw(run), *was_stopped)))
            };
            run_to_end(&leadership, run).await.unwrap().into_raw()
        };
        assert_eq!(ended(&[false]).await, 1);
        assert_eq!(ended(&[true, true, false]).await, 3);
        term.stop(StopReason::ShutDown);
        assert_eq!(ended(&[true]).await, 1);
    }
}
