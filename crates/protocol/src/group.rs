//! A group of leases as one elector sees it: who is a member, who has settled, and which member is to lead which part.
//!
//! ```text
//!   Election::part ──handle_part──> LeaseGroup ──assign(now)──> [Assignment, …] ──> Election::handle_assigned
//!        (each lease of the group)      │                            (those that changed)
//!                                       └─ take_due, wake_at: when a part or a member is to be looked at again
//! ```
//!
//! A *member* is a process with a candidate for at least one part, unless one of its candidates has left its newest ping
//! unanswered; an ack of any of them since then brings it back. In quiet times no candidate acks for 15 min, so silence
//! alone says nothing.
//!
//! A newcomer gets vacant parts at once, and parts that others lead after [`LeaseGroup::SETTLING`], doubled for each time
//! that a process of the same Pod let its leases expire, up to [`LeaseGroup::SETTLING_MAX`]: a replica that crashes in a
//! loop takes nothing with it. What it let expire within one such time counts once, and all of it is forgotten after an
//! hour without. A member without a candidate for a part that it stood for is a newcomer again: a process that ends takes
//! its candidates away one after the other, and is to get no part for balance in between. Neither does one that lets a
//! lease run out: of a process that dies, the leases do so one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::assign::{AssignablePart, PartMobility, assign};
use crate::names::Identity;
use crate::time::Instant;

/// The leases of one group, and the processes that stand for them.
#[derive(Clone, Debug, Default)]
pub struct LeaseGroup {
    parts: BTreeMap<Arc<str>, KnownPart>,
    members: BTreeMap<Identity, SeenMember>,
    /// The leases that the processes of a Pod let expire.
    lapses: BTreeMap<Arc<str>, Lapses>,
    /// When the next member has settled.
    settled_at: Option<Instant>,
    /// True if something changed that the assignment looks at.
    changed: bool,
    /// The number of parts that moved for balance.
    moved: u64,
}

/// One lease of a group at one moment, as its election sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPart {
    /// The eligible candidates that belong to members of this group, by member.
    pub candidates: Vec<PartCandidate>,
    /// The member that holds the lease; `None` also where the holder is no member.
    pub holder: Option<Identity>,
    /// Its freedom to go to another member.
    pub mobility: PartMobility,
    /// A member that gets a vacant part only where there is no other: its lease runs out, or it has let go of it.
    pub avoid: Option<Identity>,
    /// The member that the holder is asked to make room for.
    pub preferred: Option<Identity>,
    /// The newest term of a member that ran out, and when that was seen.
    pub lapse: Option<(Identity, Instant)>,
    /// When its holder last made room for balance.
    pub balanced: Option<Instant>,
    /// When it is to be looked at again if nothing is seen before.
    pub due: Option<Instant>,
}

/// A member's candidate for one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartCandidate {
    /// The process.
    pub member: Identity,
    /// The candidate.
    pub name: Identity,
    /// From 0: candidates of one rank are equals by the operator's preference and the strategy.
    pub rank: usize,
    /// True if it may be given the part: it is neither silent nor passed over.
    pub is_ready: bool,
    /// When its newest ping was seen, where it did not answer that in time.
    pub unanswered: Option<Instant>,
    /// When its newest ack was seen.
    pub acked: Option<Instant>,
}

/// The candidate that is to lead a part from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the lease.
    pub part: Arc<str>,
    /// The candidate; `None` where none can.
    pub candidate: Option<Identity>,
}

/// The state of a group in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// Its parts.
    pub parts: usize,
    /// Those without a leader, or with one whose lease runs out.
    pub vacant: usize,
    /// Those that another member is to lead than the one that does.
    pub to_move: usize,
    /// The processes that may lead parts.
    pub members: usize,
    /// The number of times that a part has moved for balance since the start of this elector.
    pub moved: u64,
}

/// A part as it was looked at last.
#[derive(Clone, Debug)]
struct KnownPart {
    part: GroupPart,
    /// The member that is to lead it, as reported last.
    wanted: Option<Identity>,
}

