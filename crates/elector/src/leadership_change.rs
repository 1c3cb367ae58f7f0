//! Changes of leadership, each told once: the holder, its term, its predecessor, and the reason.

use std::fmt;

use elector_protocol::elector::{Reason, Vacancy};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, Occupancy, Term};

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
    /// What changed from one record of a lease to the next, `None` where the holder and its term are the same.
    ///
    /// `ours` is the newest grant of our own.
    pub(crate) fn between(
        lease: &LeaseKey,
        before: Option<&LeaseRecord>,
        after: Option<&LeaseRecord>,
        ours: Option<&ExpectedGrant>,
    ) -> Option<Self> {
        let [previous, holder] = [before, after].map(|record| record?.holder.clone());
        let term = after.or(before).map(|record| record.term)?;
        let same_term = before.is_none_or(|record| record.term == term);
        if previous == holder && (holder.is_none() || same_term) {
            return None;
        }
        let granted =
            |grant: &&ExpectedGrant| holder.as_ref() == Some(&grant.to) && term == grant.term;
        let (cause, reason) = match (ours.filter(granted), before, after) {
            (Some(grant), _, _) => (grant.cause, grant.reason.clone()),
            (None, _, Some(after)) => told_by_records(before, after),
            (None, _, None) => (ChangeCause::Deleted, "the lease was deleted".to_owned()),
        };
        Some(Self {
            lease: lease.clone(),
            holder,
            term,
            previous,
            cause,
            reason,
        })
    }
}

impl ExpectedGrant {
    /// What a decision writes, where it is a grant.
    pub(crate) fn of(decided: &Reason, record: &LeaseRecord) -> Option<Self> {
        let Reason::Granted { vacancy, .. } = decided else {
            return None;
        };
        let cause = match vacancy {
            Vacancy::Expired { .. } => ChangeCause::Expired,
            Vacancy::NotAccepted { .. } => ChangeCause::NotAccepted,
            Vacancy::Released | Vacancy::Unheld => ChangeCause::Elected,
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
            None => write!(f, "nobody leads {}", self.lease),
        }
    }
}

