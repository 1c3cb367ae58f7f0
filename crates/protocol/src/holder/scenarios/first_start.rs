//! Names without a Lease: who creates it, what is waited for, for how long, and what is told of it (R6, R18).

use std::sync::Arc;

use super::super::fixture::{
    HolderFixture, LeaseRegister, Network, auto, config_of, identity, plain, seconds, wall_at,
};
use super::super::{
    Acquisition, Effect, Holder, HolderConfig, HolderMode, LeaseEvent, LeaseOutcome, Wait,
    WaitReason, WriteKind,
};
use crate::lease::{LeaseRecord, Occupancy};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term};
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Moment};
use crate::timing::CandidateTiming;

/// A process that has just seen that there is no Lease.
fn absent(mode: HolderMode, timing: CandidateTiming) -> HolderFixture {
    let mut fixture = HolderFixture::of(plain());
    fixture.holder = Holder::new(Arc::new(HolderConfig {
        timing,
        ..(*config_of(mode)).clone()
    }));
    fixture.store.delete();
    fixture.watch();
    fixture
}

fn told_to_wait(fixture: &HolderFixture) -> Option<(String, Option<f64>)> {
    let Wait { reason, until } = fixture.holder.waiting(fixture.moment())?;
    let at_most = until.map(|until| until.since(fixture.now).as_secs_f64());
    Some((reason.to_string(), at_most))
}

