//! Two electors that disagree for good, as where an operator's word is over by the clock of one of them: what they cost
//! the holder and the server (R16, R23, L3).

use std::time::Duration;

use elector_protocol::elector::{Effect, Reason};
use elector_protocol::{Instant, LeaseRecord};
use proptest::prelude::{Just, Strategy as Arbitrary, any, prop_oneof, proptest};
use proptest::{collection, option};

use crate::fixture::{ElectionFixture, assert_reason};

/// Two electors that see every revision at once, each with an operator's word of its own, and a lease whose candidates
/// ack at once.
struct Disagreement {
    electors: [ElectionFixture; 2],
    /// True if the holder makes room at once; else it never does.
    holder_obeys: bool,
    /// A third elector, of another build, withdraws each preference at once.
    withdrawn_at_once: bool,
    /// Since when the present preference stands.
    preferred: Instant,
    /// For how long the preferences of this term stood that were withdrawn, and those that went on to another candidate.
    withdrawn: Vec<Duration>,
    moved: Vec<Duration>,
    /// When holders made room.
    preemptions: Vec<Instant>,
    pings: usize,
}

/// The interval of the electors' looks at the lease.
const TICK: Duration = Duration::from_millis(100);

const ACK_WINDOW: Duration = Duration::from_secs(2);

impl Disagreement {
    /// The first of these candidates leads; the better ones come first in the alphabet.
    fn new(candidates: &[&str], holder_obeys: bool) -> Self {
        let minor = |name: &&str| u64::from(name.as_bytes()[0] - b'a' + 1);
        let candidates: Vec<_> = candidates.iter().map(|it| (*it, minor(it))).collect();
        let electors = [(); 2].map(|()| ElectionFixture::led(&candidates));
        Self {
            preferred: electors[0].now,
            electors,
            holder_obeys,
            withdrawn_at_once: false,
            withdrawn: Vec::new(),
            moved: Vec::new(),
            preemptions: Vec::new(),
            pings: 0,
        }
    }

    fn both(&mut self, change: impl Fn(&mut ElectionFixture)) {
        self.electors.iter_mut().for_each(change);
    }

    fn now(&self) -> Instant {
        self.electors[0].now
    }

    fn record(&self) -> LeaseRecord {
        self.electors[0].record()
    }

    /// By the clock of this elector, an operator prefers this candidate from now on, or none.
    fn say(&mut self, elector: usize, candidate: Option<&str>) {
        let fixture = &mut self.electors[elector];
        fixture.overrides.prefer = None;
        if let Some(candidate) = candidate {
            fixture.prefer(candidate, 80_000.0);
        }
        let record = self.record();
        self.both(|elector| elector.lease(record.clone()));
    }

    /// Lets the electors decide on everything for this time, while the holder renews.
    fn run(&mut self, seconds: u64) {
        let end = self.now().after(Duration::from_secs(seconds));
        while self.now() < end {
            self.both(|elector| elector.now = elector.now.after(TICK));
            if self.now().since_epoch().subsec_nanos() == 0 {
                self.both(ElectionFixture::renew);
            }
            self.decide();
        }
    }

    fn decide(&mut self) {
        for index in 0..2 {
            let decision = self.electors[index].step();
            for effect in decision.effects {
                match effect {
                    Effect::Ping { name, ping, .. } => {
                        self.pings += 1;
                        self.both(|elector| {
                            elector.change(name.as_str(), |candidate| candidate.ping = Some(ping));
                            elector.ack(name.as_str());
                        });
                    }
                    Effect::Write(write) => self.write(&write.record),
                    Effect::Create(_) | Effect::Collect { .. } => unreachable!("{effect:?}"),
                }
            }
        }
        let record = self.record();
        if self.withdrawn_at_once && record.preferred_holder.is_some() {
            self.write(&record.preferring(None, None));
        }
        let record = self.record();
        if let Some(preferred) = record.preferred_holder.filter(|_| self.holder_obeys) {
            self.preemptions.push(self.now());
            self.both(|elector| {
                elector.grant(preferred.as_str());
                elector.accept();
            });
            (self.withdrawn, self.moved) = (Vec::new(), Vec::new());
            self.check_preemptions();
        }
    }

    /// An elector changes the preference.
    fn write(&mut self, record: &LeaseRecord) {
        let (before, stood) = (self.record(), self.now().since(self.preferred));
        assert_eq!(before.term, record.term, "the lease is never free");
        let old = before.preferred_holder;
        let counted = match (&old, &record.preferred_holder) {
            (Some(_), None) => Some(&mut self.withdrawn),
            (Some(old), Some(new)) if old != new => Some(&mut self.moved),
            _ => None,
        };
        if let Some(counted) = counted {
            let so_often = u32::try_from(counted.len()).unwrap();
            if so_often > 0 && !self.withdrawn_at_once {
                let holds = stood >= ACK_WINDOW * 2_u32.pow(so_often).min(450);
                assert!(holds, "{stood:?}");
            }
            counted.push(stood);
        }
        self.preferred = self.now();
        self.both(|elector| elector.lease(record.clone()));
    }

