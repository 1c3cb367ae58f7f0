//! Access to every clock reading and counter inside a state, for a checker that must tell states apart by what they
//! mean rather than by how far their numbers have grown.
//!
//! A model check explores states until it meets no new one. States of ours carry instants, wire times, revisions and
//! terms, which grow for ever; what a step does depends on their differences and order only. A checker therefore
//! shifts instants and renumbers the rest after each move, through this one trait, and production code never does.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::names::{ResourceVersion, Term, Token};
use crate::time::{Instant, Timestamp};

/// The treatment of each number of a state. Every method defaults to leaving the number alone.
pub trait Renumbering {
    /// A reading of the process's own clock.
    fn instant(&mut self, _: &mut Instant) {}
    /// When a ping or an ack was seen. It counts for the ack window or while it is fresh, and stands before or
    /// after a round.
    fn sighting(&mut self, instant: &mut Instant) {
        self.instant(instant);
    }
    /// When a candidate was last heard. Only the long waits of the upkeep of candidates look at it.
    fn heard(&mut self, instant: &mut Instant) {
        self.instant(instant);
    }
    /// When a candidate was last seen not to accept. It counts for as long as the candidate is passed over.
    fn passed_over(&mut self, instant: &mut Instant) {
        self.instant(instant);
    }
    /// When the present preference was first seen. It counts until the preferred candidate has had its time to ack;
    /// returns whether it may still count.
    fn preference(&mut self, instant: &mut Instant) -> bool {
        self.instant(instant);
        true
    }
    /// True if hand-overs that failed or were many make any difference. Otherwise their memory is empty.
    fn tells_hold_backs(&self) -> bool {
        true
    }
    /// When the newest hand-over failed; returns whether it may still count.
    fn failed_hand_over(&mut self, instant: &mut Instant) -> bool {
        self.instant(instant);
        true
    }
    /// When a holder was pre-empted; returns whether it may still count.
    fn preemption(&mut self, instant: &mut Instant) -> bool {
        self.instant(instant);
        true
    }
    /// When the wait for others began anew. It counts until that wait is over, and the acquisition late.
    fn restart(&mut self, instant: &mut Instant) {
        self.instant(instant);
    }
    /// When the process was last known not to stand still; returns whether it may still count.
    fn confirmation(&mut self, instant: &mut Instant) -> bool {
        self.instant(instant);
        true
    }
    /// The number of withdrawn preferences of a term. It lengthens that time.
    fn withdrawals(&mut self, _: &mut u8) {}
    /// The number of races lost in a row. It decides about pauses alone.
    fn lost_races(&mut self, _: &mut u8) {}
    /// The failures of a candidate to accept, in a row.
    fn failures(&mut self, _: &mut u8) {}
    /// The longest duration seen in a record. It counts where it is above the configured one.
    fn longest(&mut self, _: &mut Duration) {}
    /// A wire time of a Lease.
    fn lease_time(&mut self, _: &mut Timestamp) {}
    /// A wire time of a LeaseCandidate.
    fn candidate_time(&mut self, _: &mut Timestamp) {}
    /// A resource version, also one used as a token.
    fn version(&mut self, _: &mut ResourceVersion) {}
    /// A term.
    fn term(&mut self, _: &mut Term) {}
}

/// A state whose numbers can be visited, each exactly once.
pub trait Renumber {
    /// Hands every number of this state to `by`.
    fn renumber(&mut self, by: &mut dyn Renumbering);
}

/// The numbers in a field: the one that it is, or the one that it may hold.
pub(crate) trait EachNumber<T> {
    /// Visits each.
    fn each(&mut self, visit: impl FnMut(&mut T));
}

/// Implements [`Renumber`] beside a struct, by its fields that hold numbers: `field` has parts of its own, `field =>
/// how` is a number for that method of [`Renumbering`], or an `Option` of one.
macro_rules! renumber {
    ($type:ident { $($field:ident $(=> $how:ident)?),+ $(,)? }) => {
        impl $crate::renumber::Renumber for $type {
            fn renumber(&mut self, by: &mut dyn $crate::renumber::Renumbering) {
                $($crate::renumber::renumber!(@field self.$field, by $(, $how)?);)+
            }
        }
    };
    (@field $field:expr, $by:ident) => {
        $crate::renumber::Renumber::renumber(&mut $field, $by)
    };
    (@field $field:expr, $by:ident, $how:ident) => {
        $crate::renumber::EachNumber::each(&mut $field, |number| $by.$how(number))
    };
}

pub(crate) use renumber;

impl<T> EachNumber<T> for T {
    fn each(&mut self, mut visit: impl FnMut(&mut T)) {
        visit(self);
    }
}

impl<T> EachNumber<T> for Option<T> {
    fn each(&mut self, visit: impl FnMut(&mut T)) {
        self.iter_mut().for_each(visit);
    }
}

impl<T: Renumber> Renumber for Option<T> {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        if let Some(inner) = self {
            inner.renumber(by);
        }
    }
}

impl<T: Renumber> Renumber for Vec<T> {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        for inner in self {
            inner.renumber(by);
        }
    }
}

impl<T: Renumber> Renumber for Box<T> {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.as_mut().renumber(by);
    }
}

impl<K, T: Renumber> Renumber for BTreeMap<K, T> {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        for inner in self.values_mut() {
            inner.renumber(by);
        }
    }
}

impl Renumber for Instant {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.instant(self);
    }
}

impl Renumber for ResourceVersion {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.version(self);
    }
}

impl Renumber for Token {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.version(&mut self.0);
    }
}

impl Renumber for Term {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        by.term(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves each reading of the clock, and says nothing of its own of any kind of them, and each term.
    struct Shift;

    impl Renumbering for Shift {
        fn instant(&mut self, instant: &mut Instant) {
            *instant = instant.after(Duration::from_secs(1));
        }
        fn term(&mut self, term: &mut Term) {
            *term = term.next();
        }
    }

    #[test]
    fn a_reading_of_any_kind_counts_and_is_moved_as_the_others_are() {
        assert!(Shift.tells_hold_backs());
        let start = Instant::from_epoch(Duration::from_secs(7));
        let moved = |by: &dyn Fn(&mut Instant)| {
            let mut instant = start;
            by(&mut instant);
            assert_eq!(instant, start.after(Duration::from_secs(1)));
        };
        for by in [
            Shift::sighting,
            Shift::heard,
            Shift::passed_over,
            Shift::restart,
        ] {
            moved(&|instant| by(&mut Shift, instant));
        }
        let told = [
            Shift::preference,
            Shift::failed_hand_over,
            Shift::preemption,
            Shift::confirmation,
        ];
        for by in told {
            moved(&|instant| assert!(by(&mut Shift, instant)));
        }
        let mut term = Box::new(Term(7));
        term.renumber(&mut Shift);
        assert_eq!(*term, Term(8));
    }
}
