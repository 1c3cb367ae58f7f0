//! The history of the Leases and LeaseCandidates: every revision, with the author of the write.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Identity, Instant, LeaseRecord};

use crate::plan::PlannedMode;

/// The role of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An elector of ours, by the rate of its clock.
    Elector { rate: u64 },
    /// A candidate of ours, by its lease, the rate of its clock, and how it comes by its terms.
    Candidate {
        lease: usize,
        rate: u64,
        mode: PlannedMode,
    },
    /// A client that knows nothing of candidates.
    Plain,
    /// An elector as it is built into Kubernetes.
    Builtin,
    /// A person with kubectl.
    Kubectl,
}

/// A client in one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Its name in objects, where it is a candidate.
    pub(crate) identity: Option<Identity>,
    pub(crate) incarnation: u32,
    /// When this incarnation began.
    pub(crate) born: Duration,
}

/// A write of a Lease as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct RequestAttempt {
    pub(crate) author: Author,
    pub(crate) at: Duration,
    /// The author's holder clock at that moment.
    pub(crate) clock: Instant,
    pub(crate) lease: String,
    /// The version that it replaces; `None` for a POST.
    pub(crate) base: Option<u64>,
    pub(crate) record: Option<LeaseRecord>,
    pub(crate) applied: bool,
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
}

/// A revision of a LeaseCandidate, or its deletion.
#[derive(Clone, Debug)]
pub(crate) struct CandidateRevision {
    pub(crate) at: Duration,
    pub(crate) object: LeaseCandidate,
    pub(crate) deleted: bool,
}

/// All revisions of the Leases, and all writes of them.
#[derive(Debug, Default)]
pub(crate) struct LeaseHistory {
    pub(crate) attempts: Vec<RequestAttempt>,
    pub(crate) leases: BTreeMap<String, Vec<LeaseRevision>>,
    pub(crate) candidates: Vec<CandidateRevision>,
    /// Terms that their holders acquired themselves.
    pub(crate) acquired: u64,
    /// For how long S1 exempts after a write that the rules do not bind.
    exemption: Duration,
    exempt: BTreeMap<String, (Duration, String)>,
}

// === impl Author ===

impl Author {
    /// Whether it is bound by the rules.
    pub(crate) const fn is_ours(&self) -> bool {
        matches!(self.role, Role::Elector { .. } | Role::Candidate { .. })
    }
}

// === impl LeaseHistory ===

impl LeaseHistory {
    /// An empty history. A write of a stranger exempts for so long.
    pub(crate) fn new(exemption: Duration) -> Self {
        Self {
            exemption,
            ..Self::default()
        }
    }

    /// The newest revision of a Lease that exists.
    pub(crate) fn current(&self, lease: &str) -> Option<&LeaseRevision> {
        let newest = self.leases.get(lease)?.last()?;
        newest.lease.is_some().then_some(newest)
    }

    /// Records a revision of a Lease, under the author of the matching attempt.
    pub(crate) fn record_lease(&mut self, at: Duration, lease: Lease) {
        let name = lease.key().name.to_string();
        let version = version(lease.metadata.resource_version.as_deref());
        let record = lease.record().ok();
        let before = self.current(&name);
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
            attempt.applied = true;
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
            if let Some(why) = exemption(&attempt.author.role, previous.as_ref(), record.as_ref()) {
                let why = format!("{why} by {}", attempt.author.name);
                self.exempt.insert(name.clone(), (at, why));
            }
        }
        self.leases.entry(name).or_default().push(LeaseRevision {
            at,
            version,
            record,
            lease: Some(lease),
            last: None,
            attempt,
        });
    }

    /// Records the deletion of a Lease.
    pub(crate) fn record_deletion(&mut self, at: Duration, lease: &Lease) {
        let name = lease.key().name.to_string();
        let version = version(lease.metadata.resource_version.as_deref());
        self.leases.entry(name).or_default().push(LeaseRevision {
            at,
            version,
            lease: None,
            last: Some(lease.clone()),
            record: None,
            attempt: None,
        });
    }

    /// Records a revision of a LeaseCandidate.
    pub(crate) fn record_candidate(&mut self, at: Duration, object: LeaseCandidate, deleted: bool) {
        self.candidates.push(CandidateRevision {
            at,
            object,
            deleted,
        });
    }

    /// The write of a stranger that exempts two believers now.
    pub(crate) fn exemption(&self, lease: &str, now: Duration) -> Option<&str> {
        let (at, why) = self.exempt.get(lease)?;
        (now <= *at + self.exemption).then_some(why)
    }

    /// The latest reading of a candidate's clock at which it sent a write that was applied.
    pub(crate) fn proven(&self, name: &str, incarnation: u32) -> Option<Instant> {
        // A born record that it created proves nothing.
        let names = |attempt: &RequestAttempt| {
            let holder = attempt.record.as_ref().and_then(|it| it.holder.as_ref());
            holder == attempt.author.identity.as_ref()
        };
        let mut attempts = self.attempts.iter().rev();
        let applied = attempts.find(|attempt| {
            attempt.applied
                && attempt.author.incarnation == incarnation
                && attempt.author.name == name
                && names(attempt)
        });
        applied.map(|attempt| attempt.clock)
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
        Role::Elector { .. } | Role::Candidate { .. } => None,
        Role::Builtin => Some("a write"),
        Role::Plain | Role::Kubectl => {
            let after = after?;
            let holder = |record: &LeaseRecord| record.holder.clone();
            let shorter = before.and_then(LeaseRecord::duration) > after.duration()
                && after.duration().is_some();
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
                Some("a holder was named")
            } else if shorter {
                Some("a duration was shortened")
            } else {
                None
            }
        }
    }
}

/// Whether what was sent is what the server has now, but for what it drops.
fn matches(sent: &LeaseRecord, kept: &LeaseRecord) -> bool {
    sent.same_record(kept)
        && (sent.acquire_time, sent.token, sent.token_term)
            == (kept.acquire_time, kept.token, kept.token_term)
}

pub(crate) fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
