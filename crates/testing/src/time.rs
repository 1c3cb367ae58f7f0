//! Virtual time, and waiting in it.

use std::panic::Location;
use std::time::Duration;

use elector_runtime::{Clock as _, TokioClock};
use tokio::time::Instant;

/// So many seconds.
#[must_use]
pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many milliseconds.
#[must_use]
pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets time pass: on a paused clock at once, as far as nothing else has something to do meanwhile.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits until something is so, for two minutes at most; it looks every millisecond. On a paused clock that takes no time
/// in which nothing happens.
///
/// # Panics
///
/// When it is not so after two minutes. The message names the caller.
#[track_caller]
pub fn eventually(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let reached = holds_within(PATIENCE, condition).await;
        assert!(
            reached,
            "{caller}: what was waited for was not so within {PATIENCE:?}"
        );
    }
}

/// The longest wait for something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until something is so, and says whether it is within that time.
pub(crate) async fn holds_within(time: Duration, condition: impl Fn() -> bool) -> bool {
    let over = Instant::now() + time;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= over {
            return false;
        }
        pass(millis(1)).await;
    }
}

/// An instant of the cluster's clock as the time since its start.
pub(crate) fn since_start(at: elector_protocol::Instant) -> Duration {
    at.since(elector_protocol::Instant::from_epoch(Duration::ZERO))
}

/// The instant of now as the time since the start.
pub(crate) fn elapsed(clock: &TokioClock) -> Duration {
    since_start(clock.holder())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_condition_is_waited_for_and_no_longer() {
        let start = Instant::now();
        eventually(|| start.elapsed() >= seconds(100)).await;
        assert_eq!(start.elapsed(), seconds(100));
    }

    /// Each look may take longer than the pause before the next: it is the time that counts, not the looks.
    #[tokio::test]
    async fn a_wait_ends_by_the_clock_however_long_a_look_takes() {
        let (start, looks) = (Instant::now(), Cell::new(0));
        let slow = || {
            looks.set(looks.get() + 1);
            std::thread::sleep(millis(20));
            false
        };
        assert!(!holds_within(millis(100), slow).await);
        assert!(looks.get() <= 6, "{} looks", looks.get());
        assert!(start.elapsed() >= millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_names_its_caller() {
        let line = line!() + 1;
        let waiting = tokio::spawn(eventually(|| false));
        let panic = waiting.await.unwrap_err().into_panic();
        let message = elector_runtime::panic_text(&*panic);
        let named = format!("time.rs:{line}:");
        assert!(message.contains(&named), "{message}");
    }
}
