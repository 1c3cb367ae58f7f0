//! A process's track of an object that it watches, reads and writes: the newest revision, the read under way, and
//! the pause after failures. The Lease of a holder and the LeaseCandidate of a registration are such objects.

use std::time::Duration;

use crate::backoff::RetryBackoff;
use crate::names::ResourceVersion;
use crate::renumber::renumber;
use crate::time::Instant;

/// An object, as one process follows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TrackedObject {
    /// The newest version that was seen, also of an object deleted since.
    pub(crate) newest: Option<ResourceVersion>,
    reading: ReadState,
    pub(crate) backoff: RetryBackoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ReadState {
    No,
    Wanted,
    /// Under way, and nothing newer was seen since it was sent: its reply is the newest there is.
    Sent,
    /// Under way, and something newer was seen since: its reply may be older than that.
    Overtaken,
}

// === impl TrackedObject ===

impl TrackedObject {
    /// An object of which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            newest: None,
            reading: ReadState::No,
            backoff: RetryBackoff::default(),
        }
    }

    /// True if a revision is newer than any seen before.
    pub(crate) fn is_news(&self, version: ResourceVersion) -> bool {
        self.newest.is_none_or(|newest| newest < version)
    }

    /// Something newer became known: a read that was wanted has no purpose any more, and one under way may bring what is
    /// older.
    pub(crate) fn overtake(&mut self) {
        self.reading = match self.reading {
            ReadState::No | ReadState::Wanted => ReadState::No,
            ReadState::Sent | ReadState::Overtaken => ReadState::Overtaken,
        };
    }

    /// Asks for a read, unless one is under way.
    pub(crate) fn want_read(&mut self) {
        if self.reading == ReadState::No {
            self.reading = ReadState::Wanted;
        }
    }

    /// True if a read is to be sent.
    pub(crate) fn wants_read(&self) -> bool {
        self.reading == ReadState::Wanted
    }

    /// True while a read is under way.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.reading, ReadState::Sent | ReadState::Overtaken)
    }

    /// True if a read is neither wanted nor under way.
    pub(crate) fn is_settled(&self) -> bool {
        self.reading == ReadState::No
    }

    /// A read is sent now.
    pub(crate) fn begin_read(&mut self) {
        self.reading = ReadState::Sent;
    }

    /// The read has been answered. Says whether its reply is the newest there is.
    pub(crate) fn end_read(&mut self) -> bool {
        std::mem::replace(&mut self.reading, ReadState::No) == ReadState::Sent
    }

    /// Lets go of a read under way whose reply may be older than what was seen since. Says whether there was one.
    pub(crate) fn set_aside_overtaken_read(&mut self) -> bool {
        let overtaken = self.reading == ReadState::Overtaken;
        if overtaken {
            self.reading = ReadState::No;
        }
        overtaken
    }

    /// Counts a failed request, with these bounds of the pause.
    pub(crate) fn fail(&mut self, now: Instant, (first, longest): (Duration, Duration)) {
        self.backoff.fail(now, first, longest);
    }

    /// Counts a conflict, with these bounds of the pause.
    pub(crate) fn conflict(&mut self, now: Instant, (first, longest): (Duration, Duration)) {
        self.backoff.conflict(now, first, longest);
    }
}

renumber!(TrackedObject { newest, backoff });
