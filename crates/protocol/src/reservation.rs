//! A placeholder in the place of a holder that cannot be asked to yield (R3 d).
//!
//! The placeholder is a record like any other: it names a holder, it has a duration, and it expires by R4. No process
//! renews it, and no candidate can have its name, so it keeps the lease from all until the holder before it must have
//! stopped.

use std::time::Duration;

use crate::lease::{LeaseRecord, LeaseSnapshot, wire_seconds};
use crate::names::{Identity, Token};
use crate::time::Timestamp;

/// What a placeholder's `holderIdentity` begins with; the name of the holder that it replaced follows.
///
/// The API allows any text there, but no `:` in the name of a LeaseCandidate.
const RESERVED_FROM: &str = "elector.dev:reserved-from:";

// === impl LeaseRecord ===

impl LeaseRecord {
    /// The holder that this record is reserved from, where it is a placeholder; `None` for every other record.
    pub fn reserved_from(&self) -> Option<Identity> {
        let name = self.holder.as_ref()?.as_str().strip_prefix(RESERVED_FROM)?;
        Identity::new(name)
    }
}

// === impl LeaseSnapshot ===

impl LeaseSnapshot {
    /// The placeholder that reserves this Lease from its holder ([R3] d): a new term that no candidate accepts.
    ///
    /// It lasts for `at_least`, or for the duration of the record where that is longer: a process that believes that it
    /// holds this very record stops within that. It carries a token, although no process leads under it: a client-go
    /// process that releases a term of its own which ended long ago leaves the token in place, and so is not believed.
    ///
    /// `None` where the record has no holder.
    ///
    /// [R3]: crate::rules#r3
    #[must_use]
    pub fn reserved(&self, at_least: Duration, now: Timestamp) -> Option<LeaseRecord> {
        let record = &self.record;
        let holder = record.holder.as_ref()?;
        let at = now.differing_from(record.renew_time);
        let term = record.term.next();
        let lasts = record.duration().unwrap_or_default().max(at_least);
        Some(LeaseRecord {
            holder: Identity::new(format!("{RESERVED_FROM}{holder}")),
            duration_seconds: Some(wire_seconds(lasts)),
            acquire_time: Some(at),
            renew_time: Some(at),
            term,
            strategy: record.strategy.clone(),
            preferred_holder: None,
            token: Some(Token(self.version)),
            token_term: Some(term),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ResourceVersion, Term, Uid};

    fn held(by: &str, seconds: Option<i32>) -> LeaseSnapshot {
        LeaseSnapshot {
            uid: Uid::new("u"),
            version: ResourceVersion(7),
            record: LeaseRecord {
                holder: Identity::new(by),
                duration_seconds: seconds,
                renew_time: Timestamp::from_micros(9),
                term: Term(3),
                preferred_holder: Identity::new("b"),
                ..LeaseRecord::default()
            },
            word: crate::operator_word::OperatorWord::default(),
        }
    }

    #[test]
    fn a_placeholder_outlasts_whom_it_replaces() {
        let now = Timestamp::from_micros(9).unwrap();
        for (seconds, at_least, lasts) in [(Some(15), 15, 15), (Some(30), 15, 30), (None, 15, 15)] {
            let at_least = Duration::from_secs(at_least);
            let placeholder = held("a", seconds).reserved(at_least, now).unwrap();
            assert_eq!(placeholder.duration_seconds, Some(lasts));
            assert_eq!(placeholder.reserved_from(), Identity::new("a"));
            assert_eq!(placeholder.term, Term(4));
            assert_ne!(placeholder.renew_time, Some(now), "it must differ");
            assert_eq!(placeholder.acquire_time, placeholder.renew_time);
            assert_eq!(placeholder.preferred_holder, None);
            assert!(placeholder.has_token() && !placeholder.is_unaccepted_grant());
        }
        assert_eq!(held("", None).reserved(Duration::ZERO, now), None);
    }

    #[test]
    fn only_a_placeholder_is_taken_for_one() {
        for other in [
            "",
            "a",
            "elector.dev:reserved",
            "elector.dev:reserved-from:",
            "x-elector.dev:reserved-from:a",
        ] {
            assert_eq!(
                held(other, Some(15)).record.reserved_from(),
                None,
                "{other}"
            );
        }
    }
}
