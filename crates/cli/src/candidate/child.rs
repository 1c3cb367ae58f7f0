//! The command as the work of a term: started under a supervisor, asked to stop, killed when it does not, and gone with
//! all that it has started before the lease is given up.

use std::ffi::OsString;
use std::io::{self, PipeReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use elector_candidate::Leadership;
use elector_candidate::supervise::{SharedInstant, StopLimits, limits};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::own_program::own_program;
use super::supervisor;
use super::supervisor_pipe::{OrderWriter, SupervisorOrder};

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
    /// The pipe to the supervisor, whose end is the order to kill.
    orders: Option<OrderWriter>,
    leadership: Leadership,
    /// The limits that the supervisor gets next.
    limits: BoxStream<'static, StopLimits>,
    /// When the supervisor asks the command to stop, unless it hears of another renewal before.
    deadline: SharedInstant,
    /// True if it may have asked although the term goes on: a renewal was answered before the deadline, and told after.
    pub(super) may_be_told: bool,
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
        let (reader, writer) = io::pipe()?;
        let mut orders = OrderWriter::new(writer)?;
        // Before it is started: from then on this process may be stopped at any moment.
        let mut limits = limits(leadership).fuse().boxed();
        let first = limits.next().await;
        let first = first.ok_or_else(|| io::Error::other("the term is over"))?;
        orders.write(&SupervisorOrder::Limits(first))?;
        let (started, has_started) = oneshot::channel();
        let exit = leadership.spawn_blocking(move || {
            let mut supervisor = program.supervised(environment, reader).spawn()?;
            let _ = started.send(());
            supervisor.wait()
        });
        match has_started.await {
            Ok(()) => Ok(Self {
                orders: Some(orders),
                leadership: leadership.clone(),
                limits,
                deadline: first.deadline,
                may_be_told: false,
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
    pub(super) async fn exit(&mut self) -> io::Result<ExitStatus> {
        loop {
            tokio::select! {
                biased;
                Some(limits) = self.limits.next() => self.prolong(limits),
                exit = &mut self.exit => {
                    self.may_be_told |= self.deadline.remaining().is_zero();
                    return exit?;
                }
            }
        }
    }

    /// Tells the supervisor of a renewal. Where that is too late the command is to end, be it told already or not.
    fn prolong(&mut self, limits: StopLimits) {
        self.order(&SupervisorOrder::Limits(limits));
        if self.deadline.remaining().is_zero() {
            self.may_be_told = true;
            self.order(&SupervisorOrder::Terminate);
        }
        self.deadline = limits.deadline;
    }

    /// Stops the command: SIGTERM to its group, and SIGKILL to all that it has started when its time to stop is over.
    /// Each renewal that succeeds meanwhile leaves it more of its grace period. Without time it is killed at once.
    pub(super) async fn stop(&mut self) -> io::Result<ExitStatus> {
        let asked = Instant::now();
        let mut patience = self.leadership.time_to_stop();
        if !patience.is_zero() {
            self.order(&SupervisorOrder::Terminate);
        }
        while !patience.is_zero() {
            if let Ok(exit) = tokio::time::timeout(patience, self.exit()).await {
                return exit;
            }
            patience = self.leadership.time_to_stop();
        }
        let had = asked.elapsed();
        // First the kill: a line may take as long as the reader of standard error likes.
        self.orders = None;
        tracing::warn!(
            "the command did not stop within {had:?}: killing it and all its descendants"
        );
        self.exit().await
    }

    fn order(&mut self, order: &SupervisorOrder) {
        if let Some(orders) = &mut self.orders {
            // It fails where the command has just ended.
            let _ = orders.write(order);
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
    pub(super) fn supervised(
        self,
        environment: Vec<(&'static str, String)>,
        orders: PipeReader,
    ) -> Command {
        let grace = format!("{}ns", self.grace.as_nanos());
        let mut command = Command::new(own_program());
        command
            .args([supervisor::NAME, "--grace-period", &grace, "--"])
            .args(self.command)
            .envs(environment)
            .stdin(orders)
            .process_group(0);
        if self.output_to_stderr {
            command.stdout(io::stderr());
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use elector_testing::TestTerm;
    use futures::{FutureExt as _, stream};

    use super::super::supervisor_pipe::OrderReader;
    use super::*;

    /// The limits of a term whose belief ends so long from now.
    fn limits_for(belief: Duration) -> StopLimits {
        let term = TestTerm::new();
        term.expire_after(belief);
        let first = limits(&term.leadership()).boxed().next().now_or_never();
        first.flatten().unwrap()
    }

    /// The command of a term with these deadlines, one after the other, once it has ended: the order to its supervisor after
    /// the renewal, if any, and whether it may have been told to stop.
    async fn ended(deadlines: [Duration; 2]) -> (Option<SupervisorOrder>, bool) {
        let [first, next] = deadlines.map(limits_for);
        let (reader, writer) = io::pipe().unwrap();
        let mut running = RunningCommand {
            orders: Some(OrderWriter::new(writer).unwrap()),
            leadership: TestTerm::new().leadership(),
            limits: stream::iter([next]).fuse().boxed(),
            deadline: first.deadline,
            may_be_told: false,
            exit: tokio::spawn(async { Ok(ExitStatus::default()) }),
        };
        running.exit().await.unwrap();
        running.orders = None;
        let mut orders = OrderReader::new(reader.into()).unwrap();
        assert_eq!(orders.next().await, Some(SupervisorOrder::Limits(next)));
        (orders.next().await, running.may_be_told)
    }

    /// The supervisor has asked the command to stop, or is about to.
    #[tokio::test]
    async fn a_command_whose_supervisor_hears_of_a_renewal_too_late_is_to_stop() {
        const HOUR: Duration = Duration::from_secs(3600);
        let told = Some(SupervisorOrder::Terminate);
        assert_eq!(ended([HOUR, HOUR]).await, (None, false));
        assert_eq!(ended([Duration::ZERO, HOUR]).await, (told, true));
        assert_eq!(ended([HOUR, Duration::ZERO]).await, (None, true));
    }

    #[test]
    fn a_command_that_a_signal_ended_passes_it_on_as_shells_do() {
        let [ended, terminated, killed] = [3 << 8, 15, 9].map(ExitStatus::from_raw);
        assert_eq!([ended, terminated, killed].map(exit_code), [3, 143, 137]);
    }
}
