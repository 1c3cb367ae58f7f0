//! The API server: one Lease under compare-and-swap, the candidates' objects, and what is wrong with a write.

use std::fmt;
use std::time::Duration;

use elector_protocol::{
    CandidateRecord, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, OperatorOverrides,
    Renumber, Renumbering, ResourceVersion, Term, Timestamp, Token, Uid,
};
use elector_verify::{Actor, LeaseChangeKind, audit};

use super::numbers::{FRESH, NOW, before, timestamp};
use super::restraint::Restraint;

/// All that outlives a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseStore {
    /// The revision of the newest change of the Lease.
    pub(super) revision: ResourceVersion,
    pub(super) lease: Option<LeaseSnapshot>,
    /// The candidates' objects, by the index of the name.
    pub(super) objects: Vec<Option<CandidateRecord>>,
    /// A POST that was sent and has not landed. It has no base, so it may land whenever the name is absent.
    pub(super) post: Option<LeaseRecord>,
    /// True if the Lease has the label of its group, or there is no Lease.
    pub(super) labelled: bool,
    /// The number of Leases that were created: the next uid.
    pub(super) created: u8,
    /// The changes that strangers may still make.
    pub(super) interference: Interference,
    /// The candidates that ever acked, one bit each.
    pub(super) acked: u8,
    /// The tokens so far, as the run compares them.
    pub(super) fence: Fence,
    /// When renewTime changed last, where the run keeps it.
    pub(super) written: Option<Instant>,
    /// The last revision of the Lease that was deleted, where a PUT may bring it back.
    pub(super) gone: Option<(Uid, ResourceVersion)>,
    /// Which writes are applied without their condition: the same in every state.
    pub(super) lax: Lax,
    /// Which properties are looked at, one bit each: the same in every state.
    pub(super) watched: u16,
    /// The judge of preferences, where waits double.
    pub(super) restraint: Option<Restraint>,
    /// The property that some write broke.
    pub(super) broken: Option<Property>,
}

/// The bounds of interference by strangers. Only these, and messages per process, are bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Interference {
    /// Deletions of the Lease.
    pub(super) deletions: u8,
    /// Creations of a Lease without a holder and with a short duration, as the built-in controller writes it.
    pub(super) creations: u8,
    /// Writes that make the Lease look newborn, with the label that it was created with.
    pub(super) blanks: u8,
    /// Writes that take the label away and leave the record as it is.
    pub(super) unlabels: u8,
    /// Releases of another client's term, as client-go writes them after a pause.
    pub(super) wipes: u8,
    /// Deletions of a candidate's object.
    pub(super) object_deletions: u8,
}

/// The number held against its predecessors as a token, and the highest so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fence {
    /// The revision that the accept replaced. Every earlier token is such a revision too, so it is below.
    Base,
    /// The same, and every token is compared with the highest before it.
    Token(Option<Token>),
    /// The term, compared in the same way.
    Term(Option<Term>),
}

/// Which writes of the Lease are applied without their condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lax {
    /// None.
    Nothing,
    /// Those of electors, as if they were patches.
    Electors,
    /// Those of candidates.
    Candidates,
    /// A PUT on the last revision of a deleted Lease, which creates the Lease again.
    LastPut,
    /// Every PUT while there is no Lease, as the server takes it where it carries no uid.
    AnyPut,
}

/// The side that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Elector,
    Candidate,
}

/// A property required of every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Property {
    /// S1: at most one process believes that it leads.
    OneBeliever,
    /// S3, S4, S6: every write of ours is a move that the rules allow.
    AllowedMove,
    /// S5: a fencing token is higher than every one before it.
    TokenGrows,
    /// S7: a candidate that is granted the lease had acked.
    ElecteeAcked,
    /// R16: no live leader is asked to make room while its lease is frozen.
    FreezeHolds,
    /// R16: no candidate is preferred in the pause after the second withdrawal of a term.
    Pauses,
    /// R16: a preference stands for its time before it is withdrawn.
    Stands,
    /// R23: no candidate is preferred while hand-overs are held back.
    HeldBack,
    /// L9: a part of a group moves for balance only where that is needed.
    NeededMove,
}

/// The outcome of a write of the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    /// It was applied.
    Applied,
    /// Its base was gone.
    Conflict,
}

