//! Scenarios of processes that take a free lease themselves (R18).

use std::mem;

use super::super::{Acquisition, Effect, Ending, Holder, HolderMode, TakeoverPolicy, WriteKind};
use super::fixture::{
    HolderFixture, Network, WorkEvent, auto, config_of, identity, plain, seconds, wall_at,
};
use crate::lease::{LeaseRecord, Occupancy};
use crate::names::{Identity, ResourceVersion, Term, Token};
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Moment};

/// Takes a lease in these ways.
fn plain_with(change: impl FnOnce(&mut Acquisition)) -> HolderMode {
    let mut acquisition = Acquisition::plain();
    change(&mut acquisition);
    HolderMode::Plain(acquisition)
}

/// The lease is led by another process, whose record lasts for some seconds.
fn led_by_another(mode: HolderMode, seconds: i32) -> HolderFixture {
    let mut fixture = HolderFixture::of(mode);
    let at = wall_at(fixture.now);
    fixture.edit(|record| {
        *record = LeaseRecord {
            holder: Some(identity("other")),
            duration_seconds: Some(seconds),
            acquire_time: Some(at),
            renew_time: Some(at),
            term: Term(7),
            ..record.clone()
        }
    });
    fixture.watch();
    fixture
}

/// The lease of another process was released.
fn released(mode: HolderMode) -> HolderFixture {
    let mut fixture = led_by_another(mode, 15);
    fixture.release();
    fixture.watch();
    fixture
}

#[test]
fn a_released_lease_is_taken_at_once_in_a_term_of_its_own() {
    let mut fixture = led_by_another(plain(), 15);
    let strategy = Some(StrategyName::oldest_emulation_version());
    fixture.edit(|record| {
        (record.preferred_holder, record.strategy) = (Some(identity("third")), strategy.clone());
    });
    fixture.release();
    fixture.is_idle();
    fixture.watch();
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
        life: None,
    };
    assert_eq!(fixture.record(), &expected);
    assert_eq!(fixture.deadline(), fixture.now.after(seconds(10.0)));
}

/// Where a record lasts, and in auto mode an elector has its time; a renewal starts the wait anew, a preference does not.
#[test]
fn a_living_holder_is_waited_for_until_its_record_has_expired() {
    led_by_another(plain(), 20).acquires_after(20.0);
    led_by_another(auto(), 15).acquires_after(20.0);
    released(auto()).acquires_after(5.0);

    let mut fixture = led_by_another(plain(), 15);
    fixture.pass(10.0);
    fixture.renew();
    fixture.watch();
    fixture.pass(10.0);
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.acquires_after(5.0);
}

/// (R4, R18) The holder may be dead, and a stranger renews in its name: a process that waits cannot tell.
#[test]
fn a_record_that_a_stranger_renews_is_never_acquired() {
    for (mode, after) in [(plain(), 15.0), (auto(), 20.0)] {
        let mut fixture = led_by_another(mode, 15);
        for _ in 0..360 {
            fixture.pass(14.0);
            fixture.renew();
            fixture.watch();
        }
        fixture.acquires_after(after);
    }
}

#[test]
fn an_auto_candidate_accepts_what_an_elector_grants() {
    let mut fixture = released(auto());
    fixture.pass(3.0);
    fixture.grant("me");
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Accept]);
    assert!(fixture.believes());
}

#[test]
fn a_ping_of_a_free_lease_restarts_the_wait_for_the_elector_once() {
    let mut fixture = led_by_another(auto(), 15);
    // A ping while the holder lives is one for upkeep, or for a preference.
    fixture.holder.handle_ping(fixture.moment());
    fixture.pass(17.0);
    fixture.holder.handle_ping(fixture.moment());
    fixture.pass(4.0);
    fixture.holder.handle_ping(fixture.moment());
    fixture.acquires_after(1.0);
}

/// (R18) Nobody could act in an outage. When the API server answers again, an elector has its time anew and the former
/// leader a retry period, once.
#[test]
fn a_lease_is_left_to_others_once_more_after_an_outage() {
    for (mode, due, again, reads) in [
        (auto(), 20.0, 5.0, false),
        (auto(), 20.0, 5.0, true),
        (plain(), 15.0, 2.25, false),
        (plain(), 15.0, 2.25, true),
    ] {
        let back_again = |times: usize| {
            let mut fixture = led_by_another(mode.clone(), 15);
            fixture.network = Network::Down;
            if reads {
                fixture.read();
            }
            fixture.pass(due + 40.0);
            // It reads from then on.
            assert_eq!(mem::take(&mut fixture.sent).len(), usize::from(!reads));
            fixture.network = Network::Up;
            let answers_at = fixture.wake_at.unwrap();
            fixture.pass(answers_at.since(fixture.now).as_secs_f64());
            assert_eq!((fixture.reads, fixture.sent.len()), (1, 0));
            if times == 2 {
                fixture.network = Network::Down;
                fixture.pass(again);
                assert_eq!(mem::take(&mut fixture.sent), [WriteKind::Acquire]);
                fixture.network = Network::Up;
            }
            fixture
        };
        back_again(1).acquires_after(again);
        let mut twice = back_again(2);
        twice.pass(2.0);
        assert_eq!(twice.sent, [WriteKind::Acquire]);

        let mut resumed = back_again(1);
        resumed.pass(again - 0.1);
        resumed.renew();
        resumed.watch();
        resumed.acquires_after(due);
    }
}

