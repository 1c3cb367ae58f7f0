//! The history of the Leases and LeaseCandidates: every revision, with the author of the write.

#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Instant, LeaseRecord, Token};

pub(crate) use crate::author::{Author, CandidateRevision, Role, version};
use crate::delivery::DeliveryLog;

/// The kinds of writes that exempt from S1.
pub(crate) const BUILTIN_EXPIRED: &str = "the built-in elector took a held lease for expired";
pub(crate) const BUILTIN_GRANTED: &str = "the built-in elector granted a lease without a holder";
pub(crate) const STRANGER_NAMED: &str = "a stranger named a holder";
pub(crate) const STRANGER_SHORTENED: &str = "a stranger shortened a duration";
pub(crate) const LOCK_CHANGED: &str = "a stranger changed or deleted the lock";
pub(crate) const STORE_RESTORED: &str = "the store was restored";

/// A write of a Lease as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct RequestAttempt {
    pub(crate) author: Author,
    pub(crate) at: Duration,
    /// The author's holder clock at that moment.
    pub(crate) clock: Instant,
    /// The clock by which the author waits, as an elector.
    pub(crate) monotonic: Instant,
    pub(crate) lease: String,
    /// The version that it replaces; `None` for a POST.
    pub(crate) base: Option<u64>,
    pub(crate) record: Option<LeaseRecord>,
    /// The version that it became, once it was applied.
    pub(crate) applied: Option<u64>,
}

/// A revision of a Lease, or its deletion.
#[derive(Clone, Debug)]
pub(crate) struct LeaseRevision {
    pub(crate) at: Duration,
    pub(crate) version: u64,
    /// `None` where it was deleted.
    pub(crate) lease: Option<Lease>,
    /// The deleted object, where it was deleted.
    pub(crate) last: Option<Lease>,
    /// `None` where it was deleted or cannot be read.
    pub(crate) record: Option<LeaseRecord>,
    /// Its attempt, where it was a write that was seen.
    pub(crate) attempt: Option<usize>,
    /// True if a person changed it without naming what was there before.
    pub(crate) intervention: bool,
}

/// The history that a store kept, until it was restored from an older backup.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredHistory {
    pub(crate) leases: BTreeMap<String, Vec<LeaseRevision>>,
    pub(crate) candidates: Vec<CandidateRevision>,
}

/// A history that was lost in a restore.
#[derive(Debug)]
pub(crate) struct LostHistory {
    pub(crate) at: Duration,
    /// When the backup was made.
    pub(crate) kept_at: Duration,
    /// All of it, up to then.
    pub(crate) stored: StoredHistory,
    /// The last revision that was kept of it, and its last one. Those that follow are higher.
    pub(crate) kept: u64,
    pub(crate) newest: u64,
}

/// All revisions of the Leases, and all writes of them.
#[derive(Debug, Default)]
pub(crate) struct LeaseHistory {
    pub(crate) attempts: Vec<RequestAttempt>,
    /// The history as the store tells it now: what was lost in a restore has never been.
    pub(crate) stored: StoredHistory,
    pub(crate) lost: Vec<LostHistory>,
    /// The deliveries of candidates to the electors.
    pub(crate) deliveries: DeliveryLog,
    /// When a person changed which Lease, until its revision is recorded.
    interventions: Vec<(Duration, String)>,
    /// Terms that their holders acquired themselves.
    pub(crate) acquired: u64,
}

// === impl Author ===

impl Author {
    /// True if it is bound by the rules.
    pub(crate) const fn is_ours(&self) -> bool {
        matches!(self.role, Role::Elector { .. } | Role::Candidate { .. })
    }
}

// === impl RequestAttempt ===

impl RequestAttempt {
    /// True if it names its author as the holder.
    pub(crate) fn names_author(&self) -> bool {
        let holder = self.record.as_ref().and_then(|it| it.holder.as_ref());
        holder.is_some() && holder == self.author.identity.as_ref()
    }
}

// === impl LeaseHistory ===

impl LeaseHistory {
    /// The newest revision of a Lease that exists.
    pub(crate) fn current(&self, lease: &str) -> Option<&LeaseRevision> {
        let newest = self.stored.leases.get(lease)?.last()?;
        newest.lease.is_some().then_some(newest)
    }

    /// A person changes a Lease in etcd, or patches it: no request says what it replaces.
    pub(crate) fn intervene(&mut self, at: Duration, lease: &str) {
        self.interventions.push((at, lease.to_owned()));
    }

