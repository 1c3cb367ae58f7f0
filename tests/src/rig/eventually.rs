//! Questions that are asked again until the answer is right.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks until the answer is no error any more; after `patience` the last error is the answer.
pub async fn eventually<T, F>(patience: Duration, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + patience;
    loop {
        match ask().await {
            Err(_) if Instant::now() < deadline => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
