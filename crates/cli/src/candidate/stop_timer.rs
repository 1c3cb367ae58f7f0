//! When the command is to be stopped, as its supervisor sees it: by the clock, with nothing that has to come in.

use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::{Clock as _, SystemClock};

use super::supervisor_socket::SupervisorOrder;

/// Stops the command when the limits say so, also where the process that holds the lease does not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopTimer {
    /// When the command is asked to stop, where nothing else is ordered.
    ask_at: Option<Instant>,
    /// When it is killed, however long it may take to stop.
    kill_at: Option<Instant>,
    /// The time that the command may take to stop.
    grace: Duration,
    /// When it was asked to.
    told: Option<Instant>,
}

/// The step to take with the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopStep {
    Nothing,
    Terminate,
    Kill,
}

// === impl StopTimer ===

impl StopTimer {
    /// Without limits, until an order has some.
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            ask_at: None,
            kill_at: None,
            grace,
            told: None,
        }
    }

    /// The step after an order, or after the end of the orders.
    pub(super) fn handle_order(
        &mut self,
        order: Option<SupervisorOrder>,
        clock: &SystemClock,
    ) -> StopStep {
        (self.ask_at, self.kill_at) = match order {
            Some(SupervisorOrder::Limits(limits)) => (
                Some(clock.adopt(limits.deadline)),
                Some(clock.adopt(limits.lease_limit)),
            ),
            Some(SupervisorOrder::KillAt(limit)) => (None, Some(clock.adopt(limit))),
            Some(SupervisorOrder::Standby) => (None, None),
            Some(SupervisorOrder::Terminate) => return self.terminate(clock.holder()),
            None => return StopStep::Kill,
        };
        StopStep::Nothing
    }

    /// The order to terminate. The command is asked once.
    fn terminate(&mut self, now: Instant) -> StopStep {
        if self.told.is_some() {
            return StopStep::Nothing;
        }
        self.told = Some(now);
        if self.stop_by(now) <= now {
            StopStep::Kill
        } else {
            StopStep::Terminate
        }
    }

    /// The step that is due now.
    pub(super) fn step(&mut self, now: Instant) -> StopStep {
        if self.next_step().is_none_or(|next| now < next) {
            return StopStep::Nothing;
        }
        match self.told {
            None => self.terminate(now),
            Some(_) => StopStep::Kill,
        }
    }

    /// When there is something to be done, unless an order comes.
    pub(super) fn next_step(&self) -> Option<Instant> {
        match self.told {
            None => self.ask_at.or(self.kill_at),
            Some(told) => Some(self.stop_by(told)),
        }
    }

    /// When the command is to be gone that was asked to stop then.
    fn stop_by(&self, told: Instant) -> Instant {
        let graceful = told.after(self.grace);
        self.kill_at.map_or(graceful, |limit| limit.min(graceful))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    /// As after a renewal that was sent at that time, with the usual timing.
    fn renew(timer: &mut StopTimer, renewed: u64) {
        timer.ask_at = Some(at(renewed + 10_000));
        timer.kill_at = Some(at(renewed + 13_750));
    }

    fn timer(grace: u64) -> StopTimer {
        let mut timer = StopTimer::new(Duration::from_secs(grace));
        renew(&mut timer, 0);
        timer
    }

    #[test]
    fn without_a_renewal_the_command_is_told_at_the_deadline_and_killed_at_the_limit_of_the_lease()
    {
        let mut timer = timer(10);
        assert_eq!(timer.step(at(9_999)), StopStep::Nothing);
        assert_eq!(timer.next_step(), Some(at(10_000)));
        assert_eq!(timer.step(at(10_000)), StopStep::Terminate);
        assert_eq!(timer.next_step(), Some(at(13_750)));
        assert_eq!(timer.step(at(13_749)), StopStep::Nothing);
        assert_eq!(timer.step(at(13_750)), StopStep::Kill);
    }

    #[test]
    fn a_short_grace_stays_short() {
        let mut timer = timer(2);
        assert_eq!(timer.step(at(10_500)), StopStep::Terminate);
        assert_eq!(timer.next_step(), Some(at(12_500)));
    }

    #[test]
    fn a_renewal_moves_everything() {
        let mut timer = timer(10);
        renew(&mut timer, 3_000);
        assert_eq!(timer.step(at(12_999)), StopStep::Nothing);
        assert_eq!(timer.step(at(13_000)), StopStep::Terminate);
        assert_eq!(timer.next_step(), Some(at(16_750)));
    }

    #[test]
    fn after_a_pause_that_outlasts_the_lease_it_is_killed_without_being_told() {
        assert_eq!(timer(10).step(at(13_750)), StopStep::Kill);
        assert_eq!(timer(0).step(at(10_000)), StopStep::Kill);
    }

    /// A holder that drains goes on renewing, and the command has its whole grace.
    #[test]
    fn a_drain_lasts_as_long_as_the_lease_is_renewed_and_no_longer_than_the_grace() {
        let mut timer = timer(10);
        assert_eq!(timer.terminate(at(8_000)), StopStep::Terminate);
        assert_eq!(timer.next_step(), Some(at(13_750)));
        renew(&mut timer, 9_000);
        assert_eq!(timer.step(at(17_999)), StopStep::Nothing);
        assert_eq!(timer.step(at(18_000)), StopStep::Kill);
    }

    #[test]
    fn a_warm_command_is_killed_at_the_limit_of_the_lease_and_has_its_grace_on_standby() {
        let mut warm = StopTimer::new(Duration::from_secs(10));
        assert_eq!(warm.next_step(), None);
        assert_eq!(warm.step(at(60_000)), StopStep::Nothing);
        warm.kill_at = Some(at(73_750));
        assert_eq!(warm.step(at(73_749)), StopStep::Nothing);
        assert_eq!(warm.step(at(73_750)), StopStep::Kill);
        let mut standby = StopTimer::new(Duration::from_secs(10));
        assert_eq!(standby.terminate(at(1_000)), StopStep::Terminate);
        assert_eq!(standby.next_step(), Some(at(11_000)));
    }

    /// To many programs a second SIGTERM says that they shall not finish what they do.
    #[test]
    fn the_command_is_told_once() {
        let mut timer = timer(10);
        assert_eq!(timer.step(at(10_001)), StopStep::Terminate);
        assert_eq!(timer.terminate(at(10_002)), StopStep::Nothing);
        assert_eq!(timer.step(at(10_003)), StopStep::Nothing);
    }
}
