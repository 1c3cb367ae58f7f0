//! A second grant of a lease, too early or to a candidate that did not answer.

use elector_api::{Carrier, Lease};
use elector_protocol::{Instant, LeaseKey, Timestamp, Token};

use super::*;
use crate::delivery::{CandidateDelivery, DeliverySource};
use crate::history::Author;
use crate::plan::ClockBound;

/// A lease of 15 s, held by a candidate that registered and answered, and written in this order.
struct LeaseFixture {
    history: LeaseHistory,
    lease: Lease,
    /// The newest version of the Lease.
    base: Option<u64>,
    version: u64,
}

impl LeaseFixture {
    fn new() -> Self {
        let key = LeaseKey::new("default", "lease-0");
        Self {
            history: LeaseHistory::new(Duration::from_secs(15)),
            lease: Lease::named(&key),
            base: None,
            version: 0,
        }
    }

    fn author(role: Role, name: &str) -> Author {
        Author {
            name: name.to_owned(),
            role,
            identity: Identity::new(name),
            incarnation: 1,
            born: Duration::ZERO,
        }
    }

    fn write(&mut self, second: u64, author: Author, record: &LeaseRecord) {
        let at = Duration::from_secs(second);
        self.version += 1;
        let base = self.base.replace(self.version);
        self.lease = self.lease.with_record(record, Carrier::Annotations);
        self.lease.metadata.uid = Some("u".to_owned());
        self.lease.metadata.resource_version = Some(self.version.to_string());
        self.history.attempts.push(RequestAttempt {
            monotonic: Instant::from_epoch(at),
            author,
            at,
            clock: Instant::from_epoch(at),
            lease: "lease-0".to_owned(),
            base,
            record: self.lease.record().ok(),
            applied: false,
        });
        self.history.record_lease(at, self.lease.clone());
    }

    /// The candidate is created, or answers the ping, if there is one; both electors see it at once.
    fn answer(&mut self, second: u64, name: &str) {
        self.candidate(second, second, name, None);
    }

    fn candidate(&mut self, second: u64, renewed: u64, name: &str, ping: Option<u64>) {
        self.version += 1;
        let mut object = elector_api::LeaseCandidate::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.resource_version = Some(self.version.to_string());
        object.spec.renew_time = at(renewed);
        object.spec.ping_time = ping.and_then(at);
        let at = Duration::from_secs(second);
        self.history.record_candidate(at, object, false);
        for elector in ["e", "e0"] {
            let author = Self::author(Role::Elector { rate: TRUE_RATE }, elector);
            let delivery = CandidateDelivery {
                at,
                clock: Instant::from_epoch(at),
                source: DeliverySource::Watch,
                versions: vec![self.version],
            };
            self.history.deliveries.add(&author, delivery);
        }
    }
}

fn candidate(mode: PlannedMode) -> Role {
    Role::Candidate {
        lease: 0,
        rate: TRUE_RATE,
        mode,
    }
}

fn at(second: u64) -> Option<Timestamp> {
    Timestamp::from_micros(i64::try_from(second).unwrap() * 1_000_000)
}

