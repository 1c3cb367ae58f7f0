//! The orders of `elector candidate` to the supervisor of its command: a pipe, and a line for each.

use std::io::{self, PipeWriter, Write as _};
use std::os::fd::OwnedFd;

use elector_candidate::supervise::{SharedInstant, StopLimits};
use rustix::io::{ioctl_fionbio, ioctl_fionread};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;

/// An order to the supervisor. The end of the pipe is the order to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorOrder {
    /// Until when the command of a term may act: the first order of all, and repeated with each renewal.
    Limits(StopLimits),
    /// When a warm command is killed unless it says before that it has stopped: repeated with each renewal.
    KillAt(SharedInstant),
    /// A warm command acts in no term: the first order for it.
    Standby,
    /// SIGTERM for the command and its group.
    Terminate,
}

/// The end of the pipe that orders are written to.
#[derive(Debug)]
pub(super) struct OrderWriter(PipeWriter);

/// The end of the pipe that orders are read from.
#[derive(Debug)]
pub(super) struct OrderReader(Lines<BufReader<pipe::Receiver>>);

// === impl OrderWriter ===

impl OrderWriter {
    pub(super) fn new(pipe: PipeWriter) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        Ok(Self(pipe))
    }

    /// Writes an order, whole or not at all, and never waits.
    pub(super) fn write(&mut self, order: &SupervisorOrder) -> io::Result<()> {
        let line = serde_json::to_string(order)? + "\n";
        // A line is shorter than what a pipe takes in one piece.
        self.0.write(line.as_bytes()).map(drop)
    }
}

// === impl OrderReader ===

impl OrderReader {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Self(BufReader::new(pipe).lines()))
    }

    /// The next order, `None` at the end of the pipe. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<SupervisorOrder> {
        let line = self.0.next_line().await.ok().flatten()?;
        serde_json::from_str(&line).ok()
    }

    /// True while an order is there to be read.
    pub(super) fn is_waiting(&mut self) -> bool {
        let reader = self.0.get_ref();
        !reader.buffer().is_empty() || ioctl_fionread(reader.get_ref()).is_ok_and(|bytes| bytes > 0)
    }
}