    /// The store goes back to what it was at the revision `kept`; its next ones are higher than `newest`.
    pub(crate) fn restore(&mut self, at: Duration, kept_at: Duration, kept: u64, newest: u64) {
        let stored = self.stored.clone();
        for revisions in self.stored.leases.values_mut() {
            revisions.retain(|it| it.version <= kept);
        }
        let candidates = &mut self.stored.candidates;
        candidates.retain(|it| it.version() <= kept);
        self.lost.push(LostHistory {
            at,
            kept_at,
            stored,
            kept,
            newest,
        });
    }

    /// True if the term of this token began in a history that was lost, and its holder may hear of that late.
    pub(crate) fn is_lost(&self, token: u64) -> bool {
        let mut lost = self.lost.iter();
        lost.any(|it| (it.kept + 1..=it.newest).contains(&token))
    }

    /// Every history that the store has told, the present one last.
    pub(crate) fn told(&self) -> impl Iterator<Item = &StoredHistory> {
        let lost = self.lost.iter().map(|it| &it.stored);
        lost.chain([&self.stored])
    }

    /// Records a revision of a Lease, under the author of the matching attempt.
    pub(crate) fn record_lease(&mut self, at: Duration, lease: Lease) {
        let name = lease.key().name.to_string();
        let version = version(lease.metadata.resource_version.as_deref());
        let record = lease.record().ok();
        let before = self.current(&name);
        if before.is_some_and(|it| it.version == version) {
            return; // listed once more
        }
        let base = before.map(|before| before.version);
        let previous = before.and_then(|before| before.record.clone());
        let attempt = record.as_ref().and_then(|record| {
            self.attempts.iter().rposition(|attempt| {
                attempt.lease == name
                    && attempt.base == base
                    && attempt
                        .record
                        .as_ref()
                        .is_some_and(|sent| matches(sent, record))
            })
        });
        if let Some(attempt) = attempt.and_then(|index| self.attempts.get_mut(index)) {
            attempt.applied = Some(version);
            let acquires = |it: &LeaseRecord| {
                it.has_token()
                    && previous
                        .as_ref()
                        .is_none_or(|before| before.term != it.term)
            };
            let candidate = matches!(attempt.author.role, Role::Candidate { .. });
            if candidate && record.as_ref().is_some_and(acquires) {
                self.acquired += 1;
            }
        }
        let mut people = self.interventions.iter();
        let person = people.position(|it| attempt.is_none() && it.0 == at && it.1 == name);
        if let Some(person) = person {
            self.interventions.remove(person);
        }
        let revision = LeaseRevision {
            at,
            version,
            record,
            lease: Some(lease),
            last: None,
            attempt,
            intervention: person.is_some(),
        };
        self.add(name, revision);
    }

    fn add(&mut self, lease: String, revision: LeaseRevision) {
        let revisions = self.stored.leases.entry(lease).or_default();
        revisions.push(revision);
    }

    /// Records the deletion of a Lease.
    pub(crate) fn record_deletion(&mut self, at: Duration, lease: &Lease) {
        let name = lease.key().name.to_string();
        let version = version(lease.metadata.resource_version.as_deref());
        let revision = LeaseRevision {
            at,
            version,
            lease: None,
            last: Some(lease.clone()),
            record: None,
            attempt: None,
            intervention: false,
        };
        self.add(name, revision);
    }

    /// Records a revision of a LeaseCandidate.
    pub(crate) fn record_candidate(&mut self, at: Duration, object: LeaseCandidate, deleted: bool) {
        let revision = CandidateRevision {
            at,
            object,
            deleted,
        };
        let mut known = self.stored.candidates.iter().rev();
        let listed_once_more =
            !self.lost.is_empty() && known.any(|it| it.version() == revision.version());
        if !listed_once_more {
            self.stored.candidates.push(revision);
        }
    }