/// The rules broken by a second grant `seconds` after the first one was accepted. `heard` is of its electee: when it
/// wrote which renewTime and pingTime.
fn granted_after(seconds: u64, heard: &[(u64, u64, Option<u64>)]) -> Vec<&'static str> {
    let elector = |name| LeaseFixture::author(Role::Elector { rate: TRUE_RATE }, name);
    let mut fixture = LeaseFixture::new();
    let born = LeaseRecord::born(None);
    fixture.write(1, elector("e"), &born);
    fixture.answer(15, "a");
    let window = Duration::from_secs(5);
    let grant = born.granted(Identity::new("a").unwrap(), window, at(16).unwrap());
    fixture.write(16, elector("e"), &grant);
    let accept = LeaseRecord {
        duration_seconds: Some(15),
        renew_time: at(17),
        token: Some(Token(elector_protocol::ResourceVersion(2))),
        token_term: Some(grant.term),
        ..grant
    };
    fixture.write(
        17,
        LeaseFixture::author(candidate(PlannedMode::Elected), "a"),
        &accept,
    );
    for (second, renewed, ping) in heard {
        fixture.candidate(*second, *renewed, "b", *ping);
    }
    let next = accept.granted(Identity::new("b").unwrap(), window, at(99).unwrap());
    fixture.write(17 + seconds, elector("e"), &next);
    let mut plan = RunPlan::draw(1, ClockBound::Within);
    plan.setup.leases = 1;
    for candidate in &mut plan.setup.candidates {
        candidate.timing = (15, 10);
    }
    let found = violations(&fixture.history, &plan);
    found.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_grant_is_checked_by_the_clock_of_its_author_and_the_acks_it_can_have_seen() {
    assert_eq!(granted_after(15, &[(28, 28, None)]), [""; 0]);
    assert_eq!(granted_after(14, &[(28, 28, None)]), ["R4"]);
    assert_eq!(granted_after(15, &[]), ["S7"]);
    // It is fresh for less than 5 s.
    assert_eq!(granted_after(15, &[(27, 27, None)]), ["S7"]);
    // An ack counts longer where it came after a ping of the round, which began at 27.
    let asked_at = |ping| [(18, 18, None), (ping, 18, Some(19)), (28, 28, Some(19))];
    assert_eq!(granted_after(30, &asked_at(27)), [""; 0]);
    assert_eq!(granted_after(30, &asked_at(26)), ["S7"]);
    let asked_afterwards = [(18, 18, None), (28, 28, None), (29, 28, Some(29))];
    assert_eq!(granted_after(30, &asked_afterwards), ["S7"]);
    let unasked = [(18, 18, None), (28, 28, None)];
    assert_eq!(granted_after(30, &unasked), ["S7"]);
}

#[test]
fn a_preferred_candidate_has_acked_just_now() {
    for (acked, expected) in [(96, &[][..]), (95, &["S7"])] {
        let mut lease = HandOvers::new();
        lease.fixture.answer(10, "a");
        lease.fixture.answer(acked, "b");
        let b = Identity::new("b").unwrap();
        let preferred = lease.record.preferring(Some(b), None);
        lease.write("e0", preferred);
        let mut plan = RunPlan::draw(1, ClockBound::Within);
        plan.faults.clear();
        let found = violations(&lease.fixture.history, &plan);
        let of_preference = found.iter().filter(|it| it.text.contains("chose b"));
        let rules: Vec<_> = of_preference.map(|it| it.rule).collect();
        assert_eq!(rules, expected);
    }
}

#[test]
fn a_write_of_which_no_sender_is_known_is_a_violation() {
    for (by, expected) in [("a person", &[][..]), ("nobody", &["S3"])] {
        let mut fixture = LeaseFixture::new();
        let stranger = LeaseFixture::author(Role::Plain, "stranger");
        fixture.write(1, stranger, &LeaseRecord::born(None));
        let at = Duration::from_secs(2);
        if by == "a person" {
            fixture.history.intervene(at, "lease-0");
        }
        fixture.lease.metadata.resource_version = Some("9".to_owned());
        fixture.history.record_lease(at, fixture.lease.clone());
        let found = violations(&fixture.history, &RunPlan::draw(1, ClockBound::Within));
        let rules: Vec<_> = found.iter().map(|it| it.rule).collect();
        assert_eq!(rules, expected);
    }
}

/// The rules broken by an acquisition `seconds` after the record before was written.
fn acquired_after(seconds: u64, mode: PlannedMode, before: &LeaseRecord) -> Vec<&'static str> {
    let mut fixture = LeaseFixture::new();
    fixture.write(1, LeaseFixture::author(Role::Plain, "stranger"), before);
    let version = elector_protocol::ResourceVersion(fixture.version);
    let (me, w) = (Identity::new("b").unwrap(), Duration::from_secs(15));
    let term = before.acquired(me, w, Token(version), at(99).unwrap());
    let author = LeaseFixture::author(candidate(mode), "b");
    fixture.write(1 + seconds, author, &term);
    let mut plan = RunPlan::draw(1, ClockBound::Within);
    plan.setup.leases = 1;
    for candidate in &mut plan.setup.candidates {
        candidate.timing = (15, 10);
    }
    let found = violations(&fixture.history, &plan);
    found.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn an_acquisition_is_checked_by_the_clock_of_its_author_and_needs_no_ack() {
    let held = LeaseRecord {
        holder: Identity::new("a"),
        duration_seconds: Some(15),
        acquire_time: at(1),
        renew_time: at(1),
        ..LeaseRecord::default()
    };
    let (elected, auto, plain) = (PlannedMode::Elected, PlannedMode::Auto, PlannedMode::Plain);
    assert_eq!(acquired_after(15, plain, &held), [""; 0]);
    assert_eq!(acquired_after(14, plain, &held), ["R4"]);
    // An elector comes first.
    assert_eq!(acquired_after(20, auto, &held), [""; 0]);
    assert_eq!(acquired_after(19, auto, &held), ["R4"]);
    assert_eq!(acquired_after(60, elected, &held), ["R18"]);

    let released = held.released(at(2).unwrap());
    assert_eq!(acquired_after(0, plain, &released), [""; 0]);
    assert_eq!(acquired_after(4, auto, &released), ["R18"]);
    assert_eq!(acquired_after(5, auto, &released), [""; 0]);

    let emptied = LeaseRecord {
        holder: None,
        ..held.clone()
    };
    // It was absent for a second before.
    assert_eq!(acquired_after(13, plain, &emptied), ["R6"]);
    assert_eq!(acquired_after(14, plain, &emptied), [""; 0]);
    let foreign = LeaseRecord {
        strategy: elector_protocol::StrategyName::parse("example.com/newest").ok(),
        ..released
    };
    assert_eq!(acquired_after(60, plain, &foreign), ["R18"]);
}