    /// (R23) Never more than twice the budget in ten minutes.
    fn check_preemptions(&self) {
        let window = Duration::from_secs(600);
        let lately = |at: &&Instant| self.now().since(**at) < window;
        let count = self.preemptions.iter().rev().take_while(lately).count();
        assert!(count <= 6, "{count} pre-emptions: {:?}", self.preemptions);
    }
}

fn seconds(all: &[Duration]) -> Vec<u64> {
    all.iter().map(Duration::as_secs).collect()
}

/// (R16, L3) One withdraws what the other prefers, for as long as the holder does not make room. The candidate acks
/// each ping, which is no news.
#[test]
fn a_preference_that_electors_disagree_on_is_withdrawn_ever_later() {
    let mut electors = Disagreement::new(&["a", "c"], false);
    electors.say(0, Some("c"));
    electors.run(600);
    assert_eq!(seconds(&electors.withdrawn), [2, 4, 8, 16, 32, 64, 128]);
    assert!(electors.pings < 60, "{}", electors.pings);

    // Where the other elector has seen a change of the candidate, the first withdrawal comes at once.
    let mut electors = Disagreement::new(&["a", "c"], false);
    electors.say(0, Some("c"));
    electors.electors[1].overrides = electors.electors[0].overrides.clone();
    electors.decide();
    electors.say(1, None);
    for _ in 0..100 {
        electors.both(|elector| elector.change_version("c", "1.40.0", "1.5.0"));
        electors.both(|elector| elector.change_version("c", "1.40.0", "1.4.0"));
        electors.run(1);
    }
    assert_eq!(seconds(&electors.withdrawn), [0, 4, 8, 16]);
}

/// (R16, L3) An elector of another build withdraws at once what it would not prefer itself, for as long as the holder
/// takes to stop: these prefer ever later.
#[test]
fn a_preference_that_another_build_withdraws_at_once_is_written_ever_later() {
    let mut electors = Disagreement::new(&["a", "c"], false);
    electors.withdrawn_at_once = true;
    electors.say(0, Some("c"));
    electors.run(900);
    assert_eq!(electors.withdrawn.len(), 8);
}

/// (R16, L3) Each moves the preference to the candidate that it takes for the best: the first time at once.
#[test]
fn a_preference_that_electors_disagree_on_moves_ever_later() {
    let mut electors = Disagreement::new(&["d", "a", "c"], false);
    electors.say(0, Some("c"));
    electors.run(600);
    assert_eq!(seconds(&electors.moved), [0, 4, 8, 16, 32, 64, 128, 256]);
    assert_eq!(electors.withdrawn, []);
}

/// (R23) Leaders that make room for each word cost the lease a bounded number of terms.
#[test]
fn leaders_make_room_for_electors_that_disagree_within_the_budget() {
    let mut electors = Disagreement::new(&["a", "c"], true);
    electors.say(0, Some("c"));
    electors.run(590);
    assert_eq!(electors.preemptions.len(), 3);
    assert_reason!(electors.electors[1], Reason::HeldBack { .. });

    let mut electors = Disagreement::new(&["a", "c", "b"], true);
    for _ in 0..50 {
        for candidate in ["a", "b", "c"] {
            electors.say(0, Some(candidate));
            electors.run(2);
        }
    }
    assert_eq!(electors.preemptions.len(), 6);
    assert_reason!(electors.electors[0], Reason::HeldBack { .. });
}

/// Something that happens while two electors disagree.
#[derive(Clone, Copy, Debug)]
enum DisagreementStep {
    Run(u64),
    Say(usize, Option<&'static str>),
    Version(&'static str, u8),
    Obey(bool),
}

fn steps() -> impl Arbitrary<Value = DisagreementStep> {
    let candidates = || prop_oneof![Just("a"), Just("b"), Just("c")];
    prop_oneof![
        4 => (1..90_u64).prop_map(DisagreementStep::Run),
        4 => (0..2_usize, option::of(candidates())).prop_map(|(who, word)| DisagreementStep::Say(who, word)),
        2 => (candidates(), 1..5_u8).prop_map(|(name, minor)| DisagreementStep::Version(name, minor)),
        1 => any::<bool>().prop_map(DisagreementStep::Obey),
    ]
}

proptest! {
    /// (R16, R23) Whatever words and versions come and go; the bounds are checked at each write.
    #[test]
    fn electors_that_disagree_withdraw_and_pre_empt_within_the_bounds(
        steps in collection::vec(steps(), 1..60)
    ) {
        let mut electors = Disagreement::new(&["b", "a", "c"], true);
        for step in steps {
            match step {
                DisagreementStep::Run(seconds) => electors.run(seconds),
                DisagreementStep::Say(who, word) => electors.say(who, word),
                DisagreementStep::Version(name, minor) => {
                    let version = format!("1.{minor}.0");
                    electors.both(|elector| elector.change_version(name, "1.40.0", &version));
                }
                DisagreementStep::Obey(obeys) => electors.holder_obeys = obeys,
            }
        }
    }
}
