//! The verdict on one lease in the words of the report. Its JSON form is stable.

use elector_api::Rfc3339;
use elector_protocol::{LeaseKey, Timestamp};
use elector_verify::{
    Breach, ChangeKind, GuaranteeLevel, Implementation, Invariant, LeaseVerdict, SeenRevision,
    TermEnd, TermRecord,
};
use serde::Serialize;

/// One lease. Fields may be added, none is renamed or removed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    lease: String,
    /// Of the lease as a whole.
    verdict: &'static str,
    /// What the history says about "at most one leader at a time".
    one_leader: &'static str,
    revisions: usize,
    terms_led: usize,
    leaders: usize,
    seconds: f64,
    longest_gap_seconds: f64,
    traced: bool,
    moves: Vec<Move>,
    pub(super) invariants: Vec<Line>,
    #[serde(rename = "findings")]
    breaches: Vec<Found>,
    excused: Vec<Excuse>,
    pub(super) terms: Vec<Term>,
}

/// What the history says about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Proven,
    Refuted,
    Unproven,
}

/// How often a kind of change was seen.
#[derive(Debug, Serialize)]
struct Move {
    kind: &'static str,
    count: usize,
}

/// One invariant.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) id: &'static str,
    pub(super) says: &'static str,
    pub(super) verdict: Answer,
    /// What is missing, where not all could be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) missing: Vec<String>,
}

/// What the history says about an invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Held,
    Refuted,
    ExemptBreach,
    NotJudged,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    invariant: &'static str,
    /// Whether Elector promises it, or whether it is client-go's affair.
    promised: bool,
    time: String,
    before: Option<u64>,
    after: Option<u64>,
    #[serde(rename = "sentence")]
    message: String,
}

#[derive(Debug, Serialize)]
struct Excuse {
    by: u64,
    #[serde(flatten)]
    found: Found,
}

/// One term.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Term {
    pub(super) term: i32,
    pub(super) token: Option<u64>,
    pub(super) leader: String,
    #[serde(rename = "maker")]
    implementation: Option<&'static str>,
    granted: Instance,
    pub(super) accepted: Option<Instance>,
    pub(super) last_sign: Option<Instance>,
    pub(super) renewals: usize,
    pub(super) end: &'static str,
}

/// A revision and its time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance {
    resource_version: u64,
    pub(super) time: String,
}

// === impl Report ===

impl Report {
    /// The verdict on this lease.
    pub(super) fn new(lease: &LeaseKey, lease_verdict: &LeaseVerdict) -> Self {
        let extent = &lease_verdict.extent;
        let one_leader = one_leader(lease_verdict);
        let verdict = match (lease_verdict.breaches.is_empty(), one_leader) {
            (false, _) => Standing::Refuted,
            (true, Answer::Held | Answer::ExemptBreach) => Standing::Proven,
            (true, Answer::Refuted | Answer::NotJudged) => Standing::Unproven,
        };
        let moves = extent.changes.iter().map(|(act, count)| Move {
            kind: kind(*act),
            count: *count,
        });
        let excused = lease_verdict.excused.iter().map(|excused| Excuse {
            by: excused.by.0,
            found: Found::new(&excused.breach),
        });
        Self {
            namespace: lease.namespace.to_string(),
            lease: lease.name.to_string(),
            verdict: verdict.word(),
            one_leader: one_leader.word(),
            revisions: extent.revisions,
            terms_led: extent.terms,
            leaders: extent.leaders,
            seconds: extent.covered.as_secs_f64(),
            longest_gap_seconds: extent.longest_gap.as_secs_f64(),
            traced: extent.traced,
            moves: moves.collect(),
            invariants: Invariant::ALL
                .map(|invariant| Line::new(invariant, lease_verdict))
                .into(),
            breaches: lease_verdict.breaches.iter().map(Found::new).collect(),
            excused: excused.collect(),
            terms: lease_verdict.terms.iter().map(Term::new).collect(),
        }
    }

