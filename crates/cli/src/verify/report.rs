//! The verdict on one lease in the words of the report. Its JSON form is stable.

use elector_api::Rfc3339;
use elector_protocol::LeaseKey;
use elector_verify::{
    Breach, GuaranteeLevel, Implementation, Invariant, LeaseChangeKind, LeaseVerdict, RecordedEnd,
    SeenRevision, TermRecord,
};
use serde::Serialize;

/// One lease. Fields may be added, none is renamed or removed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseReport {
    namespace: String,
    lease: String,
    /// Of the lease as a whole.
    pub(super) verdict: ProofStatus,
    /// The history's answer on "at most one leader at a time".
    one_leader: &'static str,
    revisions: usize,
    terms_led: usize,
    leaders: usize,
    seconds: f64,
    longest_gap_seconds: f64,
    traced: bool,
    /// The group that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    moves: Vec<MoveCount>,
    pub(super) invariants: Vec<InvariantLine>,
    #[serde(rename = "findings")]
    breaches: Vec<BreachEntry>,
    excused: Vec<ExemptBreachEntry>,
    pub(super) terms: Vec<TermRow>,
}

/// The history's answer on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProofStatus {
    Proven,
    Refuted,
    Unproven,
}

/// The number of changes of a kind.
#[derive(Debug, Serialize)]
struct MoveCount {
    kind: &'static str,
    count: usize,
}

/// One invariant.
#[derive(Debug, Serialize)]
pub(super) struct InvariantLine {
    pub(super) id: &'static str,
    pub(super) says: &'static str,
    pub(super) verdict: InvariantStatus,
    /// The missing parts, where not all could be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
}

/// The history's answer on an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InvariantStatus {
    Held,
    Refuted,
    ExemptBreach,
    NotJudged,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BreachEntry {
    invariant: &'static str,
    /// True where Elector promises it; false where it is client-go's affair.
    promised: bool,
    time: String,
    before: Option<u64>,
    after: Option<u64>,
    #[serde(rename = "sentence")]
    message: String,
}

#[derive(Debug, Serialize)]
struct ExemptBreachEntry {
    by: u64,
    #[serde(flatten)]
    found: BreachEntry,
}

/// One term.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TermRow {
    pub(super) term: i32,
    pub(super) token: Option<u64>,
    pub(super) leader: String,
    #[serde(rename = "maker")]
    implementation: Option<&'static str>,
    granted: RevisionTime,
    pub(super) accepted: Option<RevisionTime>,
    pub(super) last_sign: Option<RevisionTime>,
    pub(super) renewals: usize,
    pub(super) end: &'static str,
}

/// A revision and its time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevisionTime {
    resource_version: u64,
    pub(super) time: String,
}

// === impl LeaseReport ===

impl LeaseReport {
    /// The verdict on this lease.
    pub(super) fn new(lease: &LeaseKey, lease_verdict: &LeaseVerdict) -> Self {
        let extent = &lease_verdict.extent;
        let one_leader = one_leader(lease_verdict);
        let verdict = match (lease_verdict.breaches.is_empty(), one_leader) {
            (false, _) => ProofStatus::Refuted,
            (true, InvariantStatus::Held | InvariantStatus::ExemptBreach) => ProofStatus::Proven,
            (true, InvariantStatus::Refuted | InvariantStatus::NotJudged) => ProofStatus::Unproven,
        };
        let moves = extent.changes.iter().map(|(act, count)| MoveCount {
            kind: kind(*act),
            count: *count,
        });
        let excused = lease_verdict
            .excused
            .iter()
            .map(|excused| ExemptBreachEntry {
                by: excused.by.0,
                found: BreachEntry::new(&excused.breach),
            });
        Self {
            namespace: lease.namespace.to_string(),
            lease: lease.name.to_string(),
            verdict,
            one_leader: one_leader.word(),
            revisions: extent.revisions,
            terms_led: extent.terms,
            leaders: extent.leaders,
            seconds: extent.covered.as_secs_f64(),
            longest_gap_seconds: extent.longest_gap.as_secs_f64(),
            traced: extent.traced,
            group: extent.group.clone(),
            moves: moves.collect(),
            invariants: Invariant::ALL
                .into_iter()
                .chain(extent.group.is_some().then_some(Invariant::L9))
                .map(|invariant| InvariantLine::new(invariant, lease_verdict))
                .collect(),
            breaches: lease_verdict
                .breaches
                .iter()
                .map(BreachEntry::new)
                .collect(),
            excused: excused.collect(),
            terms: lease_verdict.terms.iter().map(TermRow::new).collect(),
        }
    }
}