/// A process that stands for parts.
#[derive(Clone, Debug)]
struct SeenMember {
    /// When it was first seen, came back, or lost a candidate.
    since: Instant,
    /// Its newest ack for any part.
    acked: Option<Instant>,
    /// The newest ping that it left unanswered.
    unanswered: Option<Instant>,
    /// The number of parts for which it stands.
    parts: usize,
    /// True if it was away when it was last looked at.
    is_away: bool,
}

/// The leases that the processes of one Pod let expire.
#[derive(Clone, Copy, Debug)]
struct Lapses {
    newest: Instant,
    times: u8,
}

/// The members and the parts, by number, and what they come to.
struct Placement<'a> {
    /// In their order, so that a number is the place of a name.
    names: Vec<&'a Identity>,
    parts: Vec<AssignablePart>,
    placed: Vec<Option<usize>>,
}

/// Leases that were let expire are forgotten after this time without.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

// === impl LeaseGroup ===

impl LeaseGroup {
    /// The wait of a new member for parts that others lead. 30 s.
    pub const SETTLING: Duration = Duration::from_secs(30);
    /// The longest such wait. 15 min.
    pub const SETTLING_MAX: Duration = Duration::from_secs(15 * 60);

    /// True if it has no part.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A part was looked at.
    pub fn handle_part(&mut self, now: Instant, name: &Arc<str>, part: GroupPart) {
        if let Some((member, at)) = &part.lapse
            && now.since(*at) < FORGOTTEN_AFTER
        {
            self.note_lapse(member, *at);
        }
        let before = match self.parts.get_mut(name) {
            Some(known) => Some(std::mem::replace(&mut known.part, part)),
            None => {
                let wanted = None;
                self.parts
                    .insert(Arc::clone(name), KnownPart { part, wanted });
                None
            }
        };
        let part = &self.parts[name].part;
        // A move from before this elector knew the part is not counted.
        if let Some(before) = &before
            && part.balanced.is_some()
            && part.balanced != before.balanced
        {
            self.moved += 1;
        }
        self.changed |= before.as_ref().is_none_or(|before| !before.is_like(part));
        if before
            .as_ref()
            .is_some_and(|before| before.candidates == part.candidates)
        {
            return;
        }
        for candidate in before.iter().flat_map(|before| &before.candidates) {
            if part.candidate_of(&candidate.member).is_none() {
                unlink(&mut self.members, &self.parts, candidate);
                if let Some(member) = self.members.get_mut(&candidate.member) {
                    member.since = now;
                }
            }
        }
        for candidate in &part.candidates {
            let before = before.as_ref();
            let known = before.and_then(|before| before.candidate_of(&candidate.member));
            let member = self.members.entry(candidate.member.clone());
            let member = member.or_insert_with(|| SeenMember::new(now));
            member.acked = member.acked.max(candidate.acked);
            member.parts += usize::from(known.is_none());
            let pinged = known.and_then(|known| known.unanswered);
            if pinged != candidate.unanswered {
                member.unanswered = newest_unanswered(&self.parts, &candidate.member);
            }
            self.changed |= member.follow(now);
        }
    }

    /// A lease does not belong to this group any more, or has neither a Lease nor a candidate.
    pub fn handle_part_gone(&mut self, name: &str) {
        let Some(KnownPart { part, .. }) = self.parts.remove(name) else {
            return;
        };
        for candidate in &part.candidates {
            unlink(&mut self.members, &self.parts, candidate);
        }
        self.changed = true;
    }

    /// The parts that have changed by time alone, to be looked at now.
    pub fn take_due(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut taken = Vec::new();
        for (name, KnownPart { part, .. }) in &mut self.parts {
            if part.due.take_if(|due| *due <= now).is_some() {
                taken.push(Arc::clone(name));
            }
        }
        taken
    }

