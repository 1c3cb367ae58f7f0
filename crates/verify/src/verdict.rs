//! What a history proves, and what it refutes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};

/// The verdict on a history, lease by lease.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The cases, one for each lease that was judged.
    pub cases: BTreeMap<LeaseKey, Case>,
}

/// The verdict on one lease.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What was looked at.
    pub extent: Extent,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was broken.
    pub invariant: Invariant,
    /// In which lease.
    pub lease: LeaseKey,
    /// Which promise it would have been.
    pub level: Level,
    /// When.
    pub at: Timestamp,
    /// The revision that was there before, where it is about a change.
    pub before: Option<ResourceVersion>,
    /// The revision that broke it, where one did.
    pub after: Option<ResourceVersion>,
    /// One sentence.
    pub sentence: String,
}

/// The safety invariants of ARCHITECTURE.md that a history can refute.
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
    /// Tokens grow.
    S5,
    /// Nobody clears a term that is not its own.
    S6,
    /// Who is granted the lease has answered.
    S7,
    /// One identity is one life.
    S9,
    /// The duration of a term does not shrink.
    S10,
    /// A live holder without a candidate is never touched.
    S11,
}

/// Which of the two levels of guarantee a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What Elector promises.
    Promised,
    /// What happens where a holder is client-go's, which leads on after its lease is lost. Nothing is promised there.
    AsClientGo,
}

/// How much was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Revisions of the Lease.
    pub revisions: usize,
    /// Terms that were accepted.
    pub terms: usize,
    /// Who led, each once.
    pub leaders: usize,
    /// From the first entry about the lease to the last.
    pub covered: Duration,
}

// === impl Verdict ===

impl Verdict {
    /// Whether nothing that is promised is broken.
    pub fn holds(&self) -> bool {
        self.faults().next().is_none()
    }

    /// What is promised and broken.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings()
            .filter(|finding| finding.level == Level::Promised)
    }

    /// All that is wrong, also where nothing is promised.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.cases.values().flat_map(|case| &case.findings)
    }
}

impl fmt::Display for Verdict {
    /// A line for each thing that is promised and broken.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        Ok(())
    }
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: lease {}", self.invariant, self.lease)?;
        if let Some(version) = self.after {
            write!(f, " @{version}")?;
        }
        write!(f, ": {}", self.sentence)
    }
}

// === impl Invariant ===

impl Invariant {
    /// Its name in ARCHITECTURE.md.
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
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