/// The end of an operator's words: later than every reading of a wall clock, which stands still here.
pub(super) const WORD_ENDS: Timestamp = Timestamp::from_micros(FRESH + 1).unwrap();
/// The name of the group, where there is one.
pub(super) const GROUP: &str = "g";
/// The candidates' names. The first one is the best one.
pub(super) const NAMES: [&str; 3] = ["c0", "c1", "c2"];

// === impl Property ===

impl Property {
    /// Every one of them.
    pub(super) const ALL: [Self; 9] = [
        Self::OneBeliever,
        Self::AllowedMove,
        Self::TokenGrows,
        Self::ElecteeAcked,
        Self::FreezeHolds,
        Self::Pauses,
        Self::Stands,
        Self::HeldBack,
        Self::NeededMove,
    ];

    /// Its bit in a set.
    pub(super) const fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneBeliever => "S1 two believers",
            Self::AllowedMove => "S3/S4/S6 forbidden move",
            Self::TokenGrows => "S5 token did not grow",
            Self::ElecteeAcked => "S7 electee had not acked",
            Self::FreezeHolds => "R16 asked in spite of a freeze",
            Self::Pauses => "R16 preferred in a pause",
            Self::Stands => "R16 withdrawn before its time",
            Self::HeldBack => "R23 preferred while held back",
            Self::NeededMove => "L9 needless move",
        })
    }
}

// === impl Interference ===

impl Interference {
    /// Strangers keep away.
    pub(super) const NONE: Self = Self {
        deletions: 0,
        creations: 0,
        blanks: 0,
        unlabels: 0,
        wipes: 0,
        object_deletions: 0,
    };
}

// === impl Fence ===

impl Fence {
    /// Takes in the token of an accept; false where it is not higher than every one before it.
    fn raise(&mut self, accepted: &LeaseRecord) -> bool {
        match self {
            Self::Base => true,
            Self::Token(highest) => {
                let before = std::mem::replace(highest, accepted.token);
                before < accepted.token
            }
            Self::Term(highest) => {
                let before = highest.replace(accepted.term);
                before.is_none_or(|before| before < accepted.term)
            }
        }
    }
}

impl Renumber for Fence {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Base => {}
            Self::Token(token) => token.renumber(by),
            Self::Term(term) => term.renumber(by),
        }
    }
}

// === impl LeaseStore ===

impl LeaseStore {
    /// True if a write would be applied now.
    pub(super) fn accepts(&self, write: &LeaseWrite, side: Side) -> bool {
        let unconditional = match self.lax {
            Lax::Electors => side == Side::Elector,
            Lax::Candidates => side == Side::Candidate,
            Lax::Nothing | Lax::LastPut | Lax::AnyPut => false,
        };
        match &self.lease {
            Some(lease) => {
                unconditional || (lease.uid == write.uid && lease.version == write.version)
            }
            None => match self.lax {
                Lax::AnyPut => true,
                Lax::LastPut => self
                    .gone
                    .as_ref()
                    .is_some_and(|(uid, version)| *uid == write.uid && *version == write.version),
                Lax::Nothing | Lax::Electors | Lax::Candidates => false,
            },
        }
    }

    /// True if a write may be applied at all, now or later. What is based on a revision that was replaced never is
    /// (R2), unless the server is lax.
    pub(super) fn may_accept(&self, write: &LeaseWrite, side: Side) -> bool {
        self.accepts(write, side) || (self.lax == Lax::AnyPut && self.interference.deletions > 0)
    }

    /// Applies a write of ours, if its base still stands (R2), and holds it against the rules.
    pub(super) fn put(&mut self, write: &LeaseWrite, actor: Actor<'_>) -> Landed {
        let side = match actor {
            Actor::Elector => Side::Elector,
            Actor::Candidate(_) => Side::Candidate,
        };
        if !self.accepts(write, side) {
            return Landed::Conflict;
        }
        let after = &write.record;
        let Some(before) = self.lease.clone() else {
            return self.create(after.clone());
        };
        match audit(&before.record, after, actor) {
            Ok(
                LeaseChangeKind::Accept
                | LeaseChangeKind::AcquireUnheld
                | LeaseChangeKind::AcquireExpired,
            ) => {
                let is_base = after.token == Some(Token(before.version));
                if !is_base || !self.fence.raise(after) {
                    self.note(Property::TokenGrows);
                }
            }
            Ok(
                LeaseChangeKind::GrantUnheld
                | LeaseChangeKind::GrantExpired
                | LeaseChangeKind::HandOff,
            ) => {
                let electee = after
                    .holder
                    .as_ref()
                    .and_then(|holder| self.index_of(holder));
                if electee.is_none_or(|index| self.acked & (1 << index) == 0) {
                    self.note(Property::ElecteeAcked);
                }
            }
            Ok(_) => {}
            Err(_) => self.note(Property::AllowedMove),
        }
        let preferred = &after.preferred_holder;
        if preferred.is_some() && *preferred != before.record.preferred_holder {
            let judge = self.restraint.as_ref();
            for (broken, property) in [
                (before.overrides.freeze.is_some(), Property::FreezeHolds),
                (judge.is_some_and(Restraint::pauses), Property::Pauses),
                (judge.is_some_and(Restraint::holds_back), Property::HeldBack),
            ] {
                if broken {
                    self.note(property);
                }
            }
        }
        self.overwrite(|_| after.clone());
        Landed::Applied
    }

