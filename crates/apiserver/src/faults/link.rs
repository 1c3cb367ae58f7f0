//! The state of the way to one client, and the tasks that wait for it to change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The time of the ways to and from a client. The default is no time at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latency {
    /// Of a request, before anything is read or written.
    pub(crate) request: Duration,
    /// Of its answer, after that.
    pub(crate) answer: Duration,
    /// Of what a watch tells, after it was committed. Order is kept.
    pub(crate) watch: Duration,
}

/// The state of the way to one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// Nothing gets through in watches.
    pub(crate) silent: bool,
    /// Nothing gets through in watches of this resource.
    pub(crate) silent_resource: Option<&'static str>,
    /// Nothing gets through at all.
    pub(crate) partitioned: bool,
    /// The cache that serves it is held at this revision.
    pub(crate) cache: Option<u64>,
    /// The number of closures of its watches, and true if the last was in the middle.
    pub(crate) closed: u64,
    pub(crate) broken: bool,
    pub(crate) latency: Latency,
}

/// Where a link is changed. Clones are the same link.
///
/// Not a watch channel: that wakes waiting tasks in an order drawn at random, and one seed is to give one history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switchboard(Arc<SharedLink>);

/// Where a link is looked at.
#[derive(Clone, Debug)]
pub(crate) struct LinkObserver {
    board: Switchboard,
    /// The change that was looked at last.
    seen: u64,
}

#[derive(Debug, Default)]
struct SharedLink {
    link: Mutex<(u64, Link)>,
    changed: Notify,
}

// === impl Link ===

impl Link {
    /// True if watches of a resource hear nothing.
    pub(crate) fn is_silent(self, plural: &str) -> bool {
        self.silent || self.partitioned || self.silent_resource == Some(plural)
    }

    /// True if the cache that serves it has not got there.
    pub(crate) fn holds(self, revision: u64) -> bool {
        self.cache.is_some_and(|cache| revision > cache)
    }
}

// === impl Switchboard ===

impl Switchboard {
    /// Changes the link and wakes the tasks that wait for that, in the order in which they came.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Link)) {
        {
            let mut link = self.link();
            change(&mut link.1);
            link.0 += 1;
        }
        self.0.changed.notify_waiters();
    }

    /// A place to look at it from.
    pub(crate) fn line(&self) -> LinkObserver {
        LinkObserver {
            board: self.clone(),
            seen: self.link().0,
        }
    }

    fn link(&self) -> MutexGuard<'_, (u64, Link)> {
        // A link is whole at every moment.
        self.0.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LinkObserver ===

impl LinkObserver {
    /// The link as it is.
    pub(crate) fn now(&self) -> Link {
        self.board.link().1
    }

    /// The link as it is, which is thereby seen.
    pub(crate) fn look(&mut self) -> Link {
        let (change, link) = *self.board.link();
        self.seen = change;
        link
    }

    /// Waits for a change that was not seen. Dropping this loses nothing.
    pub(crate) async fn changed(&self) {
        loop {
            let mut notified = std::pin::pin!(self.board.0.changed.notified());
            // From here on no change is missed.
            notified.as_mut().enable();
            if self.board.link().0 != self.seen {
                return;
            }
            notified.await;
        }
    }

    /// Waits until the client is not cut off.
    pub(crate) async fn healed(&mut self) {
        while self.look().partitioned {
            self.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_tasks_are_woken_in_the_order_in_which_they_came() {
        let board = Switchboard::default();
        board.change(|link| link.partitioned = true);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for turn in 0..20 {
            let (mut line, woken) = (board.line(), Arc::clone(&woken));
            waiting.spawn(async move {
                line.healed().await;
                woken.lock().unwrap().push(turn);
            });
        }
        tokio::task::yield_now().await;
        board.change(|link| link.partitioned = false);
        while waiting.join_next().await.is_some() {}
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
