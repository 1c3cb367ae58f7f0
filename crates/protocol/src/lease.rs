//! The Lease as the protocol sees it, and the moves that it allows.

use std::time::Duration;

use crate::names::{Identity, LifeId, ResourceVersion, Term, Token, Uid};
use crate::operator_overrides::OperatorOverrides;
use crate::renumber::renumber;
use crate::strategy::name::StrategyName;
use crate::time::Timestamp;

/// The fields of a Lease that leader election reads and writes. Everything else of the object is carried over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeaseRecord {
    /// `spec.holderIdentity`; absent and empty are both `None`, and `None` is written as an empty string.
    pub holder: Option<Identity>,
    /// `spec.leaseDurationSeconds`, in seconds as the wire has it.
    pub duration_seconds: Option<i32>,
    /// `spec.acquireTime`: when the grant was written.
    pub acquire_time: Option<Timestamp>,
    /// `spec.renewTime`: changes with every write of the holder. Never compared with a clock ([R4](crate::rules#r4)).
    pub renew_time: Option<Timestamp>,
    /// `spec.leaseTransitions`, zero where absent.
    pub term: Term,
    /// The strategy that the Lease is elected under, from the field or the annotation.
    pub strategy: Option<StrategyName>,
    /// The candidate that the holder is asked to make room for, from the field or the annotation.
    pub preferred_holder: Option<Identity>,
    /// Annotation `elector.dev/token`, written by the accept of a marked candidate ([R14](crate::rules#r14)).
    pub token: Option<Token>,
    /// Annotation `elector.dev/token-term`: the term that the token belongs to.
    pub token_term: Option<Term>,
    /// Annotation `elector.dev/life`: the life of a process that began the term and keeps an instance lock
    /// ([R21](crate::rules#r21)).
    pub life: Option<LifeId>,
}

/// One revision of a Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseSnapshot {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
    /// The record of the revision.
    pub record: LeaseRecord,
    /// The operators' word on it.
    pub overrides: OperatorOverrides,
}

/// The holder of a record, or how far an unheld one can be trusted to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupancy<'a> {
    /// It names a holder, perhaps past its expiry.
    Held(&'a Identity),
    /// Its holder stopped and let go: free at once.
    Released,
    /// Unheld, but nothing proves that no process leads: a stranger may have blanked or re-created it ([R6]).
    ///
    /// [R6]: crate::rules#r6
    Unproven,
}

/// A new revision of a Lease, to be written by compare-and-swap on the revision it was judged from ([R2]).
///
/// [R2]: crate::rules#r2
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseWrite {
    /// The uid of the revision that was judged.
    pub uid: Uid,
    /// The resourceVersion of the revision that was judged.
    pub version: ResourceVersion,
    /// The record to write in its place.
    pub record: LeaseRecord,
}

// === impl LeaseRecord ===

impl LeaseRecord {
    /// The record that a POST creates, the only thing a POST may create ([R2]): unheld, no duration, no times.
    ///
    /// [R2]: crate::rules#r2
    pub fn born(strategy: Option<StrategyName>) -> Self {
        Self {
            strategy,
            ..Self::default()
        }
    }

    /// The duration of the record, `None` where it is missing or not positive.
    pub fn duration(&self) -> Option<Duration> {
        let seconds = u64::try_from(self.duration_seconds?).ok()?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// The holder of this record, or what is known of its absence.
    pub fn occupancy(&self) -> Occupancy<'_> {
        if let Some(holder) = &self.holder {
            return Occupancy::Held(holder);
        }
        let released = self.duration_seconds.is_some_and(|seconds| seconds <= 1);
        if released && self.token.is_none() {
            return Occupancy::Released;
        }
        Occupancy::Unproven
    }

    /// True if this is a grant that its electee has not accepted yet.
    ///
    /// A grant writes both times alike and removes the token; the accept changes the renewal time, and a marked
    /// candidate's accept also writes the token of the term.
    pub fn is_unaccepted_grant(&self) -> bool {
        self.holder.is_some()
            && self.acquire_time.is_some()
            && self.acquire_time == self.renew_time
            && !self.has_token()
    }

