//! The bounds of what can be known from a history.

use std::time::Duration;

/// The bounds of what can be known from a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `W_max`, which counts for a record without a duration. 15 s, as `--max-lease-duration`.
    pub longest_lease: Duration,
    /// The largest difference of the writers' clocks; `None` where nothing is known, and the times that two of
    /// them wrote are then never compared. 20 ms, for the clocks of one machine.
    pub clock_difference: Option<Duration>,
    /// The longest delay of the recorder behind the elector, for one revision. 1 s.
    pub recording_delay: Duration,
    /// The largest difference of the clocks of processes that tell about their work. 0, for one clock.
    pub trace_clock_difference: Duration,
    /// The time that an answer counts without a question. 5 s (R15).
    pub ack_validity: Duration,
    /// H: how long belief lasts after the send of the newest renewal. `None` where it is not known: then a Lease alone
    /// is taken to stand for two thirds of its duration, as client-go's defaults, and work must end within all of it.
    pub renew_deadline: Option<Duration>,
    /// The factor by which any clock may run faster or slower than the times of this history. 1.0, for not at all.
    pub drift: f64,
}

// === impl Limits ===

impl Limits {
    /// The longest belief of a holder after the last renewal of a record of this duration, by the Lease alone.
    pub(crate) fn longest_belief(&self, duration: Duration) -> Duration {
        self.renew_deadline
            .unwrap_or(duration * 2 / 3)
            .mul_f64(self.drift)
    }

    /// The time that work may go on after the last renewal of a record of this duration.
    pub(crate) fn work_limit(&self, duration: Duration) -> Duration {
        self.renew_deadline.unwrap_or(duration).mul_f64(self.drift)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            longest_lease: Duration::from_secs(15),
            clock_difference: Some(Duration::from_millis(20)),
            recording_delay: Duration::from_secs(1),
            trace_clock_difference: Duration::ZERO,
            ack_validity: Duration::from_secs(5),
            renew_deadline: None,
            drift: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn belief_has_a_limit_even_where_none_is_known() {
        let mut limits = Limits::default();
        let w = Duration::from_secs(15);
        let expected = (w * 2 / 3, w);
        assert_eq!((limits.longest_belief(w), limits.work_limit(w)), expected);
        limits.renew_deadline = Some(Duration::from_secs(4));
        limits.drift = 1.5;
        let limit = Duration::from_secs(6);
        let expected = (limit, limit);
        assert_eq!((limits.longest_belief(w), limits.work_limit(w)), expected);
    }
}
