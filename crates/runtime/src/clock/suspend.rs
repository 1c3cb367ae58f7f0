//! Timers stop while a machine is suspended; a holder's clock does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A machine whose timers follow `tokio::time`, and whose other clocks go ahead of that by what the test says.
#[derive(Clone)]
struct Suspended {
    start: tokio::time::Instant,
    seconds: Arc<AtomicU64>,
}

impl ClockSource for Suspended {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn boottime(&self) -> Duration {
        self.start.elapsed() + Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    fn realtime(&self) -> Duration {
        self.boottime()
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }
}

/// Its clocks, and what puts all but the timers ahead.
fn suspended() -> (SystemClock<Suspended>, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let source = Suspended {
        start: tokio::time::Instant::now(),
        seconds: Arc::clone(&seconds),
    };
    (SystemClock::over(source), seconds)
}

/// A belief that was to end in an hour has ended when the machine comes back after one (R9): a task that waits for its end
/// learns of it within a second, though the timer has not run meanwhile.
#[tokio::test(start_paused = true)]
async fn a_holder_wakes_within_a_second_after_a_suspend_that_was_longer_than_its_belief() {
    let (clock, seconds) = suspended();
    let deadline = clock.holder().after(Duration::from_secs(3600));
    let mut waiting = clock.sleep_until_holder(deadline);
    let early = tokio::time::timeout(Duration::from_secs(60), &mut waiting).await;
    assert!(early.is_err());
    seconds.store(3600, Ordering::Relaxed);
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
    let (clock, seconds) = suspended();
    let deadline = clock.holder().after(Duration::from_secs(100));
    seconds.store(90, Ordering::Relaxed);
    let start = tokio::time::Instant::now();
    clock.sleep_until_holder(deadline).await;
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}
