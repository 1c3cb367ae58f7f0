//! The memory of a Lease's revisions, to check the next one against.

use elector_api::Lease;
use elector_protocol::{LeaseRecord, LeaseSnapshot, ResourceVersion, Timestamp};

use crate::actor::Actor;
use crate::audit::audit;
use crate::reading::{is_released, is_same};
use crate::verdict::LeaseChangeKind;

/// The known state of a Lease.
#[derive(Debug, Default)]
pub(super) struct Memory<'r> {
    /// The newest revision; `None` where there is no Lease, or none that can be read.
    pub(super) last: Option<LastRevision<'r>>,
    /// The record that strangers wrote over by something that cannot be read.
    unread: Option<LeaseRecord>,
    /// The newest held record that was not released, also when the Lease is gone, and since when it was seen. A
    /// renewTime of a stranger is left out: it may be any time.
    pub(super) owed: Option<(LeaseRecord, Option<Timestamp>)>,
    /// When the Lease before this one was deleted, if there was one.
    pub(super) gone: Option<Timestamp>,
    /// True if any revision of this Lease was held.
    pub(super) was_held: bool,
}

/// The newest revision of the Lease.
#[derive(Debug)]
pub(super) struct LastRevision<'r> {
    /// The object, of which the snapshot is a part.
    pub(super) lease: &'r Lease,
    pub(super) snapshot: LeaseSnapshot,
    /// When this record, not this revision, was first seen; `None` where it is older than the recording.
    pub(super) since: Option<Timestamp>,
    /// The version with which it began.
    pub(super) first: ResourceVersion,
    /// Where strangers wrote it: what they wrote over.
    pub(super) written_over: Option<LeaseRecord>,
    /// True where a stranger wrote the preferred holder, who may be nobody: the holder renews with it while its work ends.
    pub(super) preferred_by_stranger: bool,
    /// True where the holder before wrote it to let go.
    pub(super) let_go: bool,
}

// === impl LastRevision ===

impl LastRevision<'_> {
    /// The newest record that no stranger wrote.
    pub(super) fn own(self) -> LeaseRecord {
        self.written_over.unwrap_or(self.snapshot.record)
    }
}

// === impl Memory ===

impl<'r> Memory<'r> {
    /// The newest revision of the object that this one is of.
    pub(super) fn last_of_same_object(
        &self,
        snapshot: &LeaseSnapshot,
    ) -> Option<&LastRevision<'r>> {
        let same = |last: &&LastRevision<'r>| last.snapshot.uid == snapshot.uid;
        self.last.as_ref().filter(same)
    }

    /// A stranger wrote something that cannot be read.
    pub(super) fn remember_unreadable_by_stranger(&mut self) {
        let unread = self.unread.take();
        self.unread = self.last.take().map(LastRevision::own).or(unread);
    }

    /// True where strangers made the record unreadable.
    pub(super) fn is_unreadable(&self) -> bool {
        self.unread.is_some()
    }

    /// Something that cannot be read was written by a participant.
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }

    /// The Lease was deleted.
    pub(super) fn forget_object(&mut self, at: Timestamp) {
        self.last = None;
        self.unread = None;
        self.gone = Some(at);
        self.was_held = false;
    }

    /// Keeps this revision; `unseen` where what was before it was not recorded.
    pub(super) fn remember(
        &mut self,
        kind: LeaseChangeKind,
        lease: &'r Lease,
        snapshot: LeaseSnapshot,
        at: Timestamp,
        unseen: bool,
    ) {
        let (since, first) = match &self.last {
            Some(last)
                if last.snapshot.uid == snapshot.uid
                    && is_same(&last.snapshot.record, &snapshot.record) =>
            {
                (last.since, last.first)
            }
            _ => ((!unseen).then_some(at), snapshot.version),
        };
        let (last, unread) = (self.last.take(), self.unread.take());
        let preferred = &snapshot.record.preferred_holder;
        let stands = last.as_ref().is_some_and(|last| {
            last.preferred_by_stranger && last.snapshot.record.preferred_holder == *preferred
        });
        let is_new = || {
            let before = last.as_ref();
            before.is_none_or(|last| last.snapshot.record.preferred_holder != *preferred)
        };
        let preferred_by_stranger =
            preferred.is_some() && (stands || kind == LeaseChangeKind::Foreign && is_new());
        let let_go = match kind {
            LeaseChangeKind::Release => true,
            LeaseChangeKind::Signal => last.as_ref().is_some_and(|last| last.let_go),
            _ => false,
        };
        let written_over = match kind {
            LeaseChangeKind::Foreign => last.map(LastRevision::own).or(unread),
            LeaseChangeKind::Signal => last.and_then(|last| last.written_over),
            _ => None,
        };
        self.was_held |= snapshot.record.holder.is_some();
        if snapshot.record.holder.is_some() {
            let mut record = snapshot.record.clone();
            let own = written_over.as_ref().map(|own| own.renew_time);
            record.renew_time = record
                .renew_time
                .filter(|at| own.is_none_or(|own| own == Some(*at)));
            self.owed = Some((record, since));
        } else if is_released(&snapshot.record) {
            // Also where a stranger made it look so, which shortens a duration: that is exempt from S1. Where the Lease was
            // deleted or blanked, the holder may still believe.
            self.owed = None;
        }
        self.last = Some(LastRevision {
            lease,
            snapshot,
            since,
            first,
            written_over,
            preferred_by_stranger,
            let_go,
        });
    }
}

/// True where the holder of a term that strangers wrote on renews it as it was, with its duration and its token.
pub(super) fn restores(last: &LastRevision<'_>, after: &LeaseRecord) -> bool {
    let own = last.written_over.as_ref();
    let Some((own, holder)) = own.and_then(|own| Some((own, own.holder.as_ref()?))) else {
        return false;
    };
    let there = &last.snapshot.record;
    if (&there.holder, there.term) != (&own.holder, own.term) {
        return false;
    }
    // The signals are for electors to write.
    let own = LeaseRecord {
        strategy: there.strategy.clone(),
        preferred_holder: there.preferred_holder.clone(),
        ..own.clone()
    };
    audit(&own, after, Actor::Candidate(holder)) == Ok(LeaseChangeKind::Renew)
}