/// The reason for a change that others made, as far as the two records tell it.
fn told_by_records(before: Option<&LeaseRecord>, after: &LeaseRecord) -> (ChangeCause, String) {
    let previous = before.and_then(|record| record.holder.as_ref());
    let Some(holder) = &after.holder else {
        let who = previous.map_or("its holder", Identity::as_str);
        return match after.occupancy() {
            Occupancy::Released => (ChangeCause::Released, format!("{who} released it")),
            Occupancy::Held(_) | Occupancy::Unproven => (
                ChangeCause::Removed,
                format!("{who} was removed by somebody else"),
            ),
        };
    };
    let handed_over = before.is_some_and(|record| {
        record.preferred_holder.as_ref() == Some(holder) && record.term.next() == after.term
    });
    match previous {
        Some(previous) if handed_over && after.is_unaccepted_grant() => {
            (ChangeCause::HandedOver, format!("{previous} handed over"))
        }
        // The built-in controller leaves no acquireTime in what it grants; a candidate that takes a lease itself writes one.
        _ if after.is_unaccepted_grant() || after.acquire_time.is_none() => (
            ChangeCause::Elected,
            "another elector granted it".to_owned(),
        ),
        Some(previous) if previous == holder => (
            ChangeCause::Acquired,
            format!("{holder} started another term"),
        ),
        _ => (ChangeCause::Acquired, format!("{holder} took it")),
    }
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
    fn each_change_of_holder_has_its_reason() {
        let born = LeaseRecord::born(None);
        let a = renewed(&granted(&born, "a", 1), 2);
        let yielding = a.preferring(Some(id("b")), None);
        let blanked = LeaseRecord {
            holder: None,
            ..a.clone()
        };
        let without_time = LeaseRecord {
            acquire_time: None,
            ..a.clone()
        };
        let taken = renewed(&granted(&a, "b", 3), 4);
        let cases = [
            (
                Some(&born),
                Some(granted(&born, "a", 1)),
                Some((ChangeCause::Elected, "another elector granted it")),
            ),
            (Some(&a), Some(renewed(&a, 3)), None),
            (Some(&a), Some(yielding.clone()), None),
            (
                Some(&yielding),
                Some(granted(&yielding, "b", 3)),
                Some((ChangeCause::HandedOver, "a handed over")),
            ),
            (
                Some(&a),
                Some(a.released(at(3))),
                Some((ChangeCause::Released, "a released it")),
            ),
            (
                Some(&a),
                Some(blanked),
                Some((ChangeCause::Removed, "a was removed by somebody else")),
            ),
            (
                Some(&a),
                Some(taken),
                Some((ChangeCause::Acquired, "b took it")),
            ),
            (
                Some(&a),
                Some(granted(&a, "a", 3)),
                Some((ChangeCause::Elected, "another elector granted it")),
            ),
            (
                Some(&a),
                Some(renewed(&granted(&a, "a", 3), 4)),
                Some((ChangeCause::Acquired, "a started another term")),
            ),
            (
                Some(&a),
                None,
                Some((ChangeCause::Deleted, "the lease was deleted")),
            ),
            (Some(&born), None, None),
            (None, Some(born.clone()), None),
            (
                None,
                Some(a.clone()),
                Some((ChangeCause::Acquired, "a took it")),
            ),
            (
                None,
                Some(without_time),
                Some((ChangeCause::Elected, "another elector granted it")),
            ),
        ];
        for (before, after, reason) in cases {
            let change =
                LeadershipChange::between(&LeaseKey::new("ns", "l"), before, after.as_ref(), None);
            let told = |change: &'_ LeadershipChange| (change.cause, change.reason.clone());
            assert_eq!(
                change.as_ref().map(told),
                reason.map(|(cause, text)| (cause, text.to_owned()))
            );
        }
    }

    #[test]
    fn a_grant_of_our_own_is_told_with_our_reason() {
        let born = LeaseRecord::born(None);
        let record = granted(&born, "a", 1);
        let ours = ExpectedGrant {
            to: id("a"),
            term: record.term,
            cause: ChangeCause::Expired,
            reason: "is the only candidate".to_owned(),
        };
        let key = LeaseKey::new("ns", "l");
        let change =
            LeadershipChange::between(&key, Some(&born), Some(&record), Some(&ours)).unwrap();
        assert_eq!(
            change,
            LeadershipChange {
                lease: key.clone(),
                holder: Some(id("a")),
                term: Term(1),
                previous: None,
                cause: ours.cause,
                reason: ours.reason.clone(),
            }
        );
        // The same words must not explain another elector's grant.
        let other = LeadershipChange::between(
            &key,
            Some(&born),
            Some(&granted(&born, "b", 1)),
            Some(&ours),
        );
        assert_eq!(other.unwrap().reason, "another elector granted it");
    }

    #[test]
    fn a_grant_of_our_own_is_caused_by_what_freed_the_lease() {
        let (holder, after) = (id("a"), Duration::from_secs(5));
        let record = granted(&LeaseRecord::born(None), "b", 1);
        for (vacancy, cause) in [
            (Vacancy::Unheld, ChangeCause::Elected),
            (Vacancy::Released, ChangeCause::Elected),
            (
                Vacancy::Expired {
                    holder: holder.clone(),
                    after,
                },
                ChangeCause::Expired,
            ),
            (
                Vacancy::NotAccepted { holder, after },
                ChangeCause::NotAccepted,
            ),
        ] {
            let reason = Reason::Granted {
                to: id("b"),
                term: record.term,
                vacancy,
                because: "is the only candidate".to_owned(),
                silent: Vec::new(),
            };
            let expected = ExpectedGrant::of(&reason, &record).unwrap();
            assert_eq!((expected.to, expected.cause), (id("b"), cause));
        }
        assert_eq!(ExpectedGrant::of(&Reason::NoCandidate, &record), None);
    }
}
