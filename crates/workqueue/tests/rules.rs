//! Each rule of the queue as a named test, through the public API alone.

use std::time::Duration;

use elector_workqueue::{Backoff, Poll, RateLimiter, WorkQueue, WorkTimes};

type Queue = WorkQueue<&'static str>;

fn queue() -> Queue {
    WorkQueue::new(RateLimiter::new(Backoff::new(ms(5), s(5))))
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Takes what is ready at `now`, in order, without marking it done.
fn take(queue: &mut Queue, now: Duration) -> Vec<&'static str> {
    let mut keys = Vec::new();
    while let Poll::Ready(key) = queue.poll(now) {
        keys.push(key);
    }
    keys
}

// === add, poll, done ===

#[test]
fn an_add_of_a_ready_key_keeps_its_place_and_costs_nothing() {
    let mut queue = queue();
    for key in ["a", "b", "a", "a"] {
        queue.add(key, s(0));
    }
    assert_eq!(queue.adds(), 2);
    assert_eq!(take(&mut queue, s(0)), ["a", "b"]);
}

#[test]
fn a_key_added_while_processed_comes_back_once_after_done() {
    let mut queue = queue();
    queue.add("a", s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready("a"));
    queue.add("a", s(1));
    queue.add("a", s(2));
    assert_eq!(queue.poll(s(2)), Poll::Wait(None), "it is with a worker");
    assert_eq!(queue.depth(), 0);
    assert_eq!(queue.processing(), 1);

    queue.done(&"a", s(3));
    assert_eq!(queue.poll(s(3)), Poll::Ready("a"));
    queue.done(&"a", s(4));
    assert_eq!(queue.poll(s(4)), Poll::Wait(None));
    assert_eq!(queue.adds(), 2);
}

#[test]
fn done_of_a_key_with_nobody_changes_nothing() {
    let mut queue = queue();
    assert_eq!(queue.done(&"a", s(0)), None);
    queue.add("a", s(0));
    assert_eq!(queue.done(&"a", s(0)), None, "ready, not yet handed out");
    assert_eq!(take(&mut queue, s(0)), ["a"]);
    assert!(queue.done(&"a", s(0)).is_some());
    assert_eq!(queue.done(&"a", s(0)), None, "done twice");
    assert_eq!(take(&mut queue, s(0)), [""; 0]);
}

// === add_after ===

