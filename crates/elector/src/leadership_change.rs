//! Changes of leadership, each reported once: the holder, its term, its predecessor, and the reason.

use std::fmt;

use elector_protocol::elector::{GrantCause, Reason};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, Term, Transition};

/// A lease changed hands; this elector or any other process wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadershipChange {
    /// The lease.
    pub lease: LeaseKey,
    /// The holder now, `None` where there is none.
    pub holder: Option<Identity>,
    /// The term, `spec.leaseTransitions`.
    pub term: Term,
    /// The holder before.
    pub previous: Option<Identity>,
    /// Why, in one word.
    pub cause: ChangeCause,
    /// Why, in one line.
    pub reason: String,
}

/// Why a lease changed hands, as far as its records and the decisions of this elector tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeCause {
    /// An elector granted a lease that was free, or another elector granted it for a reason of its own.
    Elected,
    /// An elector granted it, since the record of the holder before had expired (R4).
    Expired,
    /// An elector granted it, since the grant before was not accepted (R5).
    NotAccepted,
    /// The holder before handed it over (R7).
    HandedOver,
    /// Its holder took it itself, without an elector (R18).
    Acquired,
    /// Its holder began its next term itself, since nobody had come between (R20).
    Resumed,
    /// Its holder began the next term of an earlier life of its instance, which is dead (R21).
    Rejoined,
    /// Its holder released it.
    Released,
    /// Its holder was removed by a process that speaks no protocol.
    Removed,
    /// The Lease was deleted.
    Deleted,
}

/// A grant that is being written, so that its reason is known when the record appears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedGrant {
    pub(crate) to: Identity,
    pub(crate) term: Term,
    pub(crate) cause: ChangeCause,
    pub(crate) reason: String,
}

// === impl LeadershipChange ===

impl LeadershipChange {
    /// The change from one record of a lease to the next, `None` where the holder and its term are the same.
    ///
    /// `ours` is the newest grant of our own.
    pub(crate) fn between(
        lease: &LeaseKey,
        before: Option<&LeaseRecord>,
        after: Option<&LeaseRecord>,
        ours: Option<&ExpectedGrant>,
    ) -> Option<Self> {
        let transition = Transition::between(before, after)?;
        let [previous, holder] = [before, after].map(|record| record?.holder.as_ref());
        let term = after.or(before).map(|record| record.term)?;
        let granted = |grant: &&ExpectedGrant| holder == Some(&grant.to) && term == grant.term;
        let told = reason_of(transition, previous, holder)?;
        let (cause, reason) = match ours.filter(granted) {
            Some(grant) => (grant.cause, grant.reason.clone()),
            None => told,
        };
        Some(Self {
            lease: lease.clone(),
            holder: holder.cloned(),
            term,
            previous: previous.cloned(),
            cause,
            reason,
        })
    }
}

impl ExpectedGrant {
    /// A decision's change, where it is a grant.
    pub(crate) fn of(decided: &Reason, record: &LeaseRecord) -> Option<Self> {
        let Reason::Granted { cause: granted, .. } = decided else {
            return None;
        };
        let cause = match granted {
            GrantCause::Expired { .. } => ChangeCause::Expired,
            GrantCause::NotAccepted { .. } => ChangeCause::NotAccepted,
            GrantCause::Released | GrantCause::Unheld => ChangeCause::Elected,
        };
        Some(Self {
            to: record.holder.clone()?,
            term: record.term,
            cause,
            reason: decided.to_string(),
        })
    }
}

impl fmt::Display for LeadershipChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some(holder) => write!(f, "{holder} leads {}", self.lease),
            None => write!(f, "{} has no leader", self.lease),
        }
    }
}

