//! The constants of the protocol, their defaults and their bounds.

use std::time::Duration;

/// The constants of an elector's waits. Every field is a flag of `elector run`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectorTiming {
    /// A: how long a grant lasts before it must be accepted. 5 s, doubling to [`Self::accept_window_max`] ([R5]).
    ///
    /// [R5]: crate::rules#r5
    pub accept_window: Duration,
    /// The longest accept window. 60 s.
    pub accept_window_max: Duration,
    /// A marked candidate's time to answer before the next are pinged. 2 s ([R15](crate::rules#r15)).
    pub ack_window: Duration,
    /// The same for other candidates. 5 s, as upstream.
    pub ack_window_unmarked: Duration,
    /// The validity of an ack without a ping. 5 s, as upstream ([R15](crate::rules#r15)).
    pub fresh: Duration,
    /// `W_max`: the longest lease duration that any client of the cluster uses. 15 s ([R6](crate::rules#r6)).
    pub max_lease_duration: Duration,
    /// Overrides the wait for names whose Lease is missing or unproven. Unset: `W_max`. Zero is upstream's behaviour,
    /// safe only where the elector owns the whole store ([R6](crate::rules#r6)).
    pub absent_lease_grace: Option<Duration>,
    /// The time of passing over a candidate that did not accept. 1 min, doubling to [`Self::passed_over_max`] ([R5]).
    ///
    /// [R5]: crate::rules#r5
    pub passed_over: Duration,
    /// The longest time a candidate is passed over. 15 min.
    pub passed_over_max: Duration,
    /// The most live holders of a lease to be asked to make room within [`Self::preemption_window`]; twice as many
    /// where an operator prefers the candidate. 3 ([R23]).
    ///
    /// [R23]: crate::rules#r23
    pub preemptions: u8,
    /// The time in which pre-emptions are counted, and for which a candidate that appears or changes after a failed
    /// hand-over is not preferred. 10 min ([R23](crate::rules#r23)).
    pub preemption_window: Duration,
    /// The silence of all candidates after which the open pings are repeated, a microsecond later. 30 s, doubling
    /// to [`Self::ping_interval`] ([R15]).
    ///
    /// [R15]: crate::rules#r15
    pub re_ping_after: Duration,
    /// The interval of pings to a quiet candidate. 15 min, as upstream.
    pub ping_interval: Duration,
    /// The time without a write after which a candidate is collected. 30 min, as upstream.
    pub candidate_validity: Duration,
}

/// The constants of a candidate's waits (safety margins: [R8](crate::rules#r8), [R12](crate::rules#r12)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidateTiming {
    /// W: the duration written into the Lease, whole seconds. 15 s.
    pub lease_duration: Duration,
    /// H: how long belief lasts after the send of the newest successful write. 10 s.
    pub renew_deadline: Duration,
    /// R: how often the lease is renewed. A third of H.
    pub renew_interval: Duration,
    /// The longest pause between failed attempts, which start at [`Self::RETRY_MIN`]. 2 s.
    pub retry_period: Duration,
    /// The time limit of one request. Below R.
    pub request_timeout: Duration,
    /// A: what this holder grants its successor at a hand-over. 5 s ([R12](crate::rules#r12)).
    pub accept_window: Duration,
}

/// A constant outside of its bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value:?}: {rule}")]
pub struct TimingError {
    /// The field, as the flag is named.
    pub name: &'static str,
    /// The value set.
    pub value: Duration,
    /// The rule that this breaks, with the numbers.
    pub rule: String,
}

/// A duration in an object above this is reported and counts as this much ([R6](crate::rules#r6)).
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

// === impl ElectorTiming ===

impl Default for ElectorTiming {
    fn default() -> Self {
        Self {
            accept_window: Duration::from_secs(5),
            accept_window_max: Duration::from_secs(60),
            ack_window: Duration::from_secs(2),
            ack_window_unmarked: Duration::from_secs(5),
            fresh: Duration::from_secs(5),
            max_lease_duration: Duration::from_secs(15),
            absent_lease_grace: None,
            passed_over: Duration::from_secs(60),
            passed_over_max: Duration::from_secs(15 * 60),
            preemptions: 3,
            preemption_window: Duration::from_secs(10 * 60),
            re_ping_after: Duration::from_secs(30),
            ping_interval: Duration::from_secs(15 * 60),
            candidate_validity: Duration::from_secs(30 * 60),
        }
    }
}

impl ElectorTiming {
    /// Checks each constant against its bounds.
    ///
    /// # Errors
    ///
    /// Names the first constant that breaks a rule, with the rule.
    pub fn validate(&self) -> Result<(), TimingError> {
        let second = Duration::from_secs(1);
        let hour = LONGEST_LEASE;
        within(
            "accept-window",
            self.accept_window,
            second,
            self.accept_window_max,
        )?;
        whole_seconds("accept-window", self.accept_window)?;
        within("accept-window-max", self.accept_window_max, second, hour)?;
        within(
            "ack-window",
            self.ack_window,
            Duration::from_millis(100),
            hour,
        )?;
        within(
            "ack-window-unmarked",
            self.ack_window_unmarked,
            Duration::from_millis(100),
            hour,
        )?;
        within("fresh", self.fresh, Duration::from_millis(100), hour)?;
        within("max-lease-duration", self.max_lease_duration, second, hour)?;
        if let Some(grace) = self.absent_lease_grace {
            within("absent-lease-grace", grace, Duration::ZERO, hour)?;
        }
        within(
            "passed-over",
            self.passed_over,
            second,
            self.passed_over_max,
        )?;
        within("passed-over-max", self.passed_over_max, second, hour * 24)?;
        within("preemption-window", self.preemption_window, second, hour)?;
        within(
            "re-ping-after",
            self.re_ping_after,
            self.ack_window.max(self.ack_window_unmarked),
            hour,
        )?;
        within(
            "ping-interval",
            self.ping_interval,
            self.re_ping_after,
            hour * 24,
        )?;
        within(
            "candidate-validity",
            self.candidate_validity,
            self.ping_interval,
            hour * 24,
        )
    }