    /// Writes over the Lease without asking; strangers do.
    pub(super) fn overwrite(&mut self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        self.revision = next(self.revision);
        let mut stood = true;
        if let Some(lease) = &mut self.lease {
            lease.version = self.revision;
            let record = change(&lease.record);
            if let Some(restraint) = &mut self.restraint {
                stood = restraint.follow(&lease.record, &record);
            }
            if self.written.is_some() && record.renew_time != lease.record.renew_time {
                self.written = Some(NOW);
            }
            lease.record = record;
        }
        if !stood {
            self.note(Property::Stands);
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
            overrides: OperatorOverrides::default(),
        });
        self.created += 1;
        self.gone = None;
        Landed::Applied
    }

    /// Writes the words of an operator.
    pub(super) fn instruct(&mut self, change: impl FnOnce(&mut OperatorOverrides)) {
        self.overwrite(LeaseRecord::clone);
        if let Some(lease) = &mut self.lease {
            change(&mut lease.overrides);
        }
    }

    /// Releases the Lease as client-go would: the spec is replaced, annotations stay as they are.
    pub(super) fn wipe(&mut self) {
        self.interference.wipes -= 1;
        self.overwrite(|record| LeaseRecord {
            token: record.token,
            token_term: record.token_term,
            ..record.released(timestamp(FRESH))
        });
    }

    /// Its content, for people to read.
    pub(super) fn describe(&self) -> String {
        self.lease.as_ref().map_or_else(
            || "no lease".to_owned(),
            |lease| {
                let record = &lease.record;
                let holder = record.holder.as_ref().map_or("nobody", Identity::as_str);
                let duration = record.duration_seconds.unwrap_or_default();
                let token = if record.has_token() { ", accepted" } else { "" };
                format!("{} {holder} for {duration}s{token}", lease.uid)
            },
        )
    }

    /// Deletes the Lease.
    pub(super) fn delete(&mut self) {
        self.revision = next(self.revision);
        self.labelled = true;
        let gone = self.lease.take();
        if self.lax == Lax::LastPut {
            self.gone = gone.map(|lease| (lease.uid, lease.version));
        }
    }

    /// Lets time pass on the clock that renewTime is read from.
    pub(super) fn age(&mut self, by: Duration, limit: Duration) {
        if let Some(written) = &mut self.written {
            let age = NOW.since(*written).saturating_add(by).min(limit);
            *written = before(NOW, age);
        }
    }

    /// Writes a ping or an ack into a candidate's object, if the revision still stands.
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
            self.acked |= 1 << index;
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

    /// Something is wrong, if the run looks at it.
    pub(super) fn note(&mut self, property: Property) {
        if self.watched & property.bit() != 0 {
            self.broken = self.broken.or(Some(property));
        }
    }
}

impl Renumber for LeaseStore {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.revision.renumber(by);
        self.lease.renumber(by);
        self.objects.renumber(by);
        self.post.renumber(by);
        self.fence.renumber(by);
        if let Some((_, version)) = &mut self.gone {
            version.renumber(by);
        }
    }
}

/// The identity of a name, which is not empty.
pub(super) fn identity(name: &str) -> Identity {
    Identity::new(name).unwrap_or_else(|| unreachable!("names are not empty"))
}

/// True if a record names the candidate of this index.
pub(super) fn names(record: &LeaseRecord, index: usize) -> bool {
    record
        .holder
        .as_ref()
        .is_some_and(|holder| holder.as_str() == NAMES[index])
}

fn next(version: ResourceVersion) -> ResourceVersion {
    ResourceVersion(version.0 + 1)
}
