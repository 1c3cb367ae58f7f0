//! When the next step is due, and why.

use std::fmt;
use std::time::Duration;

use crate::time::Instant;

/// When to step again if nothing is seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The instant of the elector's clock.
    pub at: Instant,
    /// The work due then.
    pub why: WakeReason,
}

/// The time until a [`Wake`]. `Display` is a fragment for the log and for `elector explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeAfter {
    /// Zero where it is due.
    pub after: Duration,
    /// The work due then.
    pub why: WakeReason,
}

/// Why a step is due. `Display` is a fragment that follows "when".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakeReason {
    /// The holder is late, so that its standbys are pinged ([R4](crate::rules#r4), [R15](crate::rules#r15)).
    HolderLate,
    /// The record of the holder expires ([R4](crate::rules#r4)).
    Expiry,
    /// Two thirds of the accept window are over, so that other candidates are pinged ([R5], [R15]).
    ///
    /// [R5]: crate::rules#r5
    /// [R15]: crate::rules#r15
    AcceptLate,
    /// The accept window of a grant ends ([R5](crate::rules#r5)).
    AcceptWindow,
    /// An unheld record is old enough to prove that no former holder leads ([R6](crate::rules#r6)).
    ProofOfAbsence,
    /// A POST may be tried again, because the watch has not brought what it created.
    CreationUnseen,
    /// A pinged candidate has had its time to answer ([R15](crate::rules#r15)).
    AckWindow,
    /// The ack of the candidate that is next is no longer fresh ([R15](crate::rules#r15)).
    AckStale,
    /// The ack of a preferred candidate is no longer fresh ([R7](crate::rules#r7)).
    PreferenceStale,
    /// A preferred candidate that this elector knows nothing good of has had its time ([R16](crate::rules#r16)).
    PreferenceDoubted,
    /// A better candidate that is held back may be preferred ([R23](crate::rules#r23)).
    HeldBack,
    /// An operator's preference is over ([R16](crate::rules#r16)).
    OperatorPreference,
    /// A candidate need not stand down any more ([R16](crate::rules#r16)).
    StandDown,
    /// A freeze ends, so that a better candidate may be preferred ([R16](crate::rules#r16)).
    Frozen,
    /// Pings that no candidate answered are repeated ([R15](crate::rules#r15)).
    RePing,
    /// Candidates that disagree on the strategy are pinged.
    Disagreement,
    /// A candidate that has been quiet for long is pinged.
    QuietCandidate,
    /// A candidate that has been silent for its validity is collected.
    Collect,
}

// === impl Wake ===

impl Wake {
    /// The time until then.
    pub fn after(self, now: Instant) -> WakeAfter {
        WakeAfter {
            after: self.at.since(now),
            why: self.why,
        }
    }

    /// Puts a wake in the place of `earliest`, where it is earlier.
    pub(super) fn note(earliest: &mut Option<Self>, at: Instant, why: WakeReason) {
        if earliest.is_none_or(|earliest| at < earliest.at) {
            *earliest = Some(Self { at, why });
        }
    }
}

// === impl WakeAfter ===

impl fmt::Display for WakeAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { after, why } = self;
        write!(f, "in {:.1}s, when {why}", after.as_secs_f64())
    }
}

// === impl WakeReason ===

impl fmt::Display for WakeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HolderLate => "the holder is late",
            Self::Expiry => "the lease expires",
            Self::AcceptLate => "the accept is late",
            Self::AcceptWindow => "the accept window ends",
            Self::ProofOfAbsence => "no former holder can still lead",
            Self::CreationUnseen => "the creation is tried again",
            Self::AckWindow => "an ack window ends",
            Self::AckStale => "the ack of the next leader is not fresh any more",
            Self::PreferenceStale => "the ack of the preferred candidate is not fresh any more",
            Self::PreferenceDoubted => "the time to confirm a preference ends",
            Self::HeldBack => "a candidate that is held back may be preferred",
            Self::OperatorPreference => "the operator's preference ends",
            Self::StandDown => "a candidate may lead again",
            Self::Frozen => "the freeze ends",
            Self::RePing => "unanswered pings are repeated",
            Self::Disagreement => "candidates that disagree are pinged",
            Self::QuietCandidate => "a quiet candidate is pinged",
            Self::Collect => "a silent candidate is collected",
        })
    }
}
