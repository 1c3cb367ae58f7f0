//! Scenarios of processes that take a free lease themselves (R18).

use std::sync::Arc;

use super::super::fixture::{
    HolderFixture, Network, WorkEvent, auto, config_of, identity, plain, seconds, wall_at,
};
use super::super::{
    Acquisition, Displaced, Effect, Ending, Holder, HolderConfig, HolderMode, LeaseEvent, WriteKind,
};
use super::lost;
use crate::lease::{LeaseRecord, Occupancy};
use crate::lease_watch::NewsSource;
use crate::names::{Identity, ResourceVersion, Term, Token};
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Moment};

/// The lease is led by another process, whose record lasts for so many seconds.
fn led_by_another(mode: HolderMode, seconds: i32) -> HolderFixture {
    let mut fixture = HolderFixture::of(mode);
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| LeaseRecord {
        holder: Some(identity("other")),
        duration_seconds: Some(seconds),
        acquire_time: Some(at),
        renew_time: Some(at),
        term: Term(7),
        ..record.clone()
    });
    fixture.watch();
    fixture
}

fn release(fixture: &mut HolderFixture) {
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| LeaseRecord {
        strategy: record.strategy.clone(),
        ..record.released(at)
    });
    fixture.watch();
}

#[test]
fn a_released_lease_is_taken_at_once_in_a_term_of_its_own() {
    let mut fixture = led_by_another(plain(), 15);
    assert!(fixture.sent.is_empty());
    fixture
        .store
        .edit(|record| record.preferring(Some(identity("third")), None));
    let strategy = Some(StrategyName::oldest_emulation_version());
    fixture.store.edit(|record| LeaseRecord {
        strategy: strategy.clone(),
        ..record.clone()
    });
    let sent_at = fixture.now;
    release(&mut fixture);
    let token = Token(ResourceVersion(fixture.store.version - 1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert_eq!(fixture.work_events, [WorkEvent::Start(Term(8), token)]);
    let at = fixture.record().renew_time;
    let expected = LeaseRecord {
        holder: Some(identity("me")),
        duration_seconds: Some(15),
        acquire_time: at,
        renew_time: at,
        term: Term(8),
        strategy,
        preferred_holder: None,
        token: Some(token),
        token_term: Some(Term(8)),
    };
    assert_eq!(fixture.record(), &expected);
    let belief = fixture.holder.belief().unwrap();
    assert_eq!(belief.deadline, sent_at.after(seconds(10.0)));
}

#[test]
fn a_living_holder_is_waited_for_until_its_record_has_expired() {
    let mut fixture = led_by_another(plain(), 20);
    fixture.pass(seconds(19.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert!(fixture.holder.believes(fixture.now));
}

#[test]
fn a_renewal_starts_the_wait_anew_and_a_preference_does_not() {
    let mut fixture = led_by_another(plain(), 15);
    fixture.pass(seconds(10.0));
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| LeaseRecord {
        renew_time: Some(at),
        ..record.clone()
    });
    fixture.watch();
    fixture.pass(seconds(10.0));
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

/// (R4, R18) The holder may be dead, and a stranger renews in its name: a process that waits cannot tell.
#[test]
fn a_record_that_a_stranger_renews_is_never_acquired() {
    for (mode, after) in [(plain(), 15.0), (auto(), 20.0)] {
        let mut fixture = led_by_another(mode, 15);
        for _ in 0..360 {
            fixture.pass(seconds(14.0));
            let at = wall_at(fixture.now);
            fixture.store.edit(|record| LeaseRecord {
                renew_time: Some(at),
                ..record.clone()
            });
            fixture.watch();
        }
        fixture.pass(seconds(after - 0.1));
        assert!(fixture.sent.is_empty());
        fixture.pass(seconds(0.1));
        assert_eq!(fixture.sent, [WriteKind::Acquire]);
    }
}

#[test]
fn an_auto_candidate_leaves_an_elector_its_time_and_then_acquires() {
    let mut fixture = led_by_another(auto(), 15);
    release(&mut fixture);
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);

    let mut fixture = led_by_another(auto(), 15);
    fixture.pass(seconds(19.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn an_auto_candidate_accepts_what_an_elector_grants() {
    let mut fixture = led_by_another(auto(), 15);
    release(&mut fixture);
    fixture.pass(seconds(3.0));
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
    assert!(fixture.holder.believes(fixture.now));
}

#[test]
fn a_ping_of_a_free_lease_restarts_the_wait_for_the_elector_once() {
    let mut fixture = led_by_another(auto(), 15);
    // A ping while the holder lives is one for upkeep, or for a preference.
    fixture.holder.handle_ping(fixture.moment());
    fixture.pass(seconds(17.0));
    fixture.holder.handle_ping(fixture.moment());
    fixture.pass(seconds(4.0));
    fixture.holder.handle_ping(fixture.moment());
    fixture.pass(seconds(0.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

/// (R16) It takes what it is granted all the same: the elector knows better.
#[test]
fn what_stands_down_acquires_nothing_until_it_may_lead_again() {
    let mut fixture = led_by_another(auto(), 15);
    fixture.holder.handle_stand_down(true);
    release(&mut fixture);
    fixture.pass(seconds(60.0));
    assert!(fixture.sent.is_empty());
    assert_eq!(fixture.holder.free_for(fixture.moment()), None);
    fixture.holder.handle_stand_down(false);
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);

    let mut fixture = led_by_another(auto(), 15);
    fixture.holder.handle_stand_down(true);
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
}

#[test]
fn a_plain_candidate_accepts_no_grant_and_waits_until_it_has_expired() {
    let mut fixture = HolderFixture::of(plain());
    fixture.grant("me");
    fixture.watch();
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert_eq!(fixture.record().term, Term(2));
}

#[test]
fn an_emptied_record_is_waited_for_as_long_as_any_lease_may_last() {
    let mut fixture = led_by_another(plain(), 40);
    let token = Some(Token(ResourceVersion(3)));
    fixture.store.edit(|record| LeaseRecord {
        holder: None,
        token,
        duration_seconds: Some(1),
        ..record.clone()
    });
    fixture.watch();
    fixture.pass(seconds(39.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

/// (R6) What was deleted was not seen, so it may have been held since the name was last known to be absent.
#[test]
fn the_deletion_of_what_was_never_seen_starts_the_proof_of_absence_anew() {
    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.network = Network::Down;
    fixture.watch();
    fixture.pass(seconds(10.0));
    let version = fixture.store.delete();
    fixture.event(LeaseEvent::Deleted(version));
    fixture.pass(seconds(10.0));
    fixture.network = Network::Up;
    fixture.pass(seconds(2.0));
    fixture.watch();
    assert!(fixture.store.lease.is_some() && fixture.sent.is_empty());
}

#[test]
fn a_lease_whose_strategy_another_elector_decides_is_left_alone() {
    let foreign = Some(StrategyName::parse("example.com/lottery").unwrap());
    for mode in [auto(), plain()] {
        let mut fixture = led_by_another(mode, 15);
        fixture.store.edit(|record| LeaseRecord {
            strategy: foreign.clone(),
            ..record.clone()
        });
        release(&mut fixture);
        fixture.pass(seconds(60.0));
        assert!(fixture.sent.is_empty());
    }
    // A candidate that wishes for such a strategy leaves the choice to that elector, whatever the Lease says.
    let mut fixture = led_by_another(
        HolderMode::Auto {
            fallback: seconds(5.0),
            acquisition: Acquisition {
                strategy: foreign,
                ..Acquisition::plain()
            },
        },
        15,
    );
    release(&mut fixture);
    fixture.pass(seconds(60.0));
    assert!(fixture.sent.is_empty());
}

#[test]
fn an_acquisition_whose_reply_was_lost_is_found_and_counts_from_its_send() {
    let mut fixture = led_by_another(plain(), 15);
    fixture.network = Network::RepliesLost;
    let sent_at = fixture.now;
    release(&mut fixture);
    assert!(fixture.work_events.is_empty());
    fixture.network = Network::Up;
    fixture.pass(seconds(0.25));
    fixture.watch();
    let belief = fixture.holder.belief().unwrap();
    assert_eq!(belief.deadline, sent_at.after(seconds(10.0)));
    assert_eq!(fixture.record().term, Term(8));
}

#[test]
fn of_two_that_acquire_one_leads() {
    let mut fixture = led_by_another(plain(), 15);
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| record.released(at));
    let released = fixture.store.lease.clone().unwrap();
    fixture.store.edit(|record| {
        record.acquired(
            identity("third"),
            seconds(15.0),
            Token(released.version),
            at,
        )
    });
    let seen = LeaseEvent::Seen(released, NewsSource::Watch);
    fixture.event(seen);
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    fixture.pass(seconds(10.0));
    assert!(fixture.work_events.is_empty());
    assert_eq!(fixture.record().holder, Some(identity("third")));
}

#[test]
fn a_term_that_was_acquired_is_renewed_handed_over_and_released_like_any_other() {
    let mut fixture = led_by_another(plain(), 15);
    release(&mut fixture);
    fixture.pass(seconds(4.0));
    assert_eq!(fixture.sent, [WriteKind::Acquire, WriteKind::Renew]);
    fixture.holder.shut_down(fixture.moment());
    fixture.run();
    fixture.work_stops();
    assert_eq!(
        fixture.work_events.last(),
        Some(&WorkEvent::Ended(Ending::Released))
    );
    assert_eq!(fixture.record().occupancy(), Occupancy::Released);
    assert!(fixture.holder.is_finished());

    let mut fixture = led_by_another(plain(), 15);
    release(&mut fixture);
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.work_stops();
    let to = identity("third");
    assert_eq!(
        fixture.work_events.last(),
        Some(&WorkEvent::Ended(Ending::HandedOver { to }))
    );
}

#[test]
fn a_process_that_holds_nothing_ends_without_waiting_for_what_cannot_begin_a_term() {
    let mut fixture = HolderFixture::of(plain());
    fixture.network = Network::Silent;
    fixture.holder.request_read();
    fixture.run();
    fixture.holder.shut_down(fixture.moment());
    assert!(fixture.holder.is_finished(), "a read is under way");

    let mut fixture = HolderFixture::of(plain());
    fixture.store.delete();
    fixture.network = Network::Silent;
    fixture.watch();
    fixture.holder.shut_down(fixture.moment());
    assert!(
        fixture.holder.is_finished(),
        "an unheld Lease is being created"
    );

    let mut fixture = led_by_another(plain(), 15);
    fixture.network = Network::Silent;
    release(&mut fixture);
    fixture.holder.shut_down(fixture.moment());
    assert!(!fixture.holder.is_finished(), "an acquisition is under way");
}

#[test]
fn a_lapsed_holder_waits_for_its_own_record_like_for_any_other() {
    let mut fixture = led_by_another(plain(), 15);
    release(&mut fixture);
    fixture.watch();
    fixture.network = Network::Down;
    fixture.pass(seconds(10.0));
    assert_eq!(
        fixture.work_events.last(),
        Some(&lost(super::super::Loss::DeadlinePassed))
    );
    fixture.work_stops();
    fixture.network = Network::Up;
    fixture.sent.clear();
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn a_process_that_stood_still_reads_the_lease_before_it_acquires() {
    // It led, and another one leads since.
    let mut fixture = led_by_another(plain(), 15);
    release(&mut fixture);
    fixture.sent.clear();
    fixture.now = fixture.now.after(seconds(30.0));
    let at = wall_at(fixture.now);
    fixture.store.edit(|record| {
        let token = Token(ResourceVersion(3));
        record.acquired(identity("third"), seconds(15.0), token, at)
    });
    fixture.run();
    fixture.work_stops();
    fixture.pass(seconds(14.9));
    assert_eq!(fixture.sent, []);
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);

    // The lease was not taken meanwhile: what the read says is enough.
    let mut fixture = led_by_another(plain(), 15);
    fixture.now = fixture.now.after(seconds(30.0));
    fixture.run();
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert!(fixture.holder.believes(fixture.now));
}

#[test]
fn the_silence_of_others_is_timed_by_the_clock_that_may_stand_still() {
    let mut holder = Holder::new(config_of(plain()));
    let mut fixture = led_by_another(HolderMode::Elected, 15);
    release(&mut fixture);
    fixture.store.edit(|record| LeaseRecord {
        holder: Some(identity("other")),
        duration_seconds: Some(15),
        ..record.clone()
    });
    let at = |holder, monotonic| Moment {
        holder: Instant::from_epoch(seconds(holder)),
        monotonic: Instant::from_epoch(seconds(monotonic)),
    };
    let seen = fixture.store.lease.clone().unwrap();
    holder.handle_event(at(100.0, 50.0), LeaseEvent::Seen(seen, NewsSource::Watch));
    let wall = wall_at(fixture.now);
    // The machine slept for a minute, which the monotonic clock does not count.
    let decision = holder.step(at(165.0, 55.0), wall);
    assert_eq!(decision.effects, []);
    assert_eq!(decision.wake_at, Some(Instant::from_epoch(seconds(175.0))));
    let decision = holder.step(at(175.0, 65.0), wall);
    assert!(matches!(
        decision.effects[..],
        [Effect::Write {
            kind: WriteKind::Acquire,
            ..
        }]
    ));
}

#[test]
fn an_elector_displaces_the_built_in_one_at_once_and_another_elector_when_it_misses_a_renewal() {
    let displacing = || {
        HolderMode::Plain(Acquisition {
            displaced: Displaced::AllButElectors,
            absent_lease_grace: Some(seconds(0.0)),
            ..Acquisition::plain()
        })
    };
    let held_by = |holder: Identity| {
        let mut fixture = HolderFixture::of(displacing());
        let at = wall_at(fixture.now);
        fixture.store.edit(|record| LeaseRecord {
            holder: Some(holder),
            duration_seconds: Some(15),
            renew_time: Some(at),
            ..record.clone()
        });
        fixture.watch();
        fixture
    };
    assert_eq!(
        held_by(identity("apiserver-x_1")).sent,
        [WriteKind::Acquire]
    );
    let mut fixture = held_by(Identity::of_elector("host", 7));
    fixture.pass(seconds(4.9));
    assert!(fixture.sent.is_empty());
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    // The other elector may believe yet: nobody else is let in before its record would have expired (MC-P3b).
    fixture.pass(seconds(4.0));
    fixture.holder.shut_down(fixture.moment());
    fixture.run();
    fixture.work_stops();
    fixture.pass(seconds(5.9));
    assert_eq!(fixture.sent, [WriteKind::Acquire, WriteKind::Renew]);
    fixture.pass(seconds(0.1));
    assert_eq!(fixture.sent.last(), Some(&WriteKind::Release));
}

/// (R6) An emptied Lease may have a living holder. Where it has a strategy, other candidates wait for that one.
#[test]
fn a_shorter_wait_for_an_unproven_record_counts_only_where_that_has_no_strategy() {
    for (strategy, grace, expected) in [
        (None, 0.0, 0.0),
        (Some(StrategyName::oldest_emulation_version()), 0.0, 15.0),
        (Some(StrategyName::oldest_emulation_version()), 40.0, 40.0),
    ] {
        let mut fixture = HolderFixture::of(HolderMode::Plain(Acquisition {
            absent_lease_grace: Some(seconds(grace)),
            ..Acquisition::plain()
        }));
        fixture.store.create(LeaseRecord::born(strategy));
        let begun = fixture.now;
        fixture.watch();
        while !fixture.holder.believes(fixture.now) {
            assert!(fixture.now.since(begun) < seconds(60.0));
            fixture.pass(seconds(0.1));
        }
        let waited = fixture.now.since(begun).as_secs_f64();
        assert!((expected..expected + 0.3).contains(&waited), "{waited}");
    }
}

#[test]
fn the_own_lock_of_electors_is_created_and_taken_without_a_wait() {
    let config = HolderConfig {
        mode: HolderMode::Plain(Acquisition {
            absent_lease_grace: Some(seconds(0.0)),
            ..Acquisition::plain()
        }),
        ..(*config_of(plain())).clone()
    };
    let mut fixture = HolderFixture::of(plain());
    fixture.holder = Holder::new(Arc::new(config));
    fixture.store.delete();
    fixture.watch();
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert!(fixture.holder.believes(fixture.now));
}