    /// When there is something to do if nothing is seen before: a part is due, or a member has settled.
    pub fn wake_at(&self) -> Option<Instant> {
        let due = self.parts.values().filter_map(|known| known.part.due);
        due.chain(self.settled_at).min()
    }

    /// True if the parts are to be assigned anew.
    pub fn is_changed(&self, now: Instant) -> bool {
        self.changed || self.settled_at.is_some_and(|at| at <= now)
    }

    /// Assigns the parts anew where something changed, and says which are to be led by another candidate than before.
    ///
    /// Of the moves for balance, each member takes part in one at a time.
    pub fn assign(&mut self, now: Instant) -> Vec<Assignment> {
        if !self.is_changed(now) {
            return Vec::new();
        }
        self.changed = false;
        self.lapses
            .retain(|_, lapses| now.since(lapses.newest) < FORGOTTEN_AFTER);
        let present = self.members.iter().filter(|(_, member)| !member.is_away);
        let settled_at: Vec<Instant> = present
            .clone()
            .map(|(name, member)| self.settles_at(name, member))
            .collect();
        self.settled_at = settled_at.iter().copied().filter(|at| now < *at).min();
        // They may be dead, and their other leases run out later.
        let vacant = self.parts.values().filter(|it| it.is_vacant());
        let running_out: BTreeSet<&Identity> =
            vacant.filter_map(|it| it.part.holder.as_ref()).collect();
        let takes = present.zip(&settled_at);
        let takes: Vec<bool> = takes
            .map(|((name, _), at)| *at <= now && !running_out.contains(name))
            .collect();
        let mut placement = Placement::of(self);
        placement.placed = assign(&placement.parts, &takes);
        placement.hold_all_but_one_move(&self.parts);
        let names: Vec<Identity> = placement.names.into_iter().cloned().collect();
        let placed = placement.placed;
        let mut changes = Vec::new();
        for ((name, known), placed) in self.parts.iter_mut().zip(placed) {
            let member = placed.map(|number| &names[number]);
            if known.wanted.as_ref() == member {
                continue;
            }
            known.wanted = member.cloned();
            changes.push(Assignment {
                part: Arc::clone(name),
                candidate: known.assigned(),
            });
        }
        changes
    }

    /// The candidate that a part is assigned to.
    pub fn assigned(&self, part: &str) -> Option<Identity> {
        self.parts.get(part)?.assigned()
    }

    /// Its state in numbers.
    pub fn counts(&self) -> GroupCounts {
        let led = self.parts.values().filter(|known| !known.is_vacant());
        let to_move =
            led.filter(|known| known.wanted.is_some() && known.wanted != known.part.holder);
        GroupCounts {
            parts: self.parts.len(),
            vacant: self.parts.values().filter(|it| it.is_vacant()).count(),
            to_move: to_move.count(),
            members: self.members.values().filter(|it| !it.is_away).count(),
            moved: self.moved,
        }
    }

    /// The parts, by name, each with the member that is to lead it.
    pub fn parts(&self) -> impl Iterator<Item = (&Arc<str>, &GroupPart, Option<&Identity>)> {
        let parts = self.parts.iter();
        parts.map(|(name, known)| (name, &known.part, known.wanted.as_ref()))
    }

    /// The processes that stand for parts, by name, each with whether it is a member now, and from when on it takes parts
    /// that others lead, unless a lease of its own runs out.
    pub fn members(&self) -> impl Iterator<Item = (&Identity, bool, Instant)> {
        let members = self.members.iter();
        members.map(|(name, member)| (name, !member.is_away, self.settles_at(name, member)))
    }

    /// Takes a process to have been there since then, for those who have nothing but objects.
    pub fn set_member_since(&mut self, name: &Identity, since: Instant) {
        if let Some(member) = self.members.get_mut(name) {
            member.since = since;
            self.changed = true;
        }
    }

