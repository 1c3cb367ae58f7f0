//! The variation of an elector for a mutant: it misreads its news, or carries out something else than was decided.

use std::time::Duration;

use elector_protocol::elector::{Effect, Election, NewsSource};
use elector_protocol::{CandidateRecord, Instant, LeaseRecord, LeaseSnapshot, Occupancy, Uid};

use super::clocks::{TICK, TICK_SECONDS};
use super::mutant::Mutant;
use super::numbers::{FRESH, LONG_AGO, NOW, before, timestamp};
use super::run::Run;
use super::store::LeaseStore;

/// The memory of an elector for the sake of a mutant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ElectorVariation {
    /// When it first saw the Lease's uid.
    first_sight: Option<(Uid, Instant)>,
    /// The unproven record that it saw last, and since when.
    unproven: Option<(Uid, LeaseRecord, Instant)>,
    /// When it first saw the grant, or the preference, that it watches.
    noted: Option<Instant>,
    /// The candidates that acked since it saw the newest record, one bit each.
    pub(super) acked: u8,
    /// True if it ever saw the Lease.
    saw: bool,
    /// Since when its watch had shown that the name is absent, when the Lease appeared.
    pub(super) absent: Option<Instant>,
}

/// The production step of an elector, which can be asked what it would do if things were otherwise.
pub(super) struct AlteredStep<'a> {
    pub(super) election: &'a Election,
    pub(super) variation: &'a ElectorVariation,
    /// True if the elector's watch of the Lease is whole.
    pub(super) whole: bool,
    pub(super) run: &'a Run,
    pub(super) store: &'a LeaseStore,
    pub(super) step: &'a dyn Fn(&Election) -> Vec<Effect>,
}

// === impl Mutant ===

impl Mutant {
    /// A mutant's version of a revision: the time, content and source that the elector claims.
    pub(super) fn alter_news(
        self,
        election: &Election,
        variation: &mut ElectorVariation,
        snapshot: &mut LeaseSnapshot,
        news: &mut NewsSource,
        store: &LeaseStore,
        run: &Run,
    ) -> Instant {
        let record = &mut snapshot.record;
        let unheld = record.holder.is_none();
        match self {
            Self::ExpireByRenewTime(ahead) => {
                let written = store.written.unwrap_or(NOW);
                return before(written, Duration::from_secs(ahead));
            }
            Self::BornIsFree if unheld && record.duration_seconds.is_none() => {
                record.duration_seconds = Some(1);
            }
            Self::UnheldExpires if record.occupancy() == Occupancy::Unproven => {
                if let Some(duration) = record.duration() {
                    return before(NOW, run.lease_duration().saturating_sub(duration));
                }
            }
            Self::IgnoreFreeze => snapshot.overrides.freeze = None,
            Self::RestartExpires if *election == Election::unknown() => return LONG_AGO,
            Self::TrustAnyRelease if unheld => (record.token, record.token_term) = (None, None),
            Self::RepeatRenewTime if record.has_token() => record.renew_time = record.acquire_time,
            Self::RevokeGrants if record.is_unaccepted_grant() => {
                (record.holder, record.duration_seconds) = (None, Some(1));
            }
            Self::NeverSeenIsFree => variation.saw = true,
            Self::TakeFromNotified => {
                let asked = record.holder.is_some() && record.preferred_holder.is_some();
                variation.noted = variation.noted.or(Some(NOW)).filter(|_| asked);
            }
            Self::NoPassOver => {
                // Were it seen for what it is, its electee would be set aside. It is seen as free, and the grants that
                // this would bring before its time are held back.
                variation.noted = record.is_unaccepted_grant().then_some(NOW);
                if variation.noted.is_some() {
                    (record.holder, record.duration_seconds) = (None, Some(1));
                }
            }
            Self::CountFromUid => {
                let since = variation.first_sight(&snapshot.uid);
                if snapshot.record.occupancy() == Occupancy::Unproven {
                    return since;
                }
            }
            Self::SpanTheGap => return variation.unproven_since(snapshot),
            Self::AddOverTheGap if unheld && election.lease().is_none() => {
                *news = NewsSource::Watch;
            }
            _ => {}
        }
        NOW
    }