#[test]
fn a_lease_that_others_may_lead_first_is_left_to_them_for_longer() {
    for (mode, after) in [(plain(), 18.0), (auto(), 23.0)] {
        let mut fixture = led_by_another(mode, 15);
        fixture.holder.handle_delay(seconds(3.0));
        fixture.acquires_after(after);
    }
}

/// (R16) It takes what it is granted all the same: the elector knows better.
#[test]
fn what_stands_down_acquires_nothing_until_it_may_lead_again() {
    let mut fixture = led_by_another(auto(), 15);
    fixture.holder.handle_stand_down(true);
    let mut granted = led_by_another(auto(), 15);
    granted.holder.handle_stand_down(true);
    granted.grant("me");
    granted.watch();
    assert_eq!(granted.sent, [WriteKind::Accept]);

    fixture.release();
    fixture.watch();
    fixture.pass(60.0);
    assert_eq!(fixture.holder.free_for(fixture.moment()), None);
    fixture.is_idle();
    fixture.holder.handle_stand_down(false);
    fixture.pass(0.1);
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
}

#[test]
fn a_plain_candidate_accepts_no_grant_and_waits_until_it_has_expired() {
    let mut fixture = HolderFixture::of(plain());
    fixture.grant("me");
    fixture.watch();
    fixture.acquires_after(5.0);
    assert_eq!(fixture.record().term, Term(2));
}

#[test]
fn an_emptied_record_is_waited_for_as_long_as_any_lease_may_last() {
    let mut fixture = led_by_another(plain(), 40);
    fixture.edit(|record| {
        record.token = Some(Token(ResourceVersion(3)));
        (record.holder, record.duration_seconds) = (None, Some(1));
    });
    fixture.watch();
    fixture.acquires_after(40.0);
}

/// One that the Lease names, or that the candidate wishes for, whatever the Lease says.
#[test]
fn a_lease_whose_strategy_another_elector_decides_is_left_alone() {
    let foreign = StrategyName::parse("example.com/lottery").ok();
    let wishes = HolderMode::Auto {
        fallback: seconds(5.0),
        acquisition: Acquisition {
            strategy: foreign.clone(),
            ..Acquisition::plain()
        },
    };
    for (mode, strategy) in [
        (auto(), foreign.clone()),
        (plain(), foreign),
        (wishes, None),
    ] {
        let mut fixture = led_by_another(mode, 15);
        fixture.edit(|record| record.strategy = strategy);
        fixture.release();
        fixture.watch();
        fixture.pass(60.0);
        fixture.is_idle();
    }
}

#[test]
fn an_acquisition_whose_reply_was_lost_is_found_and_counts_from_its_send() {
    let mut fixture = led_by_another(plain(), 15);
    fixture.network = Network::RepliesLost;
    let sent_at = fixture.now;
    fixture.release();
    fixture.watch();
    assert_eq!(fixture.work_events, []);
    fixture.network = Network::Up;
    fixture.pass(0.25);
    fixture.watch();
    assert_eq!(fixture.deadline(), sent_at.after(seconds(10.0)));
    assert_eq!(fixture.record().term, Term(8));
}

#[test]
fn of_two_that_acquire_one_leads() {
    let mut fixture = led_by_another(plain(), 15);
    fixture.release();
    let seen = fixture.present();
    let (token, at) = (
        Token(ResourceVersion(fixture.store.version)),
        wall_at(fixture.now),
    );
    let third = identity("third");
    fixture.edit(|record| *record = record.acquired(third.clone(), seconds(15.0), token, at));
    fixture.event(seen);
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    fixture.pass(10.0);
    assert_eq!(fixture.work_events, []);
    assert_eq!(fixture.record().holder, Some(third));
}

#[test]
fn a_term_that_was_acquired_is_renewed_handed_over_and_released_like_any_other() {
    let mut fixture = released(plain());
    fixture.pass(4.0);
    assert_eq!(fixture.sent, [WriteKind::Acquire, WriteKind::Renew]);
    fixture.shut_down();
    fixture.run();
    fixture.work_stops();
    fixture.ended(Ending::Released);
    assert_eq!(fixture.record().occupancy(), Occupancy::Released);
    assert!(fixture.holder.is_finished());

    let mut fixture = released(plain());
    fixture.prefer(Some("third"));
    fixture.watch();
    fixture.work_stops();
    let to = identity("third");
    fixture.ended(Ending::HandedOver { to });
}

