//! Scenarios of processes whose term has lapsed, and whose work has ended (R20).

use std::time::Duration;

use super::super::{Ending, HolderMode, Loss, WriteKind};
use super::fixture::{HolderFixture, Network, WorkEvent, auto, plain};
use crate::names::{ResourceVersion, Term, Token};
use crate::strategy::name::StrategyName;

/// A process of this mode that led, and could renew no more over this network. Its work still runs.
fn lapsed(mode: HolderMode, network: Network) -> HolderFixture {
    let mut fixture = HolderFixture::of(mode);
    fixture.wins();
    fixture.work_events.clear();
    fixture.network = network;
    fixture.pass(11.0);
    fixture.lost(Loss::DeadlinePassed);
    fixture.sent.clear();
    fixture
}

#[test]
fn a_lapsed_leader_leads_on_in_a_new_term_where_nobody_came_between() {
    for mode in [HolderMode::Elected, auto(), plain()] {
        let mut fixture = lapsed(mode, Network::Down);
        fixture.network = Network::RepliesLost;
        let token = Token(fixture.store.lease.as_ref().unwrap().version);
        fixture.pass(2.0);
        assert_eq!(fixture.sent, [], "the work still runs");
        fixture.work_stops();
        fixture.pass(60.0);
        assert_eq!(
            fixture.sent,
            [],
            "a write would be applied, and nobody would lead"
        );
        fixture.network = Network::Up;
        fixture.pass(2.0);
        assert_eq!(fixture.sent, [WriteKind::Resume]);
        let ended = WorkEvent::Ended(Ending::Lost(Loss::DeadlinePassed));
        let expected = [ended, WorkEvent::Start(Term(2), token)];
        assert_eq!(fixture.work_events[1..], expected);
        assert_eq!(fixture.record().acquire_time, fixture.record().renew_time);
        assert!(fixture.believes());
    }
}

/// (R20) A read counts that is answered once the work has ended.
#[test]
fn a_lapsed_leader_does_not_go_by_what_it_read_while_it_led() {
    let mut fixture = HolderFixture::leading();
    fixture.read();
    fixture.stand_still(11.0);
    fixture.run();
    fixture.lost(Loss::DeadlinePassed);
    fixture.network = Network::Silent;
    fixture.work_stops();
    assert_eq!(fixture.sent, []);
}

/// Its own renewal may be what came between, however late it lands.
#[test]
fn a_lapsed_leader_knows_its_late_renewal_as_its_own() {
    for (after, known) in [(0.0, true), (60.0, false)] {
        let mut fixture = lapsed(plain(), Network::Delayed);
        fixture.pass(after);
        fixture.apply_kept();
        fixture.network = Network::Up;
        if known {
            fixture.watch();
        }
        fixture.work_stops();
        fixture.pass(1.0);
        assert_eq!(fixture.sent.last(), Some(&WriteKind::Resume));
        assert!(fixture.believes());
    }
}

/// Two answers that take so long do not fit into H, so that the next term would lapse like the last.
#[test]
fn a_lapsed_leader_leads_on_after_a_read_that_took_half_of_h_only_once_its_record_has_expired() {
    for (mode, after, took, leads) in [
        (HolderMode::Elected, 0.0, 4.9, true),
        (HolderMode::Elected, 60.0, 5.0, false),
        (plain(), 0.0, 5.0, false),
        (plain(), 60.0, 5.0, true),
    ] {
        let mut fixture = lapsed(mode, Network::Down);
        fixture.network = Network::Silent;
        fixture.work_stops();
        fixture.pass(2.0);
        fixture.stand_still(after);
        fixture.note_read(Ok(fixture.store.lease.clone()));
        let took = Duration::from_secs_f64(took);
        fixture.holder.note_read_time(fixture.moment(), took);
        fixture.run();
        let resumed = fixture.sent == [WriteKind::Resume];
        assert_eq!(resumed, leads, "after {after} s, a read of {took:?}");
    }
}

#[test]
fn a_record_that_another_may_have_written_is_not_resumed() {
    let changes: [fn(&mut HolderFixture); 8] = [
        |fixture| fixture.renew(),
        |fixture| fixture.grant("other"),
        |fixture| fixture.edit(|record| record.duration_seconds = Some(30)),
        |fixture| {
            fixture.edit(|record| record.strategy = StrategyName::parse("example.com/theirs").ok());
        },
        |fixture| {
            let record = fixture.record().clone();
            let _ = fixture.store.delete();
            fixture.store.create(record);
        },
        |fixture| fixture.holder.handle_stand_down(true),
        |fixture| fixture.shut_down(),
        |fixture| {
            fixture.store.lease.as_mut().unwrap().version = ResourceVersion(2);
            fixture.read();
            fixture.pass(2.0);
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut fixture = lapsed(HolderMode::Elected, Network::Down);
        fixture.network = Network::Up;
        change(&mut fixture);
        fixture.watch();
        fixture.work_stops();
        fixture.pass(60.0);
        assert_eq!(fixture.sent, [], "change {index}");
    }
}
