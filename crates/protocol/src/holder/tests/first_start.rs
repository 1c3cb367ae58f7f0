//! Names without a Lease: who creates it, what is waited for, for how long, and what is reported of it (R6, R18).

use std::sync::Arc;

use super::super::{
    Acquisition, Effect, Holder, HolderConfig, HolderMode, LeaseEvent, LeaseOutcome, Wait,
    WaitReason, WriteKind,
};
use super::fixture::{
    HolderFixture, LeaseRegister, Network, auto, config_of, identity, plain, seconds, wall_at,
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

fn reported_wait(fixture: &HolderFixture) -> Option<(String, Option<f64>)> {
    let Wait { reason, until } = fixture.holder.waiting(fixture.moment())?;
    let at_most = until.map(|until| until.since(fixture.now).as_secs_f64());
    Some((reason.to_string(), at_most))
}

/// (R18) As long as the longest lease, and in auto mode the fallback once: from when the record is free, and not from the
/// absence before it too. The watch brings what was created, a moment after the Lease was seen missing.
#[test]
fn a_missing_lease_is_created_unheld_and_taken_when_no_holder_can_be_left() {
    for (mode, after) in [(auto(), 20.0), (plain(), 15.0)] {
        let mut fixture = absent(mode, CandidateTiming::default());
        let record = fixture.record();
        assert_eq!(record, &LeaseRecord::born(None));
        assert_eq!(record.occupancy(), Occupancy::Unproven);
        fixture.watch();
        fixture.acquires_after(after);
    }
}

/// A process that has seen for some seconds that the name is absent, and cannot create the Lease.
fn absent_for(seconds: f64) -> HolderFixture {
    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.network = Network::Down;
    fixture.watch();
    fixture.pass(seconds);
    fixture
}

#[test]
fn a_long_absence_that_the_watch_proves_needs_no_further_wait() {
    let mut fixture = absent_for(15.0);
    fixture.network = Network::Up;
    fixture.pass(2.0);
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

/// (R6) What was deleted was not seen, so it may have been held since the name was last known to be absent.
#[test]
fn the_deletion_of_what_was_never_seen_starts_the_proof_of_absence_anew() {
    let mut fixture = absent_for(10.0);
    let version = fixture.store.delete();
    fixture.event(LeaseEvent::Deleted(version));
    fixture.pass(10.0);
    fixture.network = Network::Up;
    fixture.pass(2.0);
    fixture.watch();
    assert!(fixture.store.lease.is_some());
    fixture.is_idle();
}

/// (R6) What cannot be read may name a holder, so the name was not absent throughout.
#[test]
fn a_revision_that_cannot_be_read_ends_the_proof_of_absence() {
    let mut fixture = absent_for(15.0);
    fixture.event(LeaseEvent::Unreadable);
    fixture.network = Network::Up;
    fixture.pass(2.0);
    fixture.watch();
    assert!(fixture.store.lease.is_some());
    fixture.is_idle();
}

#[test]
fn a_creation_that_the_watch_does_not_bring_is_looked_for() {
    let mut fixture = absent(plain(), CandidateTiming::default());
    fixture.pass(1.9);
    assert!(fixture.holder.known().is_none());
    fixture.pass(0.1);
    assert!(fixture.holder.known().is_some());
    // Found by a read, it is a record of unknown past.
    fixture.acquires_after(15.0);
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

/// With its own strategy; where that is another elector's, or an operator wants it not to lead, not at all.
#[test]
fn a_candidate_that_may_acquire_creates_a_missing_lease_and_no_other_does() {
    let wishes = |strategy: &str| HolderMode::Auto {
        fallback: seconds(5.0),
        acquisition: Acquisition {
            strategy: StrategyName::parse(strategy).ok(),
            ..Acquisition::plain()
        },
    };
    let ours = StrategyName::OLDEST_EMULATION_VERSION;
    for (mode, stands_down, creates) in [
        (wishes(ours), false, true),
        (wishes("example.com/lottery"), false, false),
        (HolderMode::Elected, false, false),
        (auto(), true, false),
    ] {
        let mut fixture = HolderFixture::of(mode);
        fixture.holder.handle_stand_down(stands_down);
        fixture.store.delete();
        fixture.watch();
        let created = fixture.store.lease.clone().map(|lease| lease.record);
        let born = LeaseRecord::born(StrategyName::parse(ours).ok());
        assert_eq!(created, creates.then_some(born));
        fixture.pass(60.0);
        assert_eq!(fixture.store.lease.is_some(), creates);
    }
}

/// (R6 c) 9 s of absence and 6 s of a record that appeared without a holder.
#[test]
fn absence_and_the_time_without_a_holder_after_it_add_up() {
    type Change = fn(&mut HolderFixture);
    let cases: [(NewsSource, f64, Change); 4] = [
        (NewsSource::Watch, 6.0, |_| {}),
        // Another revision without a holder takes nothing away from it.
        (NewsSource::Watch, 6.0, |it| {
            it.edit(|record| record.term = Term(9));
        }),
        // A gap between the two parts hides what was there before this record.
        (NewsSource::List, 15.0, |_| {}),
        // So does a holder in the second part.
        (NewsSource::Watch, 15.0, |it| {
            it.grant("other");
            it.watch();
            it.edit(|record| *record = LeaseRecord::born(None));
        }),
    ];
    for (source, after, change) in cases {
        let mut fixture = absent_for(9.0);
        fixture.store.create(LeaseRecord::born(None));
        fixture.network = Network::Up;
        let lease = fixture.store.lease.clone().unwrap();
        fixture.event(LeaseEvent::Seen(lease, source));
        change(&mut fixture);
        fixture.watch();
        fixture.acquires_after(after);
    }
}

#[test]
fn posts_come_a_second_apart_however_often_the_lease_is_deleted() {
    let mut fixture = HolderFixture::of(plain());
    let mut created = 0;
    for _ in 0..100 {
        fixture.store.delete();
        fixture.watch();
        fixture.pass(0.1);
        created += u32::from(fixture.store.lease.is_some());
        fixture.watch();
    }
    assert_eq!(created, 1 + 10);
}

/// (R18) Each part of W_max alone: what the process was configured with, its own W, and a duration seen of the lease.
#[test]
fn every_part_of_the_longest_lease_alone_decides() {
    let configured = |longest| {
        HolderMode::Plain(Acquisition {
            max_lease_duration: seconds(longest),
            ..Acquisition::plain()
        })
    };
    let own = CandidateTiming::of(seconds(40.0), seconds(20.0));
    for (mode, timing, longest) in [
        (configured(40.0), CandidateTiming::default(), 40.0),
        (configured(1.0), CandidateTiming::default(), 15.0),
        (configured(1.0), own, 40.0),
    ] {
        let mut fixture = absent(mode, timing);
        fixture.watch();
        fixture.acquires_after(longest);
    }
    // A holder of long ago, whose Lease is gone: the proof begins with the absence after it.
    let mut fixture = absent(plain(), CandidateTiming::default());
    fixture.watch();
    fixture.edit(|record| {
        (record.holder, record.duration_seconds) = (Some(identity("other")), Some(40));
    });
    fixture.watch();
    let version = fixture.store.delete();
    fixture.event(LeaseEvent::Deleted(version));
    fixture.pass(1.0);
    fixture.watch();
    fixture.acquires_after(39.0);
}

/// (R4, R18) A backup was restored while the process waited: the holder may have renewed what the backup lacks.
#[test]
fn a_restored_store_starts_the_wait_anew() {
    let mut fixture = HolderFixture::of(plain());
    fixture.grant("other");
    let backup = fixture.store.clone();
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.pass(4.0);
    fixture.store = backup;
    fixture.read();
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
    fixture.acquires_after(5.0);
}

/// (R4) A list may have been overtaken, so a read tells whether the store went back: also where no write would have told, since
/// the lease as it was known belongs to another elector (found by seed 5685 of the simulation).
#[test]
fn a_list_of_something_older_is_followed_by_a_read() {
    let mut fixture = HolderFixture::of(plain());
    fixture.grant("other");
    let backup = fixture.store.clone();
    fixture.edit(|record| record.strategy = StrategyName::parse("example.com/lottery").ok());
    fixture.watch();
    let overtaken = LeaseEvent::Seen(backup.lease.clone().unwrap(), NewsSource::List);
    fixture.event(overtaken.clone());
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
    fixture.store = backup;
    fixture.event(overtaken);
    assert_eq!(fixture.holder.known(), fixture.store.lease.as_ref());
    fixture.acquires_after(5.0);
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
    let unproven = "a process whose Lease was deleted or emptied may still lead, for up to 15s";
    for (mode, at_most) in [(auto(), 20.0), (plain(), 15.0)] {
        let mut fixture = absent(mode, CandidateTiming::default());
        let wait = Some((unproven.to_owned(), Some(at_most)));
        assert_eq!(reported_wait(&fixture), wait);
        fixture.watch();
        assert_eq!(reported_wait(&fixture), wait, "the same wait");
        fixture.pass(at_most - 1.0);
        let (reason, left) = reported_wait(&fixture).unwrap();
        assert_eq!((reason.as_str(), left), (unproven, Some(1.0)));
        fixture.pass(1.0);
        assert!(fixture.believes());
        assert_eq!(reported_wait(&fixture), None);
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
    fixture.release();
    fixture.watch();
    let fallback = (WaitReason::Fallback, Some(seconds(5.0)));
    assert_eq!(reason(&fixture), Some(fallback));
    fixture.holder.handle_stand_down(true);
    assert_eq!(reason(&fixture), Some((WaitReason::StandDown, None)));
    fixture.shut_down();
    assert_eq!(reason(&fixture), None);

    let mut fixture = of(plain());
    fixture.grant("me");
    fixture.watch();
    let former = (WaitReason::FormerLife, Some(seconds(5.0)));
    assert_eq!(reason(&fixture), Some(former));

    let mut fixture = of(auto());
    fixture.edit(|record| record.strategy = StrategyName::parse("example.com/lottery").ok());
    fixture.watch();
    assert_eq!(reason(&fixture), Some((WaitReason::Elector, None)));

    // An accept or an acquisition that is under way is no wait.
    for mode in [auto(), plain()] {
        let mut fixture = of(mode);
        fixture.network = Network::Silent;
        if fixture.holder.config.mode.accepts() {
            fixture.grant("me");
        } else {
            fixture.release();
        }
        fixture.watch();
        assert_eq!((fixture.sent.len(), reason(&fixture)), (1, None));
    }
}
