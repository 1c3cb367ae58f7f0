//! The constants of the protocol as flags.

use std::time::Duration;

use clap::Args;
use elector_api::parse_duration;
use elector_protocol::ElectorTiming;

/// How long to wait for what; the bounds are checked before anything starts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Timing")]
pub(crate) struct TimingArgs {
    /// How long a grant lasts before it must be accepted; doubled after each that was not. Whole seconds, from 1s to
    /// --accept-window-max
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    accept_window: Duration,

    /// The longest accept window. From 1s to 1h
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    accept_window_max: Duration,

    /// How long a candidate that speaks Elector's protocol may take to ack before others are pinged. From 100ms to 1h
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    ack_window: Duration,

    /// The same for any other candidate. From 100ms to 1h
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    ack_window_unmarked: Duration,

    /// How long a sign of life counts without a ping. From 100ms to 1h
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    fresh: Duration,

    /// The longest lease duration that any client of the cluster uses without announcing it. From 1s to 1h
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    max_lease_duration: Duration,

    /// How long a lease must have been missing before it is granted. Below the longest lease duration in use this is
    /// unsafe, unless the elector owns the whole store. From 0s to 1h [default: the longest lease duration in use]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    absent_lease_grace: Option<Duration>,

    /// How long a candidate that acked but did not accept its grant is passed over; doubled each time. From 1s to
    /// --passed-over-max
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    passed_over: Duration,

    /// The longest time that a candidate is passed over. From 1s to 24h
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration)]
    passed_over_max: Duration,

    /// How many leaders of one lease may be asked to make room for better candidates within --preemption-window; twice as
    /// many where an operator prefers the candidate. From 1 to 60
    #[arg(long, value_name = "N", default_value = "3")]
    preemptions: u8,

    /// The time in which pre-emptions are counted. After a hand-over that was not accepted no candidate is preferred for
    /// --passed-over, and for this long none that has appeared or changed since and never led. From 1s to 1h
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    preemption_window: Duration,

    /// How long all candidates may stay silent before the pings are repeated; the pauses double to --ping-interval. From
    /// the longer ack window to 1h
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    re_ping_after: Duration,

    /// How often a quiet candidate is pinged. From --re-ping-after to 24h
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = parse_duration)]
    ping_interval: Duration,

    /// How long a candidate may stay silent before it is deleted. From --ping-interval to 24h
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    candidate_validity: Duration,
}

// === impl ElectorTiming ===

impl From<TimingArgs> for ElectorTiming {
    fn from(args: TimingArgs) -> Self {
        Self {
            accept_window: args.accept_window,
            accept_window_max: args.accept_window_max,
            ack_window: args.ack_window,
            ack_window_unmarked: args.ack_window_unmarked,
            fresh: args.fresh,
            max_lease_duration: args.max_lease_duration,
            absent_lease_grace: args.absent_lease_grace,
            passed_over: args.passed_over,
            passed_over_max: args.passed_over_max,
            preemptions: args.preemptions,
            preemption_window: args.preemption_window,
            re_ping_after: args.re_ping_after,
            ping_interval: args.ping_interval,
            candidate_validity: args.candidate_validity,
        }
    }
}
