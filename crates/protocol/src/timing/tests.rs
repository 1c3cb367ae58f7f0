use std::ops::RangeInclusive;

use super::*;

/// The name of a constant, the constant, and its bounds in milliseconds.
type BoundedConstant<T> = (
    &'static str,
    fn(&mut T) -> &mut Duration,
    RangeInclusive<u64>,
);

/// A constant that has the name of its field.
macro_rules! bounded {
    ($field:ident, $bounds:expr) => {
        (stringify!($field), |of| &mut of.$field, $bounds)
    };
}

#[test]
fn defaults_are_within_their_bounds() {
    ElectorTiming::default().validate().unwrap();
    let usual = CandidateTiming::default();
    usual.validate().unwrap();
    let of_requests = (usual.retry_period, usual.request_timeout);
    let expected = (Duration::from_secs(2), Duration::from_secs(2));
    assert_eq!(of_requests, expected);
    CandidateTiming::of(Duration::from_secs(6), Duration::from_secs(4))
        .validate()
        .unwrap();
}

#[test]
fn windows_double_to_their_caps() {
    let timing = ElectorTiming::default();
    let windows =
        [0, 1, 2, 3, 4, 200].map(|failures| timing.accept_window_after(failures).as_secs());
    assert_eq!(windows, [5, 10, 20, 40, 60, 60]);
    let passed =
        [0, 1, 2, 3, 4, 5, 200].map(|failures| timing.passed_over_after(failures).as_secs());
    assert_eq!(passed, [0, 60, 120, 240, 480, 900, 900]);
    let re_ping = [0, 29, 31, 899, 901].map(|silence| {
        timing
            .re_ping_after_silence(Duration::from_secs(silence))
            .as_secs()
    });
    assert_eq!(re_ping, [30, 30, 31, 899, 900]);
}

#[test]
fn a_deadline_too_near_to_the_duration_is_refused_with_the_numbers() {
    for (lease_duration, deadline, most) in [(15, 13, "12s"), (4, 4, "3s")] {
        let seconds = Duration::from_secs;
        let timing = CandidateTiming::of(seconds(lease_duration), seconds(deadline));
        let expected = format!(
            "renew-deadline is {deadline}s: must be at most 4/5 of lease-duration and one second below it, so at most {most}"
        );
        assert_eq!(timing.validate().unwrap_err().to_string(), expected);
    }
}

#[test]
fn no_duration_is_too_long_to_be_refused() {
    let timing = CandidateTiming::of(Duration::from_secs(15), Duration::MAX);
    assert_eq!(timing.validate().unwrap_err().name, "renew-deadline");
    let timing = CandidateTiming::of(Duration::MAX, Duration::MAX);
    assert_eq!(timing.validate().unwrap_err().name, "lease-duration");
    let timing = ElectorTiming {
        passed_over_max: Duration::MAX,
        candidate_validity: Duration::MAX,
        ..ElectorTiming::default()
    };
    assert_eq!(timing.validate().unwrap_err().name, "passed-over-max");
}

/// (R8) W ≥ 1.25 · H and W − H ≥ 1 s, H ≥ 3 · R, a request within R: at the bound, and just beyond it.
#[test]
fn the_safety_sum_of_a_holder_is_checked_to_its_bounds() {
    let of = |w: u64, h: u64| CandidateTiming::of(Duration::from_secs(w), Duration::from_millis(h));
    let refused = |timing: &CandidateTiming| timing.validate().map_err(|error| error.name);
    assert_eq!(refused(&of(15, 12_000)), Ok(()));
    assert_eq!(refused(&of(15, 12_001)), Err("renew-deadline"));
    assert_eq!(refused(&of(4, 3_000)), Ok(()), "W - H is 1 s");
    assert_eq!(refused(&of(4, 3_001)), Err("renew-deadline"));
    assert_eq!(refused(&of(4, 3_200)), Err("renew-deadline"), "1.25 H is W");
    // With a short deadline too, down to the shortest renew interval, the usual timing is within its bounds.
    assert_eq!(refused(&of(2, 300)), Ok(()));
    assert_eq!(refused(&of(2, 299)), Err("renew-interval"));
    let bounds: [BoundedConstant<CandidateTiming>; 5] = [
        bounded!(lease_duration, 2_000..=3_600_000),
        bounded!(renew_interval, 100..=300),
        bounded!(retry_period, 250..=300),
        bounded!(request_timeout, 50..=300),
        bounded!(accept_window, 1_000..=3_600_000),
    ];
    for broken in [
        |of: &mut CandidateTiming| of.lease_duration = Duration::from_millis(15_500),
        |of: &mut CandidateTiming| of.accept_window = Duration::from_millis(5_500),
    ] {
        let mut timing = CandidateTiming::default();
        broken(&mut timing);
        let error = timing.validate().unwrap_err();
        assert!(error.rule.starts_with("must be whole seconds"), "{error}");
    }
    for (name, field, bounds) in bounds {
        check_bounds(name, bounds, |value| {
            let mut timing = CandidateTiming {
                retry_period: CandidateTiming::RETRY_MIN,
                request_timeout: Duration::from_millis(50),
                ..of(2, 900)
            };
            *field(&mut timing) = value;
            timing.validate()
        });
    }
}