    /// A mutant's version of an elector's decision.
    pub(super) fn alter_decision(self, effects: &mut Vec<Effect>, altered: &AlteredStep<'_>) {
        let (election, variation) = (altered.election, altered.variation);
        if self.is_unanimous() {
            altered.ping_all(effects);
        }
        match self {
            Self::MissingIsFree | Self::GrantByPost => {
                altered.name_the_holder(effects, LeaseRecord::clone);
                if self == Self::GrantByPost {
                    // While absence is not proven, nothing is sent by this route.
                    effects.retain(|effect| !is_born(effect));
                }
            }
            Self::NeverSeenIsFree if !variation.saw => {
                altered.name_the_holder(effects, free);
            }
            Self::PostOnUnanimity => {
                if altered.all_acked() {
                    altered.name_the_holder(effects, free);
                }
                effects.retain(|effect| !is_born(effect));
            }
            Self::PreferringShortens => {
                let holder = holder_of(election);
                for effect in effects {
                    if let Effect::Write(write) = effect
                        && write.record.holder == holder
                        && write.record.preferred_holder.is_some()
                    {
                        write.record.duration_seconds = Some(TICK_SECONDS);
                    }
                }
            }
            Self::TakeFromNotified => {
                let is_due = |noted: Instant| NOW >= noted.after(TICK);
                if variation.noted.is_some_and(is_due)
                    && let Some(lease) = election.lease()
                    && let Some(preferred) = lease.record.preferred_holder.clone()
                {
                    let window = altered.run.accept_window();
                    let granted = lease.record.granted(preferred, window, timestamp(FRESH));
                    effects.push(Effect::Write(lease.replace(granted)));
                }
            }
            Self::GrantToPreferred => {
                if let Some(lease) = election.lease()
                    && let Some(word) = &lease.overrides.prefer
                    && lease.record.holder.as_ref() != Some(&word.candidate)
                {
                    let (window, wall) = (altered.run.accept_window(), timestamp(FRESH));
                    let granted = lease.record.granted(word.candidate.clone(), window, wall);
                    effects.push(Effect::Write(lease.replace(granted)));
                }
            }
            Self::KeepTerm => {
                let term = election.lease().map(|lease| lease.record.term);
                for effect in effects {
                    if let (Effect::Write(write), Some(term)) = (effect, term) {
                        write.record.term = term;
                    }
                }
            }
            Self::NoPassOver => {
                let early = |granted: Instant| NOW < granted.after(altered.run.accept_window());
                let hold_back = variation.noted.is_some_and(early);
                effects.retain(|effect| !hold_back || !matches!(effect, Effect::Write(_)));
            }
            Self::NeverRegrant => {
                let holder = holder_of(election);
                effects.retain(|effect| {
                    !matches!(effect, Effect::Write(write)
                        if holder.is_some()
                            && write.record.holder == holder
                            && write.record.is_unaccepted_grant())
                });
            }
            Self::GrantOnUnanimity => {
                if let Some(lease) = election.lease()
                    && lease.record.occupancy() == Occupancy::Unproven
                    && altered.all_acked()
                    && let Some(granted) =
                        altered.if_free(Some(lease.clone()), &free(&lease.record))
                {
                    effects.push(Effect::Write(lease.replace(granted)));
                }
            }
            _ => {}
        }
    }
}

// === impl ElectorVariation ===

impl ElectorVariation {
    /// When this uid was first seen.
    fn first_sight(&mut self, uid: &Uid) -> Instant {
        match &self.first_sight {
            Some((known, since)) if known == uid => *since,
            _ => {
                self.first_sight = Some((uid.clone(), NOW));
                NOW
            }
        }
    }

