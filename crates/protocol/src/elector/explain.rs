//! An elector's next action, judged from the objects alone.
//!
//! An elector decides by what it saw happen on its own clock. Where only the objects are at hand, their own times
//! stand for what was observed: a record is as old as its renewal time, a ping as its ping time, an ack as its
//! renewal time. A missing Lease counts as long absent. The objects are replayed into a fresh [`Election`], and the
//! production step decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::elector::action::Action;
use crate::elector::decision::{Effect, Reason};
use crate::elector::hold_back::{HoldBackCause, HoldBackNotice};
use crate::elector::ignored_override::IgnoredOverride;
use crate::elector::ranking::{RankedCandidate, Ranking};
use crate::elector::state::{Election, Settings};
use crate::elector::wake::WakeAfter;
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::lease_watch::NewsSource;
use crate::names::{Identity, ResourceVersion, Uid};
use crate::operator_overrides::OperatorOverrides;
use crate::spec::CandidateRecord;
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Timestamp};

/// The objects of one election.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The Lease, with its creation time, where it exists.
    pub lease: Option<(LeaseSnapshot, Timestamp)>,
    /// Earlier revisions of it, in any order, as far as they are known: what became of hand-overs ([R23]).
    ///
    /// [R23]: crate::rules#r23
    pub earlier: Vec<LeaseSnapshot>,
    /// The candidates that name it.
    pub candidates: Vec<CandidateRecord>,
    /// Electors' notices of preferences that they hold back ([R23]), in any order. Those that are over do not count.
    ///
    /// [R23]: crate::rules#r23
    pub notices: Vec<HoldBackNotice>,
    /// The group that the Lease names by its label; where it names none, that of its candidates counts.
    pub group: Option<Arc<str>>,
    /// The candidate that it is assigned to, as [`assign_groups`](crate::elector::assign_groups) finds it.
    pub assigned: Option<Identity>,
}

/// An elector's next action, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// In one word.
    pub action: Action,
    /// The holder of the Lease after the action.
    pub holder: Option<Identity>,
    /// The candidate that the holder is asked to make room for after the action.
    pub preferred_holder: Option<Identity>,
    /// The strategy, `None` when the candidates disagree or none has a valid wish.
    pub strategy: Option<StrategyName>,
    /// The candidates that are pinged.
    pub ping: Vec<Identity>,
    /// Why.
    pub reason: Reason,
    /// The operators' word that counts now.
    pub overrides: OperatorOverrides,
    /// Words of operators that do not count, in the order of the fields of [`OperatorOverrides`], then of candidates.
    pub ignored: Vec<IgnoredOverride>,
    /// When the elector would look again if nothing changed before, and why.
    pub wake: Option<WakeAfter>,
    /// The candidates' standing.
    pub candidates: Vec<RankedCandidate>,
}

/// `now` in the replay: 475 years, and what is older is as old as that.
pub(super) const NOW: Instant = Instant::from_epoch(Duration::from_secs(15_000_000_000));

// === impl Explanation ===

impl Explanation {
    /// Explains one election at `now`.
    pub fn of(objects: &Objects, now: Timestamp, settings: &Settings) -> Self {
        let mut election = replay(objects, now);
        replay_notices(&mut election, objects, now, settings);
        let mut decision = election.step(NOW, now, settings);
        if let [Effect::Create(born), ..] = &decision.effects[..]
            && born
                .strategy
                .as_ref()
                .is_some_and(|strategy| strategy.strategy().is_some())
        {
            // The action is the grant that follows the creation.
            let record = born.clone();
            election.handle_lease(NOW, snapshot(record), NewsSource::Watch);
            decision = election.step(NOW, now, settings);
        }
        let record = decision
            .effects
            .iter()
            .find_map(|effect| match effect {
                Effect::Write(write) => Some(&write.record),
                Effect::Create(record) => Some(record),
                Effect::Ping { .. } | Effect::Collect { .. } => None,
            })
            .or_else(|| election.lease().map(|lease| &lease.record));
        let Ranking {
            strategy,
            candidates,
        } = election.ranking(NOW, now, settings);
        let said = objects
            .lease
            .as_ref()
            .map(|(lease, _)| lease.overrides.clone());
        let (overrides, mut ignored) =
            IgnoredOverride::split(&said.unwrap_or_default(), now, &candidates);
        ignored.extend(IgnoredOverride::of_candidates(&election, NOW, now));
        Self {
            action: decision.action(),
            holder: record.and_then(|record| record.holder.clone()),
            preferred_holder: record.and_then(|record| record.preferred_holder.clone()),
            strategy,
            ping: decision
                .effects
                .iter()
                .filter_map(pinged)
                .cloned()
                .collect(),
            wake: decision.wake.map(|wake| wake.after(NOW)),
            reason: decision.reason,
            overrides,
            ignored,
            candidates,
        }
    }
}

fn pinged(effect: &Effect) -> Option<&Identity> {
    match effect {
        Effect::Ping { name, .. } => Some(name),
        _ => None,
    }
}

