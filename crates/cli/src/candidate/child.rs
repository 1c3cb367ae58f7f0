//! The command as the work of a term: started under a supervisor, asked to stop, killed when it does not, and gone with
//! all that it has started before the lease is given up.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use elector_candidate::Leadership;
use elector_candidate::supervise::{StopLimits, limits, spawn_wait};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::own_program::own_program;
use super::supervisor;
use super::supervisor_socket::{CandidateEnd, SupervisorOrder};

/// A command to run in each term.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The command and its arguments; never empty.
    pub(super) command: Vec<OsString>,
    /// The time that it may take to stop.
    pub(super) grace: Duration,
    /// True where its standard output goes to standard error, so that ours stays readable by machines.
    pub(super) output_to_stderr: bool,
}

/// A running command. Dropping it kills the command and all that it has started.
pub(super) struct RunningCommand {
    supervisor: CandidateEnd,
    leadership: Leadership,
    /// The limits that the supervisor gets next.
    limits: BoxStream<'static, StopLimits>,
    /// The end of the supervisor, and so of everything.
    exit: JoinHandle<io::Result<SupervisedExit>>,
}

/// The exit status of a command, and whether its supervisor stopped it by itself.
pub(super) type SupervisedExit = (ExitStatus, bool);

// === impl RunningCommand ===

impl RunningCommand {
    /// Starts the command, with these variables on top of the own environment. The term owns the thread that waits for
    /// its end, so the lease is not given up before.
    pub(super) async fn start(
        leadership: &Leadership,
        program: Program,
        environment: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        let (own_end, reports, other_end) = CandidateEnd::pair()?;
        // Before it is started: from then on this process may be stopped at any moment.
        let mut limits = limits(leadership).fuse().boxed();
        let first = limits.next().await;
        let first = first.ok_or_else(|| io::Error::other("the term is over"))?;
        own_end.order(&SupervisorOrder::Limits(first));
        let (started, has_started) = oneshot::channel();
        let exit = spawn_wait(leadership, move |command| {
            let mut supervisor = program.supervised(environment, other_end).spawn()?;
            let _ = started.send(());
            let stopped_by_supervisor = reports.read(|| command.note_killed());
            Ok((supervisor.wait()?, stopped_by_supervisor))
        });
        match has_started.await {
            Ok(()) => Ok(Self {
                supervisor: own_end,
                leadership: leadership.clone(),
                limits,
                exit,
            }),
            Err(_) => {
                let failed = || io::Error::other("it was not started");
                Err(exit.await?.err().unwrap_or_else(failed))
            }
        }
    }

    /// Waits until the command has exited and nothing of what it has started is left. Meanwhile the supervisor hears
    /// of each renewal.
    pub(super) async fn exit(&mut self) -> io::Result<SupervisedExit> {
        loop {
            tokio::select! {
                biased;
                Some(limits) = self.limits.next() => self.supervisor.order(&SupervisorOrder::Limits(limits)),
                exit = &mut self.exit => return exit?,
            }
        }
    }

    /// Stops the command: SIGTERM to its group, and SIGKILL to all that it has started when its time to stop is over.
    /// Each renewal that succeeds meanwhile leaves it more of its grace period. Without time it is killed at once.
    pub(super) async fn stop(&mut self) -> io::Result<SupervisedExit> {
        let asked = Instant::now();
        let mut patience = self.leadership.time_to_stop();
        let is_asked = !patience.is_zero();
        if is_asked {
            self.supervisor.order(&SupervisorOrder::Terminate);
        }
        while !patience.is_zero() {
            if let Ok(exit) = tokio::time::timeout(patience, self.exit()).await {
                return exit;
            }
            patience = self.leadership.time_to_stop();
        }
        let had = asked.elapsed();
        // First the kill: a line may take as long as the reader of standard error likes.
        self.supervisor.kill();
        if is_asked {
            tracing::warn!(
                "the command did not stop within {had:?}: killing it and all its descendants"
            );
        } else {
            tracing::warn!(
                "no time is left to stop the command: killing it and all its descendants"
            );
        }
        self.exit().await
    }
}

/// The exit code to pass on: the command's own, or 128 and the number of the signal that ended it, as shells have it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let signalled = || status.signal().map(|signal| 128 + signal);
    let code = status.code().or_else(signalled).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

// === impl Program ===

impl Program {
    /// The command under its supervisor, in a group of its own: what is typed at a terminal is not for it.
    pub(super) fn supervised(
        self,
        environment: Vec<(&'static str, String)>,
        socket: OwnedFd,
    ) -> Command {
        let grace = format!("{}ns", self.grace.as_nanos());
        let mut command = Command::new(own_program());
        command
            .args([supervisor::NAME, "--grace-period", &grace, "--"])
            .args(self.command)
            .envs(environment)
            .stdin(socket)
            .process_group(0);
        if self.output_to_stderr {
            command.stdout(io::stderr());
        }
        command
    }
}
