//! Groups are served in turn, whatever one of them asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use elector_workqueue::{Backoff, Poll, RateLimiter, WorkQueue};
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

/// A key is a letter for its group and a number.
type GroupedKey = (char, u8);
type GroupedQueue = WorkQueue<GroupedKey, char>;

fn queue(workers: usize) -> GroupedQueue {
    let backoff = Backoff::new(s(1), s(5));
    let workers = NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MAX);
    WorkQueue::grouped(RateLimiter::new(backoff), |key| key.0, workers)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Takes what is to be had at `now`, in order, without marking it done.
fn take(queue: &mut GroupedQueue, now: Duration) -> Vec<GroupedKey> {
    let keys = std::iter::from_fn(|| match queue.poll(now) {
        Poll::Ready(key) => Some(key),
        Poll::Wait(_) | Poll::ShutDown => None,
    });
    keys.collect()
}

#[test]
fn groups_are_served_in_turn_and_each_first_in_first_out() {
    let mut queue = queue(usize::MAX);
    for key in [('a', 3), ('a', 1), ('a', 2), ('b', 1), ('c', 2), ('c', 1)] {
        queue.add(key, s(0));
    }
    let order = [('a', 3), ('b', 1), ('c', 2), ('a', 1), ('c', 1), ('a', 2)];
    assert_eq!(take(&mut queue, s(0)), order);
}

#[test]
fn a_key_waits_for_one_key_of_a_busy_group_however_many_that_has() {
    let mut queue = queue(usize::MAX);
    for number in 0..100 {
        queue.add(('a', number), s(0));
    }
    assert_eq!(queue.poll(s(0)), Poll::Ready(('a', 0)));
    queue.add(('b', 0), s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready(('a', 1)));
    assert_eq!(queue.poll(s(0)), Poll::Ready(('b', 0)));
}

#[test]
fn a_group_has_so_many_workers_and_no_more() {
    let mut queue = queue(2);
    for key in [('a', 1), ('a', 2), ('a', 3), ('b', 1)] {
        queue.add(key, s(0));
    }
    assert_eq!(take(&mut queue, s(0)), [('a', 1), ('b', 1), ('a', 2)]);
    assert_eq!(queue.depth(), 1);
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
    queue.done(&('b', 1), s(1));
    assert_eq!(queue.poll(s(1)), Poll::Wait(None), "a worker of another");
    queue.done(&('a', 1), s(1));
    assert_eq!(take(&mut queue, s(1)), [('a', 3)]);
}

#[test]
fn a_paused_group_keeps_its_keys_and_its_delays_and_others_are_served() {
    let mut queue = queue(usize::MAX);
    queue.add(('a', 1), s(0));
    queue.pause(&'a', s(10));
    queue.add(('a', 2), s(1));
    queue.add_after(('a', 3), s(4), s(1));
    queue.add(('b', 1), s(1));
    assert_eq!(take(&mut queue, s(1)), [('b', 1)]);
    assert_eq!(queue.poll(s(1)), Poll::Wait(Some(s(5))));
    assert_eq!(queue.poll(s(5)), Poll::Wait(Some(s(10))));
    assert_eq!(queue.depth(), 3);
    assert_eq!(take(&mut queue, s(10)), [('a', 1), ('a', 2), ('a', 3)]);
}

#[test]
fn the_last_pause_counts_and_one_that_is_over_none() {
    let mut queue = queue(usize::MAX);
    queue.add(('a', 1), s(5));
    queue.pause(&'a', s(20));
    queue.pause(&'a', s(8));
    assert_eq!(queue.poll(s(5)), Poll::Wait(Some(s(8))));
    assert_eq!(take(&mut queue, s(8)), [('a', 1)]);
    queue.pause(&'a', s(8));
    queue.add(('a', 2), s(8));
    assert_eq!(take(&mut queue, s(8)), [('a', 2)]);
}

#[test]
fn a_pause_without_ready_keys_wakes_nobody() {
    let mut queue = queue(usize::MAX);
    queue.pause(&'a', s(20));
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
}

#[test]
fn a_shut_down_ends_pauses_and_waits_for_the_workers_of_a_group() {
    let mut queue = queue(1);
    queue.add(('a', 1), s(0));
    queue.add(('a', 2), s(0));
    queue.pause(&'a', s(10));
    queue.shut_down(s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready(('a', 1)));
    assert_eq!(queue.poll(s(0)), Poll::Wait(None));
    queue.done(&('a', 1), s(0));
    assert_eq!(queue.poll(s(0)), Poll::Ready(('a', 2)));
    queue.done(&('a', 2), s(0));
    assert_eq!(queue.poll(s(0)), Poll::ShutDown);
}