/// A verdict's answer on the one sentence that matters most.
pub(super) fn one_leader(lease_verdict: &LeaseVerdict) -> InvariantStatus {
    let one = |breach: &Breach| matches!(breach.invariant, Invariant::S1 | Invariant::S9);
    if lease_verdict.breaches.iter().any(one) {
        return InvariantStatus::Refuted;
    }
    if lease_verdict
        .unjudged
        .iter()
        .any(|unjudged| unjudged.invariant == Invariant::S1)
    {
        return InvariantStatus::NotJudged;
    }
    if lease_verdict.excused.is_empty() {
        InvariantStatus::Held
    } else {
        InvariantStatus::ExemptBreach
    }
}

// === impl InvariantStatus ===

impl InvariantStatus {
    const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Refuted => "refuted",
            Self::ExemptBreach => "excused",
            Self::NotJudged => "not-judged",
        }
    }
}

// === impl InvariantLine ===

impl InvariantLine {
    fn new(invariant: Invariant, lease_verdict: &LeaseVerdict) -> Self {
        let unjudged = lease_verdict
            .unjudged
            .iter()
            .filter(|unjudged| unjudged.invariant == invariant);
        let missing: Vec<String> = unjudged.map(|unjudged| unjudged.why.clone()).collect();
        let broken = lease_verdict
            .breaches
            .iter()
            .any(|breach| breach.invariant == invariant);
        let excused = lease_verdict
            .excused
            .iter()
            .any(|excused| excused.breach.invariant == invariant);
        let verdict = if broken {
            InvariantStatus::Refuted
        } else if excused {
            InvariantStatus::ExemptBreach
        } else if missing.is_empty() || invariant == Invariant::S3 {
            // Of the moves, only how the first revision came to be may be missing.
            InvariantStatus::Held
        } else {
            InvariantStatus::NotJudged
        };
        Self {
            id: invariant.id(),
            says: invariant.says(),
            verdict,
            missing,
        }
    }
}

// === impl BreachEntry ===

impl BreachEntry {
    fn new(breach: &Breach) -> Self {
        Self {
            invariant: breach.invariant.id(),
            promised: breach.level == GuaranteeLevel::Promised,
            time: Rfc3339(breach.at).to_string(),
            before: breach.before.map(|version| version.0),
            after: breach.after.map(|version| version.0),
            message: breach.message.clone(),
        }
    }
}

// === impl TermRow ===

impl TermRow {
    fn new(term_record: &TermRecord) -> Self {
        let implementation =
            term_record
                .implementation
                .map(|implementation| match implementation {
                    Implementation::Elector => "elector",
                    Implementation::ClientGo => "client-go",
                });
        let end = match (&term_record.end, term_record.accepted) {
            (RecordedEnd::Lasts, _) => "leads on",
            (_, None) => "never accepted",
            (RecordedEnd::HandedOver, _) => "handed over",
            (RecordedEnd::Released, _) => "released",
            (RecordedEnd::Replaced, _) => "expired",
            (RecordedEnd::Died, _) => "died",
            (RecordedEnd::Overwritten, _) => "overwritten",
            (RecordedEnd::Deleted, _) => "lease deleted",
            (RecordedEnd::Unseen, _) => "not recorded",
        };
        Self {
            term: term_record.term.0,
            token: term_record.token.map(|token| token.0.0),
            leader: term_record.holder.clone(),
            implementation,
            granted: RevisionTime::new(term_record.granted),
            accepted: term_record.accepted.map(RevisionTime::new),
            last_sign: term_record.last_sign().map(RevisionTime::new),
            renewals: term_record.renewals,
            end,
        }
    }
}

// === impl RevisionTime ===

impl RevisionTime {
    fn new(moment: SeenRevision) -> Self {
        Self {
            resource_version: moment.version.0,
            time: Rfc3339(moment.at).to_string(),
        }
    }
}

fn kind(act: LeaseChangeKind) -> &'static str {
    match act {
        LeaseChangeKind::Found => "found",
        LeaseChangeKind::Create => "create",
        LeaseChangeKind::GrantUnheld => "grant-unheld",
        LeaseChangeKind::GrantExpired => "grant-expired",
        LeaseChangeKind::AcquireUnheld => "acquire-unheld",
        LeaseChangeKind::AcquireExpired => "acquire-expired",
        LeaseChangeKind::Resume => "resume",
        LeaseChangeKind::Rejoin => "rejoin",
        LeaseChangeKind::Displace => "displace",
        LeaseChangeKind::Reserve => "reserve",
        LeaseChangeKind::HandOff => "hand-over",
        LeaseChangeKind::Release => "release",
        LeaseChangeKind::Accept => "accept",
        LeaseChangeKind::Renew => "renew",
        LeaseChangeKind::Signal => "signal",
        LeaseChangeKind::OfClientGo => "client-go",
        LeaseChangeKind::Take => "take",
        LeaseChangeKind::Foreign => "foreign",
        LeaseChangeKind::Illegal => "illegal",
        LeaseChangeKind::Delete => "delete",
    }
}
