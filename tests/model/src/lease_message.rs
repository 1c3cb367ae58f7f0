//! The messages between a process and the store: the changes of the Lease that its watch has yet to deliver, and the
//! requests that change the Lease.

use elector_protocol::holder::WriteKind;
use elector_protocol::{
    LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering, ResourceVersion,
};

use super::run::Run;
use super::store::{LeaseStore, Side};

/// A change of the Lease that a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaseNews {
    Seen(LeaseSnapshot),
    Deleted(ResourceVersion),
}

/// A request that changes the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaseRequest {
    /// By a life of this name.
    Put(usize, WriteKind, LeaseWrite),
    Post(LeaseRecord),
}

/// A request and what became of it. A POST has no kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaseMessage {
    /// Sent. It may land.
    Sent(LeaseRequest),
    /// It landed; the reply is under way.
    Landed(Option<WriteKind>, LeaseSnapshot),
    /// It can never land; the refusal is under way.
    Dead(Option<WriteKind>),
}

// === impl LeaseNews, LeaseRequest, LeaseMessage ===

impl LeaseNews {
    /// The newest change of the Lease, as the watch shows it.
    pub(super) fn of(store: &LeaseStore, run: &Run) -> Self {
        match store.lease.as_ref().filter(|_| run.shows(store)) {
            Some(lease) => Self::Seen(lease.clone()),
            None => Self::Deleted(store.revision),
        }
    }

    pub(super) const fn record(&self) -> Option<&LeaseRecord> {
        match self {
            Self::Seen(lease) => Some(&lease.record),
            Self::Deleted(_) => None,
        }
    }
}

impl Renumber for LeaseNews {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Seen(snapshot) => snapshot.renumber(by),
            Self::Deleted(version) => version.renumber(by),
        }
    }
}

impl LeaseRequest {
    /// True if it may be applied, now or later. A PUT on a revision that was replaced never is (R2); a POST waits for
    /// the name to be absent.
    pub(super) fn may_land(&self, store: &LeaseStore) -> bool {
        match self {
            Self::Put(_, _, write) => store.may_accept(write, Side::Candidate),
            Self::Post(_) => store.lease.is_none() || store.interference.deletions > 0,
        }
    }

    /// The write over another record that it is, if it is one.
    pub(super) const fn write(&self) -> Option<&LeaseWrite> {
        match self {
            Self::Put(_, _, write) => Some(write),
            Self::Post(_) => None,
        }
    }

    /// The kind of write. A POST has none.
    pub(super) fn kind(&self) -> Option<&WriteKind> {
        match self {
            Self::Put(_, kind, _) => Some(kind),
            Self::Post(_) => None,
        }
    }
}

impl Renumber for LeaseRequest {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Put(_, _, write) => write.renumber(by),
            Self::Post(record) => record.renumber(by),
        }
    }
}

impl Renumber for LeaseMessage {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Sent(request) => request.renumber(by),
            Self::Landed(_, snapshot) => snapshot.renumber(by),
            Self::Dead(_) => {}
        }
    }
}
