//! The outcome of a write, and the counts of all outcomes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::request::{RequestError, Verb};

/// The outcome of a write. The next step is left to the caller; for all but `Done` that is to read and judge again.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum WriteOutcome<T> {
    /// It was applied; this is the object as the server stored it.
    Done(T),
    /// 409: another process wrote first, or the object is another one of the same name.
    Conflict,
    /// 404: the object is gone.
    Gone,
    /// 409 to a POST: the name is taken.
    AlreadyExists,
    /// The server said no, and nothing was applied.
    Refused(RequestError),
    /// No usable answer: it may have been applied, or may still be.
    Unknown(RequestError),
}

/// An outcome without what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteOutcomeKind {
    /// See [`WriteOutcome::Done`].
    Done,
    /// See [`WriteOutcome::Conflict`].
    Conflict,
    /// See [`WriteOutcome::Gone`].
    Gone,
    /// See [`WriteOutcome::AlreadyExists`].
    AlreadyExists,
    /// See [`WriteOutcome::Refused`].
    Refused,
    /// See [`WriteOutcome::Unknown`].
    Unknown,
}

/// The kind of object that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Written {
    /// A Lease.
    Lease,
    /// A LeaseCandidate.
    Candidate,
}

/// The numbers of writes by outcome, since the process began.
#[derive(Debug, Default)]
pub struct WriteCounts {
    counts: [[[AtomicU64; WriteOutcomeKind::ALL.len()]; WRITES.len()]; 2],
}

/// The verbs that write.
const WRITES: [Verb; 4] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];

// === impl WriteOutcome ===

impl<T> WriteOutcome<T> {
    /// The outcome without what it carries.
    pub const fn kind(&self) -> WriteOutcomeKind {
        match self {
            Self::Done(_) => WriteOutcomeKind::Done,
            Self::Conflict => WriteOutcomeKind::Conflict,
            Self::Gone => WriteOutcomeKind::Gone,
            Self::AlreadyExists => WriteOutcomeKind::AlreadyExists,
            Self::Refused(_) => WriteOutcomeKind::Refused,
            Self::Unknown(_) => WriteOutcomeKind::Unknown,
        }
    }

    /// The stored object, where the write was applied.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(object) => Some(object),
            _ => None,
        }
    }

    /// The error, where there is one to report. A conflict is none: it is how concurrent writers agree.
    pub const fn error(&self) -> Option<&RequestError> {
        match self {
            Self::Refused(error) | Self::Unknown(error) => Some(error),
            _ => None,
        }
    }
}

// === impl WriteOutcomeKind ===

impl WriteOutcomeKind {
    /// Every outcome, in the order of [`WriteOutcome`].
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::Conflict,
        Self::Gone,
        Self::AlreadyExists,
        Self::Refused,
        Self::Unknown,
    ];

    /// A word for labels and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::AlreadyExists => "already_exists",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for WriteOutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl WriteCounts ===

impl WriteCounts {
    /// The number of writes of that kind that ended so.
    pub fn of(&self, written: Written, verb: Verb, outcome: WriteOutcomeKind) -> u64 {
        self.cell(written, verb, outcome)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Every count that is not zero.
    pub fn iter(&self) -> impl Iterator<Item = (Written, Verb, WriteOutcomeKind, u64)> {
        let kinds = [Written::Lease, Written::Candidate];
        kinds
            .into_iter()
            .flat_map(|written| WRITES.map(|verb| (written, verb)))
            .flat_map(|(written, verb)| {
                WriteOutcomeKind::ALL.map(|outcome| (written, verb, outcome))
            })
            .map(|(written, verb, outcome)| {
                (written, verb, outcome, self.of(written, verb, outcome))
            })
            .filter(|(.., count)| *count > 0)
    }

    pub(crate) fn count(&self, written: Written, verb: Verb, outcome: WriteOutcomeKind) {
        if let Some(count) = self.cell(written, verb, outcome) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cell(&self, written: Written, verb: Verb, outcome: WriteOutcomeKind) -> Option<&AtomicU64> {
        let verb = WRITES.iter().position(|one| *one == verb)?;
        Some(&self.counts[written as usize][verb][outcome as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_has_a_word_for_labels_and_logs() {
        let words = WriteOutcomeKind::ALL.map(|outcome| outcome.to_string());
        let expected = "done conflict gone already_exists refused unknown";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn each_count_is_its_own() {
        let counts = WriteCounts::default();
        counts.count(Written::Lease, Verb::Update, WriteOutcomeKind::Done);
        counts.count(Written::Lease, Verb::Update, WriteOutcomeKind::Done);
        counts.count(Written::Candidate, Verb::Delete, WriteOutcomeKind::Unknown);
        counts.count(Written::Lease, Verb::Get, WriteOutcomeKind::Done);
        assert_eq!(
            counts.iter().collect::<Vec<_>>(),
            [
                (Written::Lease, Verb::Update, WriteOutcomeKind::Done, 2),
                (
                    Written::Candidate,
                    Verb::Delete,
                    WriteOutcomeKind::Unknown,
                    1
                ),
            ]
        );
        assert_eq!(
            counts.of(Written::Lease, Verb::Create, WriteOutcomeKind::Done),
            0
        );
    }
}
