//! The queue of leases to decide about, and its figures under the names of client-go's workqueue.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::LeaseKey;
use elector_runtime::{LabelSet, SecondsGauge};
use elector_workqueue::{Backoff, Poll, RateLimiter, WorkQueue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::config::Config;
use crate::metrics::Metrics;

/// A [`WorkQueue`] that serves namespaces in turn, and whose figures are kept, where they are wanted.
pub(crate) struct MeasuredQueue {
    queue: WorkQueue<LeaseKey, Arc<str>>,
    backoff: Backoff,
    /// The limit of leases of one namespace written at the same time.
    of_namespace: NonZeroUsize,
    figures: Option<QueueFigures>,
}

/// The figures of one queue.
struct QueueFigures {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    queued: Histogram,
    work: Histogram,
    unfinished: SecondsGauge,
    longest: SecondsGauge,
    /// The counted part of the queue's own counts.
    counted_adds: u64,
    counted_retries: u64,
}

// === impl MeasuredQueue ===

impl MeasuredQueue {
    /// The value of the label `name`.
    const NAME: &str = "elections";

    pub(crate) fn new(config: &Config, metrics: Option<&Metrics>) -> Self {
        let backoff = Backoff::new(config.retry_base, config.retry_max);
        let of_namespace = config.concurrent_elections_of_namespace();
        Self {
            queue: Self::empty(backoff, of_namespace),
            backoff,
            of_namespace,
            figures: metrics.map(QueueFigures::new),
        }
    }

    fn empty(backoff: Backoff, of_namespace: NonZeroUsize) -> WorkQueue<LeaseKey, Arc<str>> {
        let limiter = RateLimiter::new(backoff);
        WorkQueue::grouped(limiter, |key| Arc::clone(&key.namespace), of_namespace)
    }

    /// Empties it, and forgets what it was given.
    pub(crate) fn reset(&mut self) {
        self.count();
        self.queue = Self::empty(self.backoff, self.of_namespace);
        if let Some(figures) = &mut self.figures {
            (figures.counted_adds, figures.counted_retries) = (0, 0);
        }
    }

    /// See [`WorkQueue::add`]; the same holds for the rest.
    pub(crate) fn add(&mut self, key: LeaseKey, now: Duration) {
        self.queue.add(key, now);
    }

    pub(crate) fn add_after(&mut self, key: LeaseKey, delay: Duration, now: Duration) {
        self.queue.add_after(key, delay, now);
    }

    pub(crate) fn stop_waiting(&mut self, key: &LeaseKey, now: Duration) {
        self.queue.stop_waiting(key, now);
    }

    pub(crate) fn add_rate_limited(&mut self, key: LeaseKey, now: Duration) {
        self.queue.add_rate_limited(key, now);
    }

    pub(crate) fn forget(&mut self, key: &LeaseKey) {
        self.queue.forget(key);
    }

    pub(crate) fn pause(&mut self, namespace: &Arc<str>, until: Duration) {
        self.queue.pause(namespace, until);
    }

    pub(crate) fn poll(&mut self, now: Duration) -> Poll<LeaseKey> {
        self.queue.poll(now)
    }

    pub(crate) fn done(&mut self, key: &LeaseKey, now: Duration) {
        if let Some(times) = self.queue.done(key, now)
            && let Some(figures) = &self.figures
        {
            figures.queued.observe(times.queued.as_secs_f64());
            figures.work.observe(times.processing.as_secs_f64());
        }
    }

    /// Brings the figures up to date.
    pub(crate) fn report(&mut self, now: Duration) {
        self.count();
        let Some(figures) = &self.figures else {
            return;
        };
        let queue = &self.queue;
        let depth = i64::try_from(queue.depth()).unwrap_or(i64::MAX);
        figures.depth.set(depth);
        let unfinished = queue.unfinished_work(now).as_secs_f64();
        figures.unfinished.set(unfinished);
        let longest = queue.longest_processing(now).as_secs_f64();
        figures.longest.set(longest);
    }

    fn count(&mut self) {
        let Some(figures) = &mut self.figures else {
            return;
        };
        let (adds, retries) = (self.queue.adds(), self.queue.retries());
        figures.adds.inc_by(adds - figures.counted_adds);
        figures.retries.inc_by(retries - figures.counted_retries);
        (figures.counted_adds, figures.counted_retries) = (adds, retries);
    }
}

// === impl QueueFigures ===

impl QueueFigures {
    fn new(metrics: &Metrics) -> Self {
        let labels: LabelSet = vec![("name", Cow::Borrowed(MeasuredQueue::NAME))];
        let families = &*metrics.0;
        Self {
            depth: families.queue_depth.get_or_create_owned(&labels),
            adds: families.queue_adds.get_or_create_owned(&labels),
            retries: families.queue_retries.get_or_create_owned(&labels),
            queued: families.queue_duration.get_or_create_owned(&labels),
            work: families.queue_work.get_or_create_owned(&labels),
            unfinished: families.queue_unfinished.get_or_create_owned(&labels),
            longest: families.queue_longest.get_or_create_owned(&labels),
            counted_adds: 0,
            counted_retries: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_count_on_when_the_queue_is_emptied_and_a_success_forgets_the_failures() {
        let metrics = Metrics::default();
        let mut queue = MeasuredQueue::new(&Config::default(), Some(&metrics));
        let figure = |name: &str| {
            let text = metrics.encode();
            let line = format!("workqueue_{name}{{name=\"elections\"}} ");
            let value = text.lines().find_map(|it| it.strip_prefix(&line));
            value.unwrap().parse::<f64>().unwrap()
        };
        let key = LeaseKey::new("ns", "web");
        let seconds = Duration::from_secs;
        let first = |queue: &mut MeasuredQueue, now| {
            let found = queue.poll(now);
            matches!(found, Poll::Ready(found) if found == key)
        };
        queue.add(key.clone(), Duration::ZERO);
        queue.report(Duration::ZERO);
        assert_eq!((figure("adds_total"), figure("depth")), (1.0, 1.0));
        queue.reset();
        assert!(!first(&mut queue, seconds(1)));
        queue.add(key.clone(), seconds(1));
        queue.pause(&key.namespace, seconds(3));
        assert!(!first(&mut queue, seconds(2)));
        assert!(first(&mut queue, seconds(3)));
        queue.report(seconds(5));
        assert_eq!((figure("adds_total"), figure("depth")), (2.0, 0.0));
        assert_eq!(figure("unfinished_work_seconds"), 2.0);
        queue.done(&key, seconds(5));
        // The pause of a second failure is twice that of a first.
        let paused = |queue: &mut MeasuredQueue, now: Duration| {
            queue.add_rate_limited(key.clone(), now);
            let Poll::Wait(Some(until)) = queue.poll(now) else {
                panic!("it is not to be tried again at once");
            };
            assert!(first(queue, until));
            queue.done(&key, until);
            until - now
        };
        let pause = paused(&mut queue, seconds(10));
        assert_eq!(paused(&mut queue, seconds(20)), pause * 2);
        queue.report(seconds(25));
        queue.forget(&key);
        assert_eq!(paused(&mut queue, seconds(30)), pause);
        queue.report(seconds(40));
        assert_eq!(figure("retries_total"), 3.0);
    }
}
