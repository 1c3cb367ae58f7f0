//! The process between `elector candidate` and its command: the parent of all that the command starts.
//!
//! ```text
//!   elector candidate ── orders (a socket) ──> elector supervise ──> elector exec-with-parent, which becomes CMD
//!                     <── reports, exit code ── adopts orphans          └──> what CMD starts
//! ```
//!
//! A descendant whose parent dies becomes a child of the supervisor, also one in a session of its own. So the supervisor
//! can find all of them, kill them, and tell when the last is gone: that is when it ends itself, with the exit code of
//! the command. It is a process of its own because there it may wait for any child: in `elector candidate`, that would
//! take the exit codes of children that belong to others, such as a credential plugin.
//!
//! The end of the socket is the order to kill, so that nothing outlives an `elector candidate` that was killed. The command
//! itself dies with the supervisor. What the command has started does not, where the supervisor is killed.
//!
//! An `elector candidate` that is stopped (SIGSTOP, a debugger, a frozen cgroup) gives no orders. So it tells the limits
//! of the command with each renewal, and without a newer renewal the supervisor stops the command by itself, at the same
//! moments at which `elector candidate` would have. It reports that: where it hears of a renewal only after its deadline, it
//! has stopped a command whose term goes on. A warm command has limits while its candidate leads.
//!
//! It reports as well when nothing is left but what was killed, which acts no more. Its own end may take the kernel as long.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use elector_api::parse_duration;
use elector_runtime::{Clock as _, SystemClock};
use rustix::process::{Pid, Signal, getpid, kill_process_group};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::descendants;
use super::exec_child;
use super::own_program::own_program;
use super::reaper::{ReapedState, Reaper};
use super::stop_timer::{StopStep, StopTimer};
use super::supervisor_socket::{SupervisorEnd, SupervisorReport};
use crate::block_on::block_on;

/// The hidden sub-command. Its standard input is the socket that orders come by.
#[derive(Debug, Args)]
pub(crate) struct SupervisorArgs {
    /// How long the command may take to stop.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    grace_period: Duration,

    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Its name, which is not meant to be typed.
pub(crate) const NAME: &str = "supervise";

/// The rounds in which all descendants are killed, until none is left.
#[derive(Clone, Copy, Debug)]
struct KillRounds {
    next: Instant,
    pause: Duration,
}

/// The pause after the first round. A process that is killed is gone after less, as a rule.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The longest pause between two rounds, for processes that cannot die, such as those that wait for a disk.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Runs the command, and ends with it and with all that it has started.
pub(crate) fn run(args: &SupervisorArgs) -> anyhow::Result<ExitCode> {
    descendants::adopt_orphans().context("adopt what the command leaves behind")?;
    let code = block_on(async {
        let supervised = supervise(&args.command, args.grace_period).await;
        supervised.context("supervise the command")
    });
    code.map(ExitCode::from)
}

async fn supervise(command: &[OsString], grace: Duration) -> io::Result<u8> {
    let _caught = catch_signals()?;
    let clock = SystemClock::start();
    let mut candidate = SupervisorEnd::new(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut timer = StopTimer::new(grace);
    let first = candidate.next_order().await;
    if timer.handle_order(first, &clock) != StopStep::Nothing {
        return Err(io::Error::other(
            "the socket ended before the limits arrived",
        ));
    }
    let mut reaper = Reaper::start(|| start(command))?;
    let (mut kill, mut killed) = (None, HashSet::new());
    loop {
        match reaper.reap()? {
            ReapedState::NoneLeft(code) => {
                candidate.report(SupervisorReport::ActsNoMore);
                return Ok(code);
            }
            ReapedState::OthersLeft(_) => {
                kill.get_or_insert_with(KillRounds::start);
            }
            ReapedState::Running => {}
        }
        if kill.as_mut().is_some_and(|it| it.begins(Instant::now())) {
            // The group at once, what has left it as soon as it is found.
            signal_group(&reaper, Signal::KILL);
            if descendants::kill_all(&mut killed)? {
                candidate.report(SupervisorReport::ActsNoMore);
            }
        }
        let step = tokio::select! {
            biased;
            order = candidate.next_order(), if kill.is_none() => timer.handle_order(order, &clock),
            () = reaper.ended() => StopStep::Nothing,
            () = next_round(kill) => StopStep::Nothing,
            () = next_step(timer, &clock), if kill.is_none() => {
                if candidate.has_order() {
                    // A process that was stopped may learn the time before it learns of a renewal.
                    timer.handle_order(candidate.next_order().await, &clock)
                } else {
                    let step = timer.step(clock.holder());
                    if step != StopStep::Nothing {
                        candidate.report(SupervisorReport::StopsByItself);
                    }
                    step
                }
            }
        };
        match step {
            StopStep::Nothing => {}
            StopStep::Terminate => signal_group(&reaper, Signal::TERM),
            StopStep::Kill => kill = Some(KillRounds::start()),
        }
    }
}

/// Starts the command in a group of its own. It dies with this process.
fn start(command: &[OsString]) -> io::Result<Pid> {
    let parent = getpid().as_raw_nonzero().to_string();
    let child = Command::new(own_program())
        .args([exec_child::NAME, &parent, "--"])
        .args(command)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// Catches what ends a process by default, and does nothing about it: a signal to all processes of a service is
/// answered by `elector candidate`, which orders what is to be done. What is caught is not inherited by the command.
fn catch_signals() -> io::Result<[unix::Signal; 4]> {
    Ok([
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
        signal(SignalKind::quit())?,
    ])
}

async fn next_step(timer: StopTimer, clock: &SystemClock) {
    match timer.next_step() {
        Some(step) => clock.sleep_until_holder(step).await,
        None => std::future::pending().await,
    }
}

async fn next_round(kill: Option<KillRounds>) {
    match kill {
        Some(rounds) => sleep_until(rounds.next).await,
        None => std::future::pending().await,
    }
}

fn signal_group(reaper: &Reaper, signal: Signal) {
    if let Some(leader) = reaper.main() {
        // It fails where the group is already gone, which is as good.
        let _ = kill_process_group(leader, signal);
    }
}

// === impl KillRounds ===

impl KillRounds {
    fn start() -> Self {
        Self {
            next: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    /// True if a round begins now. The next one follows after a pause, each twice as long as the one before.
    fn begins(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now + self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_repeated_after_pauses_that_grow() {
        let mut rounds = KillRounds::start();
        let start = rounds.next;
        let begun =
            (0..1_000).filter(|millis| rounds.begins(start + Duration::from_millis(*millis)));
        let expected = [0, 2, 6, 14, 30, 62, 126, 254, 454, 654, 854];
        assert_eq!(begun.collect::<Vec<_>>(), expected);
    }
}
