//! The waits and deadlines of a candidate, and the presets of them.

use std::time::Duration;

use elector_protocol::CandidateTiming;

/// The waits and deadlines of a candidate: for how long others leave it the lease, and for how long it believes that it
/// leads, each counted from its last renewal that succeeded.
///
/// | preset | lease duration, renew deadline | an outage that it survives for sure | the time to stop after a loss | writes a second |
/// |---|---|---|---|---|
/// | [`Timing::default`] | 15 s, 10 s | 6.7 s | 3.75 s | 0.3 |
/// | [`Timing::slow_server`] | 15 s, 12 s | 10 s | 2.25 s | 0.5 |
/// | [`Timing::fast`] | 6 s, 4 s | 2.7 s | 1.5 s | 0.75 |
/// | [`Timing::many_leases`] | 45 s, 30 s | 20 s | 11.25 s | 0.1 |
/// | [`Timing::outage_proof`] | 137 s, 107 s | 81 s | 22.5 s | 0.04 |
///
/// The first has the durations of client-go, whose leader survives 8 s: it tries again sooner, and stops acting later. A
/// leader that crashes is replaced after up to the lease duration. The last two need
/// [`Config::max_lease_duration`](crate::Config::max_lease_duration) of at least their lease duration at all other
/// candidates of the lease, and the same of electors.
///
/// Bounds are checked where the candidate is made: the lease duration is whole seconds from 2 s to 1 h, and the renew
/// deadline is at most 4/5 of it and one second below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    lease_duration: Duration,
    renew_deadline: Duration,
    renew_interval: Option<Duration>,
    retry_period: Option<Duration>,
}

// === impl Timing ===

impl Timing {
    /// The timing of that lease duration, for which others wait for a renewal, and that renew deadline, for which this
    /// process believes that it leads. Renewals are due every third of the deadline.
    pub const fn new(lease_duration: Duration, renew_deadline: Duration) -> Self {
        Self {
            lease_duration,
            renew_deadline,
            renew_interval: None,
            retry_period: None,
        }
    }

    /// An API server that takes just under 6 s for each answer, or is away for 10 s, costs no term, and a crash no more than
    /// with the default. Its price is the time to stop after a loss, and renewals as often as those of client-go.
    pub const fn slow_server() -> Self {
        Self::new(Duration::from_secs(15), Duration::from_secs(12))
            .renew_interval(Duration::from_secs(2))
    }

    /// A crashed leader is replaced after 6 s, at more than twice the writes of the default.
    pub const fn fast() -> Self {
        Self::new(Duration::from_secs(6), Duration::from_secs(4))
    }

    /// A third of the writes of the default, for programs that hold hundreds of leases.
    pub const fn many_leases() -> Self {
        Self::new(Duration::from_secs(45), Duration::from_secs(30))
    }

    /// An API server that is away for 81 s costs no term: that of a single control plane that is updated, or whose etcd
    /// is defragmented.
    pub const fn outage_proof() -> Self {
        Self::new(Duration::from_secs(137), Duration::from_secs(107))
            .renew_interval(Duration::from_secs(26))
    }

    /// The time from one renewal to the next. From 100 ms to a third of the renew deadline, which is the default.
    #[must_use]
    pub const fn renew_interval(mut self, renew_interval: Duration) -> Self {
        self.renew_interval = Some(renew_interval);
        self
    }

    /// The longest pause between renewals that fail. From 250 ms to the renew interval; 2 s, or that interval where it is
    /// less.
    #[must_use]
    pub const fn retry_period(mut self, retry_period: Duration) -> Self {
        self.retry_period = Some(retry_period);
        self
    }

    /// The outage of the API server that a leader survives for sure: renew deadline less renew interval. One that begins
    /// right after a renewal may last longer.
    pub fn survives(&self) -> Duration {
        let timing = self.resolved(Duration::MAX);
        timing.renew_deadline.saturating_sub(timing.renew_interval)
    }

    /// The time between the end of the belief and the moment at which another candidate may lead: lease duration less
    /// renew deadline. A request that may be sent at the very end of a term needs a timeout of no more than this.
    pub const fn effect_grace(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    pub(crate) const fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// The constants of the protocol, where no request takes longer than that.
    pub(crate) fn resolved(&self, request_timeout: Duration) -> CandidateTiming {
        let mut timing = CandidateTiming::of(self.lease_duration, self.renew_deadline);
        if let Some(renew_interval) = self.renew_interval {
            let retry_period = timing.retry_period.min(renew_interval);
            timing.retry_period = retry_period.max(CandidateTiming::RETRY_MIN);
            timing.request_timeout = timing.request_timeout.min(renew_interval);
            timing.renew_interval = renew_interval;
        }
        if let Some(retry_period) = self.retry_period {
            timing.retry_period = retry_period;
        }
        timing.request_timeout = timing.request_timeout.min(request_timeout);
        timing
    }
}

impl Default for Timing {
    /// 15 s and 10 s, as client-go has them.
    fn default() -> Self {
        Self::new(Duration::from_secs(15), Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table above, in milliseconds.
    #[test]
    fn each_preset_is_valid_and_survives_what_its_table_says() {
        for (timing, survives, effect_grace) in [
            (Timing::default(), 6_666, 5_000),
            (Timing::slow_server(), 10_000, 3_000),
            (Timing::fast(), 2_666, 2_000),
            (Timing::many_leases(), 20_000, 15_000),
            (Timing::outage_proof(), 81_000, 30_000),
        ] {
            timing.resolved(Duration::from_secs(5)).validate().unwrap();
            let shown = (timing.survives(), timing.effect_grace());
            let shown = (shown.0.as_millis(), shown.1.as_millis());
            assert_eq!(shown, (survives, effect_grace), "{timing:?}");
        }
    }

    #[test]
    fn a_short_interval_shortens_what_has_to_fit_into_it_unless_that_is_set() {
        let millis = Duration::from_millis;
        let timing = Timing::default().renew_interval(millis(500));
        let resolved = timing.resolved(Duration::MAX);
        assert_eq!(resolved.retry_period, millis(500));
        assert_eq!(resolved.request_timeout, millis(500));
        resolved.validate().unwrap();
        let wrong = timing.retry_period(millis(800)).resolved(Duration::MAX);
        assert_eq!(wrong.validate().unwrap_err().name, "retry-period");
        let patient = Timing::default().resolved(millis(700));
        assert_eq!(patient.request_timeout, millis(700));
    }
}
