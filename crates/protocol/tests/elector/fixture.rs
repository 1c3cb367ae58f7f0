//! Builders and a small fixture for the elector's tests: one election, one clock, writes applied by hand.

use std::time::Duration;

use elector_protocol::elector::{
    Action, Decision, Effect, Election, NewsSource, Ranking, Reason, Settings, WakeReason,
};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite,
    OperatorOverrides, OperatorPreference, Rejection, Renumber, Renumbering, ResourceVersion,
    StandDown, StrategyName, Timestamp, Token, Uid,
};

/// The longest that an operator's word may last, in seconds (R16).
pub(crate) const DAY: u32 = 86_400;

/// An election whose store is the test itself.
pub(crate) struct ElectionFixture {
    pub(crate) election: Election,
    pub(crate) settings: Settings,
    pub(crate) now: Instant,
    pub(crate) version: u64,
    /// The operator's word on the Lease: its next revisions say it too.
    pub(crate) overrides: OperatorOverrides,
}

/// Moves each reading of the clock by an hour, and each revision by a thousand.
struct Later;

const HOUR: Duration = Duration::from_secs(3600);

impl Renumbering for Later {
    fn instant(&mut self, instant: &mut Instant) {
        *instant = instant.after(HOUR);
    }

    fn version(&mut self, version: &mut ResourceVersion) {
        version.0 += 1000;
    }
}

/// Something that happens to an election.
pub(crate) type ElectionChange = fn(&mut ElectionFixture);

impl ElectionFixture {
    /// A fixture whose elector has been up for an hour and saw no Lease.
    pub(crate) fn new() -> Self {
        Self {
            election: Election::absent(Instant::default()),
            settings: Settings::default(),
            now: Instant::from_epoch(Duration::from_secs(3600)),
            version: 100,
            overrides: OperatorOverrides::default(),
        }
    }

    /// A fixture whose elector has just started and listed nothing.
    pub(crate) fn fresh() -> Self {
        let now = Instant::from_epoch(Duration::from_secs(3600));
        Self {
            election: Election::absent(now),
            ..Self::new()
        }
    }

    /// The first of these candidates leads, of version 1.N.0; the others appear then.
    pub(crate) fn led(candidates: &[(&str, u64)]) -> Self {
        Self::led_as(candidates, |fixture, name, minor| {
            fixture.register(name, *minor);
        })
    }

    /// The same, with candidates that are registered by this function.
    pub(crate) fn led_as<T>(
        candidates: &[(&str, T)],
        register: impl Fn(&mut Self, &str, &T),
    ) -> Self {
        let mut fixture = Self::new();
        for (index, (name, of)) in candidates.iter().enumerate() {
            register(&mut fixture, name, of);
            if index == 0 {
                fixture.lease(LeaseRecord::born(None));
                fixture.grants(name);
                fixture.accept();
            }
        }
        fixture
    }