/// The reason for a change that others made, `None` where no term began or ended.
fn reason_of(
    transition: Transition,
    previous: Option<&Identity>,
    holder: Option<&Identity>,
) -> Option<(ChangeCause, String)> {
    let name = |of: Option<&Identity>| of.map_or("its holder", Identity::as_str).to_owned();
    Some(match transition {
        Transition::Released => (ChangeCause::Released, name(previous) + " released it"),
        Transition::Removed => {
            let reason = format!("another process removed {}", name(previous));
            (ChangeCause::Removed, reason)
        }
        Transition::Deleted => (ChangeCause::Deleted, "the lease was deleted".to_owned()),
        Transition::HandedOver => (ChangeCause::HandedOver, name(previous) + " handed over"),
        Transition::Resumed => (
            ChangeCause::Resumed,
            name(holder) + " leads on in a new term",
        ),
        Transition::Rejoined => (
            ChangeCause::Rejoined,
            name(holder) + " leads on after " + &name(previous) + ", which is dead",
        ),
        Transition::Acquired => (ChangeCause::Acquired, name(holder) + " took it"),
        Transition::Granted => {
            let reason = "another elector granted it".to_owned();
            (ChangeCause::Elected, reason)
        }
        Transition::Renewed | Transition::Signalled => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elector_protocol::Timestamp;

    use super::*;

    fn id(text: &str) -> Identity {
        Identity::new(text).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000).unwrap()
    }

    fn granted(before: &LeaseRecord, to: &str, second: i64) -> LeaseRecord {
        before.granted(id(to), Duration::from_secs(5), at(second))
    }

    fn renewed(record: &LeaseRecord, second: i64) -> LeaseRecord {
        LeaseRecord {
            renew_time: Some(at(second)),
            ..record.clone()
        }
    }

    #[test]
    fn each_transition_has_its_cause_and_its_reason() {
        use ChangeCause as Cause;

        let another = "another elector granted it";
        for (transition, holder, cause, reason) in [
            (Transition::Granted, "b", Cause::Elected, another),
            (
                Transition::HandedOver,
                "b",
                Cause::HandedOver,
                "a handed over",
            ),
            (Transition::Acquired, "b", Cause::Acquired, "b took it"),
            (
                Transition::Resumed,
                "a",
                Cause::Resumed,
                "a leads on in a new term",
            ),
            (
                Transition::Rejoined,
                "b",
                Cause::Rejoined,
                "b leads on after a, which is dead",
            ),
            (Transition::Released, "", Cause::Released, "a released it"),
            (
                Transition::Removed,
                "",
                Cause::Removed,
                "another process removed a",
            ),
            (
                Transition::Deleted,
                "",
                Cause::Deleted,
                "the lease was deleted",
            ),
        ] {
            let holder = Identity::new(holder);
            let reported = reason_of(transition, Some(&id("a")), holder.as_ref());
            assert_eq!(reported, Some((cause, reason.to_owned())));
        }
    }

    #[test]
    fn a_renewal_and_a_preference_are_no_change_of_leadership() {
        let led = renewed(&granted(&LeaseRecord::born(None), "a", 1), 2);
        for after in [renewed(&led, 3), led.preferring(Some(id("b")), None)] {
            let key = LeaseKey::new("ns", "l");
            let change = LeadershipChange::between(&key, Some(&led), Some(&after), None);
            assert_eq!(change, None);
        }
    }

    #[test]
    fn a_grant_of_our_own_is_reported_with_our_reason_and_anothers_is_not() {
        let (key, born) = (LeaseKey::new("ns", "l"), LeaseRecord::born(None));
        let ours = ExpectedGrant {
            to: id("a"),
            term: Term(1),
            cause: ChangeCause::Expired,
            reason: "is the only candidate".to_owned(),
        };
        for (to, cause, reason) in [
            ("a", ours.cause, ours.reason.as_str()),
            ("b", ChangeCause::Elected, "another elector granted it"),
        ] {
            let record = granted(&born, to, 1);
            let change = LeadershipChange::between(&key, Some(&born), Some(&record), Some(&ours));
            let expected = LeadershipChange {
                lease: key.clone(),
                holder: Some(id(to)),
                term: Term(1),
                previous: None,
                cause,
                reason: reason.to_owned(),
            };
            assert_eq!(change, Some(expected));
        }
    }

    #[test]
    fn a_grant_of_our_own_is_caused_by_what_freed_the_lease() {
        let (holder, after) = (id("a"), Duration::from_secs(5));
        let record = granted(&LeaseRecord::born(None), "b", 1);
        for (vacancy, cause) in [
            (GrantCause::Unheld, ChangeCause::Elected),
            (GrantCause::Released, ChangeCause::Elected),
            (
                GrantCause::Expired {
                    holder: holder.clone(),
                    after,
                },
                ChangeCause::Expired,
            ),
            (
                GrantCause::NotAccepted { holder, after },
                ChangeCause::NotAccepted,
            ),
        ] {
            let reason = Reason::Granted {
                to: id("b"),
                term: record.term,
                cause: vacancy,
                because: "is the only candidate".to_owned(),
                silent: Vec::new(),
            };
            let expected = ExpectedGrant::of(&reason, &record).unwrap();
            assert_eq!((expected.to, expected.cause), (id("b"), cause));
        }
        assert_eq!(ExpectedGrant::of(&Reason::NoCandidate, &record), None);
    }
}
