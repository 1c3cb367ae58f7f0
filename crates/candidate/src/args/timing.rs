//! The timing of a candidate, as flags: by name or by its durations.

use std::time::Duration;

use clap::{Args, ValueEnum};
use elector_api::parse_duration;

use crate::timing::Timing;

/// The flags of the timing.
#[derive(Args, Clone, Debug)]
pub(super) struct CandidateTimingArgs {
    /// Lease duration, renew deadline and pace of renewals by name, in the place of --lease-duration and --renew-deadline.
    /// More than 15s need as much at electors and at all other candidates of the lease, by --max-lease-duration
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = TimingProfile::Default, conflicts_with_all = ["lease_duration", "renew_deadline"], env = "ELECTOR_TIMING")]
    timing: TimingProfile,

    /// Time for which others wait for a renewal before they take over; whole seconds, from 2s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration, env = "ELECTOR_LEASE_DURATION")]
    lease_duration: Duration,

    /// Time for which it believes that it leads after its newest successful renewal; at most 4/5 of the lease duration
    /// and one second below it. Renewals are due every third of this
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration, env = "ELECTOR_RENEW_DEADLINE")]
    renew_deadline: Duration,

    /// The longest pause between failed renewals; from 250ms to a third of the renew deadline [default: 2s, or that
    /// third where it is less]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, env = "ELECTOR_RETRY_PERIOD")]
    retry_period: Option<Duration>,
}

/// A preset of [`Timing`] as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TimingProfile {
    /// 15s and 10s, as client-go: an outage of 6.7s costs no term; 0.3 writes a second
    Default,
    /// 15s and 12s, renewed every 2s: answers after just under 6s and an outage of 10s cost no term; 0.5 writes a second
    SlowServer,
    /// 6s and 4s: a crash costs 6s and no more, an outage of 2.7s no term; 0.75 writes a second
    Fast,
    /// 45s and 30s: an outage of 20s costs no term, a crash up to 45s; 0.1 writes a second
    ManyLeases,
    /// 137s and 107s, renewed every 26s: an outage of 81s costs no term, a crash up to 137s; 0.04 writes a second
    OutageProof,
}

// === impl CandidateTimingArgs ===

impl CandidateTimingArgs {
    /// The timing that was typed.
    pub(super) fn timing(&self) -> Timing {
        let timing = match self.timing {
            TimingProfile::Default => Timing::new(self.lease_duration, self.renew_deadline),
            TimingProfile::SlowServer => Timing::slow_server(),
            TimingProfile::Fast => Timing::fast(),
            TimingProfile::ManyLeases => Timing::many_leases(),
            TimingProfile::OutageProof => Timing::outage_proof(),
        };
        match self.retry_period {
            Some(retry_period) => timing.retry_period(retry_period),
            None => timing,
        }
    }
}