/// (R5, R6, R15) Each constant of an elector has bounds, some of which are other constants.
#[test]
fn the_constants_of_an_elector_are_checked_to_their_bounds() {
    const HOUR: u64 = 3_600_000;
    let usual = || ElectorTiming {
        re_ping_after: Duration::from_millis(HOUR),
        ping_interval: Duration::from_millis(2 * HOUR),
        candidate_validity: Duration::from_millis(24 * HOUR),
        ..ElectorTiming::default()
    };
    let bounds: [BoundedConstant<ElectorTiming>; 13] = [
        bounded!(accept_window, 1_000..=60_000),
        bounded!(accept_window_max, 5_000..=HOUR),
        bounded!(ack_window, 100..=HOUR),
        bounded!(ack_window_unmarked, 100..=HOUR),
        bounded!(fresh, 100..=HOUR),
        bounded!(max_lease_duration, 1_000..=HOUR),
        (
            "absent_lease_grace",
            |of| of.absent_lease_grace.get_or_insert_default(),
            0..=HOUR,
        ),
        bounded!(passed_over, 1_000..=900_000),
        bounded!(passed_over_max, 60_000..=24 * HOUR),
        bounded!(preemption_window, 1_000..=HOUR),
        bounded!(re_ping_after, 5_000..=HOUR),
        bounded!(ping_interval, HOUR..=24 * HOUR),
        bounded!(candidate_validity, 2 * HOUR..=24 * HOUR),
    ];
    for (name, field, bounds) in bounds {
        check_bounds(name, bounds, |value| {
            let mut timing = usual();
            *field(&mut timing) = value;
            timing.validate()
        });
    }
    let with = |change: fn(&mut ElectorTiming)| {
        let mut timing = ElectorTiming::default();
        change(&mut timing);
        timing.validate().map_err(|error| error.name)
    };
    assert_eq!(
        with(|timing| timing.accept_window = Duration::from_millis(5_500)),
        Err("accept-window")
    );
    assert_eq!(
        with(|timing| {
            timing.re_ping_after = Duration::from_secs(6);
            timing.ack_window = Duration::from_secs(7);
        }),
        Err("re-ping-after"),
        "marked candidates have 7 s to answer"
    );
}

/// A constant is taken at its bounds, in milliseconds, and refused just beyond them.
fn check_bounds(
    name: &str,
    bounds: RangeInclusive<u64>,
    validate: impl Fn(Duration) -> Result<(), TimingError>,
) {
    let (name, (low, high)) = (name.replace('_', "-"), bounds.into_inner());
    let refused = |value| validate(Duration::from_millis(value)).map_err(|error| error.name);
    // Of those in whole seconds a second beyond.
    let beyond = if low % 1_000 == 0 { 1_000 } else { 1 };
    assert_eq!((refused(low), refused(high)), (Ok(()), Ok(())), "{name}");
    assert_eq!(refused(high + beyond), Err(&*name));
    // A value too short for one constant may be named as too long for another.
    let below = low.checked_sub(beyond);
    assert!(below.is_none_or(|below| refused(below).is_err()), "{name}");
}