    /// A Lease that may be granted at once, and candidates that were there before the elector: they have not acked.
    pub(crate) fn open(candidates: &[(&str, u64)]) -> Self {
        let mut fixture = Self::new();
        for (name, minor) in candidates {
            fixture.list(name, *minor);
        }
        fixture.lease(LeaseRecord::born(None));
        fixture
    }

    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now = self.now.after(Duration::from_secs_f64(seconds));
    }

    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_micros(
            1_700_000_000_000_000 + i64::try_from(self.now.since_epoch().as_micros()).unwrap(),
        )
        .unwrap()
    }

    /// The decision, which is the same where all numbers of the state are moved: what a checker relies on that tells states
    /// apart.
    pub(crate) fn step(&self) -> Decision {
        let (wall, settings) = (self.wall(), &self.settings);
        let decision = self.election.step(self.now, wall, settings);
        let mut moved = self.election.clone();
        moved.renumber(&mut Later);
        let after = moved.step(self.now.after(HOUR), wall, settings);
        let mut effects = decision.effects.clone();
        effects.renumber(&mut Later);
        assert_eq!(
            (&after.effects, &after.reason),
            (&effects, &decision.reason)
        );
        let wake_at = decision.wake_at().map(|at| at.after(HOUR));
        assert_eq!(after.wake_at(), wake_at);
        decision
    }

    pub(crate) fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    /// A candidate of version 1.N.0 appears, seen being created.
    pub(crate) fn register(&mut self, name: &str, minor: u64) {
        self.register_by(NewsSource::Watch, name, minor);
    }

    /// A candidate that was there before the elector.
    pub(crate) fn list(&mut self, name: &str, minor: u64) {
        self.register_by(NewsSource::List, name, minor);
    }

    pub(crate) fn register_by(&mut self, news: NewsSource, name: &str, minor: u64) {
        let candidate = self.mk_candidate(name, minor);
        self.election.handle_candidate(self.now, candidate, news);
    }

    /// The candidate as it is known.
    pub(crate) fn candidate(&self, name: &str) -> CandidateRecord {
        let mut candidates = self.election.candidates();
        candidates
            .find(|known| known.name == id(name))
            .unwrap()
            .clone()
    }

    pub(crate) fn mk_candidate(&mut self, name: &str, minor: u64) -> CandidateRecord {
        CandidateRecord {
            name: id(name),
            uid: Uid::new(format!("uid-{name}")),
            version: self.next_version(),
            created: Timestamp::from_micros(1_000_000).unwrap(),
            ping: None,
            renew: Some(self.wall()),
            marked: true,
            announced: None,
            deleting: false,
            spec: spec("1.40.0", &format!("1.{minor}.0")).into(),
        }
    }

    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut CandidateRecord)) {
        self.change_by(NewsSource::Watch, name, change);
    }

    /// A changed candidate becomes known.
    pub(crate) fn change_by(
        &mut self,
        news: NewsSource,
        name: &str,
        change: impl FnOnce(&mut CandidateRecord),
    ) {
        let mut candidate = self.candidate(name);
        change(&mut candidate);
        candidate.version = self.next_version();
        self.election.handle_candidate(self.now, candidate, news);
    }

    /// The offer of the candidate changes.
    pub(crate) fn change_spec(&mut self, name: &str, change: impl FnOnce(&mut CandidateSpec)) {
        self.change(name, |candidate| {
            let mut spec = candidate.offer().unwrap().clone();
            change(&mut spec);
            candidate.spec = Ok(spec).into();
        });
    }

    /// The candidate gets other versions.
    pub(crate) fn change_version(&mut self, name: &str, binary: &str, emulation: &str) {
        self.change(name, |candidate| {
            candidate.spec = spec(binary, emulation).into();
        });
    }

    /// The candidate wishes for another strategy.
    pub(crate) fn wish(&mut self, name: &str, binary: &str, strategy: &str) {
        let spec = CandidateSpec::parse(binary, "1.1.0", strategy);
        self.change(name, |candidate| candidate.spec = spec.into());
    }

    /// The candidate is deleted.
    pub(crate) fn remove(&mut self, name: &str) {
        self.election.handle_candidate_gone(&id(name), None);
    }

    /// The candidate acks.
    pub(crate) fn ack(&mut self, name: &str) {
        self.ack_by(NewsSource::Watch, name);
    }

    pub(crate) fn ack_by(&mut self, news: NewsSource, name: &str) {
        let wall = self.wall();
        self.change_by(news, name, |candidate| {
            candidate.renew = Some(candidate.ping.map_or(wall, |ping| ping.max(wall)));
        });
    }

    /// The reason of the present decision.
    pub(crate) fn reason(&self) -> Reason {
        self.step().reason
    }

    /// Asserts the reason of the present decision in words.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) {
        assert_eq!(self.reason().to_string(), text);
    }

    /// Asserts that this holder leads, and that no candidate is better.
    #[track_caller]
    pub(crate) fn best(&self, holder: &str) {
        assert_eq!(self.reason(), Reason::HolderIsBest(id(holder)));
    }

    pub(crate) fn action(&self) -> Action {
        self.step().action()
    }

    pub(crate) fn ranking(&self) -> Ranking {
        self.election.ranking(self.now, self.wall(), &self.settings)
    }

    /// The wake of the present decision, in seconds from now.
    #[track_caller]
    pub(crate) fn wake(&self) -> (f64, WakeReason) {
        let wake = self.step().wake.expect("the decision wakes");
        (wake.after(self.now).after.as_secs_f64(), wake.why)
    }

    /// The candidates that the present decision pings.
    pub(crate) fn pinged(&self) -> Vec<String> {
        pinged(&self.step())
    }

    /// Applies the pings of the present decision; returns the candidates that they go to.
    pub(crate) fn ping(&mut self) -> Vec<String> {
        let decision = self.step();
        for effect in &decision.effects {
            if let Effect::Ping { name, ping, .. } = effect {
                self.change(name.as_str(), |candidate| candidate.ping = Some(*ping));
            }
        }
        pinged(&decision)
    }

    /// The record that the present decision writes.
    pub(crate) fn decided(&self) -> Option<LeaseRecord> {
        lease_write(&self.step()).map(|write| write.record.clone())
    }

    /// Applies the Lease write of the present decision.
    #[track_caller]
    pub(crate) fn write(&mut self) -> LeaseRecord {
        let decision = self.step();
        let write = lease_write(&decision).cloned();
        let write = write.unwrap_or_else(|| panic!("nothing is written: {}", decision.reason));
        self.show(write.uid, write.record.clone(), NewsSource::OwnWrite);
        write.record
    }

    /// Asserts that the lease is granted to this candidate, and applies that.
    #[track_caller]
    pub(crate) fn grants(&mut self, to: &str) {
        let reason = self.reason();
        assert_eq!(self.write().holder, Some(id(to)), "{reason}");
    }

    /// Asserts that this candidate is preferred from now on, and applies that.
    #[track_caller]
    pub(crate) fn prefers(&mut self, candidate: &str) {
        let reason = self.reason();
        let expected = Some(id(candidate));
        assert_eq!(self.write().preferred_holder, expected, "{reason}");
    }

    /// A revision of the known Lease, or of the first one of its name, arrives by the watch.
    pub(crate) fn lease(&mut self, record: LeaseRecord) {
        let known = self.election.lease().map(|known| known.uid.clone());
        let uid = known.unwrap_or_else(|| Uid::new("lease-1"));
        self.show(uid, record, NewsSource::Watch);
    }

    /// A revision of the Lease with this uid becomes known.
    pub(crate) fn lease_of(&mut self, uid: &str, record: LeaseRecord, news: NewsSource) {
        self.show(Uid::new(uid), record, news);
    }

    fn show(&mut self, uid: Uid, record: LeaseRecord, news: NewsSource) {
        let version = self.next_version();
        let overrides = self.overrides.clone();
        let snapshot = LeaseSnapshot {
            uid,
            version,
            record,
            overrides,
        };
        self.election.handle_lease(self.now, snapshot, news);
    }

    /// The known revision is seen again, with this version if it is given.
    pub(crate) fn show_again(&mut self, version: Option<u64>, news: NewsSource) {
        let mut known = self.election.lease().unwrap().clone();
        known.version = version.map_or(known.version, ResourceVersion);
        self.election.handle_lease(self.now, known, news);
    }

    /// The store was restored from a backup: a list shows this record in an older revision than the one known.
    pub(crate) fn restore(&mut self, record: LeaseRecord) {
        let restored = LeaseSnapshot {
            uid: Uid::new("lease-1"),
            version: ResourceVersion(1),
            record,
            overrides: OperatorOverrides::default(),
        };
        self.election
            .handle_lease(self.now, restored, NewsSource::List);
    }

    /// The watch reports that the Lease is deleted.
    pub(crate) fn delete_lease(&mut self) {
        let version = self.next_version();
        self.election
            .handle_lease_gone(self.now, Some(version), NewsSource::Watch);
    }

    /// The Lease is granted, or handed over, to this candidate for 5 s.
    pub(crate) fn grant(&mut self, to: &str) {
        let window = Duration::from_secs(5);
        self.lease(self.record().granted(id(to), window, self.wall()));
    }

    /// The holder releases the Lease.
    pub(crate) fn release(&mut self) {
        self.lease(self.record().released(self.wall()));
    }

    /// Another elector prefers this candidate, or none any more.
    pub(crate) fn preferred_by_another(&mut self, candidate: Option<&str>) {
        self.lease(self.record().preferring(candidate.map(id), None));
    }

    /// A stranger changes the record.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut LeaseRecord)) {
        let mut record = self.record();
        change(&mut record);
        self.lease(record);
    }

    /// An operator freezes the lease from now on for some seconds; the record stays.
    pub(crate) fn freeze(&mut self, seconds: f64) {
        self.overrides.freeze = Some(self.wall_after(seconds));
        self.lease(self.record());
    }

    /// An operator prefers a candidate from now on for some seconds; the record stays.
    pub(crate) fn prefer(&mut self, name: &str, seconds: f64) {
        self.overrides.prefer = Some(Box::new(OperatorPreference {
            candidate: id(name),
            until: self.wall_after(seconds),
        }));
        self.lease(self.record());
    }

    /// An operator says that a candidate is to stand down, or takes that back.
    pub(crate) fn stand_down(&mut self, name: &str, said: Option<StandDown>) {
        self.change_spec(name, |spec| spec.stand_down = said);
    }

    /// The wall clock some seconds from now.
    pub(crate) fn wall_after(&self, seconds: f64) -> Timestamp {
        let micros = Duration::from_secs_f64(seconds).as_micros();
        let micros = self.wall().as_micros() + i64::try_from(micros).unwrap();
        Timestamp::from_micros(micros).unwrap()
    }

    /// Lets time pass under a holder that renews.
    pub(crate) fn keep(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.pass(1.0);
            self.renew();
        }
    }

    /// Asserts that the lease is granted to this candidate after this time, and not a millisecond sooner.
    #[track_caller]
    pub(crate) fn granted_after(&mut self, seconds: f64, electee: &str) {
        self.pass(seconds - 0.001);
        self.ack(electee);
        assert_eq!(self.decided(), None, "too early: {}", self.reason());
        self.pass(0.001);
        self.grants(electee);
    }

    pub(crate) fn record(&self) -> LeaseRecord {
        self.election.lease().unwrap().record.clone()
    }

    /// The electee accepts, as a marked candidate does.
    pub(crate) fn accept(&mut self) {
        let snapshot = self.election.lease().unwrap().clone();
        let record = LeaseRecord {
            duration_seconds: Some(15),
            renew_time: Some(self.wall().differing_from(snapshot.record.renew_time)),
            token: Some(Token(snapshot.version)),
            token_term: Some(snapshot.record.term),
            ..snapshot.record
        };
        self.lease(record);
    }

    pub(crate) fn renew(&mut self) {
        let wall = self.wall();
        self.edit(|record| record.renew_time = Some(wall.differing_from(record.renew_time)));
    }
}