#[test]
fn a_missing_lease_is_created_unheld_and_taken_when_no_holder_can_be_left() {
    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.watch();
    let record = fixture.record();
    assert_eq!(record, &LeaseRecord::born(None));
    assert_eq!(record.occupancy(), Occupancy::Unproven);
    // Its watch brings what it created, a moment after the Lease was seen missing for the first time.
    fixture.watch();
    fixture.pass(seconds(14.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn a_long_absence_that_the_watch_proves_needs_no_further_wait() {
    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.network = Network::Down;
    fixture.watch();
    fixture.pass(seconds(15.0));
    fixture.network = Network::Up;
    fixture.pass(seconds(2.0));
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn a_creation_that_the_watch_does_not_bring_is_looked_for() {
    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.watch();
    fixture.pass(seconds(1.9));
    assert!(fixture.holder.known().is_none());
    fixture.pass(seconds(0.1));
    assert!(fixture.holder.known().is_some());
    // Found by a read, it is a record of unknown past.
    fixture.pass(seconds(14.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn a_creation_that_was_deleted_before_the_watch_brought_it_is_made_again() {
    let mut holder = Holder::new(config_of(plain()));
    let at = |seconds_now| Moment::same(Instant::from_epoch(seconds(seconds_now)));
    let wall = wall_at(at(0.0).holder);
    let born = || Effect::Create(LeaseRecord::born(None));
    holder.handle_event(at(0.0), LeaseEvent::Absent(ResourceVersion(5)));
    assert_eq!(holder.step(at(0.0), wall).effects, [born()]);
    holder.handle_outcome(at(0.0), LeaseOutcome::Conflict);
    assert_eq!(holder.step(at(2.0), wall).effects, [Effect::Read]);
    // There is nothing to look for any more: to read on would be a loop without a pause.
    holder.handle_read(at(2.0), Ok(None));
    assert_eq!(holder.step(at(2.0), wall).effects, [born()]);
}

#[test]
fn an_auto_candidate_creates_a_missing_lease_at_once_with_its_own_strategy() {
    let strategy = Some(StrategyName::oldest_emulation_version());
    let mut fixture = HolderFixture::of(HolderMode::Auto {
        fallback: seconds(5.0),
        acquisition: Acquisition {
            strategy: strategy.clone(),
            ..Acquisition::plain()
        },
    });
    fixture.store.delete();
    fixture.watch();
    assert_eq!(fixture.record(), &LeaseRecord::born(strategy));
}

#[test]
fn a_candidate_that_may_not_acquire_creates_nothing() {
    let foreign = HolderMode::Auto {
        fallback: seconds(5.0),
        acquisition: Acquisition {
            strategy: Some(StrategyName::parse("example.com/lottery").unwrap()),
            ..Acquisition::plain()
        },
    };
    for (mode, stands_down) in [
        (HolderMode::Elected, false),
        (foreign, false),
        (auto(), true),
    ] {
        let mut fixture = HolderFixture::of(mode);
        fixture.holder.handle_stand_down(stands_down);
        fixture.store.delete();
        fixture.watch();
        fixture.pass(seconds(60.0));
        assert!(fixture.store.lease.is_none());
    }
}

/// (R18) The fallback counts once: from when the record is free, and not from the absence before it too.
#[test]
fn a_first_start_takes_the_longest_lease_and_the_fallback_once() {
    for (mode, after) in [(auto(), 20.0), (plain(), 15.0)] {
        let mut fixture = HolderFixture::of(mode);
        fixture.store.delete();
        fixture.watch();
        fixture.watch();
        fixture.pass(seconds(after - 0.1));
        assert!(fixture.sent.is_empty());
        fixture.pass(seconds(0.1));
        assert_eq!(fixture.sent, [WriteKind::Acquire]);
    }
}

/// (R6 c) 9 s of absence and 6 s of a record that appeared without a holder.
#[test]
fn absence_and_the_time_without_a_holder_after_it_add_up() {
    let appears = |source| {
        let mut fixture = HolderFixture::of(plain());
        fixture.store.delete();
        fixture.network = Network::Down;
        fixture.watch();
        fixture.pass(seconds(9.0));
        fixture.store.create(LeaseRecord::born(None));
        fixture.network = Network::Up;
        let lease = fixture.store.lease.clone().unwrap();
        fixture.event(LeaseEvent::Seen(lease, source));
        fixture
    };
    let mut fixture = appears(NewsSource::Watch);
    fixture.pass(seconds(3.0));
    // Another revision without a holder takes nothing away from it.
    fixture.store.edit(|record| LeaseRecord {
        term: Term(9),
        ..record.clone()
    });
    fixture.watch();
    fixture.pass(seconds(2.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);

    // A gap between the two parts hides what was there before this record.
    let mut fixture = appears(NewsSource::List);
    fixture.pass(seconds(14.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);

    // So does a holder in the second part.
    let mut fixture = appears(NewsSource::Watch);
    fixture.grant("other");
    fixture.watch();
    fixture.store.edit(|_| LeaseRecord::born(None));
    fixture.watch();
    fixture.pass(seconds(14.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn posts_come_a_second_apart_however_often_the_lease_is_deleted() {
    let mut fixture = HolderFixture::of(plain());
    let mut created = 0;
    for _ in 0..100 {
        fixture.store.delete();
        fixture.watch();
        fixture.pass(seconds(0.1));
        created += u32::from(fixture.store.lease.is_some());
        fixture.watch();
    }
    assert_eq!(created, 1 + 10);
}

/// (R18) Each part of W_max alone: what the process was told, its own W, and a duration seen of the lease.
#[test]
fn every_part_of_the_longest_lease_alone_decides() {
    let told = |seconds_told| {
        HolderMode::Plain(Acquisition {
            max_lease_duration: seconds(seconds_told),
            ..Acquisition::plain()
        })
    };
    let own = CandidateTiming::of(seconds(40.0), seconds(20.0));
    for (mode, timing, seen, longest) in [
        (told(40.0), CandidateTiming::default(), None, 40.0),
        (told(1.0), CandidateTiming::default(), None, 15.0),
        (told(1.0), own, None, 40.0),
        (plain(), CandidateTiming::default(), Some(40), 40.0),
    ] {
        let mut fixture = absent(mode, timing);
        fixture.watch();
        if seen.is_some() {
            // A holder of long ago, whose Lease is gone: the proof begins with the absence after it.
            fixture.store.edit(|record| LeaseRecord {
                holder: Some(identity("other")),
                duration_seconds: seen,
                ..record.clone()
            });
            fixture.watch();
            let version = fixture.store.delete();
            fixture.event(LeaseEvent::Deleted(version));
            fixture.pass(seconds(1.0));
            fixture.watch();
            fixture.pass(seconds(longest - 1.1));
        } else {
            fixture.pass(seconds(longest - 0.1));
        }
        assert!(fixture.sent.is_empty(), "{longest}");
        fixture.pass(seconds(0.1));
        assert_eq!(fixture.sent, [WriteKind::Acquire]);
    }
}

/// (R4, R18) A backup was restored while the process waited: the holder may have renewed what the backup lacks.
#[test]
fn a_restored_store_starts_the_wait_anew() {
    let mut fixture = HolderFixture::of(plain());
    fixture.grant("other");
    let backup = fixture.store.clone();
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.pass(seconds(4.0));
    fixture.store = backup;
    fixture.holder.request_read();
    fixture.run();
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

/// (R18) A quarter of a second late is not late, more is, and what comes after a pause for a failure is neither.
#[test]
fn an_acquisition_is_late_after_a_quarter_of_a_second_unless_it_is_a_retry() {
    let due_at = |late: f64| {
        let mut holder = Holder::new(config_of(plain()));
        let mut store = LeaseRegister::born();
        store.edit(|record| record.released(wall_at(Instant::default())));
        let seen = LeaseEvent::Seen(store.lease.clone().unwrap(), NewsSource::Watch);
        let at = |it: f64| Moment::same(Instant::from_epoch(seconds(it)));
        holder.handle_event(at(10.0), seen);
        let now = at(10.0 + late);
        let effects = holder.step(now, wall_at(now.holder)).effects;
        (holder, now, effects)
    };
    let writes = |effects: &[Effect]| matches!(effects, [Effect::Write { .. }]);
    assert!(writes(&due_at(0.25).2));
    let (mut holder, now, effects) = due_at(0.26);
    assert_eq!(effects, [Effect::Read]);

    // The read fails, and so does the write after it: each pause has just ended when the next attempt is made.
    holder.handle_read(now, Ok(holder.known().cloned()));
    let step = |holder: &mut Holder, now: Moment| holder.step(now, wall_at(now.holder)).effects;
    assert!(writes(&step(&mut holder, now)));
    holder.handle_outcome(now, LeaseOutcome::Refused);
    let after = |it: f64| Moment::same(now.holder.after(seconds(it)));
    assert!(step(&mut holder, after(0.2)).is_empty());
    assert!(writes(&step(&mut holder, after(0.5))), "it is a retry");
    holder.handle_outcome(after(0.5), LeaseOutcome::Refused);
    assert_eq!(step(&mut holder, after(60.0)), [Effect::Read]);
}

#[test]
fn a_first_start_says_what_it_waits_for_and_for_how_long() {
    let unproven = "nothing proves yet that no process leads: one whose Lease was deleted or emptied may do so for 15s";
    for (mode, at_most) in [(auto(), 20.0), (plain(), 15.0)] {
        let mut fixture = absent(mode, CandidateTiming::default());
        let told = Some((unproven.to_owned(), Some(at_most)));
        assert_eq!(told_to_wait(&fixture), told);
        fixture.watch();
        assert_eq!(told_to_wait(&fixture), told, "the same wait");
        fixture.pass(seconds(at_most - 1.0));
        let (reason, left) = told_to_wait(&fixture).unwrap();
        assert_eq!((reason.as_str(), left), (unproven, Some(1.0)));
        fixture.pass(seconds(1.0));
        assert!(fixture.holder.believes(fixture.now));
        assert_eq!(told_to_wait(&fixture), None);
    }
}

#[test]
fn every_other_wait_has_a_reason_and_only_one_with_an_end_has_a_bound() {
    let reason = |fixture: &HolderFixture| {
        let wait = fixture.holder.waiting(fixture.moment());
        wait.map(|wait| (wait.reason, wait.until.map(|it| it.since(fixture.now))))
    };
    let of = HolderFixture::of;
    assert_eq!(reason(&of(auto())), None, "nothing was heard yet");

    let mut fixture = of(HolderMode::Elected);
    fixture.watch();
    assert_eq!(reason(&fixture), Some((WaitReason::Elector, None)));

    let mut fixture = of(auto());
    fixture.grant("other");
    fixture.watch();
    let held = WaitReason::Held(identity("other"));
    assert_eq!(reason(&fixture), Some((held, Some(seconds(10.0)))));
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| record.released(at));
    fixture.watch();
    let fallback = (WaitReason::Fallback, Some(seconds(5.0)));
    assert_eq!(reason(&fixture), Some(fallback));
    fixture.holder.handle_stand_down(true);
    assert_eq!(reason(&fixture), Some((WaitReason::StandDown, None)));
    fixture.holder.shut_down(fixture.moment());
    assert_eq!(reason(&fixture), None);

    let mut fixture = of(plain());
    fixture.grant("me");
    fixture.watch();
    let former = (WaitReason::FormerLife, Some(seconds(5.0)));
    assert_eq!(reason(&fixture), Some(former));

    let mut fixture = of(auto());
    let foreign = StrategyName::parse("example.com/lottery").unwrap();
    fixture
        .store
        .edit(|record| record.preferring(None, Some(foreign.clone())));
    fixture.watch();
    assert_eq!(reason(&fixture), Some((WaitReason::Elector, None)));

    // An accept or an acquisition that is under way is no wait.
    for mode in [auto(), plain()] {
        let mut fixture = of(mode);
        fixture.network = Network::Silent;
        if fixture.holder.config.mode.accepts() {
            fixture.grant("me");
        } else {
            fixture.store.edit(|record| record.released(at));
        }
        fixture.watch();
        assert_eq!((fixture.sent.len(), reason(&fixture)), (1, None));
    }
}