    fn note_lapse(&mut self, member: &Identity, at: Instant) {
        let pod = pod_of(member);
        let known = self.lapses.get(pod).copied();
        if known.is_some_and(|known| at <= known.newest) {
            return;
        }
        let times = match known.map(|known| (known.times, at.since(known.newest))) {
            Some((times, after)) if after < Self::SETTLING => times,
            Some((times, after)) if after < FORGOTTEN_AFTER => times.saturating_add(1),
            _ => 1,
        };
        self.lapses.insert(pod.into(), Lapses { newest: at, times });
        self.changed = true;
    }

    /// When a member takes parts that others lead.
    fn settles_at(&self, name: &Identity, member: &SeenMember) -> Instant {
        let lapses = self.lapses.get(pod_of(name));
        let since = lapses.map_or(member.since, |lapses| member.since.max(lapses.newest));
        let doublings = lapses.map_or(0, |lapses| lapses.times);
        let factor = 1u32.checked_shl(doublings.into()).unwrap_or(u32::MAX);
        since.after(
            Self::SETTLING
                .saturating_mul(factor)
                .min(Self::SETTLING_MAX),
        )
    }
}

/// A member does not stand for a part any more, for which it had this candidate.
fn unlink(
    members: &mut BTreeMap<Identity, SeenMember>,
    parts: &BTreeMap<Arc<str>, KnownPart>,
    PartCandidate {
        member: name,
        unanswered,
        ..
    }: &PartCandidate,
) {
    let Some(member) = members.get_mut(name) else {
        return;
    };
    member.parts -= 1;
    if member.parts == 0 {
        members.remove(name);
    } else if unanswered.is_some() {
        member.unanswered = newest_unanswered(parts, name);
        member.is_away = member.is_silent();
    }
}

/// The newest ping that a member left unanswered for any part.
fn newest_unanswered(parts: &BTreeMap<Arc<str>, KnownPart>, member: &Identity) -> Option<Instant> {
    let candidates = parts.values();
    let candidates = candidates.filter_map(|known| known.part.candidate_of(member));
    candidates.filter_map(|it| it.unanswered).max()
}

/// The Pod of a member, whose processes are new ones each time; all of the name where it has no such part.
fn pod_of(member: &Identity) -> &str {
    member.pod().unwrap_or(member.as_str())
}

// === impl GroupPart ===

impl GroupPart {
    /// The candidate of a member.
    pub fn candidate_of(&self, member: &Identity) -> Option<&PartCandidate> {
        let place = self
            .candidates
            .binary_search_by(|candidate| candidate.member.cmp(member));
        self.candidates.get(place.ok()?)
    }

    /// True if the assignment makes no difference between the two.
    fn is_like(&self, other: &Self) -> bool {
        let alike = |(one, other): (&PartCandidate, &PartCandidate)| {
            one.member == other.member && one.rank == other.rank && one.is_ready == other.is_ready
        };
        self.mobility == other.mobility
            && [&self.holder, &self.avoid, &self.preferred]
                == [&other.holder, &other.avoid, &other.preferred]
            && self.candidates.len() == other.candidates.len()
            && self.candidates.iter().zip(&other.candidates).all(alike)
    }
}

// === impl KnownPart ===

impl KnownPart {
    /// True if it has no leader, or one whose lease runs out.
    fn is_vacant(&self) -> bool {
        self.part.mobility == PartMobility::Vacant
    }

    /// The candidate that it is assigned to.
    fn assigned(&self) -> Option<Identity> {
        let candidate = self.part.candidate_of(self.wanted.as_ref()?)?;
        Some(candidate.name.clone())
    }
}

// === impl SeenMember ===

impl SeenMember {
    const fn new(since: Instant) -> Self {
        Self {
            since,
            acked: None,
            unanswered: None,
            parts: 0,
            is_away: false,
        }
    }

    /// True if one of its candidates left its newest ping unanswered, and none has acked since.
    fn is_silent(&self) -> bool {
        self.unanswered
            .is_some_and(|pinged| self.acked.is_none_or(|acked| acked <= pinged))
    }

