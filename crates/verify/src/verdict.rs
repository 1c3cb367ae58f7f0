//! Proof and refutation by a history.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};

use crate::term_record::TermRecord;

/// The verdict on a history, lease by lease.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Of each lease that was checked.
    pub leases: BTreeMap<LeaseKey, LeaseVerdict>,
}

/// The verdict on one lease.
#[derive(Clone, Debug, Default)]
pub struct LeaseVerdict {
    /// The breaches, in the order of time.
    pub breaches: Vec<Breach>,
    /// The breaches that a stranger's write before them excuses (S1).
    pub excused: Vec<ExemptBreach>,
    /// The invariants left unjudged.
    pub unjudged: Vec<Unjudged>,
    /// The terms, in the order of time.
    pub terms: Vec<TermRecord>,
    /// The extent of the check.
    pub extent: Extent,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The invariant that was broken.
    pub invariant: Invariant,
    /// In which lease.
    pub lease: LeaseKey,
    /// Which promise it would have been.
    pub level: GuaranteeLevel,
    /// When.
    pub at: Timestamp,
    /// The revision that was there before, where it is about a change.
    pub before: Option<ResourceVersion>,
    /// The revision that broke it, where one did.
    pub after: Option<ResourceVersion>,
    /// The breach, in words.
    pub message: String,
}

/// An overlap that the one exemption from S1 covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExemptBreach {
    /// The excused breach.
    pub breach: Breach,
    /// The write that exempts it.
    pub by: ResourceVersion,
}

/// An invariant about which a history says nothing, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unjudged {
    /// Which.
    pub invariant: Invariant,
    /// The missing part, one fragment.
    pub why: String,
}

/// The invariants of docs/protocol.md that a history can refute, and the budget of R23.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// At most one process believes at a time.
    S1,
    /// Belief lies between the accept and the last renewal + H.
    S2,
    /// The holder changes only by the moves of R3.
    S3,
    /// A live term is its holder's alone.
    S4,
    /// Tokens grow, and so do terms.
    S5,
    /// A term is cleared and overwritten by its own holder only.
    S6,
    /// A candidate that is granted the lease has answered.
    S7,
    /// One identity is one life.
    S9,
    /// The duration of a term does not shrink.
    S10,
    /// A live holder without a candidate is never touched.
    S11,
    /// A lease of a group is moved for balance only where that is needed. It is none of [`Self::ALL`], which are about every
    /// lease.
    L9,
    /// Holders are asked to make room within a budget, which only a recorder that knows the writers can tell. It is none
    /// of [`Self::ALL`].
    R23,
}

/// Which of the two levels of guarantee a breach is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuaranteeLevel {
    /// A promise of Elector.
    Promised,
    /// The behaviour of client-go's holders, which lead on after their lease is lost. Nothing is promised there.
    AsClientGo,
}

/// The extent of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Revisions of the Lease.
    pub revisions: usize,
    /// Terms that were accepted.
    pub terms: usize,
    /// The leaders, each once.
    pub leaders: usize,
    /// The number of changes of each kind.
    pub changes: BTreeMap<LeaseChangeKind, usize>,
    /// The longest time from the last sign of a leader to the accept of the next.
    pub longest_gap: Duration,
    /// When the first entry about the lease is; `None` where there is none.
    pub from: Option<Timestamp>,
    /// From the first entry about the lease to the last.
    pub covered: Duration,
    /// True where any work was traced, so that belief is not only bounded by the Lease.
    pub traced: bool,
    /// The group that the lease is a part of, by its label.
    pub group: Option<String>,
}

/// A kind of change of a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseChangeKind {
    /// It was there when the recording began.
    Found,
    /// It was created.
    Create,
    /// An unheld record was granted.
    GrantUnheld,
    /// An expired record was granted.
    GrantExpired,
    /// A process began a term on an unheld record by itself (R18).
    AcquireUnheld,
    /// A process began a term on an expired record by itself (R18).
    AcquireExpired,
    /// A holder whose term had lapsed began its next one on its own unchanged record (R20).
    Resume,
    /// A process began the next term of an earlier life of its instance, which was dead (R21).
    Rejoin,
    /// An elector acquired a lock of electors whose last holder may still count on it, which does no harm (R17).
    Displace,
    /// A placeholder took the place of a holder that cannot be asked to yield.
    Reserve,
    /// The holder wrote its successor.
    HandOff,
    /// The holder let go.
    Release,
    /// The electee accepted.
    Accept,
    /// The holder renewed.
    Renew,
    /// Preference or strategy changed, and nothing else.
    Signal,
    /// A holder that is client-go's wrote its own term.
    OfClientGo,
    /// A plain client took a record by itself.
    Take,
    /// A stranger wrote.
    Foreign,
    /// A change that no rule allows.
    Illegal,
    /// It was deleted.
    Delete,
}

// === impl Verdict ===

impl Verdict {
    /// True where no promise is broken.
    pub fn holds(&self) -> bool {
        self.promised_breaches().next().is_none()
    }

    /// The breaches of what is promised.
    pub fn promised_breaches(&self) -> impl Iterator<Item = &Breach> {
        self.breaches()
            .filter(|breach| breach.level == GuaranteeLevel::Promised)
    }

    /// All breaches, also where nothing is promised.
    pub fn breaches(&self) -> impl Iterator<Item = &Breach> {
        self.leases
            .values()
            .flat_map(|lease_verdict| &lease_verdict.breaches)
    }
}

impl fmt::Display for Verdict {
    /// A line for each thing that is promised and broken.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, breach) in self.promised_breaches().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            breach.fmt(f)?;
        }
        Ok(())
    }
}

// === impl Breach ===

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: lease {}", self.invariant, self.lease)?;
        if let Some(version) = self.after {
            write!(f, " @{version}")?;
        }
        write!(f, ": {}", self.message)
    }
}

// === impl Invariant ===

impl Invariant {
    /// Those that any recording of any lease can refute.
    pub const ALL: [Self; 10] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S9,
        Self::S10,
        Self::S11,
    ];

    /// Its name in docs/protocol.md.
    pub const fn id(self) -> &'static str {
        match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
            Self::S6 => "S6",
            Self::S7 => "S7",
            Self::S9 => "S9",
            Self::S10 => "S10",
            Self::S11 => "S11",
            Self::L9 => "L9",
            Self::R23 => "R23",
        }
    }

    /// Its meaning, in a few words.
    pub const fn says(self) -> &'static str {
        match self {
            Self::S1 => "at most one leader at a time",
            Self::S2 => "no process leads before its accept or past its limit",
            Self::S3 => "the holder changes by legal moves only",
            Self::S4 => "a live term is its holder's alone",
            Self::S5 => "terms and tokens grow",
            Self::S6 => "no writer clears the term of another",
            Self::S7 => "only a candidate that answered is granted the lease",
            Self::S9 => "one identity is one life",
            Self::S10 => "durations never shrink within a term",
            Self::S11 => "holders without a candidate are left alone",
            Self::L9 => "no lease of a group is moved for balance needlessly",
            Self::R23 => "holders are asked to make room within the budget",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
