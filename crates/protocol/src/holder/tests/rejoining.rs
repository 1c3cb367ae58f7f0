//! Scenarios of a process whose instance had a term that died with an earlier life (R21).

use std::sync::Arc;

use super::super::{FormerTerm, Holder, HolderConfig, HolderMode, WriteKind};
use super::fixture::{HolderFixture, Network, WorkEvent, auto, config_of, identity, plain};
use crate::lease::LeaseRecord;
use crate::names::{LifeId, ResourceVersion, Term, Token, Uid};
use crate::strategy::name::StrategyName;

fn life(life: u64) -> Option<LifeId> {
    Some(LifeId { instance: 7, life })
}

/// A process of this name and life, which knows nothing yet.
fn process(name: &str, mode: HolderMode, number: u64) -> Holder {
    Holder::new(Arc::new(HolderConfig {
        identity: identity(name),
        life: life(number),
        ..(*config_of(mode)).clone()
    }))
}

/// The first life of an instance, which works in its first term; and what its lock has noted of that.
fn led(mode: HolderMode) -> (HolderFixture, FormerTerm) {
    let mut fixture = HolderFixture::of(mode.clone());
    fixture.holder = process("me", mode, 1);
    fixture.wins();
    assert_eq!(fixture.record().life, life(1));
    let noted = FormerTerm {
        life: life(1).unwrap(),
        uid: fixture.store.lease.clone().unwrap().uid,
        holder: identity("me"),
        base: fixture.record().token.unwrap().0,
    };
    (fixture, noted)
}

/// The next life starts, and its lock has noted these terms of the one before, which is dead.
fn restart(fixture: &mut HolderFixture, name: &str, mode: HolderMode, noted: Vec<FormerTerm>) {
    fixture.holder = process(name, mode, 2).with_former_terms(noted);
    fixture.sent.clear();
    fixture.work_events.clear();
}

#[test]
fn the_next_life_of_an_instance_leads_on_at_once_under_whatever_name() {
    for mode in [HolderMode::Elected, auto(), plain()] {
        for (name, preferred) in [
            ("me", None),
            ("me-again", None),
            ("me-again", Some("other")),
        ] {
            let (mut fixture, noted) = led(mode.clone());
            fixture.prefer(preferred);
            let token = Token(fixture.store.lease.as_ref().unwrap().version);
            restart(&mut fixture, name, mode.clone(), vec![noted]);
            fixture.watch();
            assert_eq!(fixture.sent, [WriteKind::Rejoin]);
            assert_eq!(fixture.reads, 1, "the server answers");
            assert_eq!(fixture.work_events, [WorkEvent::Start(Term(2), token)]);
            assert!(fixture.believes());
            let record = fixture.record();
            assert_eq!((record.life, &record.preferred_holder), (life(2), &None));
            // Its renewals say so too, and its release does not.
            fixture.pass(4.0);
            assert_eq!(fixture.record().life, life(2));
            let released = fixture
                .record()
                .released(fixture.record().renew_time.unwrap());
            assert_eq!(released.life, None);
        }
    }
}

/// The write that begins the term was sent, and lands after the next life has looked at the Lease.
#[test]
fn a_term_that_lands_after_its_process_died_is_rejoined_too() {
    let (mode, name) = (HolderMode::Elected, "me-again");
    let mut fixture = HolderFixture::new();
    (fixture.holder, fixture.network) = (process("me", mode.clone(), 1), Network::Delayed);
    fixture.grant("me");
    fixture.watch();
    let noted = FormerTerm::of(fixture.kept.as_ref().unwrap()).unwrap();
    restart(&mut fixture, name, mode, vec![noted]);
    fixture.network = Network::Up;
    fixture.watch();
    fixture.pass(1.0);
    fixture.is_idle();
    fixture.apply_kept();
    // A renewal by the dead process, too.
    fixture.renew();
    fixture.races = 1;
    fixture.watch();
    fixture.pass(1.0);
    assert_eq!(fixture.sent, [WriteKind::Rejoin, WriteKind::Rejoin]);
    assert!(fixture.believes());
}

/// Nothing is written after these changes of what was noted, or of the Lease, and those of the next life.
#[track_caller]
fn assert_waits(
    before: impl Fn(&mut HolderFixture, &mut FormerTerm),
    after: impl Fn(&mut HolderFixture),
) {
    let (mut fixture, mut noted) = led(HolderMode::Elected);
    before(&mut fixture, &mut noted);
    restart(&mut fixture, "me-again", HolderMode::Elected, vec![noted]);
    after(&mut fixture);
    fixture.watch();
    fixture.pass(60.0);
    assert_eq!(fixture.sent, []);
}

#[test]
fn a_term_that_is_not_certainly_that_of_the_dead_life_is_waited_for() {
    let by_note = |change: fn(&mut FormerTerm)| assert_waits(|_, noted| change(noted), |_| {});
    by_note(|noted| noted.uid = Uid::new("another"));
    by_note(|noted| noted.base = ResourceVersion(noted.base.0 - 1));
    // Two processes share a name, and the other one's write came first.
    by_note(|noted| noted.life.life = 3);
    by_note(|noted| noted.holder = identity("other"));
    let by_record = |change: fn(&mut LeaseRecord)| {
        assert_waits(|fixture, _| fixture.edit(change), |_| {});
    };
    by_record(|record| record.life = None);
    by_record(|record| record.holder = Some(identity("client-go")));
    by_record(|record| record.term = Term(5));
    by_record(|record| record.strategy = StrategyName::parse("example.com/theirs").ok());
}

#[test]
fn a_life_that_is_not_to_lead_or_saw_the_term_end_rejoins_nothing() {
    assert_waits(|_, _| {}, |fixture| fixture.holder.handle_stand_down(true));
    assert_waits(|_, _| {}, HolderFixture::shut_down);
    // A stranger writes back what was there.
    let writes_back = |fixture: &mut HolderFixture, absent: bool| {
        let record = fixture.record().clone();
        match absent {
            true => {
                let _ = fixture.store.delete();
                fixture.watch();
                fixture.store.create(LeaseRecord::born(None));
            }
            false => {
                fixture.edit(|record| *record = LeaseRecord::born(None));
                fixture.watch();
            }
        }
        fixture.edit(|stored| *stored = record);
    };
    assert_waits(|_, _| {}, |fixture| writes_back(fixture, false));
    assert_waits(|_, _| {}, |fixture| writes_back(fixture, true));
}
