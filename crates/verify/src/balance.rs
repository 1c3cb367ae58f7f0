//! L9: a lease of a group is moved for balance only where the loads of two members differ by more than one, and not again
//! within ten minutes.
//!
//! A preference tells no reason. One between two members whose candidates offer the same, and for which no operator has said
//! a word, can have no other than balance. The loads are those that an elector may have seen: news reach it late, a part that
//! is unheld or late may be about to go to anybody, and a part under a preference counts as moved.

mod members;
mod part;

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate, creation_time};
use elector_protocol::{Identity, LeaseKey, LeaseSnapshot, ResourceVersion, Timestamp};

use self::members::{GroupMembers, group_of};
use self::part::{BalancedPart, PartHolding};
use crate::entry::between;
use crate::history::{Beginning, History};
use crate::participants::Participants;
use crate::recorded_writer::RecordedWriter;
use crate::verdict::{Breach, GuaranteeLevel, Invariant, LeaseVerdict, Unjudged};

/// Checks the moves for balance of all groups of a history.
#[derive(Debug)]
pub(crate) struct BalanceChecker<'r> {
    history: &'r History,
    participants: &'r Participants,
    members: GroupMembers,
    parts: BTreeMap<LeaseKey, BalancedPart>,
    found: Vec<FoundMove>,
}

/// The findings on the moves of one lease.
#[derive(Debug)]
pub(crate) struct BalanceFindings {
    /// The group that the lease is a part of.
    group: String,
    breaches: Vec<Breach>,
    unjudged: Vec<Unjudged>,
}

/// A preference that can only be for balance.
#[derive(Debug)]
struct BalanceMove {
    preferred: Identity,
    from: String,
    to: String,
}

/// One thing to say of a preference.
#[derive(Debug)]
struct FoundMove {
    lease: LeaseKey,
    group: String,
    at: Timestamp,
    said: FoundWord,
}

#[derive(Debug)]
enum FoundWord {
    /// It was judged by the loads of the whole group.
    Judged,
    /// It broke the rule, by the loads of the whole group.
    Needless(Breach),
    /// It broke the rule, by what happened to this part.
    TooSoon(Breach),
    Unjudged(String),
}

/// The longest delay of a change on its way to an elector that is not hindered.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// The rest of a part after a move for balance.
const REST: Duration = Duration::from_secs(10 * 60);

// === impl BalanceChecker ===

impl<'r> BalanceChecker<'r> {
    pub(crate) fn new(history: &'r History, participants: &'r Participants) -> Self {
        Self {
            history,
            participants,
            members: GroupMembers::default(),
            parts: BTreeMap::new(),
            found: Vec::new(),
        }
    }

    /// A candidate was created or changed.
    pub(crate) fn candidate(&mut self, name: &str, candidate: &LeaseCandidate) {
        self.members.record(name, candidate);
    }

    /// A candidate was deleted.
    pub(crate) fn candidate_gone(&mut self, name: &str, candidate: &LeaseCandidate) {
        self.members.remove(name, candidate);
    }

    /// A Lease was created or changed. Says whether a candidate is preferred for balance from now on.
    pub(crate) fn revision(
        &mut self,
        lease: &Lease,
        version: ResourceVersion,
        at: Timestamp,
    ) -> bool {
        let key = lease.key();
        let part = self.parts.get(&key);
        let known = part.and_then(|part| part.last.as_ref());
        let group = group_of(&lease.metadata);
        let Ok(snapshot) = lease.snapshot() else {
            self.part(&key, lease, at).last = None;
            return false;
        };
        let asked = known
            .filter(|known| known.uid == snapshot.uid)
            .filter(|_| group.is_some() && !self.participants.is_foreign(version))
            .and_then(|before| self.move_of(&key, before, &snapshot));
        let mut asks = false;
        if let (Some(group), Some(asked)) = (&group, asked) {
            match asked {
                Ok(asked) => {
                    asks = true;
                    self.judge(&key, group, &asked, version, at);
                }
                Err(why) => self.say(&key, group, at, FoundWord::Unjudged(why)),
            }
        }
        let holding = PartHolding::of(at, &snapshot.record);
        let gap = self.history.gaps().contains(&version);
        let part = self.part(&key, lease, at);
        part.group = group;
        part.follow(holding, snapshot, asks, gap);
        part.forget_before(minus(at, REST));
        asks
    }

    /// A Lease was deleted.
    pub(crate) fn gone(&mut self, lease: &LeaseKey, at: Timestamp) {
        if let Some(part) = self.parts.get_mut(lease) {
            part.end(at);
        }
    }

