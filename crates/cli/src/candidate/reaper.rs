//! Takes note of the end of children, also of those that this process has not started but adopted.

use std::io;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, wait, waitid,
};
use tokio::signal::unix::{self, SignalKind, signal};

/// Reaps every child of this process. No other part of the process may wait for children.
#[derive(Debug)]
pub(super) struct Reaper {
    /// The child that matters.
    main: Pid,
    /// Its exit code, once it has ended.
    code: Option<u8>,
    ended: unix::Signal,
}

/// The state after all that had ended was reaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReapedState {
    /// The main child runs.
    Running,
    /// It has ended with this exit code, and others are left.
    OthersLeft(u8),
    /// It has ended with this exit code, and no child is left.
    NoneLeft(u8),
}

// === impl Reaper ===

impl Reaper {
    /// A reaper that is told of the end of children from now on, with the main child that `start` starts.
    pub(super) fn start(start: impl FnOnce() -> io::Result<Pid>) -> io::Result<Self> {
        let ended = signal(SignalKind::child())?;
        Ok(Self {
            main: start()?,
            code: None,
            ended,
        })
    }

    /// The main child, as long as its process id is its own.
    pub(super) fn main(&self) -> Option<Pid> {
        self.code.is_none().then_some(self.main)
    }

    /// Waits until another child has ended.
    pub(super) async fn ended(&mut self) {
        self.ended.recv().await;
    }

    /// Reaps all that has ended. What the main child leaves in its group is killed before the id of the group is given
    /// up.
    pub(super) fn reap(&mut self) -> io::Result<ReapedState> {
        if let Some(main) = self.main() {
            let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            if let Ok(Some(_)) = waitid(WaitId::Pid(main), peek) {
                let _ = kill_process_group(main, Signal::KILL);
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.code = Some(exit_code(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => {
                    return Ok(self
                        .code
                        .map_or(ReapedState::Running, ReapedState::OthersLeft));
                }
                // Nothing is left; a main child that something else has waited for has failed as far as is known.
                Err(Errno::CHILD) => return Ok(ReapedState::NoneLeft(self.code.unwrap_or(1))),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The exit code to pass on: the child's own, or 128 and the number of the signal that ended it, as shells have it.
fn exit_code(status: WaitStatus) -> u8 {
    let signalled = || status.terminating_signal().map(|signal| 128 + signal);
    let code = status.exit_status().or_else(signalled).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