    /// The kind of the write that exempts these two believers now: a stranger displaced the term of the first, that of the
    /// second began after it, and W of the first is not over since.
    pub(crate) fn exemption(
        &self,
        lease: &str,
        now: Duration,
        (first, second): (Token, Token),
    ) -> Option<&'static str> {
        let tokens = (first, second);
        let displaced = |history| self.displaced(history, lease, now, tokens);
        // A write that was lost displaces nobody beside a later term.
        let mut lost = self.lost.iter().filter(|it| second.0.0 <= it.newest);
        displaced(&self.stored)
            .or_else(|| lost.find_map(|it| displaced(&it.stored)))
            .or_else(|| self.restored(lease, now, tokens))
    }

    /// The same where the term of one was lost in a restore, and the other has written since. Their tokens tell no order.
    fn restored(
        &self,
        lease: &str,
        now: Duration,
        (one, other): (Token, Token),
    ) -> Option<&'static str> {
        let displaces = |lost: &LostHistory, first, second| {
            let last = self.last_of_term(&lost.stored, lease, first);
            let lasts = last.and_then(|(_, it)| it.record.as_ref()?.duration());
            let writes = |token| {
                let last = self.last_of_term(&self.stored, lease, token);
                last.is_some_and(|(_, it)| it.at >= lost.at)
            };
            let displaced = writes(second) && !writes(first);
            displaced && lasts.is_some_and(|lasts| now <= lost.at + lasts)
        };
        let mut restores = self.lost.iter();
        let some = restores.any(|lost| displaces(lost, one, other) || displaces(lost, other, one));
        some.then_some(STORE_RESTORED)
    }

    /// The same where a stranger displaced it in this history.
    fn displaced(
        &self,
        history: &StoredHistory,
        lease: &str,
        now: Duration,
        (first, second): (Token, Token),
    ) -> Option<&'static str> {
        let (own, last) = self.last_of_term(history, lease, first)?;
        let lasts = last.record.as_ref()?.duration()?;
        let revisions = history.leases.get(lease)?;
        let mut changes = revisions.get(own..)?.windows(2);
        let (write, why) = changes.find_map(|pair| {
            let [before, after] = pair else { return None };
            let role = &self.author(after)?.role;
            let why = exemption(role, before.record.as_ref(), after.record.as_ref())?;
            Some((after, why))
        })?;
        let follows = write.version <= second.0.0;
        (follows && now <= write.at + lasts).then_some(why)
    }

    fn author(&self, revision: &LeaseRevision) -> Option<&Author> {
        Some(&self.attempts.get(revision.attempt?)?.author)
    }

    /// The last write of a term by its holder, and its place in the history.
    fn last_of_term<'a>(
        &self,
        history: &'a StoredHistory,
        lease: &str,
        first: Token,
    ) -> Option<(usize, &'a LeaseRevision)> {
        let revisions = history.leases.get(lease)?;
        // A candidate as client-go's writes no token, and holds one term under each name.
        let unmarked = |it: &LeaseRevision| {
            let by_client_go = self.author(it)?.role == Role::ClientGo;
            it.record.as_ref()?.holder.clone().filter(|_| by_client_go)
        };
        let mut named = revisions.iter().filter(|it| it.version == first.0.0);
        let named = named.find_map(unmarked);
        // Its holder's last write: a stranger that goes on writing displaces no further term. A stranger may leave the token of
        // the term that it displaces, and an elector leaves what it finds.
        let own = revisions.iter().rposition(|it| {
            let by_holder = |record: &&LeaseRecord| {
                record.holder.is_some()
                    && self.author(it).map(|it| &it.identity) == Some(&record.holder)
            };
            let record = it.record.as_ref().filter(by_holder);
            record.and_then(|record| record.token) == Some(first)
                || (named.is_some() && unmarked(it) == named)
        })?;
        Some((own, revisions.get(own)?))
    }

    /// The latest reading of a candidate's clock at which it sent a write of this lease that was applied.
    pub(crate) fn proven(&self, lease: &str, name: &str, incarnation: u32) -> Option<Instant> {
        let mut own = self.own(lease, name, incarnation);
        let applied = own.find(|it| it.names_author());
        applied.map(|attempt| attempt.clock)
    }

    /// The newest write of this lease by a candidate that was applied, but for a born record, which proves nothing.
    pub(crate) fn newest_own(
        &self,
        lease: &str,
        name: &str,
        incarnation: u32,
    ) -> Option<&RequestAttempt> {
        let mut own = self.own(lease, name, incarnation);
        own.find(|it| it.base.is_some() || it.names_author())
    }

    fn own(
        &self,
        lease: &str,
        name: &str,
        incarnation: u32,
    ) -> impl Iterator<Item = &RequestAttempt> {
        self.attempts.iter().rev().filter(move |attempt| {
            attempt.applied.is_some()
                && attempt.lease == lease
                && attempt.author.incarnation == incarnation
                && attempt.author.name == name
        })
    }
}