    /// Goes by its newest answers, and says whether it went away or came back. One that comes back is a newcomer.
    fn follow(&mut self, now: Instant) -> bool {
        let is_away = self.is_silent();
        let was_away = std::mem::replace(&mut self.is_away, is_away);
        if was_away && !self.is_away {
            self.since = now;
        }
        was_away != self.is_away
    }
}

// === impl Placement ===

impl<'a> Placement<'a> {
    /// Everything by number, in the order of the names.
    fn of(group: &'a LeaseGroup) -> Self {
        let present = group.members.iter().filter(|(_, member)| !member.is_away);
        let mut placement = Self {
            names: present.map(|(name, _)| name).collect(),
            parts: Vec::with_capacity(group.parts.len()),
            placed: Vec::new(),
        };
        for known in group.parts.values() {
            let part = placement.assignable(&known.part, known.wanted.as_ref());
            placement.parts.push(part);
        }
        placement
    }

    fn assignable(&self, part: &GroupPart, wanted: Option<&Identity>) -> AssignablePart {
        let number = |member: &Identity| self.names.binary_search(&member).ok();
        // The best of those whose members are there.
        let mut eligible = Vec::with_capacity(part.candidates.len());
        let mut rank = usize::MAX;
        for candidate in part.candidates.iter().filter(|it| it.is_ready) {
            if candidate.rank > rank {
                continue;
            }
            let Some(number) = number(&candidate.member) else {
                continue;
            };
            if candidate.rank < rank {
                eligible.clear();
                rank = candidate.rank;
            }
            eligible.push(number);
        }
        if eligible.len() > 1 {
            let avoid = part.avoid.as_ref().and_then(number);
            eligible.retain(|number| Some(*number) != avoid);
        }
        let vacant = (wanted.and_then(number), PartMobility::Vacant);
        let own = part.holder.as_ref().and_then(|it| part.candidate_of(it));
        let holder = part.holder.as_ref().and_then(number);
        let (holder, mobility) = match (part.mobility, own) {
            (PartMobility::Vacant, _) => vacant,
            (PartMobility::Fixed, _) => (holder, PartMobility::Fixed),
            // It is not eligible, or others are better: the lease goes to one of those by the order of its candidates.
            (PartMobility::Movable, None) => vacant,
            (PartMobility::Movable, Some(own)) if rank < own.rank => vacant,
            (PartMobility::Movable, Some(_)) => {
                let is_eligible = holder.is_some_and(|holder| eligible.contains(&holder));
                // A leader that is silent and renews is left alone (R13).
                let left_alone = (holder, PartMobility::Fixed);
                match is_eligible {
                    true => (holder, PartMobility::Movable),
                    false => left_alone,
                }
            }
        };
        AssignablePart {
            eligible,
            holder,
            mobility,
        }
    }

    /// Leaves each part where it is whose holder, or the member that would take it, takes part in another move. Moves that
    /// have begun go first.
    fn hold_all_but_one_move(&mut self, parts: &BTreeMap<Arc<str>, KnownPart>) {
        let mut begun = Vec::new();
        let mut others = Vec::new();
        for (index, KnownPart { part, .. }) in parts.values().enumerate() {
            let assignable = &self.parts[index];
            let (from, to) = (assignable.holder, self.placed[index]);
            if assignable.mobility != PartMobility::Movable || from == to {
                continue;
            }
            let to = to.map(|to| self.names[to]);
            match part.preferred.as_ref() == to {
                true => begun.push(index),
                false => others.push(index),
            }
        }
        let mut busy = BTreeSet::new();
        for index in begun.into_iter().chain(others) {
            let ends = [self.parts[index].holder, self.placed[index]];
            if ends.iter().flatten().any(|member| busy.contains(member)) {
                self.placed[index] = self.parts[index].holder;
            } else {
                busy.extend(ends.into_iter().flatten());
            }
        }
    }
}
