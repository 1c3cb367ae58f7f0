//! The queue against a reference model.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use elector_workqueue::{Backoff, Poll, RateLimiter, WorkQueue};
use proptest::prelude::{Just, Strategy, prop_assert_eq, prop_oneof, proptest};

type QueueKey = u8;

const BASE: u64 = 5;
const CAP: u64 = 40;

#[derive(Clone, Copy, Debug)]
enum Op {
    Add(QueueKey),
    AddAfter(QueueKey, u64),
    StopWaiting(QueueKey),
    AddRateLimited(QueueKey),
    Forget(QueueKey),
    Poll,
    Done(QueueKey),
    Pass(u64),
    ShutDown,
    Drain,
}

fn key() -> impl Strategy<Value = QueueKey> {
    0..5_u8
}

/// Times are in milliseconds and small, so that deadlines collide.
fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => key().prop_map(Op::Add),
        6 => (key(), 0..12_u64).prop_map(|(key, delay)| Op::AddAfter(key, delay)),
        3 => key().prop_map(Op::StopWaiting),
        4 => key().prop_map(Op::AddRateLimited),
        2 => key().prop_map(Op::Forget),
        12 => Just(Op::Poll),
        10 => key().prop_map(Op::Done),
        6 => (0..8_u64).prop_map(Op::Pass),
        1 => Just(Op::ShutDown),
        1 => Just(Op::Drain),
    ]
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The semantics by brute force: lists that are searched from end to end, time in milliseconds.
#[derive(Default)]
struct ModelQueue {
    now: u64,
    /// Requests for a look in order of arrival, those of keys in work included.
    wanted: Vec<QueueKey>,
    busy: Vec<QueueKey>,
    /// Every delay ever asked for and neither over nor taken back: (deadline, key), in order of arrival.
    delayed: Vec<(u64, QueueKey)>,
    failures: BTreeMap<QueueKey, u32>,
    closed: bool,
    drain: bool,
    adds: u64,
    retries: u64,
}

// === impl ModelQueue ===

impl ModelQueue {
    fn add(&mut self, key: QueueKey) {
        if !self.closed && !self.wanted.contains(&key) {
            self.wanted.push(key);
            self.adds += 1;
        }
    }

    fn add_after(&mut self, key: QueueKey, delay: u64) {
        if self.closed {
        } else if delay == 0 {
            self.add(key);
        } else {
            self.delayed.push((self.now + delay, key));
        }
    }

    fn add_rate_limited(&mut self, key: QueueKey) {
        if self.closed {
            return;
        }
        self.retries += 1;
        let failures = self.failures.entry(key).or_insert(0);
        let delay = (BASE << *failures).min(CAP);
        *failures = (*failures + 1).min(20);
        self.add_after(key, delay);
    }

    fn pass(&mut self, time: u64) {
        for _ in 0..time {
            self.now += 1;
            let due = self.first_of_each_key();
            for key in due {
                self.delayed.retain(|entry| entry.1 != key);
                self.add(key);
            }
        }
    }

    /// Keys whose earliest delay is over now, in the order in which those delays were asked for.
    fn first_of_each_key(&self) -> Vec<QueueKey> {
        let mut due = Vec::new();
        for &(deadline, key) in &self.delayed {
            if deadline == self.now && !due.contains(&key) {
                due.push(key);
            }
        }
        due
    }

    fn poll(&mut self) -> Poll<QueueKey> {
        let free = self.wanted.iter().position(|key| !self.busy.contains(key));
        if let Some(place) = free {
            let key = self.wanted.remove(place);
            self.busy.push(key);
            return Poll::Ready(key);
        }
        let over = !self.drain || self.busy.is_empty();
        if self.closed && over {
            return Poll::ShutDown;
        }
        let deadlines = self.delayed.iter().map(|entry| entry.0);
        Poll::Wait(deadlines.min().map(ms))
    }

    /// A key that was wanted while busy counts from here on, behind all others.
    fn done(&mut self, key: QueueKey) -> bool {
        let Some(place) = self.busy.iter().position(|busy| *busy == key) else {
            return false;
        };
        self.busy.remove(place);
        if let Some(place) = self.wanted.iter().position(|wanted| *wanted == key) {
            self.wanted.remove(place);
            self.wanted.push(key);
        }
        true
    }

    fn close(&mut self, drain: bool) {
        self.closed = true;
        self.drain = drain;
        self.delayed.clear();
    }

    fn depth(&self) -> usize {
        let free = self.wanted.iter().filter(|key| !self.busy.contains(key));
        free.count()
    }

    fn waiting(&self) -> usize {
        let keys: BTreeSet<_> = self.delayed.iter().map(|entry| entry.1).collect();
        keys.len()
    }
}

proptest! {
    /// Every output and every counter is the model's, for any inputs: nothing is doubled, and nothing is lost.
    #[test]
    fn queue_does_as_the_model(ops in proptest::collection::vec(op(), 0..120)) {
        let mut model = ModelQueue::default();
        let mut queue = WorkQueue::new(RateLimiter::new(Backoff::new(ms(BASE), ms(CAP))));
        for op in ops {
            let now = ms(model.now);
            match op {
                Op::Add(key) => {
                    model.add(key);
                    queue.add(key, now);
                }
                Op::AddAfter(key, delay) => {
                    model.add_after(key, delay);
                    queue.add_after(key, ms(delay), now);
                }
                Op::StopWaiting(key) => {
                    model.delayed.retain(|entry| entry.1 != key);
                    queue.stop_waiting(&key, now);
                }
                Op::AddRateLimited(key) => {
                    model.add_rate_limited(key);
                    queue.add_rate_limited(key, now);
                }
                Op::Forget(key) => {
                    // It is not given the time, so the counters below may still be those of before.
                    model.failures.remove(&key);
                    queue.forget(&key);
                    continue;
                }
                Op::Poll => prop_assert_eq!(queue.poll(now), model.poll()),
                Op::Done(key) => {
                    prop_assert_eq!(queue.done(&key, now).is_some(), model.done(key));
                }
                Op::Pass(time) => {
                    // Half of the time the queue is not polled while time passes.
                    model.pass(time);
                    if time % 2 == 0 {
                        queue.add(0, ms(model.now));
                        model.add(0);
                    }
                    continue;
                }
                Op::ShutDown => {
                    model.close(false);
                    queue.shut_down(now);
                }
                Op::Drain => {
                    model.close(true);
                    queue.shut_down_with_drain(now);
                }
            }
            prop_assert_eq!(queue.depth(), model.depth());
            prop_assert_eq!(queue.waiting(), model.waiting());
            prop_assert_eq!(queue.processing(), model.busy.len());
            prop_assert_eq!(queue.adds(), model.adds);
            prop_assert_eq!(queue.retries(), model.retries);
            for key in 0..5 {
                let failures = model.failures.get(&key).copied().unwrap_or(0);
                prop_assert_eq!(queue.num_requeues(&key).min(20), failures);
            }
        }
    }
}
