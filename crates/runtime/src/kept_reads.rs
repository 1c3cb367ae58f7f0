//! Reads that are kept while they have no answer: a server that takes longer than the time of a request is read all the same.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::{BoxFuture, select_all};
use tokio::time::{Instant, sleep};

use crate::request::RequestError;

/// The most reads of one object under way at a time; then the oldest is dropped.
const MOST_READS: usize = 3;

/// Reads an object, within `limit`: again each time that there was no answer for `patience`, beside the reads before it,
/// whose answers count as well. `read` gets the time that is left.
///
/// # Errors
///
/// That of the last read, when all have failed.
pub async fn read_until_answered<T>(
    patience: Duration,
    limit: Duration,
    read: impl Fn(Duration) -> BoxFuture<'static, Result<T, RequestError>>,
) -> Result<T, RequestError> {
    let end = Instant::now() + limit;
    let mut reads = VecDeque::from([read(limit)]);
    loop {
        tokio::select! {
            biased;
            (result, index, _) = select_all(reads.iter_mut()) => {
                drop(reads.remove(index));
                if result.is_ok() || reads.is_empty() {
                    return result;
                }
            }
            () = sleep(patience) => {
                let left = end.saturating_duration_since(Instant::now());
                if left < patience {
                    continue;
                }
                if reads.len() == MOST_READS {
                    reads.pop_front();
                }
                reads.push_back(read(left));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;

    use super::*;
    use crate::request::{Cause, Target, Verb};

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Reads, with 2 s for an answer and 10 s in all, where the answers take so many seconds, one after the other; a negative
    /// number is of one that fails then. Says when it ended, whether with an answer, and how many reads were sent.
    async fn read(answers: &[i64]) -> (u64, bool, usize) {
        let (start, sent) = (Instant::now(), Cell::new(0));
        let read = |left: Duration| {
            let answer = answers[sent.get()];
            let takes = s(answer.unsigned_abs());
            sent.set(sent.get() + 1);
            async move {
                sleep(takes.min(left)).await;
                let target = Target {
                    verb: Verb::Get,
                    resource: "leases".into(),
                    namespace: None,
                    name: None,
                };
                let error = RequestError {
                    target: Box::new(target),
                    url: "http://server".into(),
                    cause: Cause::TimedOut(left),
                };
                (answer >= 0 && takes < left).then_some(()).ok_or(error)
            }
            .boxed()
        };
        let is_answered = read_until_answered(s(2), s(10), read).await.is_ok();
        (start.elapsed().as_secs(), is_answered, sent.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_sent_again_beside_those_that_have_no_answer() {
        assert_eq!(read(&[1]).await, (1, true, 1));
        assert_eq!(read(&[5, 9, 9]).await, (5, true, 3), "the first is kept");
        assert_eq!(read(&[99, 1]).await, (3, true, 2));
        let dropped = [7, 99, 99, 99, 99];
        assert_eq!(read(&dropped).await, (10, false, 5), "by the fourth read");
        assert_eq!(read(&[7, 99, 99, 0]).await, (6, true, 4));
        assert_eq!(read(&[-3, 3]).await, (5, true, 2), "one may fail");
        let late = [-3, 99, 99, 99];
        assert_eq!(read(&late).await, (10, false, 4), "none in the last second");
        assert_eq!(read(&[-1]).await, (1, false, 1), "and no other is sent");
    }
}
