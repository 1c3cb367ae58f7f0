//! One lease as a part of its group: what the group has to know of it, and the candidate that it is assigned to (R16).

use std::cmp::Ordering;

use crate::assign::PartMobility;
use crate::elector::contenders::Contenders;
use crate::elector::group_memory::Lapse;
use crate::elector::observation::Liveness;
use crate::elector::seen_preference::CandidateNews;
use crate::elector::state::{Election, PreferenceField, Settings};
use crate::group::{GroupPart, PartCandidate};
use crate::lease::{LeaseSnapshot, Occupancy};
use crate::lease_watch::{LeasePresence, ObservedLease};
use crate::names::Identity;
use crate::spec::Membership;
use crate::time::{Instant, Timestamp};

/// A moment at which an election is looked at.
#[derive(Clone, Copy)]
struct LookedAt<'a> {
    group: &'a str,
    now: Instant,
    wall: Timestamp,
    settings: &'a Settings,
}

/// The part that an election is, in the making.
struct PartLook<'a> {
    election: &'a Election,
    at: LookedAt<'a>,
    due: Option<Instant>,
}

// === impl Election ===

impl Election {
    /// The part of that group that this lease is at `now`, which is `wall` by the elector's wall clock.
    pub fn part(
        &self,
        group: &str,
        now: Instant,
        wall: Timestamp,
        settings: &Settings,
    ) -> GroupPart {
        let at = LookedAt {
            group,
            now,
            wall,
            settings,
        };
        let look = PartLook {
            election: self,
            at,
            due: None,
        };
        look.part()
    }

    /// The part is assigned to that candidate, or to none. For the preferred candidate that is news: the order judges it
    /// otherwise than before ([R16](crate::rules#r16)).
    pub fn handle_assigned(&mut self, candidate: Option<Identity>) {
        if self.group.assigned == candidate {
            return;
        }
        let before = std::mem::replace(&mut self.group.assigned, candidate);
        for name in before.into_iter().chain(self.group.assigned.clone()) {
            self.note_news(&name, CandidateNews::Changed);
        }
    }

    /// The candidate that the part is assigned to, where this lease is one of a group.
    pub fn assigned(&self) -> Option<&Identity> {
        self.group.assigned.as_ref()
    }

    /// The membership that most of its candidates have, for a Lease that does not say to which group it belongs: that of
    /// the oldest candidate with one.
    pub fn membership(&self) -> Option<&Membership> {
        let candidates = self.candidates().filter_map(|candidate| {
            let membership = candidate.offer().ok()?.membership.as_deref()?;
            Some((candidate.created, &candidate.name, membership))
        });
        let oldest = candidates.min_by(|left, right| (left.0, left.1).cmp(&(right.0, right.1)));
        oldest.map(|(_, _, membership)| membership)
    }

    /// Learns from a record that another one follows: a member may have let its term run out.
    pub(super) fn note_lapse(&mut self, now: Instant, before: &LeaseSnapshot) {
        let record = &before.record;
        let Some(watched) = self.watch.lease().filter(|_| !record.is_unaccepted_grant()) else {
            return;
        };
        let member = record.holder.as_ref().and_then(|holder| {
            let spec = self.candidates.get(holder)?.candidate.offer().ok()?;
            Some(spec.membership.as_ref()?.member.clone())
        });
        let ran_out = |duration| watched.expires_at(duration) <= now;
        if let Some(member) = member
            && record.duration().is_some_and(ran_out)
        {
            self.group.lapse = Some(Box::new(Lapse { member, at: now }));
        }
    }
}

// === impl PartLook ===

impl<'a> PartLook<'a> {
    fn part(mut self) -> GroupPart {
        let LookedAt {
            now,
            wall,
            settings,
            ..
        } = self.at;
        let election = self.election;
        let strategy = election.strategy(now, wall, settings);
        let contenders = strategy.and_then(|name| election.contenders(&name, now, wall));
        let candidates = contenders
            .as_ref()
            .map_or_else(Vec::new, |contenders| self.candidates(contenders));
        let record = election.lease().map(|lease| &lease.record);
        let holder = record.and_then(|record| record.holder.as_ref());
        let mobility = self.mobility(contenders.as_ref());
        let avoid = match mobility {
            PartMobility::Vacant => holder.or(election.last_holder.as_ref()),
            PartMobility::Movable | PartMobility::Fixed => None,
        };
        let preferred = record.and_then(|record| record.preferred_holder.as_ref());
        let lapse = election.group.lapse.as_deref();
        GroupPart {
            holder: holder.and_then(|name| self.member(name)),
            avoid: avoid.and_then(|name| self.member(name)),
            preferred: preferred.and_then(|name| self.member(name)),
            lapse: lapse.map(|lapse| (lapse.member.clone(), lapse.at)),
            balanced: election.hold_back.balanced(),
            candidates,
            mobility,
            due: self.due,
        }
    }

