//! Strangers that write the Lease and change nothing that is judged: what they cost (R2, R4, R18).

use super::super::{HolderMode, LeaseOutcome, WriteKind};
use super::fixture::{HolderFixture, Network, auto, plain, seconds};

/// A process that has seen an unheld record since long ago, just before it may take it.
fn about_to_acquire(mode: HolderMode, after: f64) -> HolderFixture {
    let mut fixture = HolderFixture::of(mode);
    fixture.watch();
    fixture.pass(after - 0.1);
    fixture.is_idle();
    fixture
}

/// The numbers of writes and of reads.
fn requests(fixture: &HolderFixture) -> (usize, usize) {
    (fixture.sent.len(), fixture.reads)
}

/// At once nine times, and after each tenth race and a pause that does not grow: the leader leads on.
#[test]
fn a_renewal_that_loses_races_is_sent_again() {
    for (races, late) in [(9, 0.0), (25, 0.02)] {
        let mut fixture = HolderFixture::leading();
        fixture.races = races;
        let due = fixture.now.after(seconds(10.0) / 3);
        fixture.pass(due.since(fixture.now).as_secs_f64());
        assert_eq!(requests(&fixture), (10, 0));
        fixture.pass(0.01);
        assert_eq!(requests(&fixture), ((races + 1).min(20), 0));
        fixture.pass(0.01);
        assert_eq!(requests(&fixture), (races + 1, 0));
        assert_eq!(fixture.deadline(), due.after(seconds(10.0 + late)));
        fixture.leads_on();
    }
}

/// A leader whose every race is lost believes until its deadline, and no longer.
#[test]
fn a_renewal_that_never_wins_ends_with_the_belief() {
    let mut fixture = HolderFixture::leading();
    fixture.races = usize::MAX;
    fixture.pass(9.9);
    assert!(fixture.believes());
    assert!((6_000..=7_000).contains(&fixture.sent.len()));
    fixture.pass(0.1);
    assert!(!fixture.believes());
}

/// The next one is sent beside it, and is the only one that can prove the belief.
#[test]
fn a_renewal_under_way_is_set_aside_when_the_watch_shows_that_it_lost() {
    let mut fixture = HolderFixture::renewing();
    let lost = fixture.kept.take().unwrap();
    assert!(!fixture.set_aside(), "nothing speaks against it");
    fixture.edit(|_| {});
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert!(fixture.set_aside());
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
    assert_eq!(fixture.store.put(&lost), LeaseOutcome::Conflict);
    assert!(matches!(fixture.apply_kept(), LeaseOutcome::Done(_)));
    fixture.watch();
    assert_eq!(fixture.deadline(), fixture.now.after(seconds(10.0)));
    assert!(!fixture.set_aside(), "the watch shows that it was applied");
}

/// The read after a 409, whose reply is older than what the watch has brought since.
#[test]
fn a_read_under_way_is_set_aside_when_the_watch_brings_news() {
    let mut fixture = HolderFixture::renewing();
    fixture.edit(|_| {});
    fixture.outcome(LeaseOutcome::Conflict);
    assert!(!fixture.set_aside(), "its reply is the newest there is");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Renew]);
    assert!(fixture.set_aside());
    assert_eq!(fixture.sent, [WriteKind::Renew, WriteKind::Renew]);
}

#[test]
fn a_held_record_is_read_where_the_watch_is_late() {
    let mut fixture = HolderFixture::leading();
    fixture.pass(3.0);
    fixture.edit(|_| {});
    fixture.pass(0.4);
    assert_eq!(requests(&fixture), (2, 1));
}

#[test]
fn an_accept_that_loses_races_is_sent_again_at_once() {
    let mut fixture = HolderFixture::new();
    fixture.grant("me");
    fixture.races = 9;
    fixture.watch();
    assert_eq!(requests(&fixture), (10, 0));
    assert!(fixture.believes());
}

/// (R4) An unheld record that was read may have been held since it was last seen, so its stop-watch would start anew. A
/// tenth race costs a pause where each news of the same record comes in between too.
#[test]
fn races_over_an_unheld_record_leave_its_stop_watch_alone() {
    for (mode, after, races) in [(plain(), 15.0, 5), (auto(), 20.0, 5), (plain(), 15.0, 12)] {
        let mut fixture = about_to_acquire(mode, after);
        fixture.races = races;
        fixture.pass(0.1);
        assert_eq!(requests(&fixture), ((races + 1).min(10), 0));
        fixture.pass(0.01);
        assert_eq!(requests(&fixture), (races + 1, 0));
        assert!(fixture.believes());
    }
}

/// News that come a second after the race are no reason to read either, and neither is an answer that took long: the
/// process did not stand still.
#[test]
fn an_unheld_record_is_judged_as_soon_as_the_watch_brings_what_came_between() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.edit(|_| {});
    fixture.pass(1.1);
    assert_eq!(requests(&fixture), (1, 0));
    fixture.watch();
    assert_eq!(requests(&fixture), (2, 0));
    assert!(fixture.believes());

    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.network = Network::Silent;
    fixture.pass(0.1);
    fixture.edit(|_| {});
    fixture.watch();
    fixture.pass(1.0);
    fixture.network = Network::Up;
    fixture.outcome(LeaseOutcome::Conflict);
    assert_eq!(requests(&fixture), (2, 0));
    assert!(fixture.believes());
}

/// (R4) Two seconds without news are a gap.
#[test]
fn an_unheld_record_is_read_when_the_watch_brings_nothing_and_then_counts_anew() {
    let mut fixture = about_to_acquire(plain(), 15.0);
    fixture.edit(|_| {});
    fixture.pass(2.0);
    assert_eq!(requests(&fixture), (1, 0));
    fixture.pass(0.1);
    assert_eq!(requests(&fixture), (1, 1));
    fixture.pass(14.9);
    assert_eq!(fixture.sent.len(), 1);
    fixture.pass(0.1);
    assert_eq!(fixture.sent.len(), 2);
    assert!(fixture.believes());
}
