//! Virtual time, and waiting in it.

use std::time::Duration;

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

/// Lets virtual time pass.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Waits, in virtual time and for two minutes of it at most, until something is so; it looks every millisecond.
///
/// # Panics
///
/// When it is not so after two minutes.
pub async fn eventually(condition: impl Fn() -> bool) {
    for _ in 0..120_000 {
        if condition() {
            return;
        }
        pass(millis(1)).await;
    }
    panic!("waited for two minutes");
}
