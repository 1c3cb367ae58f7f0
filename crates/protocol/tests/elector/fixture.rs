//! Builders and a small fixture for the elector's tests: one election, one clock, writes applied by hand.

use std::time::Duration;

use elector_protocol::elector::{Decision, Effect, Election, NewsSource, Settings};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite,
    OperatorPreference, OperatorWord, ResourceVersion, StandDown, StrategyName, Timestamp, Token,
    Uid,
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
    pub(crate) word: OperatorWord,
}

impl ElectionFixture {
    /// A fixture whose elector has been up for an hour and saw no Lease.
    pub(crate) fn new() -> Self {
        Self {
            election: Election::absent(Instant::default()),
            settings: Settings::default(),
            now: Instant::from_epoch(Duration::from_secs(3600)),
            version: 100,
            word: OperatorWord::default(),
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

    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now = self.now.after(Duration::from_secs_f64(seconds));
    }

    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_micros(
            1_700_000_000_000_000 + i64::try_from(self.now.since_epoch().as_micros()).unwrap(),
        )
        .unwrap()
    }

    pub(crate) fn step(&self) -> Decision {
        self.election.step(self.now, self.wall(), &self.settings)
    }

    pub(crate) fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    /// A candidate appears, seen being created.
    pub(crate) fn register(&mut self, name: &str, emulation: &str) {
        let candidate = self.mk_candidate(name, emulation);
        self.election
            .handle_candidate(self.now, candidate, NewsSource::Watch);
    }

    /// A candidate that was there before the elector.
    pub(crate) fn list(&mut self, name: &str, emulation: &str) {
        let candidate = self.mk_candidate(name, emulation);
        self.election
            .handle_candidate(self.now, candidate, NewsSource::List);
    }

    /// Five candidates that were there before the elector, the best one first.
    pub(crate) fn list_five(&mut self) {
        for (name, version) in [
            ("a", "1.1.0"),
            ("b", "1.2.0"),
            ("c", "1.3.0"),
            ("d", "1.4.0"),
            ("e", "1.5.0"),
        ] {
            self.list(name, version);
        }
    }

    pub(crate) fn mk_candidate(&mut self, name: &str, emulation: &str) -> CandidateRecord {
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
            spec: CandidateSpec::parse("1.40.0", emulation, StrategyName::OLDEST_EMULATION_VERSION)
                .into(),
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
        let mut candidate = self
            .election
            .candidates()
            .find(|c| c.name == id(name))
            .unwrap()
            .clone();
        change(&mut candidate);
        candidate.version = self.next_version();
        self.election.handle_candidate(self.now, candidate, news);
    }

    /// The candidate gets another emulation version.
    pub(crate) fn change_version(&mut self, name: &str, emulation: &str) {
        self.change(name, |candidate| {
            candidate.spec =
                CandidateSpec::parse("1.40.0", emulation, StrategyName::OLDEST_EMULATION_VERSION)
                    .into();
        });
    }

    /// The candidate acks.
    pub(crate) fn ack(&mut self, name: &str) {
        let wall = self.wall();
        self.change(name, |candidate| {
            candidate.renew = Some(candidate.ping.map_or(wall, |ping| ping.max(wall)));
        });
    }

    /// Applies the pings of a decision; returns the candidates that they go to.
    pub(crate) fn deliver_pings(&mut self, decision: &Decision) -> Vec<String> {
        let mut names = Vec::new();
        for effect in &decision.effects {
            if let Effect::Ping { name, ping, .. } = effect {
                self.change(name.as_str(), |candidate| candidate.ping = Some(*ping));
                names.push(name.to_string());
            }
        }
        names
    }

    /// Applies the Lease write of a decision.
    pub(crate) fn apply(&mut self, decision: &Decision) -> LeaseRecord {
        let write = lease_write(decision)
            .expect("the decision writes the lease")
            .clone();
        let snapshot = LeaseSnapshot {
            uid: write.uid,
            version: self.next_version(),
            record: write.record,
            word: self.word.clone(),
        };
        self.election
            .handle_lease(self.now, snapshot.clone(), NewsSource::OwnWrite);
        snapshot.record
    }

    /// A revision of the Lease arrives by the watch.
    pub(crate) fn lease(&mut self, record: LeaseRecord) {
        self.lease_of("lease-1", record, NewsSource::Watch);
    }

    /// A revision of the Lease with this uid becomes known.
    pub(crate) fn lease_of(&mut self, uid: &str, record: LeaseRecord, news: NewsSource) {
        let snapshot = LeaseSnapshot {
            uid: Uid::new(uid),
            version: self.next_version(),
            record,
            word: self.word.clone(),
        };
        self.election.handle_lease(self.now, snapshot, news);
    }

    /// The watch tells that the Lease is deleted.
    pub(crate) fn delete_lease(&mut self) {
        let version = self.next_version();
        self.election
            .handle_lease_gone(self.now, Some(version), NewsSource::Watch);
    }

    /// The record that grants the known one to this candidate for 5 s.
    pub(crate) fn grant_to(&self, name: &str) -> LeaseRecord {
        self.record()
            .granted(id(name), Duration::from_secs(5), self.wall())
    }

    /// An operator freezes the lease for so many seconds from now on; the record stays.
    pub(crate) fn freeze(&mut self, seconds: f64) {
        self.word.freeze = Some(self.wall_after(seconds));
        self.lease(self.record());
    }

    /// An operator prefers a candidate for so many seconds from now on; the record stays.
    pub(crate) fn prefer(&mut self, name: &str, seconds: f64) {
        self.word.prefer = Some(Box::new(OperatorPreference {
            candidate: id(name),
            until: self.wall_after(seconds),
        }));
        self.lease(self.record());
    }

    /// An operator says that a candidate is to stand down, or takes that back.
    pub(crate) fn stand_down(&mut self, name: &str, said: Option<StandDown>) {
        self.change(name, |candidate| {
            let mut spec = candidate.offer().unwrap().clone();
            spec.stand_down = said;
            candidate.spec = Ok(spec).into();
        });
    }

    /// The wall clock so many seconds from now.
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

    /// Asserts that the record is granted to this candidate so many seconds from now, and not a millisecond sooner.
    pub(crate) fn granted_after(&mut self, seconds: f64, electee: &str) {
        self.pass(seconds - 0.001);
        self.ack(electee);
        let early = self.step();
        assert_eq!(lease_write(&early), None, "too early: {early:?}");
        self.pass(0.001);
        let decision = self.step();
        let write = lease_write(&decision).expect("nothing is granted when it may be");
        assert_eq!(write.record.holder, Some(id(electee)), "{decision:?}");
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
        let record = self.record();
        let renew_time = Some(self.wall().differing_from(record.renew_time));
        self.lease(LeaseRecord {
            renew_time,
            ..record
        });
    }

    /// Registers a leader of this version and lets it accept.
    pub(crate) fn lead(&mut self, name: &str, emulation: &str) {
        self.register(name, emulation);
        self.lease(LeaseRecord::born(None));
        let decision = self.step();
        assert_eq!(self.apply(&decision).holder, Some(id(name)), "{decision:?}");
        self.accept();
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
