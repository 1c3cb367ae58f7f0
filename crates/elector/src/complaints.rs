//! Failures in the log: each one line, said when it is new and once in a while as long as it lasts.
//!
//! What fails is retried every few seconds at most, and a thousand leases may fail for one reason; without this an
//! outage would bury its own cause.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::Instant;

/// What has been complained about, by subject: a lease, a watch.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    by_subject: BTreeMap<String, Complaint>,
}

#[derive(Debug)]
struct Complaint {
    text: String,
    said: Instant,
}

/// How often a lasting failure is repeated.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

// === impl Complaints ===

impl Complaints {
    /// Whether a failure is to be said aloud: it is new for this subject, or was last said a minute ago.
    pub(crate) fn is_due(&mut self, now: Instant, subject: &str, text: &str) -> bool {
        let known = self.by_subject.get_mut(subject);
        if let Some(known) = &known
            && known.text == text
            && now.since(known.said) < REPEAT_AFTER
        {
            return false;
        }
        let complaint = Complaint {
            text: text.to_owned(),
            said: now,
        };
        match known {
            Some(known) => *known = complaint,
            None => {
                self.by_subject.insert(subject.to_owned(), complaint);
            }
        }
        true
    }

    /// The subject is well again; says whether it was not before.
    pub(crate) fn settle(&mut self, subject: &str) -> bool {
        self.by_subject.remove(subject).is_some()
    }

    /// Drops what has not been said for long; to be called once in a while.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.by_subject
            .retain(|_, complaint| now.since(complaint.said) < 10 * REPEAT_AFTER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_said_when_new_and_once_a_minute() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let mut complaints = Complaints::default();
        assert!(complaints.is_due(at(0), "a", "down"));
        assert!(!complaints.is_due(at(59), "a", "down"));
        assert!(complaints.is_due(at(59), "b", "down"), "another subject");
        assert!(complaints.is_due(at(60), "a", "down"), "a minute later");
        assert!(
            complaints.is_due(at(61), "a", "forbidden"),
            "another reason"
        );
        assert!(complaints.settle("a"));
        assert!(!complaints.settle("a"));
        assert!(
            complaints.is_due(at(62), "a", "forbidden"),
            "it had been well"
        );
        complaints.forget(at(659));
        assert!(complaints.settle("a"));
        assert!(!complaints.settle("b"), "long forgotten");
    }
}
