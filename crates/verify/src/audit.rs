//! Which changes of a record the rules allow to which writer, judged from the outside (S3–S6).
//!
//! A record before and one after are enough for this; when each may be written is judged elsewhere.

use elector_protocol::{Identity, LeaseRecord};

use crate::actor::Actor;
use crate::broken_rule::BrokenRule;
use crate::reading::{duration, has_token, is_released};
use crate::verdict::{Invariant, LeaseChangeKind};

/// Names the move from `before` to `after`, a change written by `actor`.
///
/// # Errors
///
/// Names the rule that the change breaks.
pub fn audit(
    before: &LeaseRecord,
    after: &LeaseRecord,
    actor: Actor<'_>,
) -> Result<LeaseChangeKind, BrokenRule> {
    let judged = match actor {
        Actor::Elector => of_elector(before, after),
        Actor::Candidate(me) if begins_own_term(before, after, me) => {
            return acquisition(before, after, me);
        }
        Actor::Candidate(me) => of_holder(before, after, me),
    };
    judged.map_err(|(invariant, rule)| {
        let writer = match actor {
            Actor::Elector => "an elector's write".to_owned(),
            Actor::Candidate(me) => format!("a write of {me}"),
        };
        BrokenRule::promised(invariant, format!("{rule}; {writer}"))
    })
}

/// The invariant that a change breaks, and the rule in words.
type FormError = (Invariant, &'static str);

const MALFORMED_GRANT: FormError = (
    Invariant::S3,
    "a grant must start the next term with equal times, a duration and neither preference nor token (R5)",
);
const TOUCHED_TERM: FormError = (
    Invariant::S4,
    "an elector changed the record of a term (R7)",
);
const NOT_ITS_OWN: FormError = (
    Invariant::S6,
    "a candidate wrote over a record that is not its own (R8, R12)",
);
const MALFORMED_RENEWAL: FormError = (
    Invariant::S4,
    "a renewal must keep the duration of its term and change renewTime (R11)",
);
const MALFORMED_ACCEPT: FormError = (
    Invariant::S5,
    "an accept must be the first of its term and write its token (R8, R14)",
);
const MALFORMED_RELEASE: FormError = (
    Invariant::S6,
    "a release must be unheld for one second, without token (R12)",
);

fn of_elector(before: &LeaseRecord, after: &LeaseRecord) -> Result<LeaseChangeKind, FormError> {
    let strategy = after.strategy.as_ref().or(before.strategy.as_ref());
    let signal = LeaseRecord {
        preferred_holder: after.preferred_holder.clone(),
        strategy: strategy.cloned(),
        ..before.clone()
    };
    if signal == *after {
        return Ok(LeaseChangeKind::Signal);
    }
    if !is_grant(before, after) {
        let touched = after.holder.is_none() || before.term == after.term;
        return Err(if touched {
            TOUCHED_TERM
        } else {
            MALFORMED_GRANT
        });
    }
    Ok(match before.holder {
        Some(_) => LeaseChangeKind::GrantExpired,
        None => LeaseChangeKind::GrantUnheld,
    })
}

fn of_holder(
    before: &LeaseRecord,
    after: &LeaseRecord,
    me: &Identity,
) -> Result<LeaseChangeKind, FormError> {
    let check = |allowed: bool, kind, error| if allowed { Ok(kind) } else { Err(error) };
    if before.holder.as_ref() != Some(me) {
        return Err(NOT_ITS_OWN);
    }
    if after.holder.is_none() {
        let released = is_released(after) && after.term == before.term;
        return check(released, LeaseChangeKind::Release, MALFORMED_RELEASE);
    }
    if after.term != before.term {
        // The successor is the one that the record preferred, and the term must have been accepted.
        let chosen = after.holder == before.preferred_holder && has_token(before);
        let granted = chosen && is_grant(before, after);
        return check(granted, LeaseChangeKind::HandOff, MALFORMED_GRANT);
    }
    if after.holder.as_ref() != Some(me) {
        return Err(NOT_ITS_OWN);
    }
    if !has_token(before) {
        // A grant of the built-in elector has no acquireTime; its accept sets one.
        let accepted = has_token(after)
            && after.renew_time != before.renew_time
            && after.acquire_time == before.acquire_time.or(after.renew_time);
        return check(accepted, LeaseChangeKind::Accept, MALFORMED_ACCEPT);
    }
    let renewed = LeaseRecord {
        renew_time: after.renew_time,
        ..before.clone()
    };
    let renews = renewed == *after && before.renew_time != after.renew_time;
    check(renews, LeaseChangeKind::Renew, MALFORMED_RENEWAL)
}

/// True where `me` holds a record that is no continuation of the one before.
fn begins_own_term(before: &LeaseRecord, after: &LeaseRecord, me: &Identity) -> bool {
    after.holder.as_ref() == Some(me)
        && (&before.holder, before.term) != (&after.holder, after.term)
}

fn is_grant(before: &LeaseRecord, after: &LeaseRecord) -> bool {
    after.holder.is_some()
        && after.term == before.term.next()
        && after.acquire_time.is_some()
        && after.acquire_time == after.renew_time
        && after.renew_time != before.renew_time
        && duration(after).is_some()
        && after.preferred_holder.is_none()
        && after.token.is_none()
        && after.token_term.is_none()
}

/// The form of a write that is grant and accept at once (R18), field by field.
fn acquisition(
    before: &LeaseRecord,
    after: &LeaseRecord,
    me: &Identity,
) -> Result<LeaseChangeKind, BrokenRule> {
    let next = before.term.next();
    let foreign = before.strategy.as_ref();
    let foreign = foreign.filter(|strategy| strategy.strategy().is_none());
    let times_differ = after.acquire_time.is_none() || after.acquire_time != after.renew_time;
    let wrong = if after.term != next {
        let term = after.term;
        format!("leaseTransitions is {term} where the next term is {next}")
    } else if times_differ {
        "acquireTime and renewTime are not the same time".to_owned()
    } else if after.renew_time == before.renew_time {
        "renewTime is that of the record before".to_owned()
    } else if duration(after).is_none() {
        "leaseDurationSeconds is missing or zero".to_owned()
    } else if after.preferred_holder.is_some() {
        "preferredHolder is still there".to_owned()
    } else if after.strategy != before.strategy {
        "strategy is another than before".to_owned()
    } else if let Some(strategy) = foreign {
        format!("strategy {strategy} belongs to another elector")
    } else if !has_token(after) {
        let message = format!(
            "acquired by {me}: elector.dev/token-term does not name the term {} (R14, R18)",
            after.term
        );
        return Err(BrokenRule::promised(Invariant::S5, message));
    } else {
        return Ok(match before.holder {
            Some(_) => LeaseChangeKind::AcquireExpired,
            None => LeaseChangeKind::AcquireUnheld,
        });
    };
    let message = format!("acquired by {me}: {wrong} (R18)");
    Err(BrokenRule::promised(Invariant::S3, message))
}

#[cfg(test)]
mod tests;
