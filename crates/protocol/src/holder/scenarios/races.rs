//! Strangers that write the Lease and change nothing that is judged: what they cost (R2, R4, R18).

use super::super::fixture::{HolderFixture, Network, auto, plain, seconds};
use super::super::{HolderMode, LeaseOutcome, WriteKind};

/// A process that has seen an unheld record since long ago, just before it may take it.
fn about_to_acquire(mode: HolderMode, after: f64) -> HolderFixture {
    let mut fixture = HolderFixture::of(mode);
    fixture.watch();
    fixture.pass(seconds(after - 0.1));
    assert!(fixture.sent.is_empty());
    fixture
}

#[test]
fn a_renewal_that_loses_races_is_sent_again_at_once() {
    let mut fixture = HolderFixture::leading();
    fixture.races = 9;
    let due = fixture.now.after(seconds(10.0) / 3);
    fixture.pass(seconds(3.4));
    assert_eq!((fixture.sent.len(), fixture.reads), (10, 0));
    let deadline = fixture.holder.belief().unwrap().deadline;
    assert_eq!(deadline, due.after(seconds(10.0)));
}

/// Twenty-five attempts take two pauses, and the leader leads on.
#[test]
fn a_renewal_goes_on_after_each_tenth_race_and_a_pause_that_does_not_grow() {
    let mut fixture = HolderFixture::leading();
    fixture.races = 25;
    let due = fixture.now.after(seconds(10.0) / 3);
    fixture.pass(due.since(fixture.now));
    assert_eq!(fixture.sent.len(), 10);
    fixture.pass(seconds(0.01));
    assert_eq!(fixture.sent.len(), 20);
    fixture.pass(seconds(0.01));
    assert_eq!((fixture.sent.len(), fixture.races), (26, 0));
    let deadline = fixture.holder.belief().unwrap().deadline;
    assert_eq!(deadline, due.after(seconds(10.02)));
    assert!(fixture.work_events.is_empty());
}

/// A leader whose every race is lost believes until its deadline, and no longer.
#[test]
fn a_renewal_that_never_wins_ends_with_the_belief() {
    let mut fixture = HolderFixture::leading();
    fixture.races = usize::MAX;
    fixture.pass(seconds(9.9));
    assert!(fixture.holder.believes(fixture.now));
    assert!((6_000..=7_000).contains(&fixture.sent.len()));
    fixture.pass(seconds(0.1));
    assert!(!fixture.holder.believes(fixture.now));
}

/// The next one is sent beside it, and is the only one that can prove the belief.
#[test]
fn a_renewal_under_way_is_set_aside_when_the_watch_shows_that_it_lost() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    let lost = fixture.kept.take().unwrap();
    assert!(!fixture.set_aside(), "nothing speaks against it");
    fixture.store.edit(Clone::clone);
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert!(fixture.set_aside());
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    let next = fixture.kept.take().unwrap();
    assert_eq!(fixture.store.put(&lost), LeaseOutcome::Conflict);
    assert!(matches!(fixture.store.put(&next), LeaseOutcome::Done(_)));
    let sent_at = fixture.now;
    fixture.watch();
    let deadline = fixture.holder.belief().unwrap().deadline;
    assert_eq!(deadline, sent_at.after(seconds(10.0)));
    assert!(!fixture.set_aside(), "the watch shows that it was applied");
}

/// The read after a 409, whose reply is older than what the watch has brought since.
#[test]
fn a_read_under_way_is_set_aside_when_the_watch_brings_news() {
    let mut fixture = HolderFixture::leading();
    fixture.network = Network::Silent;
    fixture.pass(seconds(4.0));
    fixture.store.edit(Clone::clone);
    let now = fixture.moment();
    fixture.holder.handle_outcome(now, LeaseOutcome::Conflict);
    fixture.run();
    assert!(!fixture.set_aside(), "its reply is the newest there is");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert!(fixture.set_aside());
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
}

#[test]
fn a_held_record_is_read_where_the_watch_is_late() {
    let mut fixture = HolderFixture::leading();
    fixture.pass(seconds(3.0));
    fixture.store.edit(Clone::clone);
    fixture.pass(seconds(0.4));
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    assert_eq!(fixture.reads, 1);
}

#[test]
fn an_accept_that_loses_races_is_sent_again_at_once() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    fixture.races = 9;
    fixture.watch();
    assert_eq!((fixture.sent.len(), fixture.reads), (10, 0));
    assert!(fixture.holder.believes(fixture.now));
}

/// A tenth race costs a pause where each news of the same record comes in between too.
#[test]
fn an_acquisition_pauses_after_each_tenth_race() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.races = 12;
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent.len(), 10);
    fixture.pass(seconds(0.01));
    assert_eq!((fixture.sent.len(), fixture.reads), (13, 0));
    assert!(fixture.holder.believes(fixture.now));
}

/// (R4) An unheld record that was read may have been held since it was last seen, so its stop-watch would start anew.
#[test]
fn races_over_an_unheld_record_leave_its_stop_watch_alone() {
    for (mode, after) in [(plain(), 15.0), (auto(), 20.0)] {
        let mut fixture = about_to_acquire(mode, after);
        fixture.races = 5;
        fixture.pass(seconds(0.1));
        assert_eq!((fixture.sent.len(), fixture.reads), (6, 0));
        assert!(fixture.holder.believes(fixture.now));
    }
}

/// News that come a second after the race are no reason to read either: the process did not stand still.
#[test]
fn an_unheld_record_is_judged_as_soon_as_the_watch_brings_what_came_between() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.store.edit(Clone::clone);
    fixture.pass(seconds(1.1));
    assert_eq!((fixture.sent.len(), fixture.reads), (1, 0));
    fixture.watch();
    assert_eq!((fixture.sent.len(), fixture.reads), (2, 0));
    assert!(fixture.holder.believes(fixture.now));
}

/// An answer says that the process does not stand still, however long it took.
#[test]
fn a_slow_answer_that_a_race_was_lost_is_no_reason_to_read() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.network = Network::Silent;
    fixture.pass(seconds(0.1));
    fixture.store.edit(Clone::clone);
    fixture.watch();
    fixture.pass(seconds(1.0));
    fixture.network = Network::Up;
    let now = fixture.moment();
    fixture.holder.handle_outcome(now, LeaseOutcome::Conflict);
    fixture.run();
    assert_eq!((fixture.sent.len(), fixture.reads), (2, 0));
    assert!(fixture.holder.believes(fixture.now));
}

/// (R4) Two seconds without news are a gap.
#[test]
fn an_unheld_record_is_read_when_the_watch_brings_nothing_and_then_counts_anew() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.store.edit(Clone::clone);
    fixture.pass(seconds(2.0));
    assert_eq!((fixture.sent.len(), fixture.reads), (1, 0));
    fixture.pass(seconds(0.1));
    assert_eq!((fixture.sent.len(), fixture.reads), (1, 1));
    fixture.pass(seconds(14.9));
    assert_eq!(fixture.sent.len(), 1);
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent.len(), 2);
    assert!(fixture.holder.believes(fixture.now));
}