    /// The findings, by the lease. A lease that is no part of a group has none.
    pub(crate) fn finish(mut self) -> BTreeMap<LeaseKey, BalanceFindings> {
        let mut findings: BTreeMap<LeaseKey, BalanceFindings> = BTreeMap::new();
        for (lease, part) in &self.parts {
            if let Some(group) = &part.group {
                findings.insert(lease.clone(), BalanceFindings::of(group));
            }
        }
        for found in std::mem::take(&mut self.found) {
            let missing = self.missing_part(&found);
            let of_lease = findings
                .entry(found.lease.clone())
                .or_insert_with(|| BalanceFindings::of(&found.group));
            match (found.said, missing) {
                (FoundWord::Judged | FoundWord::Needless(_), Some(missing)) => {
                    let group = found.group;
                    let why = format!("the loads of group {group}: {missing} was not recorded");
                    of_lease.say_unjudged(why);
                }
                (FoundWord::Judged, None) => {}
                (FoundWord::Needless(breach) | FoundWord::TooSoon(breach), _) => {
                    of_lease.breaches.push(breach);
                }
                (FoundWord::Unjudged(why), _) => of_lease.say_unjudged(why),
            }
        }
        findings
    }

    fn part(&mut self, key: &LeaseKey, lease: &Lease, at: Timestamp) -> &mut BalancedPart {
        let created = creation_time(&lease.metadata);
        self.parts
            .entry(key.clone())
            .or_insert_with(|| BalancedPart::new(at, created))
    }

    /// The move that a new preference asks for, if it can only be for balance; or why that cannot be said.
    fn move_of(
        &self,
        lease: &LeaseKey,
        before: &LeaseSnapshot,
        after: &LeaseSnapshot,
    ) -> Option<Result<BalanceMove, String>> {
        let (old, new) = (&before.record, &after.record);
        let (holder, preferred) = (new.holder.as_ref()?, new.preferred_holder.as_ref()?);
        let signals = (&old.holder, old.term) == (&new.holder, new.term);
        if !signals || old.preferred_holder.as_ref() == Some(preferred) {
            return None;
        }
        let mut overrides = [before, after].into_iter().map(|it| &it.overrides);
        if overrides.any(|it| {
            it.prefer
                .as_ref()
                .is_some_and(|it| it.candidate == *preferred)
        }) {
            return None;
        }
        let offer = |name: &Identity| {
            self.members.offer(&lease.namespace, name).ok_or_else(|| {
                format!("the member of {name}, whose LeaseCandidate was not recorded")
            })
        };
        let (of_holder, of_preferred) = match (offer(holder), offer(preferred)) {
            (Ok(of_holder), Ok(of_preferred)) => (of_holder, of_preferred),
            (Err(why), _) | (_, Err(why)) => return Some(Err(why)),
        };
        let (from, to) = (of_holder.member.clone()?, of_preferred.member.clone()?);
        let by_other_keys = of_holder.offer != of_preferred.offer || of_holder.stands_down;
        (from != to && !by_other_keys).then(|| {
            Ok(BalanceMove {
                preferred: preferred.clone(),
                from,
                to,
            })
        })
    }

    /// Holds a move for balance against the loads, and against the last one of this part.
    fn judge(
        &mut self,
        lease: &LeaseKey,
        group: &str,
        asked: &BalanceMove,
        version: ResourceVersion,
        at: Timestamp,
    ) {
        let writer = self.participants.writer(version);
        let from = self.view_begins(writer, at);
        let part = self.parts.get(lease);
        let before = part
            .and_then(|part| part.last.as_ref())
            .map(|last| last.version);
        let rate = writer.map_or(self.participants.limits.drift, |writer| writer.rate);
        let breach = |message: String| Breach {
            invariant: Invariant::L9,
            lease: lease.clone(),
            level: GuaranteeLevel::Promised,
            at,
            before,
            after: Some(version),
            message,
        };
        let mut words = vec![FoundWord::Judged];
        if !self.is_needed(lease, group, asked, (from, at), rate) {
            let load = |member: &str| self.loads(lease, group, member, at, rate).0;
            words.push(FoundWord::Needless(breach(format!(
                "{} is preferred for balance, although its member has {} parts of group {group} and the holder's has {}",
                asked.preferred,
                load(&asked.to),
                load(&asked.from),
            ))));
        }
        match part.and_then(|part| part.moved) {
            Some(moved) => {
                let seen = writer
                    .and_then(RecordedWriter::sight)
                    .is_none_or(|sight| sight.saw(moved.asked, moved.at));
                let rested = self.rested(writer, moved.at, at);
                if seen && rested < REST {
                    words.push(FoundWord::TooSoon(breach(format!(
                        "{} is preferred for balance {:.1} s after this part was last moved for it, which is within {REST:?}",
                        asked.preferred,
                        between(moved.at, at).as_secs_f64(),
                    ))));
                }
            }
            None if self.may_have_moved(part, at) => {
                words.push(FoundWord::Unjudged(format!(
                    "whether this part was moved for balance within {REST:?} before revision @{version}, of which the \
                     recording has not all"
                )));
            }
            None => {}
        }
        for word in words {
            self.say(lease, group, at, word);
        }
    }

    /// The oldest moment that the view of an elector may be of.
    fn view_begins(&self, writer: Option<&RecordedWriter>, at: Timestamp) -> Timestamp {
        let delay = match writer {
            Some(_) => SEEN_WITHIN,
            None => self.participants.limits.recording_delay,
        };
        let mut from = minus(at, delay);
        for (begun, ended) in writer
            .and_then(RecordedWriter::sight)
            .into_iter()
            .flat_map(|sight| sight.blind.iter().rev())
        {
            if *ended >= from {
                from = from.min(*begun);
            }
        }
        from
    }