    /// What the history says about this lease.
    pub(super) fn standing(&self) -> Standing {
        let words = [Standing::Proven, Standing::Refuted, Standing::Unproven];
        let found = words
            .into_iter()
            .find(|standing| standing.word() == self.verdict);
        found.unwrap_or(Standing::Unproven)
    }
}

/// What a verdict says about the one sentence that matters most.
pub(super) fn one_leader(lease_verdict: &LeaseVerdict) -> Answer {
    let one = |breach: &Breach| matches!(breach.invariant, Invariant::S1 | Invariant::S9);
    if lease_verdict.breaches.iter().any(one) {
        return Answer::Refuted;
    }
    if lease_verdict
        .unjudged
        .iter()
        .any(|unjudged| unjudged.invariant == Invariant::S1)
    {
        return Answer::NotJudged;
    }
    if lease_verdict.excused.is_empty() {
        Answer::Held
    } else {
        Answer::ExemptBreach
    }
}

// === impl Standing ===

impl Standing {
    const fn word(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Refuted => "refuted",
            Self::Unproven => "unproven",
        }
    }
}

// === impl Answer ===

impl Answer {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Refuted => "refuted",
            Self::ExemptBreach => "excused",
            Self::NotJudged => "not-judged",
        }
    }
}

// === impl Line ===

impl Line {
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
            Answer::Refuted
        } else if excused {
            Answer::ExemptBreach
        } else if missing.is_empty() || invariant == Invariant::S3 {
            // Of the moves, only how the first revision came to be may be missing.
            Answer::Held
        } else {
            Answer::NotJudged
        };
        Self {
            id: invariant.id(),
            says: invariant.says(),
            verdict,
            missing,
        }
    }
}

// === impl Found ===

impl Found {
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

// === impl Term ===

impl Term {
    fn new(term_record: &TermRecord) -> Self {
        let implementation =
            term_record
                .implementation
                .map(|implementation| match implementation {
                    Implementation::Elector => "elector",
                    Implementation::ClientGo => "client-go",
                });
        let end = match (&term_record.end, term_record.accepted) {
            (TermEnd::Lasts, _) => "leads on",
            (_, None) => "never accepted",
            (TermEnd::HandedOver, _) => "handed over",
            (TermEnd::Released, _) => "released",
            (TermEnd::Replaced, _) => "expired",
            (TermEnd::Overwritten, _) => "overwritten",
            (TermEnd::Deleted, _) => "lease deleted",
            (TermEnd::Unseen, _) => "not recorded",
        };
        Self {
            term: term_record.term.0,
            token: term_record.token.map(|token| token.0.0),
            leader: term_record.holder.clone(),
            implementation,
            granted: Instance::new(term_record.granted),
            accepted: term_record.accepted.map(Instance::new),
            last_sign: term_record.last_sign().map(Instance::new),
            renewals: term_record.renewals,
            end,
        }
    }
}

// === impl Instance ===

impl Instance {
    fn new(moment: SeenRevision) -> Self {
        Self {
            resource_version: moment.version.0,
            time: time(moment.at),
        }
    }
}

fn time(at: Timestamp) -> String {
    Rfc3339(at).to_string()
}

fn kind(act: ChangeKind) -> &'static str {
    match act {
        ChangeKind::Found => "found",
        ChangeKind::Create => "create",
        ChangeKind::GrantUnheld => "grant-unheld",
        ChangeKind::GrantExpired => "grant-expired",
        ChangeKind::Reserve => "reserve",
        ChangeKind::HandOff => "hand-over",
        ChangeKind::Release => "release",
        ChangeKind::Accept => "accept",
        ChangeKind::Renew => "renew",
        ChangeKind::Signal => "signal",
        ChangeKind::OfClientGo => "client-go",
        ChangeKind::Take => "take",
        ChangeKind::Foreign => "foreign",
        ChangeKind::Illegal => "illegal",
        ChangeKind::Delete => "delete",
    }
}
