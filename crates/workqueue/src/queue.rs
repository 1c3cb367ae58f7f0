//! The queue: keys that are ready, keys that are being worked on, keys that have to come back.

#![expect(
    clippy::disallowed_types,
    reason = "the table of dirty keys is looked up, and never gone through"
)]

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::delays::Delays;
use crate::limiter::RateLimiter;
use crate::turns::Turns;

/// A result of [`WorkQueue::poll`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a key that is handed out has to be worked on and marked done"]
pub enum Poll<K> {
    /// This key is the caller's until it calls [`WorkQueue::done`].
    Ready(K),
    /// Nothing is ready. Poll again after the next input, or at this time at the latest.
    Wait(Option<Duration>),
    /// The queue was shut down and has nothing more to hand out.
    ShutDown,
}

/// The wait of one key for its worker, and the time that the worker took.
///
/// [`WorkQueue::done`] returns it once for each hand-out. Both are differences of the `now` values of the calls, and
/// never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTimes {
    /// From the first `add` that this hand-out answers, or the end of its delay, to the hand-out.
    pub queued: Duration,
    /// From the hand-out to `done`.
    pub processing: Duration,
}

/// A queue of keys that need to be looked at.
///
/// The contract and a worker's loop are on the [crate's page](crate). `G` is what keys are grouped by; without groups all
/// keys are in one.
#[derive(Clone, Debug)]
pub struct WorkQueue<K, G = ()> {
    /// Dirty keys that no worker has.
    ready: Turns<K, G>,
    group_of: fn(&K) -> G,
    /// Keys that need work, with the time since when: exactly the ready ones, and those that were added
    /// while being processed.
    dirty: HashMap<K, Duration>,
    /// Keys that are with a worker.
    processing: BTreeMap<K, Started>,
    /// Keys that become dirty at a later time.
    waiting: Delays<K>,
    limiter: RateLimiter<K>,
    mode: QueueMode,
    /// The largest `now` seen.
    latest: Duration,
    adds: u64,
    retries: u64,
}

/// When a worker got its key.
#[derive(Clone, Copy, Debug)]
struct Started {
    at: Duration,
    queued: Duration,
}

/// The stage of the queue's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueMode {
    /// Keys are accepted.
    Open,
    /// Nothing is accepted; what is ready is handed out.
    Closed,
    /// As `Closed`, and work in progress may still bring its key back.
    Draining,
}

// === impl WorkQueue ===

impl<K: Ord + Hash + Clone> WorkQueue<K> {
    /// An empty queue whose failed keys wait as `limiter` says.
    pub fn new(limiter: RateLimiter<K>) -> Self {
        Self::grouped(limiter, |_| (), NonZeroUsize::MAX)
    }
}

impl<K: Ord + Hash + Clone, G: Ord + Clone> WorkQueue<K, G> {
    /// An empty queue that serves the groups of its keys in turn, and gives at most `workers` keys of one group away at
    /// the same time.
    ///
    /// Between two keys of a group that is neither paused nor without a free worker, each other group has one turn at
    /// most: how long a key waits depends on how many groups there are, and not on how many keys these have.
    pub fn grouped(limiter: RateLimiter<K>, group_of: fn(&K) -> G, workers: NonZeroUsize) -> Self {
        Self {
            ready: Turns::new(workers),
            group_of,
            dirty: HashMap::new(),
            processing: BTreeMap::new(),
            waiting: Delays::new(),
            limiter,
            mode: QueueMode::Open,
            latest: Duration::ZERO,
            adds: 0,
            retries: 0,
        }
    }

    /// Asks for a look at `key`.
    ///
    /// A key that is already ready keeps its place. One that is being processed is handed out again
    /// after its `done`. A delay that the key is waiting for stays in force. Ignored after a shut-down.
    pub fn add(&mut self, key: K, now: Duration) {
        let now = self.advance(now);
        self.mark(key, now);
    }

    /// Asks for a look at `key` when `delay` has passed since `now`.
    ///
    /// A key waits for one time only, the earliest that was asked for. No delay is the same as `add`.
    /// Ignored after a shut-down.
    pub fn add_after(&mut self, key: K, delay: Duration, now: Duration) {
        let now = self.advance(now);
        if self.mode != QueueMode::Open {
            return;
        }
        if delay.is_zero() {
            self.mark(key, now);
        } else {
            self.waiting.insert(key, now.saturating_add(delay));
        }
    }

    /// Lets `key` wait for no time any more: a look at it has made the delays void that were asked for before.
    ///
    /// One that has passed by `now` counts. The key itself stays ready or processing.
    pub fn stop_waiting(&mut self, key: &K, now: Duration) {
        self.advance(now);
        self.waiting.remove(key);
    }

    /// Asks for a look at `key`, which failed, when the limiter lets it.
    ///
    /// Call it before `done`, and [`forget`](Self::forget) once the key succeeds. Ignored after a shut-down.
    pub fn add_rate_limited(&mut self, key: K, now: Duration) {
        let now = self.advance(now);
        if self.mode != QueueMode::Open {
            return;
        }
        self.retries += 1;
        let delay = self.limiter.when(key.clone());
        self.add_after(key, delay, now);
    }

