//! The command as the work of a term: started under a supervisor, told to stop, killed when it does not, and gone with
//! all that it has started before the lease is given up.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use elector_candidate::Leadership;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::own_program::own_program;
use super::supervisor;

/// A command to run once per term.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The command and its arguments; never empty.
    pub(super) command: Vec<OsString>,
    /// Whether its standard output goes to standard error, so that ours stays readable by machines.
    pub(super) output_to_stderr: bool,
}

/// A running command. Dropping it kills the command and all that it has started.
#[derive(Debug)]
pub(super) struct RunningCommand {
    /// The pipe to the supervisor, whose end is the order to kill.
    orders: Option<ChildStdin>,
    /// The end of the supervisor, and so of everything.
    exit: JoinHandle<io::Result<ExitStatus>>,
}

// === impl RunningCommand ===

impl RunningCommand {
    /// Starts the command, with these variables on top of the own environment. The term owns the thread that waits for
    /// its end, so the lease is not given up before.
    pub(super) async fn start(
        leadership: &Leadership,
        program: Program,
        environment: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        let (started, orders) = oneshot::channel();
        let exit = leadership.spawn_blocking(move || {
            let mut supervisor = program.supervised(environment).spawn()?;
            // Where the receiver is gone, this closes the pipe.
            let _ = started.send(supervisor.stdin.take());
            supervisor.wait()
        });
        match orders.await {
            Ok(orders) => Ok(Self { orders, exit }),
            Err(_) => {
                let failed = || io::Error::other("it was not started");
                Err(exit.await?.err().unwrap_or_else(failed))
            }
        }
    }

    /// Waits until the command has exited and nothing of what it has started is left.
    pub(super) async fn exit(&mut self) -> io::Result<ExitStatus> {
        (&mut self.exit).await?
    }

    /// Stops the command: SIGTERM to its group, and after `patience` SIGKILL to all that it has started. Without
    /// patience it is killed at once.
    pub(super) async fn stop(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        if !patience.is_zero() {
            self.terminate();
            if let Ok(exit) = tokio::time::timeout(patience, self.exit()).await {
                return exit;
            }
        }
        // First the kill: a line may take as long as the reader of standard error likes.
        self.orders = None;
        tracing::warn!(
            "the command had {patience:?} to stop, and is killed with all that it has started"
        );
        self.exit().await
    }

    fn terminate(&mut self) {
        if let Some(orders) = &mut self.orders {
            // It fails where the command has just ended, and never blocks: the pipe is empty.
            let _ = orders.write_all(&[supervisor::TERMINATE]);
        }
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
    fn supervised(self, environment: Vec<(&'static str, String)>) -> Command {
        let mut command = Command::new(own_program());
        command
            .args([supervisor::NAME, "--"])
            .args(self.command)
            .envs(environment)
            .stdin(Stdio::piped())
            .process_group(0);
        if self.output_to_stderr {
            command.stdout(io::stderr());
        }
        command
    }
}