#[derive(Clone, Copy, Debug)]
enum GroupOp {
    Add(GroupedKey),
    Poll,
    Done(usize),
    Pause(char, u64),
    Pass(u64),
}

fn op() -> impl Strategy<Value = GroupOp> {
    let group = || proptest::char::range('a', 'd');
    prop_oneof![
        6 => (group(), 0..4_u8).prop_map(GroupOp::Add),
        8 => Just(GroupOp::Poll),
        4 => (0..8_usize).prop_map(GroupOp::Done),
        1 => (group(), 0..6_u64).prop_map(|(group, pause)| GroupOp::Pause(group, pause)),
        2 => (0..4_u64).prop_map(GroupOp::Pass),
    ]
}

/// A bystander's knowledge.
#[derive(Default)]
struct Bystander {
    now: u64,
    /// Keys that were asked for and not handed out since.
    wanted: BTreeSet<GroupedKey>,
    out: Vec<GroupedKey>,
    pauses: BTreeMap<char, u64>,
    /// For each group that could be served: how often each other one was served since then.
    passed_by: BTreeMap<char, BTreeMap<char, usize>>,
}

// === impl Bystander ===

impl Bystander {
    /// The groups of which a key can be handed out.
    fn open(&self, workers: usize) -> BTreeSet<char> {
        let ready = self.wanted.iter().filter(|key| !self.out.contains(key));
        let paused = |group: &char| {
            self.pauses
                .get(group)
                .is_some_and(|until| *until > self.now)
        };
        let busy = |group: char| self.out.iter().filter(|key| key.0 == group).count();
        ready
            .map(|key| key.0)
            .filter(|group| !paused(group) && busy(*group) < workers)
            .collect()
    }

    /// Counts again from where a group began to be open.
    fn look(&mut self, workers: usize) {
        let open = self.open(workers);
        self.passed_by.retain(|group, _| open.contains(group));
        for group in open {
            self.passed_by.entry(group).or_default();
        }
    }

    fn serve(&mut self, key: GroupedKey) {
        self.passed_by.remove(&key.0);
        for served in self.passed_by.values_mut() {
            *served.entry(key.0).or_default() += 1;
        }
        self.wanted.remove(&key);
        self.out.push(key);
    }
}

proptest! {
    /// No group that can be served sees another one served twice before it; none has more workers than it may, and
    /// nothing is doubled, lost or held back without a reason.
    #[test]
    fn no_group_waits_for_two_turns_of_another(
        ops in proptest::collection::vec(op(), 0..200),
        workers in 1..4_usize,
    ) {
        let mut queue = queue(workers);
        let mut seen = Bystander::default();
        for op in ops {
            let now = s(seen.now);
            match op {
                GroupOp::Add(key) => {
                    queue.add(key, now);
                    seen.wanted.insert(key);
                }
                GroupOp::Poll => match queue.poll(now) {
                    Poll::Ready(key) => {
                        prop_assert!(seen.open(workers).contains(&key.0), "{key:?} cannot be served");
                        prop_assert!(seen.wanted.contains(&key) && !seen.out.contains(&key));
                        seen.serve(key);
                        let twice = seen.passed_by.iter().find(|(_, served)| {
                            served.values().any(|times| *times > 1)
                        });
                        prop_assert_eq!(twice, None, "passed by");
                    }
                    Poll::Wait(_) => prop_assert_eq!(seen.open(workers), BTreeSet::new()),
                    Poll::ShutDown => prop_assert!(false, "nobody shut it down"),
                },
                GroupOp::Done(place) if place < seen.out.len() => {
                    let key = seen.out.remove(place);
                    prop_assert!(queue.done(&key, now).is_some());
                }
                GroupOp::Done(_) => {}
                GroupOp::Pause(group, pause) => {
                    queue.pause(&group, s(seen.now + pause));
                    seen.pauses.insert(group, seen.now + pause);
                }
                GroupOp::Pass(time) => {
                    seen.now += time;
                    queue.add(('z', 0), s(seen.now));
                    seen.wanted.insert(('z', 0));
                }
            }
            seen.look(workers);
        }
        let last = seen.pauses.values().copied().max().unwrap_or_default();
        let end = s(seen.now.max(last));
        for key in std::mem::take(&mut seen.out) {
            queue.done(&key, end);
        }
        while let Poll::Ready(key) = queue.poll(end) {
            prop_assert!(seen.wanted.remove(&key));
            queue.done(&key, end);
        }
        prop_assert_eq!(seen.wanted, BTreeSet::new());
    }
}