#[test]
fn a_plain_process_accepts_no_grant() {
    for (mode, expected) in [(PlannedMode::Auto, &[][..]), (PlannedMode::Plain, &["R18"])] {
        let mut fixture = LeaseFixture::new();
        let born = LeaseRecord::born(None);
        let elector = LeaseFixture::author(Role::Elector { rate: TRUE_RATE }, "e");
        fixture.write(1, elector.clone(), &born);
        fixture.answer(15, "a");
        let window = Duration::from_secs(5);
        let grant = born.granted(Identity::new("a").unwrap(), window, at(16).unwrap());
        fixture.write(16, elector, &grant);
        let accept = LeaseRecord {
            duration_seconds: Some(15),
            renew_time: at(17),
            token: Some(Token(elector_protocol::ResourceVersion(2))),
            token_term: Some(grant.term),
            ..grant
        };
        fixture.write(17, LeaseFixture::author(candidate(mode), "a"), &accept);
        let mut plan = RunPlan::draw(1, ClockBound::Within);
        plan.setup.leases = 1;
        for candidate in &mut plan.setup.candidates {
            candidate.timing = (15, 10);
        }
        let found = violations(&fixture.history, &plan);
        let rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, expected);
    }
}

/// A lease whose holder is asked to make room again and again.
struct HandOvers {
    fixture: LeaseFixture,
    record: LeaseRecord,
    now: u64,
}

impl HandOvers {
    /// Led by `a` since long.
    fn new() -> Self {
        let mut this = Self {
            fixture: LeaseFixture::new(),
            record: LeaseRecord::born(None),
            now: 100,
        };
        let born = this.record.clone();
        this.write("e0", born);
        this.grant("a");
        this.accept("a");
        this
    }

    fn write(&mut self, name: &str, record: LeaseRecord) {
        let role = match name.starts_with('e') {
            true => Role::Elector { rate: TRUE_RATE },
            false => candidate(PlannedMode::Elected),
        };
        self.record = record;
        self.fixture
            .write(self.now, LeaseFixture::author(role, name), &self.record);
    }

    fn grant(&mut self, to: &str) {
        let window = Duration::from_secs(5);
        let to = Identity::new(to).unwrap();
        let grant = self.record.granted(to, window, at(self.now).unwrap());
        self.write("e0", grant);
    }

    fn accept(&mut self, name: &str) {
        let accept = LeaseRecord {
            duration_seconds: Some(15),
            renew_time: at(self.now + 1),
            token: Some(Token(elector_protocol::ResourceVersion(2))),
            token_term: Some(self.record.term),
            ..self.record.clone()
        };
        self.write(name, accept);
    }

    /// So many seconds later the elector prefers `b`, and `a` hands over at once. Returns whether that was wrong.
    fn hand_over(&mut self, after: u64) -> bool {
        self.now += after;
        let b = Identity::new("b").unwrap();
        let preferred = self.record.preferring(Some(b.clone()), None);
        self.write("e0", preferred);
        let mut plan = RunPlan::draw(1, ClockBound::Within);
        plan.faults.clear();
        let found = violations(&self.fixture.history, &plan);
        let now = Duration::from_secs(self.now);
        let wrong = found.iter().any(|it| it.rule == "R23" && it.at == now);
        let window = Duration::from_secs(5);
        let successor = self.record.granted(b, window, at(self.now).unwrap());
        self.write("a", successor);
        wrong
    }

