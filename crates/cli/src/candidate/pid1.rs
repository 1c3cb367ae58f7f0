//! Process 1 of a container: reaps what others leave behind, and is otherwise its one child.
//!
//! The parent of an orphan is process 1, which has to take note of its end; a process that does not collects them until
//! no process can be started any more. `elector candidate` may not wait for any child, because some belong to others. So
//! as process 1 it runs itself once more, passes signals on to that child, and ends with its exit code.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use clap::Args;
use futures::future::select_all;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};

use super::descendants;
use super::own_program::own_program;
use super::reaper::{ReapedState, Reaper};
use crate::block_on::block_on;

/// The hidden sub-command: what process 1 does, for any program.
#[derive(Debug, Args)]
pub(crate) struct Pid1Args {
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Its name, which is not meant to be typed.
pub(crate) const NAME: &str = "init";

/// The signals that are passed on.
const PASSED_ON: [Signal; 6] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
];

/// Signals as they come in.
struct CaughtSignals(Vec<(Signal, unix::Signal)>);

/// Runs a program as process 1 does. Adopts orphans, which process 1 need not ask for.
pub(crate) fn run(args: &Pid1Args) -> anyhow::Result<ExitCode> {
    descendants::adopt_orphans().context("adopt orphans")?;
    let (program, arguments) = args.command.split_first().context("run nothing")?;
    let mut command = Command::new(program);
    command.args(arguments);
    run_as_pid1(command)
}

/// Runs this program once more, with the same arguments.
pub(super) fn run_again() -> anyhow::Result<ExitCode> {
    let mut command = Command::new(own_program());
    command.args(std::env::args_os().skip(1));
    run_as_pid1(command)
}

fn run_as_pid1(mut command: Command) -> anyhow::Result<ExitCode> {
    // In a group of its own: what is typed at a terminal comes to process 1, and is passed on once.
    command.stdin(Stdio::null()).process_group(0);
    let code = block_on(async { wait_for(command).await.context("run as process 1") });
    code.map(ExitCode::from)
}

async fn wait_for(mut command: Command) -> io::Result<u8> {
    let mut signals = CaughtSignals::catch()?;
    let mut reaper = Reaper::start(|| Ok(Pid::from_child(&command.spawn()?)))?;
    loop {
        if let ReapedState::OthersLeft(code) | ReapedState::NoneLeft(code) = reaper.reap()? {
            return Ok(code);
        }
        tokio::select! {
            biased;
            signal = signals.next() => if let Some(child) = reaper.main() {
                let _ = kill_process(child, signal);
            },
            () = reaper.ended() => {}
        }
    }
}

// === impl CaughtSignals ===

impl CaughtSignals {
    fn catch() -> io::Result<Self> {
        let catch = |passed: Signal| -> io::Result<_> {
            Ok((passed, signal(SignalKind::from_raw(passed.as_raw()))?))
        };
        PASSED_ON
            .map(catch)
            .into_iter()
            .collect::<io::Result<_>>()
            .map(Self)
    }

    async fn next(&mut self) -> Signal {
        let each = self.0.iter_mut().map(|(signal, caught)| {
            Box::pin(async move {
                caught.recv().await;
                *signal
            })
        });
        select_all(each).await.0
    }
}
