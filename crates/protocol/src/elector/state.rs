//! The memory of one election: its Lease, its candidates, and those of them that did not accept a grant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::elector::group_memory::GroupMemory;
use crate::elector::hold_back::HoldBack;
use crate::elector::observation::ObservedCandidate;
use crate::elector::observed_candidates::ObservedCandidates;
use crate::elector::seen_preference::{CandidateNews, SeenPreference};
use crate::lease::LeaseSnapshot;
use crate::lease_watch::{Freshness, LeasePresence, LeaseWatch, NewsSource, ObservedLease};
use crate::names::{Identity, ResourceVersion, Uid};
use crate::rejection::Rejection;
use crate::renumber::renumber;
use crate::spec::{CandidateRecord, CandidateSpec};
use crate::time::Instant;
use crate::timing::{ElectorTiming, LONGEST_LEASE};

/// One lease and its candidates, as one elector saw them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    pub(super) watch: LeaseWatch,
    pub(super) candidates: ObservedCandidates,
    pub(super) passed_over: BTreeMap<Identity, PassedOver>,
    /// The holder of the record before it became unheld: not waited for, and not believed alive by what it said before.
    pub(super) last_holder: Option<Identity>,
    pub(super) preference: SeenPreference,
    pub(super) hold_back: HoldBack,
    pub(super) group: GroupMemory,
}

/// A candidate that was granted the lease and did not accept (R5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PassedOver {
    pub(super) failures: u8,
    pub(super) since: Instant,
    uid: Uid,
    spec: Arc<Result<CandidateSpec, Rejection>>,
}

/// A step's inputs besides the election itself.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The constants.
    pub timing: ElectorTiming,
    /// The state of the field that asks unmodified client-go holders to yield.
    pub preference_field: PreferenceField,
}

/// The fate of `spec.preferredHolder` at the server, the only signal that unmodified client-go holders obey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PreferenceField {
    /// No answer to a write has shown it yet.
    #[default]
    Unknown,
    /// It is kept.
    Kept,
    /// It is dropped: the gate is off. Marked holders read the annotation instead.
    Dropped,
}

/// More failures change neither the window nor the penalty: from a second, this number of doublings exceeds a day, the
/// longest maximum that can be set.
const FAILURES_MAX: u8 = 18;
/// The watch's time to bring what a POST created before the POST is tried again.
pub(super) const POST_SETTLES: Duration = Duration::from_secs(2);

// === impl Election ===

impl Election {
    /// An election about which nothing is known yet; it decides nothing.
    pub fn unknown() -> Self {
        Self {
            watch: LeaseWatch::unknown(),
            candidates: ObservedCandidates::new(),
            passed_over: BTreeMap::new(),
            last_holder: None,
            preference: SeenPreference::default(),
            hold_back: HoldBack::default(),
            group: GroupMemory::default(),
        }
    }

    /// An election whose Lease does not exist, without a gap since `since`: the first complete list for a name never
    /// seen before ([R6](crate::rules#r6)).
    pub fn absent(since: Instant) -> Self {
        Self {
            watch: LeaseWatch::absent(since),
            ..Self::unknown()
        }
    }

    /// The Lease under this elector's stop-watch.
    pub const fn watch(&self) -> &LeaseWatch {
        &self.watch
    }

    /// The newest revision of the Lease that is known.
    pub fn lease(&self) -> Option<&LeaseSnapshot> {
        self.watch.lease().map(|observed| &observed.snapshot)
    }

    /// The candidates that name this lease, by name.
    pub fn candidates(&self) -> impl Iterator<Item = &CandidateRecord> {
        self.candidates.iter().map(|seen| &seen.candidate)
    }

    /// True if nothing here is worth remembering at `now`: no Lease, no candidate, and an absence that no
    /// holder of any duration can outlast.
    pub fn is_forgettable(&self, now: Instant) -> bool {
        match self.watch.presence() {
            LeasePresence::Absent { since } => {
                self.candidates.is_empty() && now.since(*since) >= LONGEST_LEASE
            }
            LeasePresence::Unknown | LeasePresence::Present(_) => false,
        }
    }

