//! Terms of earlier lives of an instance, which are certainly over (R21).

use crate::lease::{LeaseSnapshot, LeaseWrite};
use crate::names::{Identity, LifeId, ResourceVersion, Token, Uid};
use crate::renumber::renumber;

/// A term that a life of an instance began, or was about to begin.
///
/// An [instance lock](crate::rules#r21) notes it before the write is sent. A later life that obtains the lock knows that the
/// earlier one is dead, and all that it started: nothing of the term works any more, although its lease has not expired.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FormerTerm {
    /// The life that began it.
    pub life: LifeId,
    /// The uid of the Lease.
    pub uid: Uid,
    /// The holder, as that life called itself.
    pub holder: Identity,
    /// The version that the write replaced, so the token of the term.
    pub base: ResourceVersion,
}

// === impl FormerTerm ===

impl FormerTerm {
    /// The term that this write begins. `None` where no instance lock is kept.
    pub fn of(write: &LeaseWrite) -> Option<Self> {
        Some(Self {
            life: write.record.life?,
            uid: write.uid.clone(),
            holder: write.record.holder.clone()?,
            base: write.version,
        })
    }

    /// True if that revision is of this very term, whoever bears the name of its holder now.
    pub fn is_shown_by(&self, lease: &LeaseSnapshot) -> bool {
        let record = &lease.record;
        lease.uid == self.uid
            && record.has_token()
            && record.token == Some(Token(self.base))
            && record.life == Some(self.life)
            && record.holder.as_ref() == Some(&self.holder)
    }

    /// True if that revision or a later one may be of this term: the write that begins it may land yet, or has.
    pub(super) fn may_be_shown_from(&self, lease: &LeaseSnapshot) -> bool {
        lease.version <= self.base || self.is_shown_by(lease)
    }
}

renumber!(FormerTerm { base });
