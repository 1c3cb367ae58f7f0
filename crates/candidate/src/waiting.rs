//! The wait of a candidate before it leads, as it is reported.

use std::fmt;
use std::time::Duration;

use elector_protocol::Instant;
use elector_protocol::holder::Wait;

/// A wait for the next term of this candidate. It is logged and reported once for each reason
/// ([`Event::Waiting`](crate::Event::Waiting)), and stands in the status while it lasts
/// ([`LeaseStatus::waiting`](crate::LeaseStatus::waiting)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    reason: String,
    at_most: Option<Duration>,
}

// === impl Waiting ===

impl Waiting {
    /// The wait as it is at that instant of the holder's clock.
    pub(crate) fn at(now: Instant, wait: &Wait) -> Self {
        Self {
            reason: wait.reason.to_string(),
            at_most: wait.until.map(|until| until.since(now)),
        }
    }

    /// The cause of the wait: `web-1 holds the lease`.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// After what time this candidate takes the lease if no elector grants it before, and no other process takes or
    /// renews it. A ping of an elector adds the fallback once more. `None` where this candidate takes nothing: in elected
    /// mode, where the strategy is another elector's, and where it is asked to stand down.
    pub const fn at_most(&self) -> Option<Duration> {
        self.at_most
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.at_most {
            Some(at_most) => write!(f, " (at most {at_most:.1?})"),
            None => Ok(()),
        }
    }
}
