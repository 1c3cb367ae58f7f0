use elector_protocol::{
    LeaseSnapshot, LeaseWatch, NewsSource, ResourceVersion, Timestamp, Token, Uid,
};

use super::*;
use crate::metrics::measured_lease::MeasuredLease;

/// A lease that is followed, record by record; a second passes between two of them unless more is said.
struct FollowedLease {
    now: Instant,
    record: LeaseRecord,
    watch: LeaseWatch,
    leadership: ObservedLeadership,
}

const DURATION: Duration = Duration::from_secs(15);

impl FollowedLease {
    /// One that nobody leads.
    fn new() -> Self {
        let now = Instant::from_epoch(Duration::ZERO);
        let mut lease = Self {
            leadership: ObservedLeadership::begin(now, None, DURATION),
            watch: LeaseWatch::absent(now),
            now,
            record: LeaseRecord::born(None),
        };
        assert_eq!(lease.show(LeaseRecord::born(None)), None);
        lease
    }

    /// One that `a` leads.
    fn led() -> Self {
        let mut lease = Self::new();
        lease.grant("a");
        assert_eq!(lease.accept(), change(LeadershipEnd::First, None));
        lease
    }

    fn pass(&mut self, seconds: u64) -> &mut Self {
        self.now = self.now.after(Duration::from_secs(seconds));
        self
    }

    fn show(&mut self, record: LeaseRecord) -> Option<LeaderChange> {
        self.pass(1);
        self.record = record;
        let snapshot = self.snapshot();
        self.watch.observe(self.now, snapshot, NewsSource::Watch);
        self.leadership
            .follow(self.now, self.watch.lease(), DURATION)
    }

    fn snapshot(&self) -> LeaseSnapshot {
        LeaseSnapshot {
            uid: Uid::new("uid"),
            version: ResourceVersion(3),
            record: self.record.clone(),
            overrides: elector_protocol::OperatorOverrides::default(),
        }
    }

    fn grant(&mut self, to: &str) {
        let granted = self.record.granted(id(to), DURATION, self.wall());
        assert_eq!(self.show(granted), None);
    }

    fn accept(&mut self) -> Option<LeaderChange> {
        let record = LeaseRecord {
            renew_time: Some(self.wall().next().unwrap()),
            token: Some(Token(ResourceVersion(1))),
            token_term: Some(self.record.term),
            ..self.record.clone()
        };
        self.show(record)
    }

    /// Without a grant.
    fn acquire(&mut self, by: &str) -> Option<LeaderChange> {
        let record = self
            .record
            .acquired(id(by), DURATION, Token(ResourceVersion(2)), self.wall());
        self.show(record)
    }

    fn wall(&self) -> Timestamp {
        let micros = 1_800_000_000_000_000 + self.now.since_epoch().as_micros() as i64;
        Timestamp::from_micros(micros).unwrap()
    }