pub(super) fn replay(objects: &Objects, now: Timestamp) -> Election {
    let mut election = Election::absent(Instant::default());
    election.handle_assigned(objects.assigned.clone());
    // One revision for each candidate; a name that stands twice in the input is taken in its newest revision.
    let mut newest: BTreeMap<&Identity, &CandidateRecord> = BTreeMap::new();
    for candidate in &objects.candidates {
        let known = newest.entry(&candidate.name).or_insert(candidate);
        if known.version < candidate.version {
            *known = candidate;
        }
    }
    let mut earlier: Vec<_> = objects.earlier.iter().collect();
    earlier.sort_by_key(|lease| lease.version);
    for lease in earlier {
        let Some(written) = lease.record.renew_time else {
            continue;
        };
        // Candidates are reported in their newest revision alone, but not before they were created.
        newest.retain(|_, candidate| {
            let known = candidate.created <= written;
            if known {
                replay_candidate(&mut election, candidate, now);
            }
            !known
        });
        election.handle_lease(instant(written, now), lease.clone(), NewsSource::Watch);
    }
    for candidate in newest.into_values() {
        replay_candidate(&mut election, candidate, now);
    }
    // When an operator wrote a word without a time is not known, so it counts.
    for candidate in &objects.candidates {
        let seen = election.candidates.get_mut(&candidate.name);
        if let Some(first_seen) = seen.and_then(|seen| seen.stand_down_since.as_mut()) {
            *first_seen = NOW;
        }
    }
    if let Some((lease, created)) = &objects.lease {
        let since = lease.record.renew_time.unwrap_or(*created);
        election.handle_lease(instant(since, now), lease.clone(), NewsSource::List);
        // When the preference was written is not known; the renewals since then hide it.
        election.preference.end_wait();
    }
    election
}

/// Replays what is held back at `now`. The newest notice counts: what an elector holds back for several reasons, it tells
/// for the longest one.
fn replay_notices(election: &mut Election, objects: &Objects, now: Timestamp, settings: &Settings) {
    let current = |notice: &&HoldBackNotice| notice.reported <= now && now < notice.until;
    let newest = objects.notices.iter().filter(current);
    let Some(notice) = newest.max_by_key(|notice| notice.reported) else {
        return;
    };
    let micros = notice.until.as_micros().saturating_sub(now.as_micros());
    let remaining = Duration::from_micros(micros.try_into().unwrap_or_default());
    let candidates = objects.candidates.iter();
    let standing = candidates.filter(|candidate| candidate.created < notice.reported);
    let names = standing.map(|candidate| candidate.name.clone());
    let until = NOW.after(remaining);
    if let HoldBackCause::Withdrawn { times } = notice.because {
        let (window, longest) = election.patience(&notice.candidate, &settings.timing);
        election.preference.replay(times, until, window, longest);
    }
    election
        .hold_back
        .replay(notice, until, names, &settings.timing);
}

/// Replays the one ping and the one ack that an object tells of, in their order.
fn replay_candidate(election: &mut Election, candidate: &CandidateRecord, now: Timestamp) {
    let revision =
        |number: u64, ping: Option<Timestamp>, renew: Option<Timestamp>| CandidateRecord {
            version: ResourceVersion(number),
            ping,
            renew,
            ..candidate.clone()
        };
    let (ping, Some(renew)) = (candidate.ping, candidate.renew) else {
        election.handle_candidate(
            instant(candidate.created, now),
            revision(1, candidate.ping, None),
            NewsSource::List,
        );
        return;
    };
    let acked_at = instant(renew, now);
    match ping {
        Some(pinged) if pinged <= renew => {
            let pinged_at = instant(pinged, now);
            let before = Some(Timestamp::MIN);
            election.handle_candidate(pinged_at, revision(1, None, before), NewsSource::List);
            election.handle_candidate(pinged_at, revision(2, ping, before), NewsSource::Watch);
            election.handle_candidate(acked_at, revision(3, ping, Some(renew)), NewsSource::Watch);
        }
        _ => {
            election.handle_candidate(acked_at, revision(1, None, Some(renew)), NewsSource::Watch);
            if let Some(pinged) = ping {
                election.handle_candidate(
                    instant(pinged, now),
                    revision(2, ping, Some(renew)),
                    NewsSource::Watch,
                );
            }
        }
    }
}

/// Where a wire time lies on the clock of the replay; a time that is still to come counts as now.
pub(super) fn instant(time: Timestamp, now: Timestamp) -> Instant {
    let age = now.as_micros().saturating_sub(time.as_micros());
    let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
    Instant::from_epoch(NOW.since_epoch().saturating_sub(age))
}

fn snapshot(record: LeaseRecord) -> LeaseSnapshot {
    LeaseSnapshot {
        uid: Uid::new("new"),
        version: ResourceVersion(0),
        record,
        overrides: OperatorOverrides::default(),
    }
}
