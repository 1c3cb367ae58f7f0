//! Which changes of a Lease the rules allow, judged from the outside (S3–S6).
//!
//! A history of revisions is enough for this; it needs no memory of the pings. The tests hold every write of ours
//! against it.

use crate::lease::{LeaseRecord, Occupancy};
use crate::names::Identity;

/// The writer of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor<'a> {
    /// An elector.
    Elector,
    /// A candidate of ours, under this identity.
    Candidate(&'a Identity),
}

/// A change that the rules allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// An unheld record was granted ([R3](crate::rules#r3) a).
    GrantUnheld,
    /// A held record was granted, which its expiry alone permits ([R3](crate::rules#r3) b, [R4](crate::rules#r4)).
    GrantExpired,
    /// The holder wrote its successor ([R3](crate::rules#r3) c, [R12](crate::rules#r12)).
    HandOff,
    /// The holder let go ([R3](crate::rules#r3) c, [R12](crate::rules#r12)).
    Release,
    /// A candidate took an unheld record itself ([R18](crate::rules#r18)).
    AcquireUnheld,
    /// A candidate took a held record itself, which its expiry alone permits ([R18](crate::rules#r18)).
    AcquireExpired,
    /// The electee accepted ([R5](crate::rules#r5), [R8](crate::rules#r8)).
    Accept,
    /// The holder renewed ([R11](crate::rules#r11)).
    Renew,
    /// The preference or the strategy changed and nothing else ([R7](crate::rules#r7)).
    Signal,
}

/// A change that no rule allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A grant that is not one of [R5](crate::rules#r5): term, times, duration, preference or token.
    #[error(
        "a grant must start the next term with equal times, a duration and neither preference nor token (R5)"
    )]
    MalformedGrant,
    /// An elector changed more than the signal of a live term ([R7](crate::rules#r7)).
    #[error("an elector changed the record of a term (R7)")]
    TouchedTerm,
    /// An acquisition without token, or otherwise not one of [R18](crate::rules#r18).
    #[error(
        "an acquisition must start the next term of its author with equal times, a duration, a token and no preference \
         (R18)"
    )]
    MalformedAcquisition,
    /// A holder wrote a record that does not name it (S6).
    #[error("a candidate wrote over a record that is not its own (R8, R12)")]
    NotItsOwn,
    /// A renewal changed the duration or did not change the renewal time ([R11](crate::rules#r11)).
    #[error("a renewal must keep the duration of its term and change renewTime (R11)")]
    MalformedRenewal,
    /// An accept without token, or of a term that already has one ([R8](crate::rules#r8), [R14](crate::rules#r14)).
    #[error("an accept must be the first of its term and write its token (R8, R14)")]
    MalformedAccept,
    /// A release that keeps the token or another duration ([R12](crate::rules#r12)).
    #[error("a release must be unheld for one second, without token (R12)")]
    MalformedRelease,
}

/// Names the move from `before` to `after`, a change written by `actor`.
///
/// # Errors
///
/// Names the rule that the change breaks.
pub fn audit(
    before: &LeaseRecord,
    after: &LeaseRecord,
    actor: &Actor<'_>,
) -> Result<Move, Violation> {
    match actor {
        Actor::Elector => audit_elector(before, after),
        Actor::Candidate(me) => audit_candidate(before, after, me),
    }
}

fn audit_elector(before: &LeaseRecord, after: &LeaseRecord) -> Result<Move, Violation> {
    let signal = before.preferring(after.preferred_holder.clone(), after.strategy.clone());
    if signal == *after {
        return Ok(Move::Signal);
    }
    if after.holder.is_none() {
        return Err(Violation::TouchedTerm);
    }
    if !is_grant(before, after) {
        return Err(if before.term == after.term {
            Violation::TouchedTerm
        } else {
            Violation::MalformedGrant
        });
    }
    Ok(match before.occupancy() {
        Occupancy::Held(_) => Move::GrantExpired,
        Occupancy::Released | Occupancy::Unproven => Move::GrantUnheld,
    })
}

fn audit_candidate(
    before: &LeaseRecord,
    after: &LeaseRecord,
    me: &Identity,
) -> Result<Move, Violation> {
    if after.holder.as_ref() == Some(me) && after.term != before.term {
        if !is_acquisition(before, after) {
            return Err(Violation::MalformedAcquisition);
        }
        return Ok(match before.occupancy() {
            Occupancy::Held(_) => Move::AcquireExpired,
            Occupancy::Released | Occupancy::Unproven => Move::AcquireUnheld,
        });
    }
    if before.holder.as_ref() != Some(me) {
        return Err(Violation::NotItsOwn);
    }
    if after.holder.is_none() {
        let released = after.occupancy() == Occupancy::Released && after.term == before.term;
        return if released {
            Ok(Move::Release)
        } else {
            Err(Violation::MalformedRelease)
        };
    }
    if after.term != before.term {
        // The successor is the one that the record preferred, and the term must have been accepted.
        let chosen = after.holder == before.preferred_holder && before.has_token();
        return if chosen && is_grant(before, after) {
            Ok(Move::HandOff)
        } else {
            Err(Violation::MalformedGrant)
        };
    }
    if after.holder.as_ref() != Some(me) {
        return Err(Violation::NotItsOwn);
    }
    if !before.has_token() {
        // A grant of the built-in elector has no acquireTime; its accept sets one.
        let accepted = after.has_token()
            && after.renew_time != before.renew_time
            && after.acquire_time == before.acquire_time.or(after.renew_time);
        return if accepted {
            Ok(Move::Accept)
        } else {
            Err(Violation::MalformedAccept)
        };
    }
    let renewed = LeaseRecord {
        renew_time: after.renew_time,
        ..before.clone()
    };
    if renewed != *after || before.renew_time == after.renew_time {
        return Err(Violation::MalformedRenewal);
    }
    Ok(Move::Renew)
}

/// True if `after` begins the next term, with everything that a grant and an acquisition have in common.
fn begins_term(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    after.term == before.term.next()
        && after.acquire_time.is_some()
        && after.acquire_time == after.renew_time
        && after.renew_time != before.renew_time
        && after.duration().is_some()
        && after.preferred_holder.is_none()
}

fn is_grant(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    begins_term(before, after) && after.token.is_none() && after.token_term.is_none()
}

fn is_acquisition(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    begins_term(before, after) && after.has_token() && after.strategy == before.strategy
}
