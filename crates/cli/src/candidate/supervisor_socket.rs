//! The socket between `elector candidate` and the supervisor of its command: orders one way, reports the other.

use std::io::{self, BufReader as StdBufReader, Read as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;

use elector_candidate::supervise::{SharedInstant, StopLimits};
use rustix::io::ioctl_fionread;
use rustix::net::{SendFlags, send};
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

/// A report of the supervisor: a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SupervisorReport {
    /// The command is stopped by the clock of the supervisor.
    StopsByItself = b's',
    /// Nothing is left of the command but what was killed.
    ActsNoMore = b'k',
}

/// The end of the socket that orders are written to. Dropping it is the order to kill.
#[derive(Debug)]
pub(super) struct CandidateEnd(StdUnixStream);

/// The end of the socket that reports are read from.
#[derive(Debug)]
pub(super) struct SupervisorReports(StdUnixStream);

/// The end of the socket that orders are read from.
#[derive(Debug)]
pub(super) struct SupervisorEnd(Lines<BufReader<UnixStream>>);

// === impl CandidateEnd ===

impl CandidateEnd {
    /// This end, the reports that come by it, and the other end for the standard input of a supervisor.
    pub(super) fn pair() -> io::Result<(Self, SupervisorReports, OwnedFd)> {
        let (own, other) = StdUnixStream::pair()?;
        let reports = SupervisorReports(own.try_clone()?);
        Ok((Self(own), reports, other.into()))
    }

    /// Writes an order, whole or not at all, and never waits.
    pub(super) fn order(&self, order: &SupervisorOrder) {
        let line = serde_json::to_string(order).expect("an order is plain data") + "\n";
        // A line is shorter than what a socket takes in one piece. It fails where the supervisor has just ended.
        let _ = send(&self.0, line.as_bytes(), SendFlags::DONTWAIT);
    }

    /// Orders to kill, as a drop does.
    pub(super) fn kill(&self) {
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

impl Drop for CandidateEnd {
    fn drop(&mut self) {
        self.kill();
    }
}

// === impl SupervisorReports ===

impl SupervisorReports {
    /// Blocks its thread until the supervisor has ended. Returns whether that has stopped the command by itself.
    pub(super) fn read(self, mut acts_no_more: impl FnMut()) -> bool {
        let mut stopped_by_itself = false;
        for byte in StdBufReader::new(self.0).bytes().map_while(Result::ok) {
            stopped_by_itself |= byte == SupervisorReport::StopsByItself as u8;
            if byte == SupervisorReport::ActsNoMore as u8 {
                acts_no_more();
            }
        }
        stopped_by_itself
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

    pub(super) fn report(&mut self, report: SupervisorReport) {
        let socket = self.0.get_ref().get_ref();
        // It fails where nobody is left to be told.
        let _ = send(socket, &[report as u8], SendFlags::DONTWAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn orders_go_one_way_until_the_order_to_kill_and_reports_the_other_until_the_end() {
        use SupervisorReport::{ActsNoMore, StopsByItself};
        for (sent, kills, is_stopped) in [
            (&[][..], 0, false),
            (&[ActsNoMore], 1, false),
            (&[StopsByItself, ActsNoMore, ActsNoMore], 2, true),
        ] {
            let (candidate, reports, socket) = CandidateEnd::pair().unwrap();
            let mut supervisor = SupervisorEnd::new(socket).unwrap();
            assert!(!supervisor.has_order());
            let orders = [SupervisorOrder::Standby, SupervisorOrder::Terminate];
            for order in &orders {
                candidate.order(order);
            }
            drop(candidate);
            for order in orders {
                assert!(supervisor.has_order());
                assert_eq!(supervisor.next_order().await, Some(order));
            }
            assert_eq!(supervisor.next_order().await, None);
            for report in sent {
                supervisor.report(*report);
            }
            drop(supervisor);
            let mut killed = 0;
            assert_eq!(reports.read(|| killed += 1), is_stopped);
            assert_eq!(killed, kills);
        }
    }
}