    /// True if at any moment that an elector may have seen the one member had two parts more than the other.
    fn is_needed(
        &self,
        lease: &LeaseKey,
        group: &str,
        asked: &BalanceMove,
        (from, at): (Timestamp, Timestamp),
        rate: f64,
    ) -> bool {
        let changes = self.parts_of(lease, group);
        let changes = changes.flat_map(|(_, part)| part.changes(from));
        let takers = match self.members.standing_unlike(&lease.namespace, group) {
            // The one that is preferred has to have two parts less.
            None => vec![asked.to.as_str()],
            // It may take a part so that it can give another to a third one.
            Some(members) => members,
        };
        [from, at].into_iter().chain(changes).any(|moment| {
            let load = |member: &str| self.loads(lease, group, member, moment, rate);
            let (held, open) = load(asked.from.as_str());
            takers.iter().any(|taker| held + open >= load(taker).0 + 2)
        })
    }

    /// The parts that a member has at a moment, and those that any member may be about to get, by a clock of this rate.
    fn loads(
        &self,
        lease: &LeaseKey,
        group: &str,
        member: &str,
        moment: Timestamp,
        rate: f64,
    ) -> (usize, usize) {
        let longest = self.participants.limits.longest_lease;
        let (mut held, mut open) = (0, 0);
        for (key, part) in self.parts_of(lease, group) {
            match part.holder_at(moment, longest, rate) {
                Some(holder) if self.is_of(member, key, holder) => held += 1,
                Some(_) => {}
                None => open += usize::from(part.exists_at(moment)),
            }
        }
        (held, open)
    }

    fn is_of(&self, member: &str, part: &LeaseKey, holder: &Identity) -> bool {
        let offer = self.members.offer(&part.namespace, holder);
        offer.is_some_and(|offer| offer.member.as_deref() == Some(member))
    }

    fn parts_of<'a>(
        &'a self,
        lease: &'a LeaseKey,
        group: &'a str,
    ) -> impl Iterator<Item = (&'a LeaseKey, &'a BalancedPart)> {
        self.parts.iter().filter(move |(key, part)| {
            key.namespace == lease.namespace && part.group.as_deref() == Some(group)
        })
    }

    /// The time that an elector may have counted since a move.
    fn rested(&self, writer: Option<&RecordedWriter>, moved: Timestamp, at: Timestamp) -> Duration {
        let limits = &self.participants.limits;
        match writer {
            Some(writer) => writer.counted_from(moved),
            None => between(moved, at).mul_f64(limits.drift) + limits.recording_delay,
        }
    }

    /// True if a move of this part within the last ten minutes would not be known.
    fn may_have_moved(&self, part: Option<&BalancedPart>, at: Timestamp) -> bool {
        let lately = |since: Timestamp| between(since, at) < REST;
        let Some(part) = part else { return false };
        let begins = self.history.beginning() == Beginning::Midway
            && !part.is_new(self.participants.limits.recording_delay);
        (begins && lately(part.first)) || part.gap.is_some_and(lately)
    }

    /// A part of the group that the recording lacks at the time of a finding.
    fn missing_part(&self, found: &FoundMove) -> Option<LeaseKey> {
        let mut named = self.members.parts_of(&found.lease.namespace, &found.group);
        let never = named.find(|lease| !self.parts.contains_key(lease));
        let midway = self.history.beginning() == Beginning::Midway;
        let late = || {
            self.parts_of(&found.lease, &found.group)
                .find(|(_, part)| midway && part.may_precede(found.at))
                .map(|(lease, _)| lease)
        };
        never.or_else(late).cloned()
    }

    fn say(&mut self, lease: &LeaseKey, group: &str, at: Timestamp, said: FoundWord) {
        self.found.push(FoundMove {
            lease: lease.clone(),
            group: group.to_owned(),
            at,
            said,
        });
    }
}

// === impl BalanceFindings ===

impl BalanceFindings {
    fn of(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            breaches: Vec::new(),
            unjudged: Vec::new(),
        }
    }

    /// Adds them to the verdict on the lease.
    pub(crate) fn join(mut self, lease_verdict: &mut LeaseVerdict) {
        lease_verdict.extent.group = Some(self.group);
        lease_verdict.unjudged.append(&mut self.unjudged);
        lease_verdict.breaches.append(&mut self.breaches);
        lease_verdict
            .breaches
            .sort_by_key(|breach| (breach.at, breach.after));
    }

    fn say_unjudged(&mut self, why: String) {
        let unjudged = Unjudged {
            invariant: Invariant::L9,
            why,
        };
        if !self.unjudged.contains(&unjudged) {
            self.unjudged.push(unjudged);
        }
    }
}

/// A moment that is earlier by a duration.
fn minus(at: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(at.as_micros().saturating_sub(by)).unwrap_or(Timestamp::MIN)
}
