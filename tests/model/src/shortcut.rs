//! Rules broken on purpose: each must be caught, or the check proves nothing.

use elector_protocol::elector::{Effect, Election, News};
use elector_protocol::{Instant, LeaseRecord, LeaseSnapshot, Occupancy, Uid};

use super::elector::Watcher;
use super::numbers::NOW;
use super::run::ACCEPT_WINDOW;
use super::store::Store;

/// A plausible way to save a wait, a write or a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcut {
    /// Belief is counted from the reply to a write, not from its sending.
    CountFromReply,
    /// A fresh read of a record that names the reader is enough to lead.
    LeadByRead,
    /// Before a release the Lease is read again, but the old local record says whether it is one's own.
    ReleaseByOldRecord,
    /// A missing Lease is created and granted at once.
    MissingIsFree,
    /// An elector that has just started takes an unchanged record for expired.
    RestartExpires,
    /// A born record is granted at once.
    BornIsFree,
    /// After a proven absence the Lease is created by a POST that already names its holder.
    GrantByPost,
    /// The wait for an unproven record counts from the first sight of its uid, not of the record.
    CountFromUid,
    /// A release is believed although the token of the term is still there.
    TrustAnyRelease,
    /// An unproven record is granted as soon as every candidate has answered. Those that lead, or may yet by a write
    /// under way, keep silent.
    GrantOnUnanimity,
    /// The holder of an expired record is not granted the lease again.
    NeverTheSame,
    /// An electee that does not accept is not passed over.
    NobodyPassedOver,
    /// W is below H on the holder's own, slower clock.
    ShortLease,
    /// Every candidate counts as having answered when it is first seen.
    NobodyAsked,
    /// A placeholder lasts for less than the term that it replaces.
    ReserveBriefly,
    /// A grant takes the place of a holder that cannot be asked, and not a placeholder.
    GrantInstead,
    /// A placeholder is judged by its renewTime and the wall clock, which may be ahead.
    ReservedByRenewTime,
    /// A placeholder is written whatever the Lease says by then.
    ReserveWithoutBase,
    /// A placeholder carries no token, so that anybody's release of it is believed.
    ReserveWithoutToken,
}

/// Longer ago than any wait.
const LONG_AGO: Instant = Instant::from_epoch(std::time::Duration::ZERO);

// === impl Shortcut ===

impl Shortcut {
    /// What an elector makes of a revision: when it says it saw it, and what it says it saw.
    pub(super) fn misread(self, watcher: &mut Watcher, snapshot: &mut LeaseSnapshot) -> Instant {
        let record = &mut snapshot.record;
        match self {
            Self::BornIsFree if record.holder.is_none() && record.duration_seconds.is_none() => {
                record.duration_seconds = Some(1);
            }
            Self::ReservedByRenewTime if record.reserved_from().is_some() => return LONG_AGO,
            Self::RestartExpires if watcher.election == Election::unknown() => return LONG_AGO,
            Self::TrustAnyRelease if record.holder.is_none() => {
                (record.token, record.token_term) = (None, None);
            }
            Self::NobodyPassedOver => {
                // Were it seen for what it is, its electee would be set aside. It is seen as free, and the grants that
                // this would bring before its time are held back.
                watcher.granted = record.is_unaccepted_grant().then_some(NOW);
                if watcher.granted.is_some() {
                    (record.holder, record.duration_seconds) = (None, Some(1));
                }
            }
            Self::CountFromUid => {
                let since = watcher.first_sight(&snapshot.uid);
                if snapshot.record.occupancy() == Occupancy::Unproven {
                    return since;
                }
            }
            _ => {}
        }
        NOW
    }

    /// What an elector makes of its decision.
    pub(super) fn misdecide(self, effects: &mut Vec<Effect>, watcher: &Watcher, judge: &Judge<'_>) {
        match self {
            Self::MissingIsFree | Self::GrantByPost => {
                effects.retain_mut(|effect| {
                    let Effect::Create(record) = effect else {
                        return true;
                    };
                    if let Some(granted) = judge.if_free(&watcher.election, None, record) {
                        *record = granted;
                        return true;
                    }
                    // While absence is not proven, nothing is sent by this route.
                    self == Self::MissingIsFree
                });
            }
            Self::NobodyPassedOver => {
                let early = |granted: Instant| NOW < granted.after(ACCEPT_WINDOW);
                let hold_back = watcher.granted.is_some_and(early);
                effects.retain(|effect| !hold_back || !matches!(effect, Effect::Write(_)));
            }
            Self::NeverTheSame => {
                let holder = watcher
                    .election
                    .lease()
                    .and_then(|lease| lease.record.holder.clone());
                effects.retain(|effect| {
                    !matches!(effect, Effect::Write(write)
                        if holder.is_some()
                            && write.record.holder == holder
                            && write.record.is_unaccepted_grant())
                });
            }
            Self::GrantOnUnanimity => {
                if let Some(lease) = watcher.election.lease()
                    && lease.record.occupancy() == Occupancy::Unproven
                    && watcher.all_answered(judge.store)
                {
                    let free = LeaseRecord {
                        duration_seconds: Some(1),
                        token: None,
                        ..lease.record.clone()
                    };
                    if let Some(granted) =
                        judge.if_free(&watcher.election, Some(lease.clone()), &free)
                    {
                        effects.push(Effect::Write(lease.replace(granted)));
                    }
                }
            }
            _ => self.misreserve(effects, watcher, judge),
        }
    }
}

/// Asks the production step what it would do if things were otherwise.
pub(super) struct Judge<'a> {
    pub(super) store: &'a Store,
    pub(super) step: &'a dyn Fn(&Election) -> Vec<Effect>,
}

// === impl Judge ===

impl Judge<'_> {
    /// The grant that would be written if the Lease had just become `record`.
    pub(super) fn if_free(
        &self,
        election: &Election,
        known: Option<LeaseSnapshot>,
        record: &LeaseRecord,
    ) -> Option<LeaseRecord> {
        let mut election = election.clone();
        let mut version = self.store.revision;
        version.0 += 1;
        let snapshot = LeaseSnapshot {
            uid: known.map_or_else(|| Uid::new("hypothetical"), |known| known.uid),
            version,
            record: record.clone(),
        };
        election.handle_lease(NOW, snapshot, News::Event);
        (self.step)(&election)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::Write(write) if write.record.is_unaccepted_grant() => Some(write.record),
                _ => None,
            })
    }
}
