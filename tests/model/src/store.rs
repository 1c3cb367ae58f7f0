//! The API server: one Lease under compare-and-swap, the candidates' objects, and what is wrong with a write.

use std::fmt;

use elector_protocol::elector::{Actor, Move, audit};
use elector_protocol::{
    Candidate, Identity, LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering,
    ResourceVersion, Timestamp, Token, Uid,
};

/// All that outlives a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Store {
    /// The revision of the newest change of the Lease.
    pub(super) revision: ResourceVersion,
    pub(super) lease: Option<LeaseSnapshot>,
    /// The candidates' objects, by the candidate's index.
    pub(super) objects: Vec<Option<Candidate>>,
    /// A POST that was sent and has not landed. It has no base, so it may land whenever the name is absent.
    pub(super) post: Option<LeaseRecord>,
    /// How many Leases were created: the next uid.
    pub(super) created: u8,
    /// What strangers may still do.
    pub(super) whims: Whims,
    /// Which candidates ever answered, one bit each.
    pub(super) answered: u8,
    /// What some write broke.
    pub(super) broken: Option<Property>,
}

/// How often a stranger may interfere. This, and letters per process, is all that is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Whims {
    /// Deletions of the Lease.
    pub(super) deletions: u8,
    /// Writes that make the Lease look newborn.
    pub(super) blanks: u8,
    /// Releases of somebody else's term, as client-go writes them after a pause.
    pub(super) wipes: u8,
    /// Deletions of a candidate's object.
    pub(super) object_deletions: u8,
}

/// What must hold in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Property {
    /// S1: at most one process believes that it leads.
    OneBeliever,
    /// S3, S4, S6: every write of ours is a move that the rules allow.
    AllowedMove,
    /// S5: a fencing token is higher than every one before it.
    TokenGrows,
    /// S7: whoever is granted the lease had answered.
    ElecteeAnswered,
}

/// What a write of the Lease amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    /// It was applied.
    Applied,
    /// Its base was gone.
    Conflict,
}

/// The candidates' names. The first one is the better one.
pub(super) const NAMES: [&str; 2] = ["c0", "c1"];

// === impl Property ===

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneBeliever => "S1 two believers",
            Self::AllowedMove => "S3/S4/S6 forbidden move",
            Self::TokenGrows => "S5 token did not grow",
            Self::ElecteeAnswered => "S7 electee had not answered",
        })
    }
}

// === impl Store ===

impl Store {
    /// Whether a write would be applied now.
    pub(super) fn accepts(&self, write: &LeaseWrite) -> bool {
        self.lease
            .as_ref()
            .is_some_and(|lease| lease.uid == write.uid && lease.version == write.version)
    }

    /// Applies a write of ours, if its base still stands (R2), and holds it against the rules.
    pub(super) fn put(&mut self, write: &LeaseWrite, actor: &Actor<'_>) -> Landed {
        let Some(before) = self.lease.clone().filter(|_| self.accepts(write)) else {
            return Landed::Conflict;
        };
        let after = &write.record;
        match audit(&before.record, after, actor) {
            Ok(Move::Accept) => {
                // Every earlier token is a version that an earlier accept replaced, so it is below this base.
                if after.token != Some(Token(before.version)) {
                    self.note(Property::TokenGrows);
                }
            }
            Ok(Move::GrantUnheld | Move::GrantExpired | Move::HandOff) => {
                let electee = after
                    .holder
                    .as_ref()
                    .and_then(|holder| self.index_of(holder));
                if electee.is_none_or(|index| self.answered & (1 << index) == 0) {
                    self.note(Property::ElecteeAnswered);
                }
            }
            Ok(Move::Release | Move::Renew | Move::Signal | Move::Reserve) => {}
            Err(_) => self.note(Property::AllowedMove),
        }
        self.overwrite(|_| after.clone());
        Landed::Applied
    }

    /// Writes over the Lease without asking; strangers do.
    pub(super) fn overwrite(&mut self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        self.revision = next(self.revision);
        if let Some(lease) = &mut self.lease {
            lease.version = self.revision;
            lease.record = change(&lease.record);
        }
    }

    /// Creates the Lease, if there is none.
    pub(super) fn create(&mut self, record: LeaseRecord) -> Landed {
        if self.lease.is_some() {
            return Landed::Conflict;
        }
        self.revision = next(self.revision);
        self.lease = Some(LeaseSnapshot {
            uid: Uid::new(format!("u{}", self.created)),
            version: self.revision,
            record,
        });
        self.created += 1;
        Landed::Applied
    }

    /// Deletes the Lease.
    pub(super) fn delete(&mut self) {
        self.revision = next(self.revision);
        self.lease = None;
    }

    /// Writes a question or an answer into a candidate's object, if the revision still stands.
    pub(super) fn put_object(
        &mut self,
        index: usize,
        uid: &Uid,
        version: ResourceVersion,
        ping: Option<Timestamp>,
        renew: Option<Timestamp>,
    ) -> Landed {
        let Some(Some(object)) = self.objects.get_mut(index) else {
            return Landed::Conflict;
        };
        if object.uid != *uid || object.version != version {
            return Landed::Conflict;
        }
        if renew != object.renew {
            self.answered |= 1 << index;
        }
        object.version = next(object.version);
        object.ping = ping;
        object.renew = renew;
        Landed::Applied
    }

    /// The index of a candidate of this name.
    pub(super) fn index_of(&self, name: &Identity) -> Option<usize> {
        (0..self.objects.len()).find(|index| name.as_str() == NAMES[*index])
    }

    fn note(&mut self, property: Property) {
        self.broken = self.broken.or(Some(property));
    }
}

impl Renumber for Store {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.revision.renumber(by);
        self.lease.renumber(by);
        self.objects.renumber(by);
        self.post.renumber(by);
    }
}

/// Whether a record names the candidate of this index.
pub(super) fn names(record: &LeaseRecord, index: usize) -> bool {
    record
        .holder
        .as_ref()
        .is_some_and(|holder| holder.as_str() == NAMES[index])
}

fn next(version: ResourceVersion) -> ResourceVersion {
    ResourceVersion(version.0 + 1)
}
