//! Checks the revisions of a Lease, one after the other: was each a move that the rules allow?

mod acks;
mod acquisition;
mod exemption;
mod expiry;
mod memory;
mod preemption;
mod rules;
mod term_start;

use std::collections::BTreeSet;

use elector_api::{Lease, LeaseCandidate, creation_time};
use elector_protocol::{
    Identity, LeaseKey, LeaseSnapshot, ResourceVersion, Term, Timestamp, Token, Uid,
};

use self::acks::Acks;
pub(crate) use self::exemption::Exemption;
use self::memory::{LastRevision, Memory, restores};
use self::preemption::Preemptions;
use self::rules::Rules;
use crate::broken_rule::BrokenRule;
use crate::entry::between;
use crate::history::{Beginning, History};
use crate::participants::{Implementation, Participants};
use crate::reading::{has_token, is_unaccepted_grant};
use crate::term_record::{RecordedEnd, SeenRevision, TermRecord, TermRecords, longest_gap};
use crate::verdict::{Breach, Extent, Invariant, LeaseChangeKind, Unjudged};

/// Checks one Lease.
#[derive(Debug)]
pub(crate) struct LeaseChecker<'r> {
    lease: &'r LeaseKey,
    participants: &'r Participants,
    /// The revisions before which others may be missing, and how many there are of this Lease.
    gaps: &'r BTreeSet<ResourceVersion>,
    gaps_met: Vec<ResourceVersion>,
    /// Until when the Lease may have been created before the recording began; `None` where nothing was before.
    midst: Option<Timestamp>,
    memory: Memory<'r>,
    acks: Acks,
    preemptions: Preemptions,
    token: Option<TokenOfTerm>,
    term_records: TermRecords,
    exemptions: Vec<Exemption>,
    breaches: Vec<Breach>,
    unjudged: Vec<Unjudged>,
    extent: Extent,
    seen: Option<(Timestamp, Timestamp)>,
}

/// The findings on the revisions of one Lease.
#[derive(Debug)]
pub(crate) struct CheckedRevisions {
    pub(crate) breaches: Vec<Breach>,
    pub(crate) unjudged: Vec<Unjudged>,
    pub(crate) term_records: Vec<TermRecord>,
    pub(crate) exemptions: Vec<Exemption>,
    pub(crate) extent: Extent,
    /// The first and the last revision.
    pub(crate) seen: Option<(Timestamp, Timestamp)>,
}

/// The newest token, and the term that it belongs to.
#[derive(Debug)]
struct TokenOfTerm {
    uid: Uid,
    term: Term,
    holder: Option<Identity>,
    token: Token,
    /// True once the record has had another holder, or none. The term cannot come back then; a number can, where a
    /// stranger writes.
    over: bool,
}

// === impl LeaseChecker ===

impl<'r> LeaseChecker<'r> {
    /// The checker of a Lease of which nothing is known.
    pub(crate) fn new(
        lease: &'r LeaseKey,
        participants: &'r Participants,
        history: &'r History,
        start: Option<Timestamp>,
    ) -> Self {
        let started = history.beginning();
        Self {
            lease,
            participants,
            gaps: history.gaps(),
            gaps_met: Vec::new(),
            midst: start.filter(|_| started == Beginning::Midway),
            memory: Memory::default(),
            acks: Acks::new(started == Beginning::Empty),
            preemptions: Preemptions::default(),
            token: None,
            term_records: TermRecords::default(),
            exemptions: Vec::new(),
            breaches: Vec::new(),
            unjudged: Vec::new(),
            extent: Extent::default(),
            seen: None,
        }
    }

    /// A candidate for the Lease changed.
    pub(crate) fn ack(
        &mut self,
        name: &str,
        candidate: &LeaseCandidate,
        version: ResourceVersion,
        at: Timestamp,
    ) {
        self.acks.record(name, candidate, version, at);
    }

