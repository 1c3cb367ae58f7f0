//! The bounds of what can be told from a history.

use std::time::Duration;

/// The bounds of what can be told from a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `W_max`, which counts for a record without a duration. 15 s, as `--max-lease-duration`.
    pub longest_lease: Duration,
    /// How far the clocks of the writers may be apart; `None` where nothing is known, and the times that two of
    /// them wrote are then never compared. 20 ms, for the clocks of one machine.
    pub clock_difference: Option<Duration>,
    /// How much later than the elector the recorder may have seen a revision. 1 s.
    pub recording_delay: Duration,
    /// How far the clocks of the processes that tell about their work may be apart. 0, for one clock.
    pub trace_clock_difference: Duration,
    /// How long an answer counts without a question. 5 s (R15).
    pub ack_validity: Duration,
    /// H: how long belief lasts after the send of the newest renewal. `None` where it is not known: then a Lease alone
    /// is taken to stand for two thirds of its duration, as client-go's defaults, and work must end within all of it.
    pub renew_deadline: Option<Duration>,
    /// How much faster or slower than the times of this history any clock may run. 1.0, for not at all.
    pub drift: f64,
}

// === impl Limits ===

impl Limits {
    /// How long a holder may believe after the last renewal of a record of this duration, told from the Lease alone.
    pub(crate) fn longest_belief(&self, duration: Duration) -> Duration {
        self.renew_deadline
            .unwrap_or(duration * 2 / 3)
            .mul_f64(self.drift)
    }

    /// How long work may go on after the last renewal of a record of this duration.
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
        assert_eq!(
            (limits.longest_belief(w), limits.work_limit(w)),
            (w * 2 / 3, w)
        );
        limits.renew_deadline = Some(Duration::from_secs(4));
        limits.drift = 1.5;
        let limit = Duration::from_secs(6);
        assert_eq!(
            (limits.longest_belief(w), limits.work_limit(w)),
            (limit, limit)
        );
    }
}