    /// Forgets the failures of `key`, so that its next one waits as the first did.
    ///
    /// The key itself stays where it is: ready, waiting or processing.
    pub fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    /// Hands out no key of `group` until that time, in the place of what was said before of this group; a time that is over
    /// ends its pause.
    ///
    /// Its keys stay ready, and other groups are served meanwhile. Ignored after a shut-down, which ends all pauses.
    pub fn pause(&mut self, group: &G, until: Duration) {
        match self.mode {
            QueueMode::Open if until > self.latest => self.ready.pause(group, until),
            _ => self.ready.resume_group(group),
        }
    }

    /// Hands out the key that has been ready longest, of the group whose turn it is.
    ///
    /// Poll for a worker that is free. After `Ready`, that worker owes a [`done`](Self::done).
    pub fn poll(&mut self, now: Duration) -> Poll<K> {
        let now = self.advance(now);
        if let Some(key) = self.ready.pop() {
            let since = self.dirty.remove(&key).unwrap_or(now);
            let started = Started {
                at: now,
                queued: now - since,
            };
            self.processing.insert(key.clone(), started);
            return Poll::Ready(key);
        }

        match self.mode {
            QueueMode::Open => {
                let deadlines = [self.waiting.next(), self.ready.resumes_at()];
                Poll::Wait(deadlines.into_iter().flatten().min())
            }
            QueueMode::Draining if !self.processing.is_empty() => Poll::Wait(None),
            // Of a group all of whose workers are busy.
            _ if self.ready.len() > 0 => Poll::Wait(None),
            QueueMode::Closed | QueueMode::Draining => Poll::ShutDown,
        }
    }

    /// Takes `key` back from its worker, and makes it ready again if it was added meanwhile.
    ///
    /// Says how long the hand-out took; `None`, and nothing happens, if no worker had the key.
    pub fn done(&mut self, key: &K, now: Duration) -> Option<WorkTimes> {
        let now = self.advance(now);
        let (key, started) = self.processing.remove_entry(key)?;
        let group = (self.group_of)(&key);
        self.ready.done(&group);
        if self.dirty.contains_key(&key) {
            self.ready.push(&group, key);
        }
        Some(WorkTimes {
            queued: started.queued,
            processing: now - started.at,
        })
    }

    /// Accepts nothing more and drops what waits for a time; what is ready is still handed out.
    ///
    /// `poll` says `ShutDown` as soon as nothing is ready, also while workers are busy. Ends a drain.
    pub fn shut_down(&mut self, now: Duration) {
        self.close(QueueMode::Closed, now);
    }

    /// Shuts down, and says `ShutDown` only when every key that was handed out is done.
    ///
    /// A key that became dirty while it was processed is handed out once more, so what was accepted
    /// before this call is worked on before `ShutDown`.
    pub fn shut_down_with_drain(&mut self, now: Duration) {
        self.close(QueueMode::Draining, now);
    }

    /// True once a shut-down has begun.
    pub fn is_shutting_down(&self) -> bool {
        self.mode != QueueMode::Open
    }

    /// The number of failures of `key` that are remembered.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }

    /// Keys that are ready now, those of paused groups included.
    pub fn depth(&self) -> usize {
        self.ready.len()
    }

    /// Keys that wait for a time.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Keys that are with a worker.
    pub fn processing(&self) -> usize {
        self.processing.len()
    }

    /// Looks asked for since the start, those at the end of a delay included. An `add` of a key that
    /// is dirty already asks for nothing new and is not counted.
    pub fn adds(&self) -> u64 {
        self.adds
    }

    /// Failures since the start: accepted calls of `add_rate_limited`.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// The longest time for which a worker has had its key at `now`; zero when no worker has one.
    pub fn longest_processing(&self, now: Duration) -> Duration {
        let durations = self.processing_times(now);
        durations.max().unwrap_or_default()
    }

    /// The sum over all busy workers of the time that each has had its key at `now`.
    pub fn unfinished_work(&self, now: Duration) -> Duration {
        self.processing_times(now)
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    fn processing_times(&self, now: Duration) -> impl Iterator<Item = Duration> {
        let now = now.max(self.latest);
        self.processing
            .values()
            .map(move |started| now - started.at)
    }

    /// Moves time on and makes ready what is due. Every input does so first, so the order of keys does
    /// not depend on when a worker polls.
    fn advance(&mut self, now: Duration) -> Duration {
        self.latest = self.latest.max(now);
        self.ready.resume(self.latest);
        while let Some((deadline, key)) = self.waiting.pop_due(self.latest) {
            self.mark(key, deadline);
        }
        self.latest
    }

    /// Makes `key` dirty since `since`, and ready unless a worker has it.
    fn mark(&mut self, key: K, since: Duration) {
        if self.mode != QueueMode::Open || self.dirty.contains_key(&key) {
            return;
        }
        self.adds += 1;
        if !self.processing.contains_key(&key) {
            self.ready.push(&(self.group_of)(&key), key.clone());
        }
        self.dirty.insert(key, since);
    }

    fn close(&mut self, mode: QueueMode, now: Duration) {
        self.advance(now);
        self.mode = mode;
        self.ready.resume_all();
        self.waiting.clear();
    }
}