    /// The Lease changed; `for_balance` where it prefers a candidate for the balance of its group.
    pub(crate) fn revision(
        &mut self,
        lease: &'r Lease,
        version: ResourceVersion,
        at: Timestamp,
        for_balance: bool,
    ) {
        let last = self.memory.last.as_ref();
        if last.is_some_and(|last| last.snapshot.version == version) {
            return; // two recordings of one revision
        }
        self.extent.revisions += 1;
        self.saw(at);
        let foreign = self.participants.is_foreign(version);
        let snapshot = match lease.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // A stranger may write what cannot be read.
                if foreign {
                    self.count(LeaseChangeKind::Foreign);
                    self.memory.remember_unreadable_by_stranger();
                } else {
                    self.breach(
                        at,
                        version,
                        BrokenRule::promised(Invariant::S3, error.to_string()),
                    );
                    self.memory.forget_last();
                }
                self.midst = Some(at);
                return;
            }
        };
        let midst = self
            .midst
            .take()
            .is_some_and(|start| !self.created_after(lease, start));
        let before = self.memory.last_of_same_object(&snapshot);
        let gap = before.is_some() && self.gaps.contains(&version);
        let rules = self.rules(version);
        let verdict = match before {
            _ if foreign => Ok(LeaseChangeKind::Foreign),
            Some(_) if gap => {
                self.gaps_met.push(version);
                Ok(LeaseChangeKind::Found)
            }
            Some(last) if restores(last, &snapshot.record) => Ok(LeaseChangeKind::Renew),
            Some(last) => rules.change(last, lease, &snapshot, at.as_micros()),
            None if rules.writer.is_some() && self.memory.is_unreadable() => {
                let message = "a record that cannot be read was replaced (R6)";
                Err(BrokenRule::promised(Invariant::S3, message))
            }
            // A record that says nothing might as well have been created just now.
            None if midst && rules.born(lease, &snapshot.record).is_err() => {
                let why = format!("how revision @{version} came to be: the recording begins there");
                self.missing(Invariant::S3, &why);
                Ok(LeaseChangeKind::Found)
            }
            None => rules.born(lease, &snapshot.record),
        };
        let kind = match verdict {
            Ok(kind) => kind,
            Err(broken_rule) => {
                self.breach(at, version, broken_rule);
                LeaseChangeKind::Illegal
            }
        };
        self.count(kind);
        let writer = self.participants.writer(version).filter(|_| !foreign);
        let before = self.memory.last.as_ref().map(|last| &last.snapshot);
        let budget = self
            .preemptions
            .follow(before, &snapshot, at, writer, for_balance);
        if let Err(message) = budget {
            self.breach(at, version, BrokenRule::promised(Invariant::R23, message));
        }
        self.exempt(kind, &snapshot, at);
        self.token(&snapshot, version, at);
        self.term_record(kind, &snapshot, at);
        self.memory
            .remember(kind, lease, snapshot, at, midst || gap);
    }

    /// The Lease was deleted.
    pub(crate) fn gone(&mut self, version: ResourceVersion, at: Timestamp) {
        self.saw(at);
        self.count(LeaseChangeKind::Delete);
        let written = None;
        self.term_records.end(
            RecordedEnd::Deleted,
            SeenRevision {
                version,
                at,
                written,
            },
        );
        self.memory.forget_object(at);
        self.midst = None;
    }

    /// The faults, and the extent of the check.
    pub(crate) fn finish(mut self) -> CheckedRevisions {
        if self.extent.revisions == 0 {
            self.missing(Invariant::S1, "no revision of the Lease was recorded");
        } else if !self.acks.are_complete() && self.elector_acted() {
            let why = "no LeaseCandidate was recorded";
            self.missing(Invariant::S7, why);
            self.missing(Invariant::S11, why);
        }
        if let Some(first) = self.gaps_met.first() {
            let count = self.gaps_met.len();
            let gaps = if count == 1 { "gap" } else { "gaps" };
            let why = format!(
                "what happened in {count} {gaps} of the recording, the first before revision @{first}"
            );
            self.missing(Invariant::S3, &why);
        }
        let term_records = self.term_records.finish();
        let led = || {
            term_records
                .iter()
                .filter(|term_record| term_record.accepted.is_some())
        };
        self.extent.terms = led().count();
        self.extent.leaders = led()
            .map(|term_record| &term_record.holder)
            .collect::<BTreeSet<_>>()
            .len();
        self.extent.longest_gap = longest_gap(&term_records);
        CheckedRevisions {
            breaches: self.breaches,
            unjudged: self.unjudged,
            term_records,
            exemptions: self.exemptions,
            extent: self.extent,
            seen: self.seen,
        }
    }

    /// True where the Lease was created after the recording began, by the server's clock, which has whole seconds.
    fn created_after(&self, lease: &Lease, start: Timestamp) -> bool {
        creation_time(&lease.metadata).is_some_and(|created| {
            between(start, created) > self.participants.limits.recording_delay
        })
    }

    /// True where the lease is served by an elector, as far as the changes tell. One that its holders acquire
    /// themselves needs no candidates (R18).
    fn elector_acted(&self) -> bool {
        let served = [
            LeaseChangeKind::GrantUnheld,
            LeaseChangeKind::GrantExpired,
            LeaseChangeKind::HandOff,
            LeaseChangeKind::Signal,
        ];
        let of_strategy = |last: &LastRevision<'_>| last.snapshot.record.strategy.is_some();
        self.memory.last.as_ref().is_some_and(of_strategy)
            || served
                .iter()
                .any(|kind| self.extent.changes.contains_key(kind))
    }

    fn implementation(&self, holder: &Identity) -> Option<Implementation> {
        self.participants
            .implementation(self.lease, holder.as_str())
    }

    fn breach(&mut self, at: Timestamp, version: ResourceVersion, broken_rule: BrokenRule) {
        self.breaches.push(Breach {
            invariant: broken_rule.invariant,
            lease: self.lease.clone(),
            level: broken_rule.level,
            at,
            before: self.memory.last.as_ref().map(|last| last.snapshot.version),
            after: Some(version),
            message: broken_rule.message,
        });
    }

    fn rules(&self, version: ResourceVersion) -> Rules<'_> {
        Rules {
            lease: self.lease,
            participants: self.participants,
            memory: &self.memory,
            acks: &self.acks,
            writer: self.participants.writer(version),
        }
    }

    fn exempt(&mut self, kind: LeaseChangeKind, after: &LeaseSnapshot, at: Timestamp) {
        let before = self.memory.last.as_ref();
        let before = before.map(|last| &last.snapshot.record);
        let longest = self.participants.limits.longest_lease;
        let exemption = Exemption::of(kind, before, after, at, longest);
        self.exemptions.extend(exemption);
    }

    fn missing(&mut self, invariant: Invariant, why: &str) {
        let why = why.to_owned();
        self.unjudged.push(Unjudged { invariant, why });
    }

    fn count(&mut self, kind: LeaseChangeKind) {
        *self.extent.changes.entry(kind).or_default() += 1;
    }

    fn saw(&mut self, at: Timestamp) {
        let (first, last) = self.seen.unwrap_or((at, at));
        self.seen = Some((first.min(at), last.max(at)));
    }

    /// S5: tokens stay in a term and grow from term to term, also over deletion.
    fn token(&mut self, after: &LeaseSnapshot, version: ResourceVersion, at: Timestamp) {
        let (uid, term, holder) = (
            after.uid.clone(),
            after.record.term,
            after.record.holder.clone(),
        );
        if let Some(previous) = &mut self.token {
            let same = (&previous.uid, previous.term, &previous.holder) == (&uid, term, &holder);
            previous.over |= !same;
        }
        let Some(token) = after.record.token.filter(|_| has_token(&after.record)) else {
            return;
        };
        if let Some(previous) = &self.token {
            let legal = if previous.over {
                previous.token < token
            } else {
                previous.token == token
            };
            if !legal && !self.participants.is_foreign(version) {
                let message = format!("token {token} after {}", previous.token);
                self.breach(at, version, BrokenRule::promised(Invariant::S5, message));
            }
        }
        self.token = Some(TokenOfTerm {
            uid,
            term,
            holder,
            token,
            over: false,
        });
    }

    fn term_record(&mut self, kind: LeaseChangeKind, after: &LeaseSnapshot, at: Timestamp) {
        let moment = SeenRevision {
            version: after.version,
            at,
            written: after.record.renew_time,
        };
        let record = &after.record;
        let goes_on = self.memory.last.as_ref().is_some_and(|last| {
            let before = &last.snapshot;
            before.uid == after.uid
                && before.record.term == record.term
                && before.record.holder == record.holder
        });
        if !goes_on {
            self.term_records.end(
                match kind {
                    LeaseChangeKind::HandOff => RecordedEnd::HandedOver,
                    LeaseChangeKind::Release => RecordedEnd::Released,
                    LeaseChangeKind::Rejoin => RecordedEnd::Died,
                    LeaseChangeKind::GrantExpired
                    | LeaseChangeKind::AcquireExpired
                    | LeaseChangeKind::Resume
                    | LeaseChangeKind::Displace
                    | LeaseChangeKind::Reserve
                    | LeaseChangeKind::Take => RecordedEnd::Replaced,
                    LeaseChangeKind::Found => RecordedEnd::Unseen,
                    _ => RecordedEnd::Overwritten,
                },
                moment,
            );
        }
        let implementation = record
            .holder
            .as_ref()
            .and_then(|holder| self.implementation(holder));
        // A stranger's write over a term is no sign of its holder.
        if !(goes_on && matches!(kind, LeaseChangeKind::Foreign | LeaseChangeKind::Illegal)) {
            let own = match kind {
                LeaseChangeKind::Found => !is_unaccepted_grant(record),
                LeaseChangeKind::Create
                | LeaseChangeKind::AcquireUnheld
                | LeaseChangeKind::AcquireExpired
                | LeaseChangeKind::Resume
                | LeaseChangeKind::Rejoin
                | LeaseChangeKind::Displace
                | LeaseChangeKind::OfClientGo
                | LeaseChangeKind::Take => true,
                // Only its holder writes a token, in time or not.
                LeaseChangeKind::Illegal => has_token(record),
                _ => false,
            };
            self.term_records.held(after, moment, implementation, own);
        }
    }
}