    /// A revision of the Lease was seen.
    ///
    /// Older revisions than the newest known are ignored, except in a list: then the store was restored from a
    /// backup, and this election starts as a new process would ([R4]). A list that shows an unheld record in a newer
    /// revision starts the stop-watch of that record anew, also where the record looks the same ([R4]).
    ///
    /// [R4]: crate::rules#r4
    pub fn handle_lease(&mut self, now: Instant, mut snapshot: LeaseSnapshot, source: NewsSource) {
        if let Some(holder) = &mut snapshot.record.holder
            && let Some(seen) = self.candidates.get(holder)
        {
            // One text for both.
            *holder = seen.candidate.name.clone();
        }
        match self.watch.freshness(snapshot.version, source) {
            Freshness::Known => return,
            Freshness::Rewound => *self = Self::unknown(),
            Freshness::Newer => {}
        }
        if let Some(before) = self.lease().cloned() {
            self.note_succession(now, &before, &snapshot);
        }
        self.note_signal(now, &snapshot);
        self.watch.observe(now, snapshot, source);
    }

    /// The Lease was seen deleted, or is missing in a complete list.
    ///
    /// `version` is the revision of the deletion where the watch gave one; a deletion older than what is known is
    /// ignored.
    pub fn handle_lease_gone(
        &mut self,
        now: Instant,
        version: Option<ResourceVersion>,
        source: NewsSource,
    ) {
        if let (LeasePresence::Present(known), Some(version)) = (self.watch.presence(), version)
            && version < known.snapshot.version
        {
            return;
        }
        self.watch.observe_absence(now, source);
        self.last_holder = None;
        self.preference = SeenPreference::default();
        self.hold_back.end_lease();
    }

    /// A revision of the Lease was seen that cannot be read: nothing is known of the record and its term. Candidates, their
    /// failures and durations that were seen are remembered, as are pre-emptions: no write of a stranger ends them.
    pub fn handle_lease_unreadable(&mut self) {
        self.watch.observe_unreadable();
        self.last_holder = None;
        self.preference = SeenPreference::default();
        self.hold_back.end_lease();
    }

    /// A POST of ours was answered. The object itself is taken from the watch, which alone proves what came before.
    pub fn handle_created(&mut self, now: Instant) {
        self.watch.note_posted(now);
    }

    /// A revision of a candidate was seen.
    pub fn handle_candidate(
        &mut self,
        now: Instant,
        mut candidate: CandidateRecord,
        source: NewsSource,
    ) {
        let seen = self.candidates.get(&candidate.name);
        let known = seen.map(|seen| seen.candidate.version);
        if known == Some(candidate.version)
            || (known > Some(candidate.version) && source != NewsSource::List)
        {
            return;
        }
        if let Some(like) = seen.or(self.candidates.iter().next()) {
            candidate.share_spec(&like.candidate.spec);
        }
        self.note_news(&candidate.name, news_of(seen, &candidate));
        if let Some(failed) = self.passed_over.get(&candidate.name)
            && (failed.uid != candidate.uid
                || (*failed.spec).as_ref().ok() != candidate.offer().ok())
        {
            self.passed_over.remove(&candidate.name);
        }
        match self.candidates.get(&candidate.name) {
            Some(known) if known.candidate.uid != candidate.uid => {
                self.hold_back.remove_candidate(&candidate.name);
            }
            Some(known) if known.candidate.spec != candidate.spec => {
                self.hold_back.change_candidate(&candidate.name);
            }
            _ => {}
        }
        match self.candidates.get_mut(&candidate.name) {
            Some(seen)
                if candidate.uid == seen.candidate.uid
                    && candidate.version > seen.candidate.version =>
            {
                seen.update(now, candidate, source);
            }
            _ => self
                .candidates
                .insert(ObservedCandidate::new(now, candidate, source)),
        }
    }

    /// A candidate was seen deleted, or is missing in a complete list, or now names another lease.
    pub fn handle_candidate_gone(&mut self, name: &Identity, version: Option<ResourceVersion>) {
        let known = self.candidates.get(name).map(|seen| seen.candidate.version);
        if known.is_some_and(|known| version.is_some_and(|version| version < known)) {
            return;
        }
        self.note_news(name, CandidateNews::Gone);
        self.hold_back.remove_candidate(name);
        self.candidates.remove(name);
        self.passed_over.remove(name);
    }

    /// The failures of a candidate to accept, in a row.
    pub(super) fn failures(&self, name: &Identity) -> u8 {
        self.passed_over
            .get(name)
            .map_or(0, |failed| failed.failures)
    }

    /// True if a candidate that did not accept is passed over at `now` (R5).
    pub(super) fn passes_over(
        &self,
        name: &Identity,
        now: Instant,
        timing: &ElectorTiming,
    ) -> bool {
        let until = self.passed_over_until(name, timing);
        until.is_some_and(|until| now < until)
    }