/// Asserts that the reason of the present decision is of this kind.
macro_rules! assert_reason {
    ($fixture:expr, $reason:pat) => {
        let reason = $fixture.reason();
        assert!(matches!(reason, $reason), "{reason}");
    };
}
pub(crate) use assert_reason;

pub(crate) fn spec(binary: &str, emulation: &str) -> Result<CandidateSpec, Rejection> {
    CandidateSpec::parse(binary, emulation, StrategyName::OLDEST_EMULATION_VERSION)
}

/// A record of a client that is no candidate.
pub(crate) fn held(holder: &str, duration_seconds: Option<i32>) -> LeaseRecord {
    LeaseRecord {
        holder: Some(id(holder)),
        duration_seconds,
        ..LeaseRecord::default()
    }
}

pub(crate) fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

pub(crate) fn lease_write(decision: &Decision) -> Option<&LeaseWrite> {
    decision.effects.iter().find_map(|effect| match effect {
        Effect::Write(write) => Some(write),
        _ => None,
    })
}

pub(crate) fn pinged(decision: &Decision) -> Vec<String> {
    let name = |effect: &Effect| match effect {
        Effect::Ping { name, .. } => Some(name.to_string()),
        _ => None,
    };
    decision.effects.iter().filter_map(name).collect()
}