    /// The most [`Self::preemptions`] that can be set.
    pub const PREEMPTIONS_MAX: u8 = 60;

    /// The length of the `failures`-th grant in a row to the same candidate.
    pub(crate) fn accept_window_after(&self, failures: u8) -> Duration {
        doubled(self.accept_window, failures, self.accept_window_max)
    }

    /// The length of a hold-back after `failures` failed hand-overs in a row (R23). Zero where pre-emptions do not
    /// count at all, a setting that no elector is allowed.
    pub(crate) fn held_back_after(&self, failures: u8) -> Duration {
        if self.preemption_window.is_zero() {
            return Duration::ZERO;
        }
        self.passed_over_after(failures)
    }

    /// The open time of a ping to a candidate that had been silent for `silence` when it was pinged (R15): as long
    /// again, so that those which never answer cost ever less.
    pub(crate) fn re_ping_after_silence(&self, silence: Duration) -> Duration {
        silence.min(self.ping_interval).max(self.re_ping_after)
    }

    /// The time of passing over a candidate after `failures` grants that it did not accept.
    pub(crate) fn passed_over_after(&self, failures: u8) -> Duration {
        match failures.checked_sub(1) {
            Some(doublings) => doubled(self.passed_over, doublings, self.passed_over_max),
            None => Duration::ZERO,
        }
    }
}

// === impl CandidateTiming ===

impl Default for CandidateTiming {
    fn default() -> Self {
        Self::of(Duration::from_secs(15), Duration::from_secs(10))
    }
}

impl CandidateTiming {
    /// The first pause after a failed attempt. 250 ms.
    pub const RETRY_MIN: Duration = Duration::from_millis(250);

    /// The usual timing for a lease duration and a renew deadline: renewals every third of the deadline.
    pub fn of(lease_duration: Duration, renew_deadline: Duration) -> Self {
        let renew_interval = renew_deadline / 3;
        Self {
            lease_duration,
            renew_deadline,
            renew_interval,
            retry_period: Duration::from_secs(2)
                .min(renew_interval)
                .max(Self::RETRY_MIN),
            request_timeout: Duration::from_secs(2).min(renew_interval),
            accept_window: Duration::from_secs(5),
        }
    }

    /// Checks the safety sum: W ≥ 1.25·H, W − H ≥ 1 s, H ≥ 3·R, attempt timeout ≤ R.
    ///
    /// # Errors
    ///
    /// Names the first constant that breaks a rule, with the rule.
    pub fn validate(&self) -> Result<(), TimingError> {
        let (w, h, r) = (
            self.lease_duration,
            self.renew_deadline,
            self.renew_interval,
        );
        within("lease-duration", w, Duration::from_secs(2), LONGEST_LEASE)?;
        whole_seconds("lease-duration", w)?;
        if w * 4 < h.saturating_mul(5) || w < h.saturating_add(Duration::from_secs(1)) {
            let rule = format!(
                "must be at most 4/5 of lease-duration and one second below it, so at most {:?}",
                (w * 4 / 5).min(w.saturating_sub(Duration::from_secs(1)))
            );
            return Err(TimingError {
                name: "renew-deadline",
                value: h,
                rule,
            });
        }
        within("renew-interval", r, Duration::from_millis(100), h / 3)?;
        within(
            "retry-period",
            self.retry_period,
            Self::RETRY_MIN,
            r.max(Self::RETRY_MIN),
        )?;
        within(
            "request-timeout",
            self.request_timeout,
            Duration::from_millis(50),
            r,
        )?;
        within(
            "accept-window",
            self.accept_window,
            Duration::from_secs(1),
            LONGEST_LEASE,
        )?;
        whole_seconds("accept-window", self.accept_window)
    }
}

fn within(
    name: &'static str,
    value: Duration,
    low: Duration,
    high: Duration,
) -> Result<(), TimingError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let rule = format!("must be from {low:?} to {high:?}");
    Err(TimingError { name, value, rule })
}

fn whole_seconds(name: &'static str, value: Duration) -> Result<(), TimingError> {
    if value.subsec_nanos() == 0 {
        return Ok(());
    }
    let rule = "must be whole seconds, the resolution of leaseDurationSeconds".to_owned();
    Err(TimingError { name, value, rule })
}

fn doubled(base: Duration, doublings: u8, cap: Duration) -> Duration {
    let factor = 1u32.checked_shl(u32::from(doublings)).unwrap_or(u32::MAX);
    base.saturating_mul(factor).min(cap)
}

#[cfg(test)]
mod tests;