/// A read, or the creation of an unheld Lease; an acquisition can begin one.
#[test]
fn a_process_that_holds_nothing_ends_without_waiting_for_what_cannot_begin_a_term() {
    type Request = fn(&mut HolderFixture);
    let requests: [(bool, Request); 3] = [
        (true, HolderFixture::read),
        (true, |it| {
            it.store.delete();
            it.watch();
        }),
        (false, |it| {
            it.release();
            it.watch();
        }),
    ];
    for (index, (finished, request)) in requests.into_iter().enumerate() {
        let mut fixture = led_by_another(plain(), 15);
        fixture.network = Network::Silent;
        request(&mut fixture);
        fixture.shut_down();
        assert_eq!(fixture.holder.is_finished(), finished, "request {index}");
    }
}

#[test]
fn a_process_that_stood_still_reads_the_lease_before_it_acquires() {
    // It led, and another one leads since.
    let mut fixture = released(plain());
    fixture.sent.clear();
    fixture.stand_still(30.0);
    let at = wall_at(fixture.now);
    let token = Token(ResourceVersion(3));
    fixture.edit(|it| *it = it.acquired(identity("third"), seconds(15.0), token, at));
    fixture.run();
    fixture.work_stops();
    fixture.acquires_after(15.0);

    // The lease was not taken meanwhile: what the read says is enough.
    let mut fixture = led_by_another(plain(), 15);
    fixture.stand_still(30.0);
    fixture.run();
    let expected = (&[WriteKind::Acquire][..], 1);
    assert_eq!((&fixture.sent[..], fixture.reads), expected);
    assert!(fixture.believes());
}

#[test]
fn the_silence_of_others_is_timed_by_the_clock_that_may_stand_still() {
    let mut holder = Holder::new(config_of(plain()));
    let fixture = led_by_another(HolderMode::Elected, 15);
    let at = |holder, monotonic| Moment {
        holder: Instant::from_epoch(seconds(holder)),
        monotonic: Instant::from_epoch(seconds(monotonic)),
    };
    holder.handle_event(at(100.0, 50.0), fixture.present());
    let wall = wall_at(fixture.now);
    // The machine slept for a minute, which the monotonic clock does not count.
    let decision = holder.step(at(165.0, 55.0), wall);
    assert_eq!(decision.effects, []);
    assert_eq!(decision.wake_at, Some(Instant::from_epoch(seconds(175.0))));
    let effects = holder.step(at(175.0, 65.0), wall).effects;
    assert!(matches!(&effects[..], [Effect::Write { kind, .. }] if *kind == WriteKind::Acquire));
}

#[test]
fn an_elector_displaces_the_built_in_one_at_once_and_another_elector_when_it_misses_a_renewal() {
    let held_by = |holder: Identity| {
        let mut fixture = HolderFixture::of(plain_with(|it| {
            it.takeover = TakeoverPolicy::AllButElectors;
            it.absent_lease_grace = Some(seconds(0.0));
        }));
        fixture.edit(|record| {
            (record.holder, record.duration_seconds) = (Some(holder), Some(15));
        });
        fixture.renew();
        fixture.watch();
        fixture
    };
    let built_in = held_by(identity("apiserver-x_1"));
    assert_eq!(built_in.sent, [WriteKind::Acquire]);
    let mut fixture = held_by(Identity::of_elector("host", 7));
    fixture.acquires_after(5.0);
    // The other elector may believe yet: no other is let in before its record would have expired (MC-P3b).
    fixture.pass(4.0);
    fixture.shut_down();
    fixture.run();
    fixture.work_stops();
    fixture.pass(5.9);
    assert_eq!(fixture.sent, [WriteKind::Acquire, WriteKind::Renew]);
    fixture.pass(0.1);
    assert_eq!(fixture.sent.last(), Some(&WriteKind::Release));
}

/// (R6) An emptied Lease may have a living holder. Where it has a strategy, other candidates wait for that one.
#[test]
fn a_shorter_wait_for_an_unproven_record_counts_only_where_that_has_no_strategy() {
    let strategy = Some(StrategyName::oldest_emulation_version());
    for (strategy, grace, expected) in [
        (None, 0.0, 0.0),
        (strategy.clone(), 0.0, 15.0),
        (strategy, 40.0, 40.0),
    ] {
        let grace = Some(seconds(grace));
        let mut fixture = HolderFixture::of(plain_with(|it| it.absent_lease_grace = grace));
        fixture.edit(|record| record.strategy = strategy);
        fixture.watch();
        if expected > 0.0 {
            fixture.acquires_after(expected);
        }
        assert_eq!(fixture.sent, [WriteKind::Acquire]);
    }
}

#[test]
fn the_own_lock_of_electors_is_created_and_taken_without_a_wait() {
    let without_a_wait = plain_with(|it| it.absent_lease_grace = Some(seconds(0.0)));
    let mut fixture = HolderFixture::of(without_a_wait);
    fixture.store.delete();
    fixture.watch();
    fixture.watch();
    assert_eq!(fixture.sent, [WriteKind::Acquire]);
    assert!(fixture.believes());
}
