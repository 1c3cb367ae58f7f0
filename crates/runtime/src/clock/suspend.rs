//! Timers stop while a machine is suspended; a holder's clock does not.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A clock that follows `tokio::time`, and goes ahead of it by what the test says.
struct Ahead {
    inner: TokioClock,
    seconds: AtomicU64,
}

impl Clock for Ahead {
    fn monotonic(&self) -> Instant {
        self.inner.monotonic()
    }

    fn holder(&self) -> Instant {
        let ahead = Duration::from_secs(self.seconds.load(Ordering::Relaxed));
        self.inner.holder().after(ahead)
    }

    fn wall(&self) -> Timestamp {
        self.inner.wall()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        self.inner.sleep_until(deadline)
    }

    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(nap_until(self, deadline))
    }
}

/// A belief that was to end in an hour has ended when the machine comes back after one (R9): a task that waits for its end
/// learns of it within a second, though the timer has not run meanwhile.
#[tokio::test(start_paused = true)]
async fn a_holder_wakes_within_a_second_after_a_suspend_that_was_longer_than_its_belief() {
    let clock = Ahead {
        inner: TokioClock::start(Timestamp::MIN),
        seconds: AtomicU64::new(0),
    };
    let deadline = clock.holder().after(Duration::from_secs(3600));
    let mut waiting = clock.sleep_until_holder(deadline);
    let early = tokio::time::timeout(Duration::from_secs(60), &mut waiting).await;
    assert!(early.is_err());
    clock.seconds.store(3600, Ordering::Relaxed);
    let resumed = tokio::time::Instant::now();
    waiting.await;
    assert!(
        resumed.elapsed() <= Duration::from_secs(1),
        "{:?}",
        resumed.elapsed()
    );
}

/// A suspend that is shorter is slept out to the end, and not longer.
#[tokio::test(start_paused = true)]
async fn what_is_left_after_a_suspend_is_waited_for() {
    let clock = Ahead {
        inner: TokioClock::start(Timestamp::MIN),
        seconds: AtomicU64::new(0),
    };
    let deadline = clock.holder().after(Duration::from_secs(100));
    clock.seconds.store(90, Ordering::Relaxed);
    let start = tokio::time::Instant::now();
    clock.sleep_until_holder(deadline).await;
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}