    /// Until when a candidate is or was passed over.
    pub(super) fn passed_over_until(
        &self,
        name: &Identity,
        timing: &ElectorTiming,
    ) -> Option<Instant> {
        let failed = self.passed_over.get(name)?;
        Some(
            failed
                .since
                .after(timing.passed_over_after(failed.failures)),
        )
    }

    /// For how long a preference of this candidate stands against what this elector sees, and at most after doublings.
    pub(super) fn patience(
        &self,
        preferred: &Identity,
        timing: &ElectorTiming,
    ) -> (Duration, Duration) {
        let window = self.candidates.get(preferred).map_or_else(
            || timing.ack_window.max(timing.ack_window_unmarked),
            |seen| seen.ack_window(timing),
        );
        (window, timing.passed_over_max)
    }

    /// `W_max` for this lease: the configured maximum, what was seen, and what its candidates announce (R6).
    pub(super) fn longest_lease(&self, timing: &ElectorTiming) -> Duration {
        let announced = self
            .candidates()
            .filter_map(|candidate| candidate.announced)
            .max();
        announced
            .unwrap_or_default()
            .max(self.watch.longest())
            .max(timing.max_lease_duration)
            .min(LONGEST_LEASE)
    }

    /// From when on a held record is late, so that its successor is prepared: after two thirds of its duration. A record
    /// without a usable one counts as long as any candidate's could (R4).
    pub(super) fn late_at(&self, watched: &ObservedLease, timing: &ElectorTiming) -> Instant {
        let duration = watched.snapshot.record.duration();
        let duration = duration.unwrap_or_else(|| self.longest_lease(timing));
        watched.since.after(duration * 2 / 3)
    }

    /// Learns from one record following another: an accept, a grant without one, a release.
    fn note_succession(&mut self, now: Instant, before: &LeaseSnapshot, after: &LeaseSnapshot) {
        let (old, new) = (&before.record, &after.record);
        let Some(holder) = &old.holder else {
            if new.holder.is_some() {
                self.last_holder = None;
            }
            return;
        };
        let same_term = before.uid == after.uid && old.holder == new.holder && old.term == new.term;
        if same_term {
            if old.is_unaccepted_grant() && !new.is_unaccepted_grant() {
                self.passed_over.remove(holder);
            }
            return;
        }
        if old.is_unaccepted_grant() {
            self.note_failure(now, holder);
        }
        self.note_lapse(now, before);
        self.last_holder = match &new.holder {
            None => Some(holder.clone()),
            Some(_) => None,
        };
    }

    /// Learns from the signals of a record that is about to become the newest known.
    fn note_signal(&mut self, now: Instant, after: &LeaseSnapshot) {
        let mut preference = std::mem::take(&mut self.preference);
        preference.follow(now, self.lease(), after);
        self.preference = preference;
        let mut hold_back = std::mem::take(&mut self.hold_back);
        hold_back.follow(now, self.lease(), after, &self.candidates);
        self.hold_back = hold_back;
    }

    /// There is news of a candidate, which matters where it is the preferred one.
    pub(super) fn note_news(&mut self, name: &Identity, news: CandidateNews) {
        let mut preference = std::mem::take(&mut self.preference);
        preference.note_news(self.lease(), name, news);
        self.preference = preference;
    }

    fn note_failure(&mut self, now: Instant, electee: &Identity) {
        let Some(seen) = self.candidates.get(electee) else {
            return;
        };
        let failures = self.failures(electee).saturating_add(1).min(FAILURES_MAX);
        let failed = PassedOver {
            failures,
            since: now,
            uid: seen.candidate.uid.clone(),
            spec: Arc::clone(&seen.candidate.spec),
        };
        self.passed_over.insert(electee.clone(), failed);
    }
}

/// The news in a revision of a candidate for the order (R16), which looks at neither pings nor acks.
fn news_of(known: Option<&ObservedCandidate>, candidate: &CandidateRecord) -> CandidateNews {
    match known.map(|known| &known.candidate) {
        None => CandidateNews::Changed,
        Some(known) if known.uid != candidate.uid => CandidateNews::Gone,
        Some(known) => {
            // Without a renewal time it is not eligible.
            let same =
                known.spec == candidate.spec && known.renew.is_some() == candidate.renew.is_some();
            if same {
                CandidateNews::None
            } else {
                CandidateNews::Changed
            }
        }
    }
}

renumber!(Election {
    watch,
    candidates,
    passed_over,
    preference,
    hold_back,
    group
});

// === impl PassedOver ===

renumber!(PassedOver { since => passed_over, failures => failures });