    /// The successor does not accept, and `a` leads again.
    fn fail(&mut self) {
        self.grant("a");
        self.accept("a");
    }

    /// The successor accepts, and makes room for `a`.
    fn succeed(&mut self) {
        self.accept("b");
        let released = self.record.released(at(self.now).unwrap());
        self.write("b", released);
        self.fail();
    }
}

#[test]
fn an_elector_prefers_no_candidate_after_a_hand_over_in_vain_each_time_for_longer() {
    for (first, second, expected) in [
        (60, 120, [false, false]),
        (59, 120, [true, false]),
        (60, 119, [false, true]),
    ] {
        let mut lease = HandOvers::new();
        assert!(!lease.hand_over(10));
        lease.fail();
        let one = lease.hand_over(first);
        lease.fail();
        assert_eq!([one, lease.hand_over(second)], expected);
    }
}

#[test]
fn an_elector_has_three_holders_make_room_within_the_window() {
    for (fourth, wrong) in [(400, true), (598, true), (600, false)] {
        let mut lease = HandOvers::new();
        for _ in 0..3 {
            assert!(!lease.hand_over(1));
            lease.succeed();
        }
        assert_eq!(lease.hand_over(fourth - 2), wrong);
    }
}

#[test]
fn a_candidate_that_is_new_since_a_hand_over_in_vain_is_not_preferred() {
    for (appeared, wrong) in [(10, false), (130, true)] {
        let mut lease = HandOvers::new();
        lease.fixture.answer(appeared, "b");
        assert!(!lease.hand_over(10));
        lease.fail();
        assert_eq!(lease.hand_over(100), wrong);
    }
}

/// The words about a lease that `a` leads in version 1.1.0, where `b` in that version is preferred so many times.
fn preferred(version: &str, times: usize, faults: Vec<PlannedFault>) -> Vec<String> {
    let mut lease = HandOvers::new();
    lease.fixture.answer(lease.now, "a");
    for _ in 0..times {
        lease.fixture.answer(lease.now, "b");
        let b = Identity::new("b");
        lease.write("e0", lease.record.preferring(b, None));
        lease.write("e0", lease.record.preferring(None, None));
    }
    for revision in &mut lease.fixture.history.candidates {
        let is_preferred = revision.object.metadata.name.as_deref() == Some("b");
        revision.object.spec.binary_version = if is_preferred { version } else { "1.1.0" }.into();
    }
    let mut plan = RunPlan::draw(1, ClockBound::Within);
    plan.setup.leases = 2;
    plan.setup.candidates.truncate(1);
    plan.setup.candidates.resize(4, plan.setup.candidates[0]);
    plan.faults = faults;
    let found = violations(&lease.fixture.history, &plan);
    let found = found.into_iter().filter(|it| it.rule == "L3");
    found.map(|it| it.text).collect()
}

#[test]
fn a_preference_goes_to_a_better_candidate() {
    for (version, wrong) in [("1.0.0", false), ("1.1.0", true), ("1.2.0", true)] {
        let found = preferred(version, 1, Vec::new());
        let said = found.iter().any(|it| it.contains("and not better"));
        assert_eq!(said, wrong, "{version}: {found:?}");
    }
}

#[test]
fn a_term_has_more_preferences_for_each_fault_that_concerns_it() {
    let of_this_lease = FaultKind::Plain(0, Duration::from_secs(5));
    let of_another = FaultKind::Plain(1, Duration::from_secs(5));
    for (at, kind, most) in [
        (100, None, 1),
        (100, Some(of_this_lease.clone()), 3),
        (66, Some(of_this_lease.clone()), 3),
        (64, Some(of_this_lease.clone()), 1),
        (900, Some(of_this_lease), 1),
        (100, Some(of_another), 1),
        (100, Some(FaultKind::Compact), 3),
    ] {
        let at = Duration::from_secs(at);
        let faults: Vec<_> = kind
            .into_iter()
            .map(|kind| PlannedFault { at, kind })
            .collect();
        let wrong = |times| preferred("1.0.0", times, faults.clone()).len();
        assert_eq!([wrong(most), wrong(most + 1)], [0, 1], "{faults:?}");
    }
}