    /// True if a marked candidate accepted this very term ([R8](crate::rules#r8), [R14](crate::rules#r14)).
    ///
    /// The elector that is built into kube-apiserver grants without counting the term and leaves annotations alone, so
    /// the token of the holder before stays there and names the term. But it clears acquireTime, which an accept of
    /// ours always leaves set: a token without one is that of an earlier holder.
    pub fn has_token(&self) -> bool {
        self.token.is_some() && self.token_term == Some(self.term) && self.acquire_time.is_some()
    }

    /// True if `other` is the same record for a stop-watch: same holder, term, renewal time and duration ([R4]).
    ///
    /// A preference, a label or a strategy does not prolong a dead lease.
    ///
    /// [R4]: crate::rules#r4
    pub fn same_record(&self, other: &Self) -> bool {
        self.holder == other.holder
            && self.term == other.term
            && self.renew_time == other.renew_time
            && self.duration_seconds == other.duration_seconds
            // An unheld record is judged by these too, so a change starts its stop-watch anew.
            && (self.holder.is_some() || (self.token, self.acquire_time) == (other.token, other.acquire_time))
    }

    /// The grant of this Lease to `electee` ([R5]): a new term, a short duration, no preference, no token.
    ///
    /// [R5]: crate::rules#r5
    #[must_use]
    pub fn granted(&self, electee: Identity, accept_window: Duration, now: Timestamp) -> Self {
        let at = now.differing_from(self.renew_time);
        Self {
            holder: Some(electee),
            duration_seconds: Some(wire_seconds(accept_window)),
            acquire_time: Some(at),
            renew_time: Some(at),
            term: self.term.next(),
            strategy: self.strategy.clone(),
            preferred_holder: None,
            token: None,
            token_term: None,
            life: None,
        }
    }

    /// The acquisition of this Lease by a process itself ([R18]): a grant and its accept in one, so a new term, its own
    /// duration and its token, no preference.
    ///
    /// [R18]: crate::rules#r18
    #[must_use]
    pub fn acquired(&self, by: Identity, duration: Duration, token: Token, now: Timestamp) -> Self {
        let term = self.term.next();
        Self {
            token: Some(token),
            token_term: Some(term),
            ..self.granted(by, duration, now)
        }
    }

    /// This record with another preference and strategy; all that an elector may change of a live lease ([R7]).
    ///
    /// [R7]: crate::rules#r7
    #[must_use]
    pub fn preferring(&self, preferred: Option<Identity>, strategy: Option<StrategyName>) -> Self {
        Self {
            preferred_holder: preferred,
            strategy: strategy.or_else(|| self.strategy.clone()),
            ..self.clone()
        }
    }

    /// The holder's own release ([R12]): unheld, one second, both times now, no token; the strategy stays.
    ///
    /// [R12]: crate::rules#r12
    #[must_use]
    pub fn released(&self, now: Timestamp) -> Self {
        let at = now.differing_from(self.renew_time);
        Self {
            holder: None,
            duration_seconds: Some(1),
            acquire_time: Some(at),
            renew_time: Some(at),
            term: self.term,
            strategy: self.strategy.clone(),
            preferred_holder: None,
            token: None,
            token_term: None,
            life: None,
        }
    }
}

renumber!(LeaseRecord { acquire_time => lease_time, renew_time => lease_time, term, token, token_term });

// === impl LeaseSnapshot ===

impl LeaseSnapshot {
    /// A write that replaces this very revision.
    #[must_use]
    pub fn replace(&self, record: LeaseRecord) -> LeaseWrite {
        LeaseWrite {
            uid: self.uid.clone(),
            version: self.version,
            record,
        }
    }
}

renumber!(LeaseSnapshot { version, record });

// === impl LeaseWrite ===

renumber!(LeaseWrite { version, record });

/// Whole seconds, rounded up: the wire has no smaller unit, and a longer lease errs to the safe side.
pub(crate) fn wire_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}
