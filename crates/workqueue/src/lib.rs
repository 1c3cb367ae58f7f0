//! A sans-IO rate-limited workqueue with client-go semantics.
//!
//! A controller hears *that* something about a key changed, never *what*; it looks and decides. The
//! queue between the two sees to it that a key is worked on by one worker at a time, that a burst of
//! events about one key costs one look, and that no event is lost, not even one that arrives while its
//! key is being worked on. Those are the semantics of client-go's `util/workqueue`, rebuilt as a value:
//! the queue owns no thread, no timer and no clock.
//!
//! ```text
//!   add ───────────────┐                             ┌───────── poll(now) ──> Ready(key)
//!                      v                             │
//!   add_after ──> [ waiting ] ── due ──> [ ready, groups in turn      ] ──> [ processing ]
//!   add_rate_limited ─┘ earliest wins        ^                                    │
//!        │                                   └── dirty: added while processing ── done
//!        └── delay from the limiter: 5 ms · 2ⁿ per key
//! ```
//!
//! # Contract
//!
//! * **Time is an argument.** `now` is a [`Duration`](std::time::Duration) since any epoch that the caller
//!   keeps, normally the start of its monotonic clock. It must not go backwards; a smaller value than the
//!   largest seen so far counts as that largest.
//! * **Inputs** are [`add`](WorkQueue::add), [`add_after`](WorkQueue::add_after),
//!   [`stop_waiting`](WorkQueue::stop_waiting), [`add_rate_limited`](WorkQueue::add_rate_limited),
//!   [`forget`](WorkQueue::forget), [`done`](WorkQueue::done), [`shut_down`](WorkQueue::shut_down) and
//!   [`shut_down_with_drain`](WorkQueue::shut_down_with_drain). None of them waits or fails.
//! * **The output** is [`poll`](WorkQueue::poll). `Ready(key)` hands the key to the caller, who owes one
//!   `done` for it. `Wait(deadline)` says that nothing is ready; poll again after the next input, or at
//!   the deadline where there is one. Polling more often than needed changes nothing.
//! * **Poll only for a free worker.** The number of workers is the caller's affair: a caller that has
//!   none free does not poll, and keys wait in the queue.
//! * **Order** is first in, first out among the ready keys of a group, and groups are served in turn; without
//!   [groups](WorkQueue::grouped) all keys are in one. A group may be [paused](WorkQueue::pause). A delayed key counts from its deadline, whenever
//!   the queue is next looked at; equal deadlines count in the order of their calls. No table
//!   of keys is gone through in the order of their hashes, so one sequence of inputs has one sequence of outputs.
//!
//! Its promises: no key is with two workers at once; every accepted key is handed out at or after
//! its `add`; memory is one entry per distinct key that is queued, waiting, processing or has failures.
//!
//! # Example
//!
//! One worker, driven by hand. The first attempt fails and is retried after the limiter's delay.
//!
//! ```
//! use std::time::Duration;
//!
//! use elector_workqueue::{Backoff, Poll, RateLimiter, WorkQueue};
//!
//! let backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(5));
//! let mut queue = WorkQueue::new(RateLimiter::new(backoff));
//! let mut now = Duration::ZERO;
//!
//! queue.add("kube-system/kube-scheduler", now);
//! queue.add("kube-system/kube-scheduler", now); // two events, one look
//!
//! let mut log = Vec::new();
//! let mut attempts = 0;
//! loop {
//!     match queue.poll(now) {
//!         Poll::Ready(key) => {
//!             attempts += 1;
//!             log.push((key, now));
//!             if attempts == 1 {
//!                 queue.add_rate_limited(key, now);
//!             } else {
//!                 queue.forget(&key);
//!             }
//!             queue.done(&key, now);
//!         }
//!         Poll::Wait(Some(deadline)) => now = deadline, // a shell sleeps until then
//!         Poll::Wait(None) => queue.shut_down(now),
//!         Poll::ShutDown => break,
//!     }
//! }
//! assert_eq!(
//!     log,
//!     [
//!         ("kube-system/kube-scheduler", Duration::ZERO),
//!         ("kube-system/kube-scheduler", Duration::from_millis(5)),
//!     ],
//! );
//! ```
//!
//! # Where it differs from client-go
//!
//! * Keys may be grouped, so that those of one tenant do not keep the others waiting.
//! * No bucket bounds the retries of all keys together, as client-go's default limiter does.
//! * The limiter's cap is the caller's choice. client-go's default is 1000 s; a controller that must
//!   react to a cluster coming back wants seconds.
//! * A drain ends when everything is done, also what became dirty on the way;
//!   see [`shut_down_with_drain`](WorkQueue::shut_down_with_drain).
//! * `done` for a key that is not being processed is ignored; there it can queue a key twice.
//! * A delay asked for with `add_after` is not counted as a retry: only failures are.

mod delays;
mod limiter;
mod queue;
mod turns;

pub use limiter::{Backoff, RateLimiter};
pub use queue::{Poll, WorkQueue, WorkTimes};
