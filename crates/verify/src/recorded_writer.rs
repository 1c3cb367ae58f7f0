//! The writer of a revision, where the recorder knows it: a simulation does, a watch does not.

use std::time::Duration;

use elector_protocol::{Identity, ResourceVersion, Timestamp};

use crate::actor::Actor;
use crate::entry::between;

/// The writer of a revision, with the time at which it sent it and its own clock. With it the waits of R4, R6 and R18 are
/// judged to the microsecond, answers by what the elector had heard (R15), and preferences by the budget (R23).
#[derive(Clone, Debug)]
pub struct RecordedWriter {
    /// The writer's part.
    pub role: WriterRole,
    /// When the process began.
    pub born: Timestamp,
    /// When it sent the write.
    pub sent: Timestamp,
    /// The rate of its clock: its seconds in one of the history.
    pub rate: f64,
    /// `W_max` as far as it certainly knew: what it allows for, and what was announced to it (R6). `None` for
    /// [that of the limits](crate::Limits::longest_lease).
    pub longest_lease: Option<Duration>,
}

/// The part of a writer.
#[derive(Clone, Debug)]
pub enum WriterRole {
    /// An elector, by what it knew.
    Elector(ElectorSight),
    /// A process that holds leases.
    Holder {
        /// Its name in records.
        identity: Identity,
        /// Its way to its terms.
        terms: TermSource,
    },
}

/// The way of a process to its terms (R18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermSource {
    /// By grants.
    Granted,
    /// By grants, and by acquisitions after it has waited this much longer than an elector would.
    GrantedOrAcquired(Duration),
    /// By acquisitions.
    Acquired,
}

/// The news that an elector had when it sent a write.
#[derive(Clone, Debug)]
pub struct ElectorSight {
    /// Its budget of pre-emptions (`--preemptions`), where it is not the default.
    pub preemptions: Option<u8>,
    /// The answers of the candidate that the write chooses: in one of these ways.
    pub answers: Vec<CandidateAnswers>,
    /// Times, from and to, of which it may have missed what happened.
    pub blind: Vec<(Timestamp, Timestamp)>,
}

/// A candidate's answers as an elector heard them (R15).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateAnswers {
    /// The newest ack: its version, and its age by the elector's clock.
    pub ack: Option<(ResourceVersion, Duration)>,
    /// Each ping since the candidate was created: its version, and when the elector saw it.
    pub pings: Vec<(ResourceVersion, Timestamp)>,
}

// === impl ElectorSight ===

impl ElectorSight {
    /// True if it certainly saw all that happened between two moments.
    pub(crate) fn saw(&self, from: Timestamp, to: Timestamp) -> bool {
        let mut blind = self.blind.iter();
        !blind.any(|(begun, ended)| *begun <= to && from <= *ended)
    }
}

// === impl RecordedWriter ===

impl RecordedWriter {
    pub(crate) fn actor(&self) -> Actor<'_> {
        match &self.role {
            WriterRole::Elector(_) => Actor::Elector,
            WriterRole::Holder { identity, .. } => Actor::Candidate(identity),
        }
    }

    /// The name under which it holds leases.
    pub(crate) fn holder(&self) -> Option<&Identity> {
        match &self.role {
            WriterRole::Elector(_) => None,
            WriterRole::Holder { identity, .. } => Some(identity),
        }
    }

    pub(crate) fn sight(&self) -> Option<&ElectorSight> {
        match &self.role {
            WriterRole::Elector(sight) => Some(sight),
            WriterRole::Holder { .. } => None,
        }
    }

    /// The time that its clock counted from `at` until it sent the write. Times of a history have whole microseconds, so
    /// one is added for each end.
    pub(crate) fn counted_from(&self, at: Timestamp) -> Duration {
        between(at, self.sent).mul_f64(self.rate) + Duration::from_micros(2)
    }
}