/// The exemption from S1: a foreign write that names a holder or shortens a duration, or any write of an elector that
/// grants by the time of day.
fn exemption(
    role: &Role,
    before: Option<&LeaseRecord>,
    after: Option<&LeaseRecord>,
) -> Option<&'static str> {
    match role {
        Role::Elector { .. } | Role::Candidate { .. } | Role::ClientGo => None,
        // Wall clocks of different machines are up to ten minutes apart, which it does not allow for.
        Role::Builtin if before.is_some_and(|it| it.holder.is_some()) => Some(BUILTIN_EXPIRED),
        Role::Builtin => Some(BUILTIN_GRANTED),
        Role::Plain | Role::Kubectl => {
            let after = after?;
            let holder = |record: &LeaseRecord| record.holder.clone();
            // A missing duration counts as the longest (R4).
            let shortens = |to| before.is_some_and(|it| it.duration().is_none_or(|it| it > to));
            let shorter = after.duration().is_some_and(shortens);
            let term = |record: &LeaseRecord| {
                (
                    holder(record),
                    record.term,
                    record.token,
                    record.token_term,
                    record.renew_time,
                )
            };
            if after.holder.is_some() && before.map(term) != Some(term(after)) {
                Some(STRANGER_NAMED)
            } else if shorter {
                Some(STRANGER_SHORTENED)
            } else {
                None
            }
        }
    }
}

/// True if the server keeps the record that was sent, but for what it drops.
fn matches(sent: &LeaseRecord, kept: &LeaseRecord) -> bool {
    let told = |it: &LeaseRecord| {
        let preferred = it.preferred_holder.clone();
        (it.acquire_time, it.token, it.token_term, preferred)
    };
    sent.same_record(kept) && told(sent) == told(kept)
}

#[cfg(test)]
mod tests {
    use elector_protocol::{Identity, ResourceVersion, Timestamp};

    use super::fixture::WrittenLease;
    use super::*;

    #[test]
    fn a_stranger_shortens_a_duration_that_is_missing_too() {
        let of = |seconds| LeaseRecord {
            duration_seconds: seconds,
            ..LeaseRecord::born(None)
        };
        let exempt = |before, after| exemption(&Role::Kubectl, Some(&of(before)), Some(&of(after)));
        assert_eq!(exempt(None, Some(1)), Some(STRANGER_SHORTENED));
        assert_eq!(exempt(Some(2), Some(1)), Some(STRANGER_SHORTENED));
        assert_eq!(exempt(Some(1), Some(1)), None);
        assert_eq!(exempt(Some(1), None), None);
    }

    #[test]
    fn a_stranger_exempts_the_term_that_it_displaced_and_those_that_follow_it_for_a_while() {
        let mut lease = WrittenLease::new("l");
        lease.version = 9;
        for (second, holder, token) in [
            (1, "c", Some(9)),
            (5, "stranger", None),
            // It goes on renewing, which displaces no further term.
            (15, "stranger", None),
        ] {
            let time = Timestamp::from_micros(second * 1_000_000);
            let record = LeaseRecord {
                holder: Identity::new(holder),
                duration_seconds: Some(15),
                acquire_time: time,
                renew_time: time,
                token: token.map(|version| Token(ResourceVersion(version))),
                token_term: token.map(|_| Default::default()),
                ..LeaseRecord::default()
            };
            lease.write(Duration::from_secs(second.unsigned_abs()), holder, &record);
        }
        let exempt = |lease: &WrittenLease, second, first, other| {
            let tokens = (Token(ResourceVersion(first)), Token(ResourceVersion(other)));
            let now = Duration::from_secs(second);
            lease.history.exemption("l", now, tokens).is_some()
        };
        assert!(exempt(&lease, 20, 9, 11));
        assert!(exempt(&lease, 20, 9, 13));
        assert!(!exempt(&lease, 21, 9, 13), "W is over");
        assert!(!exempt(&lease, 20, 9, 10), "it led before");
        assert!(!exempt(&lease, 20, 8, 13), "another term was displaced");
        lease
            .history
            .record_deletion(Duration::from_secs(16), &lease.lease);
        assert!(exempt(&lease, 20, 9, 14), "a deletion changes nothing");
        let (at, kept_at) = (Duration::from_secs(17), Duration::from_secs(2));
        lease.history.restore(at, kept_at, 10, 15);
        assert!(exempt(&lease, 20, 9, 14), "both were lost");
        assert!(!exempt(&lease, 20, 9, 16), "the write of the stranger was");
    }
}
