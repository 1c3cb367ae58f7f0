//! Times that go on: of leases without a leader, and of preferences whose holder has not made room yet.

use std::collections::BTreeSet;

use elector_protocol::{Instant, LeaseKey};
use elector_runtime::{Seconds, SecondsGauge};

/// The beginnings of something that goes on at several leases, and a figure of the longest.
pub(super) struct OpenTimes {
    since: BTreeSet<(Instant, LeaseKey)>,
    longest: SecondsGauge,
}

/// The times that go on at the leases of one value of the label.
pub(super) struct NamespaceTimes {
    pub(super) leaderless: OpenTimes,
    pub(super) preferences: OpenTimes,
    /// Until when the time without a leader is counted.
    counted_until: Instant,
    leaderless_seconds: Seconds,
}

// === impl OpenTimes ===

impl OpenTimes {
    pub(super) const fn new(longest: SecondsGauge) -> Self {
        Self {
            since: BTreeSet::new(),
            longest,
        }
    }

    /// At this lease it begins or ends: since when it went on, and since when it goes on.
    pub(super) fn replace(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        if let Some(since) = before {
            self.since.remove(&(since, key.clone()));
        }
        if let Some(since) = after {
            self.since.insert((since, key.clone()));
        }
        self.report(now);
    }

    fn report(&self, now: Instant) {
        let oldest = self.since.first();
        let longest = oldest.map_or(0.0, |(since, _)| now.since(*since).as_secs_f64());
        self.longest.set(longest);
    }
}

// === impl NamespaceTimes ===

impl NamespaceTimes {
    pub(super) const fn new(
        now: Instant,
        leaderless: SecondsGauge,
        preferences: SecondsGauge,
        leaderless_seconds: Seconds,
    ) -> Self {
        Self {
            leaderless: OpenTimes::new(leaderless),
            preferences: OpenTimes::new(preferences),
            counted_until: now,
            leaderless_seconds,
        }
    }

    /// Brings the figures up to date.
    pub(super) fn report(&mut self, now: Instant) {
        let passed = now.since(self.counted_until).as_secs_f64();
        self.counted_until = self.counted_until.max(now);
        let leases = u32::try_from(self.leaderless.since.len()).unwrap_or(u32::MAX);
        self.leaderless_seconds.inc_by(passed * f64::from(leases));
        self.leaderless.report(now);
        self.preferences.report(now);
    }

    /// Adds the time that a lease was without a leader before that became known.
    pub(super) fn add_since(&self, now: Instant, since: Instant) {
        let passed = now.since(since).as_secs_f64();
        self.leaderless_seconds.inc_by(passed);
    }

    /// True if nothing goes on, so that time changes nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.leaderless.since.is_empty() && self.preferences.since.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn time_without_a_leader_is_counted_for_each_lease_from_when_it_began() {
        let [longest, oldest] = [(); 2].map(|()| SecondsGauge::default());
        let counted = Seconds::default();
        let gauges = (longest.clone(), oldest.clone());
        let mut times = NamespaceTimes::new(at(100), gauges.0, gauges.1, counted.clone());
        let (web, db) = (LeaseKey::new("ns", "web"), LeaseKey::new("ns", "db"));
        times.report(at(110));
        assert!(times.is_idle());
        times.leaderless.replace(at(110), &web, None, Some(at(105)));
        times.add_since(at(110), at(105));
        assert!(!times.is_idle());
        times.report(at(120));
        assert_eq!(counted.get(), 5.0 + 10.0);
        times.leaderless.replace(at(120), &db, None, Some(at(120)));
        times.report(at(130));
        assert_eq!((counted.get(), longest.get()), (15.0 + 2.0 * 10.0, 25.0));
        times.leaderless.replace(at(130), &web, Some(at(105)), None);
        assert_eq!(longest.get(), 10.0);
        times.leaderless.replace(at(130), &db, Some(at(120)), None);
        assert!(times.is_idle());
        times
            .preferences
            .replace(at(140), &web, None, Some(at(138)));
        times.report(at(141));
        assert!(!times.is_idle());
        assert_eq!((counted.get(), oldest.get()), (35.0, 3.0));
    }
}
