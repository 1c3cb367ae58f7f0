//! The socket between `elector candidate` and the supervisor of its command: orders one way, a report the other.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use elector_candidate::supervise::{SharedInstant, StopLimits};
use rustix::io::ioctl_fionread;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;

/// An order to the supervisor: a line. The end of them is the order to kill.
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

/// The report of the supervisor, a byte: it stops the command by its own clock.
const STOPS_BY_ITSELF: &[u8] = b"s";

/// The end of the socket that orders are written to.
#[derive(Debug)]
pub(super) struct CandidateEnd(StdUnixStream);

/// The end of the socket that orders are read from.
#[derive(Debug)]
pub(super) struct SupervisorEnd(Lines<BufReader<UnixStream>>);

// === impl CandidateEnd ===

impl CandidateEnd {
    /// This end, and the other one for the standard input of a supervisor.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (own, other) = StdUnixStream::pair()?;
        own.set_nonblocking(true)?;
        Ok((Self(own), other.into()))
    }

    /// Writes an order, whole or not at all, and never waits. Fails where the supervisor has ended.
    pub(super) fn order(&self, order: &SupervisorOrder) -> io::Result<()> {
        let line = serde_json::to_string(order)? + "\n";
        // A line is shorter than what a socket takes in one piece.
        (&self.0).write(line.as_bytes()).map(drop)
    }

    /// Orders to kill, as a drop does.
    pub(super) fn kill(&self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }

    /// True once, if the supervisor has reported that it stops the command by itself.
    pub(super) fn take_report(&self) -> bool {
        (&self.0).read(&mut [0]).is_ok_and(|bytes| bytes > 0)
    }
}

// === impl SupervisorEnd ===

impl SupervisorEnd {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = StdUnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let socket = UnixStream::from_std(socket)?;
        Ok(Self(BufReader::new(socket).lines()))
    }

    /// The next order, `None` at the end of the socket. May be dropped and called again.
    pub(super) async fn next_order(&mut self) -> Option<SupervisorOrder> {
        let line = self.0.next_line().await.ok().flatten()?;
        serde_json::from_str(&line).ok()
    }

    /// True while an order is there to be read.
    pub(super) fn has_order(&mut self) -> bool {
        let reader = self.0.get_ref();
        !reader.buffer().is_empty() || ioctl_fionread(reader.get_ref()).is_ok_and(|bytes| bytes > 0)
    }

    /// Reports that the command is stopped by the clock of the supervisor.
    pub(super) fn report_stop(&mut self) {
        let socket = self.0.get_ref().get_ref();
        // It fails where nobody is left to be told.
        let _ = rustix::io::write(socket.as_fd(), STOPS_BY_ITSELF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_go_one_way_until_the_order_to_kill_and_the_report_goes_the_other() {
        let (candidate, socket) = CandidateEnd::pair().unwrap();
        let mut supervisor = SupervisorEnd::new(socket).unwrap();
        assert!(!supervisor.has_order() && !candidate.take_report());
        let orders = [SupervisorOrder::Standby, SupervisorOrder::Terminate];
        for order in &orders {
            candidate.order(order).unwrap();
        }
        candidate.kill();
        for order in orders {
            assert!(supervisor.has_order());
            assert_eq!(supervisor.next_order().await, Some(order));
        }
        assert_eq!(supervisor.next_order().await, None);
        supervisor.report_stop();
        assert!(candidate.take_report() && !candidate.take_report());
    }
}
