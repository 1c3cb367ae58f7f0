//! The change from one record of a Lease to the next, as the two tell it, whoever wrote it.

use crate::lease::{LeaseRecord, Occupancy};

/// A change of a Lease.
///
/// Two records do not tell why an elector granted a lease, or whether a process that acquired it had found it expired:
/// the elector that wrote it knows the one, and a [`LeaseWatch`](crate::LeaseWatch) the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// An elector granted it, and the electee has not accepted yet ([R3](crate::rules#r3) a and b).
    Granted,
    /// The holder granted it to the candidate that it was asked to prefer ([R7](crate::rules#r7)).
    HandedOver,
    /// A process began a term by itself ([R18](crate::rules#r18)).
    Acquired,
    /// The holder began its next term by itself ([R20](crate::rules#r20)).
    Resumed,
    /// A process began the next term of an earlier life of its instance, which is dead ([R21](crate::rules#r21)).
    Rejoined,
    /// The electee accepted, or the holder renewed ([R8](crate::rules#r8), [R11](crate::rules#r11)).
    Renewed,
    /// Nothing changed but what electors and operators say: strategy, preference, labels.
    Signalled,
    /// The holder released it ([R12](crate::rules#r12)).
    Released,
    /// The holder was removed by a process that speaks no protocol.
    Removed,
    /// The Lease was deleted.
    Deleted,
}

// === impl Transition ===

impl Transition {
    /// The change from one record to the next, `None` for no Lease. A Lease that is there, or appears, without a holder
    /// is none.
    pub fn between(before: Option<&LeaseRecord>, after: Option<&LeaseRecord>) -> Option<Self> {
        let previous = before.and_then(|record| record.holder.as_ref());
        let Some(after) = after else {
            return previous.map(|_| Self::Deleted);
        };
        let Some(holder) = &after.holder else {
            return previous.map(|_| match after.occupancy() {
                Occupancy::Released => Self::Released,
                Occupancy::Held(_) | Occupancy::Unproven => Self::Removed,
            });
        };
        let same_term = before.filter(|record| record.term == after.term);
        if let Some(before) = same_term.filter(|_| previous == Some(holder)) {
            return Some(if before.same_record(after) {
                Self::Signalled
            } else {
                Self::Renewed
            });
        }
        let preferred = before.is_some_and(|record| {
            record.preferred_holder.as_ref() == Some(holder) && record.term.next() == after.term
        });
        Some(
            if !after.is_unaccepted_grant() && after.acquire_time.is_some() {
                let lives = before.and_then(|record| record.life).zip(after.life);
                match previous == Some(holder) {
                    _ if lives.is_some_and(|(before, after)| after.replaces(before)) => {
                        Self::Rejoined
                    }
                    true => Self::Resumed,
                    false => Self::Acquired,
                }
            } else if previous.is_some() && preferred && after.is_unaccepted_grant() {
                Self::HandedOver
            } else {
                // The built-in controller leaves no acquireTime in what it grants; a process that takes a lease itself
                // writes one.
                Self::Granted
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::names::{Identity, LifeId, ResourceVersion, Token};
    use crate::time::Timestamp;

    fn id(name: &str) -> Identity {
        Identity::new(name).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(second * 1_000_000).unwrap()
    }

    fn granted(before: &LeaseRecord, to: &str) -> LeaseRecord {
        before.granted(id(to), Duration::from_secs(5), at(3))
    }

    fn renewed(record: &LeaseRecord, second: i64) -> LeaseRecord {
        LeaseRecord {
            renew_time: Some(at(second)),
            ..record.clone()
        }
    }

    #[test]
    fn each_change_of_a_record_has_its_name() {
        let born = LeaseRecord::born(None);
        let led = renewed(&granted(&born, "a"), 4);
        let asked = led.preferring(Some(id("b")), None);
        let blank = LeaseRecord {
            holder: None,
            ..led.clone()
        };
        // As the built-in controller grants.
        let without_time = LeaseRecord {
            acquire_time: None,
            ..granted(&led, "b")
        };
        let acquired = |by: &str| {
            let token = Token(ResourceVersion(7));
            led.acquired(id(by), Duration::from_secs(5), token, at(5))
        };
        let of_life = |life, record: &LeaseRecord| LeaseRecord {
            life: Some(LifeId { instance: 1, life }),
            ..record.clone()
        };
        let (first, again) = (of_life(1, &led), of_life(1, &acquired("a")));
        let (second, renamed) = (of_life(2, &acquired("a")), of_life(2, &acquired("b")));
        let grant = granted(&led, "b");
        let cases = [
            (None, Some(&born), None),
            (Some(&born), Some(&born), None),
            (Some(&born), None, None),
            (None, Some(&led), Some(Transition::Acquired)),
            (Some(&born), Some(&grant), Some(Transition::Granted)),
            (Some(&led), Some(&grant), Some(Transition::Granted)),
            (Some(&led), Some(&without_time), Some(Transition::Granted)),
            (
                Some(&led),
                Some(&granted(&led, "a")),
                Some(Transition::Granted),
            ),
            (
                Some(&asked),
                Some(&granted(&asked, "b")),
                Some(Transition::HandedOver),
            ),
            // The one that was preferred took an expired lease itself.
            (
                Some(&asked),
                Some(&acquired("b")),
                Some(Transition::Acquired),
            ),
            (
                Some(&asked),
                Some(&granted(&asked, "c")),
                Some(Transition::Granted),
            ),
            (Some(&led), Some(&acquired("a")), Some(Transition::Resumed)),
            (Some(&first), Some(&again), Some(Transition::Resumed)),
            (Some(&first), Some(&second), Some(Transition::Rejoined)),
            (Some(&first), Some(&renamed), Some(Transition::Rejoined)),
            (
                Some(&grant),
                Some(&renewed(&grant, 6)),
                Some(Transition::Renewed),
            ),
            (Some(&led), Some(&asked), Some(Transition::Signalled)),
            (
                Some(&led),
                Some(&led.released(at(5))),
                Some(Transition::Released),
            ),
            (Some(&led), Some(&blank), Some(Transition::Removed)),
            (Some(&led), None, Some(Transition::Deleted)),
        ];
        for (number, (before, after, expected)) in cases.into_iter().enumerate() {
            assert_eq!(
                Transition::between(before, after),
                expected,
                "case {number}"
            );
        }
    }
}