    /// The candidates of members, by member, each with its rank among those that can be elected.
    fn candidates(&mut self, contenders: &Contenders<'_>) -> Vec<PartCandidate> {
        let LookedAt { now, settings, .. } = self.at;
        let timing = &settings.timing;
        let mut candidates: Vec<PartCandidate> = Vec::with_capacity(contenders.ranked.len());
        let (mut rank, mut before) = (0, None);
        for contender in &contenders.ranked {
            let differs =
                |before| contenders.order.compare_keys(before, contender) != Ordering::Equal;
            rank += usize::from(before.is_some_and(differs));
            before = Some(contender);
            let name = &contender.candidate.name;
            let (Some(member), Some(seen)) =
                (self.member(name), self.election.candidates.get(name))
            else {
                continue;
            };
            let ack_due = seen.ack_due(timing);
            let held_back = self.election.hold_back.is_new_until(name, timing);
            let passed_over = self.election.passed_over_until(name, timing);
            for until in [ack_due, held_back, passed_over].into_iter().flatten() {
                self.note_due(until);
            }
            let waits = [held_back, passed_over]
                .into_iter()
                .flatten()
                .any(|until| now < until);
            candidates.push(PartCandidate {
                member,
                name: name.clone(),
                rank,
                is_ready: !waits && seen.liveness(now, None, timing) != Liveness::Silent,
                unanswered: ack_due
                    .filter(|due| *due <= now)
                    .and(seen.pinged.map(|pinged| pinged.at)),
                acked: seen.acked.map(|acked| acked.at),
            });
        }
        candidates.sort_by(|left, right| left.member.cmp(&right.member));
        candidates.dedup_by(|left, right| left.member == right.member);
        candidates
    }

    /// The freedom of the part to go to another member now.
    fn mobility(&mut self, contenders: Option<&Contenders<'_>>) -> PartMobility {
        let watched = match self.election.watch.presence() {
            LeasePresence::Unknown => return PartMobility::Fixed,
            LeasePresence::Absent { .. } => return PartMobility::Vacant,
            LeasePresence::Present(watched) => watched,
        };
        let Occupancy::Held(holder) = watched.snapshot.record.occupancy() else {
            return PartMobility::Vacant;
        };
        let timing = &self.at.settings.timing;
        if self.at.now >= self.election.late_at(watched, timing) {
            return PartMobility::Vacant;
        }
        let moves = contenders.is_some_and(|all| all.order.strategy.moves_for_balance());
        match moves && self.can_make_room(watched, holder) && !self.is_held_back(watched, holder) {
            true => PartMobility::Movable,
            false => PartMobility::Fixed,
        }
    }

    /// True if the holder is a member that has accepted, and is able to read a preference.
    fn can_make_room(&self, watched: &ObservedLease, holder: &Identity) -> bool {
        let record = &watched.snapshot.record;
        let Some(incumbent) = self.election.candidates.get(holder) else {
            return false;
        };
        let reads_annotation = incumbent.candidate.marked || record.has_token();
        self.member(holder).is_some()
            && !record.is_unaccepted_grant()
            && (reads_annotation || self.at.settings.preference_field != PreferenceField::Dropped)
    }

    /// True if a freeze, failed hand-overs, a disagreement of electors or an earlier move keeps the part where it is.
    fn is_held_back(&mut self, watched: &ObservedLease, holder: &Identity) -> bool {
        let LookedAt {
            now,
            wall,
            settings,
            ..
        } = self.at;
        let election = self.election;
        let frozen = watched.snapshot.overrides.frozen_for(wall);
        let (window, longest) = election.patience(holder, &settings.timing);
        let withdrawn = election.preference.withdrawn_until(window, longest);
        let ends = [
            frozen.map(|remaining| now.after(remaining)),
            withdrawn.map(|(until, _)| until),
            election.hold_back.holds_balance_until(&settings.timing),
        ];
        let mut is_held_back = false;
        for until in ends.into_iter().flatten().filter(|until| now < *until) {
            self.note_due(until);
            is_held_back = true;
        }
        is_held_back
    }

    /// The member that a candidate belongs to.
    fn member(&self, name: &Identity) -> Option<Identity> {
        let spec = self.election.candidates.get(name)?.candidate.offer().ok()?;
        let membership = spec.membership.as_ref()?;
        (*membership.group == *self.at.group).then(|| membership.member.clone())
    }

    fn note_due(&mut self, at: Instant) {
        if self.at.now < at {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }
}