#[test]
fn a_delayed_key_is_ready_at_its_deadline_and_not_before() {
    let mut queue = queue();
    queue.add_after("a", s(5), s(10));
    assert_eq!((queue.waiting(), queue.depth()), (1, 0));
    assert_eq!(queue.poll(ms(14_999)), Poll::Wait(Some(s(15))));
    assert_eq!(queue.poll(s(15)), Poll::Ready("a"));
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn the_earliest_of_several_delays_wins_and_is_the_only_one() {
    for delays in [[2, 5, 9], [9, 5, 2], [5, 2, 9]] {
        let mut queue = queue();
        for delay in delays {
            queue.add_after("a", s(delay), s(0));
        }
        assert_eq!(queue.poll(s(1)), Poll::Wait(Some(s(2))));
        assert_eq!(queue.poll(s(2)), Poll::Ready("a"));
        queue.done(&"a", s(2));
        assert_eq!(queue.poll(s(100)), Poll::Wait(None));
    }
}

#[test]
fn a_key_that_waits_no_more_is_ready_all_the_same_and_may_wait_anew() {
    let mut queue = queue();
    for key in ["a", "b"] {
        queue.add_after(key, s(2), s(0));
    }
    queue.add("a", s(1));
    queue.stop_waiting(&"a", s(1));
    assert_eq!(take(&mut queue, s(1)), ["a"]);
    queue.add_after("a", s(5), s(1));
    queue.done(&"a", s(1));
    assert_eq!(take(&mut queue, s(2)), ["b"]);
    queue.stop_waiting(&"a", s(6));
    assert_eq!(take(&mut queue, s(6)), ["a"], "it was due by then");
}

#[test]
fn a_delayed_key_counts_from_its_deadline_whenever_somebody_polls() {
    let mut queue = queue();
    queue.add_after("due-at-2", s(2), s(0));
    queue.add_after("due-at-1", s(1), s(0));
    queue.add("added-at-0", s(0));
    queue.add("added-at-3", s(3));
    let expected = ["added-at-0", "due-at-1", "due-at-2", "added-at-3"];
    assert_eq!(take(&mut queue, s(4)), expected);
}

#[test]
fn equal_deadlines_count_in_the_order_of_their_first_calls() {
    let mut queue = queue();
    for key in ["z", "a", "z"] {
        queue.add_after(key, s(1), s(0));
    }
    assert_eq!(take(&mut queue, s(1)), ["z", "a"]);
}

#[test]
fn a_delay_past_the_end_of_time_stays_there() {
    let mut queue = queue();
    queue.add_after("a", Duration::MAX, s(1));
    assert_eq!(queue.poll(s(1)), Poll::Wait(Some(Duration::MAX)));
}

#[test]
fn time_that_goes_backwards_counts_as_standing_still() {
    let mut queue = queue();
    assert_eq!(queue.poll(s(10)), Poll::Wait(None));
    queue.add_after("a", s(1), s(3));
    assert_eq!(queue.poll(s(3)), Poll::Wait(Some(s(11))));
    queue.add("b", s(2));
    assert_eq!(queue.poll(s(2)), Poll::Ready("b"));
    assert_eq!(queue.longest_processing(s(1)), s(0));
    let times = queue.done(&"b", s(1)).unwrap();
    assert_eq!((times.queued, times.processing), (s(0), s(0)));
}

// === add_rate_limited, forget, num_requeues ===

#[test]
fn failures_double_the_wait_up_to_the_electors_cap() {
    let mut queue = queue();
    let mut now = s(0);
    let mut waits = Vec::new();
    queue.add("a", now);
    for _ in 0..13 {
        assert_eq!(queue.poll(now), Poll::Ready("a"));
        queue.add_rate_limited("a", now);
        queue.done(&"a", now);
        let Poll::Wait(Some(deadline)) = queue.poll(now) else {
            panic!("the key has to wait");
        };
        waits.push((deadline - now).as_millis());
        now = deadline;
    }
    assert_eq!(
        waits,
        [
            5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_000, 5_000, 5_000
        ]
    );
    assert_eq!(queue.num_requeues(&"a"), 13);
    assert_eq!(queue.retries(), 13);
}

#[test]
fn forget_starts_the_backoff_anew_and_leaves_the_key_queued() {
    let mut queue = queue();
    for _ in 0..8 {
        queue.add_rate_limited("a", s(0));
    }
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    assert_eq!(queue.poll(ms(5)), Poll::Ready("a"), "it still waited");
    queue.add_rate_limited("a", s(1));
    queue.done(&"a", s(1));
    assert_eq!(queue.poll(s(1)), Poll::Wait(Some(ms(1_005))));
}

#[test]
fn failures_of_one_key_do_not_delay_another() {
    let mut queue = queue();
    for _ in 0..20 {
        queue.add_rate_limited("failing", s(0));
    }
    queue.add_rate_limited("healthy", s(1));
    assert_eq!(take(&mut queue, ms(1_005)), ["failing", "healthy"]);
}

// === shut_down, shut_down_with_drain ===

#[test]
fn shut_down_hands_out_what_is_ready_and_drops_what_waits() {
    let mut queue = queue();
    queue.add("a", s(0));
    queue.add_after("due", s(1), s(0));
    queue.add_after("waiting", s(9), s(0));
    assert!(!queue.is_shutting_down());
    queue.shut_down(s(1));
    assert!(queue.is_shutting_down());
    assert_eq!(queue.waiting(), 0);
    assert_eq!(take(&mut queue, s(100)), ["a", "due"]);
    assert_eq!(queue.poll(s(100)), Poll::ShutDown);
}

#[test]
fn a_drain_waits_for_workers_and_for_what_they_left_dirty() {
    let mut queue = queue();
    queue.add("a", s(0));
    queue.add("b", s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready("a"));
    queue.add("a", s(0));
    queue.shut_down_with_drain(s(0));

    assert_eq!(queue.poll(s(0)), Poll::Ready("b"));
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
    queue.done(&"b", s(1));
    assert_eq!(queue.poll(s(1)), Poll::Wait(None), "a is still out");
    queue.done(&"a", s(2));
    assert_eq!(queue.poll(s(2)), Poll::Ready("a"), "it was dirty");
    assert_eq!(queue.poll(s(2)), Poll::Wait(None));
    queue.done(&"a", s(3));
    assert_eq!(queue.poll(s(3)), Poll::ShutDown);
}

#[test]
fn a_plain_shut_down_ends_a_drain_and_the_other_way_round() {
    let mut queue = queue();
    queue.add("a", s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready("a"));
    queue.shut_down_with_drain(s(0));
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
    queue.shut_down(s(0));
    assert_eq!(queue.poll(s(0)), Poll::ShutDown);
    queue.shut_down_with_drain(s(0));
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
}

// === counters ===

#[test]
fn times_tell_queueing_from_processing() {
    let mut queue = queue();
    queue.add("a", s(1));
    queue.add("a", s(2));
    assert_eq!(queue.poll(s(4)), Poll::Ready("a"));
    queue.add("a", s(5));
    assert_eq!(
        queue.done(&"a", s(10)),
        Some(WorkTimes {
            queued: s(3),
            processing: s(6)
        })
    );
    assert_eq!(queue.poll(s(11)), Poll::Ready("a"));
    let times = queue.done(&"a", s(11)).unwrap();
    assert_eq!(times.queued, s(6), "dirty since 5, handed out at 11");
}

#[test]
fn a_delayed_key_is_queued_from_its_deadline() {
    let mut queue = queue();
    queue.add_after("a", s(10), s(0));
    assert_eq!(queue.poll(s(12)), Poll::Ready("a"));
    assert_eq!(queue.done(&"a", s(12)).unwrap().queued, s(2));
}

#[test]
fn counters_see_every_busy_worker() {
    let mut queue = queue();
    assert_eq!(queue.longest_processing(s(1)), s(0));
    queue.add("a", s(0));
    queue.add("b", s(0));
    queue.add("c", s(0));
    assert_eq!(queue.poll(s(1)), Poll::Ready("a"));
    assert_eq!(queue.poll(s(4)), Poll::Ready("b"));
    assert_eq!((queue.depth(), queue.processing(), queue.adds()), (1, 2, 3));
    assert_eq!(queue.longest_processing(s(10)), s(9));
    assert_eq!(queue.unfinished_work(s(10)), s(15));
    queue.done(&"a", s(10));
    assert_eq!(queue.longest_processing(s(10)), s(6));
    assert_eq!(queue.unfinished_work(s(10)), s(6));
}