    fn leader(&self) -> Option<&str> {
        self.leadership.leader().map(Identity::as_str)
    }
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn change(reason: LeadershipEnd, seconds: Option<u64>) -> Option<LeaderChange> {
    let took = seconds.map(Duration::from_secs);
    Some(LeaderChange { reason, took })
}

#[test]
fn a_grant_leads_once_it_is_accepted() {
    let mut lease = FollowedLease::new();
    lease.grant("a");
    assert_eq!(lease.leader(), None);
    assert_eq!(lease.accept(), change(LeadershipEnd::First, None));
    assert_eq!(lease.leader(), Some("a"));
    assert_eq!(lease.accept(), None, "a renewal");
}

#[test]
fn a_hand_over_lasts_from_the_write_of_the_holder_to_the_accept() {
    let mut lease = FollowedLease::led();
    let preferring = lease.record.preferring(Some(id("b")), None);
    assert_eq!(lease.show(preferring), None);
    assert_eq!(lease.leader(), Some("a"));
    lease.grant("b");
    assert_eq!(lease.leader(), None);
    let expected = change(LeadershipEnd::HandedOver, Some(3));
    assert_eq!(lease.pass(2).accept(), expected);
}

#[test]
fn a_released_lease_is_free_until_the_next_accepts_or_acquires() {
    let mut lease = FollowedLease::led();
    let released = lease.record.released(lease.wall());
    assert_eq!(lease.show(released), None);
    assert_eq!(lease.leadership.leaderless_since(), Some(lease.now));
    lease.grant("b");
    assert_eq!(lease.accept(), change(LeadershipEnd::Released, Some(2)));
    let released = lease.record.released(lease.wall());
    assert_eq!(lease.show(released), None);
    assert_eq!(lease.acquire("c"), change(LeadershipEnd::Released, Some(1)));
}

#[test]
fn a_fail_over_lasts_from_the_last_renewal_and_is_leaderless_from_the_expiry_on() {
    let mut lease = FollowedLease::led();
    let seen = lease.now;
    let (expiry, mut before) = (seen.after(DURATION), lease.leadership.clone());
    before.tick(seen.after(DURATION - Duration::from_millis(1)));
    assert_eq!(before.leader(), lease.leadership.leader());
    // Also where it is noticed late.
    let (mut measured, late) = (MeasuredLease::new(before, None), expiry.after(DURATION));
    measured.refresh(seen);
    measured.leadership.tick(late);
    assert_eq!(measured.refresh(late).1.leaderless_since, Some(expiry));
    lease.pass(DURATION.as_secs()).grant("b");
    assert_eq!(lease.accept(), change(LeadershipEnd::Expired, Some(17)));
    let expected = change(LeadershipEnd::Expired, Some(21));
    assert_eq!(lease.pass(20).acquire("c"), expected);
    // Others saw the last renewal earlier, so to them it has expired before.
    let early = change(LeadershipEnd::Expired, Some(14));
    assert_eq!(lease.pass(13).acquire("d"), early);
    lease.pass(12).grant("e");
    assert_eq!(lease.accept(), early);
}

#[test]
fn a_preference_is_no_renewal_and_a_late_renewal_is_no_change() {
    let mut lease = FollowedLease::led();
    let (expiry, preferring) = (
        lease.leadership.expires_at(),
        lease.record.preferring(Some(id("b")), None),
    );
    assert_eq!(lease.pass(5).show(preferring), None);
    assert_eq!(lease.leadership.expires_at(), expiry);
    assert_eq!(lease.pass(30).accept(), None);
    assert_eq!(lease.leader(), Some("a"));
}

#[test]
fn each_act_of_other_processes_has_a_reason_of_its_own() {
    let mut lease = FollowedLease::led();
    assert_eq!(lease.acquire("b"), change(LeadershipEnd::Taken, None));
    assert_eq!(lease.acquire("b"), change(LeadershipEnd::Restarted, None));
    let blank = LeaseRecord {
        holder: None,
        ..lease.record.clone()
    };
    assert_eq!(lease.show(blank), None);
    assert_eq!(lease.acquire("c"), change(LeadershipEnd::Removed, None));
    lease.watch.observe_absence(lease.now, NewsSource::Watch);
    assert_eq!(lease.leadership.follow(lease.now, None, DURATION), None);
    assert_eq!(lease.acquire("d"), change(LeadershipEnd::Deleted, None));
}

#[test]
fn a_preference_counts_from_its_first_sight_to_the_end_of_the_term() {
    let mut lease = FollowedLease::led();
    assert_eq!(lease.leadership.preferred_since(), None);
    let asked = lease.now.after(Duration::from_secs(1));
    for preferred in ["b", "c"] {
        let record = lease.record.preferring(Identity::new(preferred), None);
        lease.show(record);
        let expected = Some(asked);
        assert_eq!(lease.leadership.preferred_since(), expected, "{preferred}");
    }
    let before = lease.leadership.clone();
    lease.show(lease.record.preferring(None, None));
    assert_eq!(
        lease.leadership.preferred_since(),
        None,
        "it was taken back"
    );
    assert!(lease.leadership.continues(&before));
    lease.show(lease.record.preferring(Identity::new("a"), None));
    assert_eq!(
        lease.leadership.preferred_since(),
        None,
        "nothing is asked for"
    );
    lease.show(lease.record.preferring(Identity::new("b"), None));
    let before = lease.leadership.clone();
    lease.grant("b");
    assert!(before.preferred_since().is_some() && !lease.leadership.continues(&before));
}
