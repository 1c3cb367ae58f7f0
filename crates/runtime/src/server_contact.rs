//! The contact of a process to its API server: when that last answered, whether it knows the credentials, and until when
//! the client certificate is good.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_protocol::Timestamp;
use tokio::time::Instant;

use crate::request::Cause;

/// The contact of a process to its API server. Clones are the same one; a [`Cluster`](crate::Cluster) and its clones
/// share one.
#[derive(Clone, Debug)]
pub struct ServerContact(Arc<Mutex<ContactTimes>>);

/// The state of a contact.
#[derive(Debug)]
struct ContactTimes {
    /// The newest usable answer, or the beginning.
    answered: Instant,
    /// The first 401 since then.
    refused: Option<Instant>,
    certificate_expires: Option<Timestamp>,
}

// === impl ServerContact ===

impl ServerContact {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(ContactTimes {
            answered: Instant::now(),
            refused: None,
            certificate_expires: None,
        })))
    }

    /// The time since the server last answered a request, or since there has been one to ask: an answer that says no is one, a
    /// 401 or a fault of the server (5xx) is none. Watches are opened anew every 30 s, so that an elector asks no less often.
    pub fn silence(&self) -> Duration {
        self.times().answered.elapsed()
    }

    /// For how long the server has answered 401, and nothing that is of use.
    pub fn refused_for(&self) -> Option<Duration> {
        self.times().refused.map(|since| since.elapsed())
    }

    /// When the client certificate in use expires; `None` where there is none, or a credential plugin has it.
    pub fn certificate_expires(&self) -> Option<Timestamp> {
        self.times().certificate_expires
    }

    #[cfg(feature = "connect")]
    pub(crate) fn set_certificate_expires(&self, expires: Option<Timestamp>) {
        self.times().certificate_expires = expires;
    }

    /// A request was answered so.
    pub(crate) fn note<T>(&self, answer: &Result<T, Cause>) {
        let is_answered = match answer {
            Ok(_) | Err(Cause::Forbidden(_)) => true,
            Err(Cause::Status { code, .. }) => *code < 500,
            Err(Cause::Unauthorized) => {
                self.times().refused.get_or_insert_with(Instant::now);
                false
            }
            Err(_) => false,
        };
        if is_answered {
            let mut times = self.times();
            times.answered = Instant::now();
            times.refused = None;
        }
    }

    fn times(&self) -> MutexGuard<'_, ContactTimes> {
        // A poisoned lock holds a valid state: every update is an assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16) -> Result<(), Cause> {
        let [reason, message] = ["", ""].map(str::to_owned);
        Err(Cause::Status {
            code,
            reason,
            message,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_of_use_ends_the_silence() {
        let second = Duration::from_secs(1);
        for (answer, ends, is_refused) in [
            (Ok(()), true, false),
            (Err(Cause::Forbidden("no".to_owned())), true, false),
            (status(409), true, false),
            (status(500), false, false),
            (Err(Cause::Unauthorized), false, true),
            (Err(Cause::TimedOut(second)), false, false),
        ] {
            let contact = ServerContact::new();
            tokio::time::advance(second).await;
            contact.note(&answer);
            let silence = if ends { Duration::ZERO } else { second };
            assert_eq!(contact.silence(), silence, "{answer:?}");
            assert_eq!(contact.refused_for().is_some(), is_refused, "{answer:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_401_alone_is_counted_from_its_first_one() {
        let contact = ServerContact::new();
        for answer in [
            Err(Cause::Unauthorized),
            status(503),
            Err(Cause::Unauthorized),
        ] {
            contact.note(&answer);
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(contact.refused_for(), Some(Duration::from_secs(180)));
        contact.note(&Ok(()));
        assert_eq!(contact.refused_for(), None);
    }
}