    /// When an unproven record like this one was first seen, if nothing else was seen since.
    fn unproven_since(&mut self, snapshot: &LeaseSnapshot) -> Instant {
        if snapshot.record.occupancy() != Occupancy::Unproven {
            self.unproven = None;
            return NOW;
        }
        match &self.unproven {
            Some((uid, record, since))
                if *uid == snapshot.uid && record.same_record(&snapshot.record) =>
            {
                *since
            }
            _ => {
                self.unproven = Some((snapshot.uid.clone(), snapshot.record.clone(), NOW));
                NOW
            }
        }
    }
}

impl elector_protocol::Renumber for ElectorVariation {
    fn renumber(&mut self, by: &mut dyn elector_protocol::Renumbering) {
        if let Some((_, since)) = &mut self.first_sight {
            by.instant(since);
        }
        if let Some((_, record, since)) = &mut self.unproven {
            record.renumber(by);
            by.instant(since);
        }
        self.noted.renumber(by);
        self.absent.renumber(by);
    }
}

// === impl AlteredStep ===

impl AlteredStep<'_> {
    /// Lets every POST name the holder that would be granted the lease, if the Lease had just become what `pretended`
    /// makes of the record. A POST without such a holder stays as it was.
    fn name_the_holder(
        &self,
        effects: &mut [Effect],
        pretended: impl Fn(&LeaseRecord) -> LeaseRecord,
    ) {
        for effect in effects {
            if let Effect::Create(record) = effect
                && let Some(granted) = self.if_free(None, &pretended(record))
            {
                *record = granted;
            }
        }
    }

    /// Pings every candidate that has not acked since the newest record was seen.
    fn ping_all(&self, effects: &mut Vec<Effect>) {
        let unheld = match self.election.lease() {
            Some(lease) => lease.record.occupancy() == Occupancy::Unproven,
            None => self.whole,
        };
        effects.retain(|effect| !unheld || !matches!(effect, Effect::Ping { .. }));
        for candidate in self.election.candidates().filter(|_| unheld) {
            if self.has_acked(candidate) || candidate.is_pinged() {
                continue;
            }
            effects.extend(candidate.next_ping().map(|ping| Effect::Ping {
                name: candidate.name.clone(),
                uid: candidate.uid.clone(),
                version: candidate.version,
                ping,
            }));
        }
    }

    /// True if a candidate acked since the newest record was seen.
    fn has_acked(&self, candidate: &CandidateRecord) -> bool {
        self.store
            .index_of(&candidate.name)
            .is_some_and(|index| self.variation.acked & (1 << index) != 0)
    }

    /// True if every candidate that the elector knows did.
    fn all_acked(&self) -> bool {
        let mut candidates = self.election.candidates();
        candidates.all(|candidate| self.has_acked(candidate))
    }

    /// The grant that would be written if the Lease had just become `record`.
    fn if_free(&self, known: Option<LeaseSnapshot>, record: &LeaseRecord) -> Option<LeaseRecord> {
        let mut election = self.election.clone();
        let mut version = self.store.revision;
        version.0 += 1;
        let snapshot = LeaseSnapshot {
            uid: known.map_or_else(|| Uid::new("hypothetical"), |known| known.uid),
            version,
            record: record.clone(),
            overrides: elector_protocol::OperatorOverrides::default(),
        };
        election.handle_lease(NOW, snapshot, NewsSource::Watch);
        (self.step)(&election)
            .into_iter()
            .find_map(|effect| match effect {
                Effect::Write(write) if write.record.is_unaccepted_grant() => Some(write.record),
                _ => None,
            })
    }
}

fn holder_of(election: &Election) -> Option<elector_protocol::Identity> {
    election.lease()?.record.holder.clone()
}

fn is_born(effect: &Effect) -> bool {
    matches!(effect, Effect::Create(record) if record.holder.is_none())
}

/// The same record as if its holder had let go.
fn free(record: &LeaseRecord) -> LeaseRecord {
    LeaseRecord {
        duration_seconds: Some(1),
        token: None,
        ..record.clone()
    }
}
