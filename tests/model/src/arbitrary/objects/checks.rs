//! The invariants of each step of an elector.

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Decision, Effect, Explanation, Objects, Settings};
use elector_protocol::{LeaseKey, Timestamp};
use elector_verify::{Actor, audit};

use super::{ElectorDriver, TrackedLease};
use crate::arbitrary::time::wall;
use crate::arbitrary::wire;

// === impl ElectorDriver ===

impl ElectorDriver {
    /// The invariants of every election, after every document.
    pub(super) fn check(&self) {
        for (key, tracked) in &self.elections {
            let decision = tracked.election.step(self.now, wall(), &self.settings);
            let again = tracked.election.step(self.now, wall(), &self.settings);
            assert_eq!(decision, again, "a step repeats itself");
            wire::check_line(&decision.reason.to_string());
            for ranked in tracked
                .election
                .ranking(self.now, wall(), &self.settings)
                .candidates
            {
                wire::check_line(&ranked.reason);
            }
            if let Some(at) = decision.wake_at() {
                assert!(
                    at > self.now,
                    "a deadline in the past would spin: {decision:?}"
                );
            }
            tracked.check(key, &decision);
        }
    }
}

// === impl TrackedLease ===

impl TrackedLease {
    fn check(&self, key: &LeaseKey, decision: &Decision) {
        // A write of the Lease; of each candidate a ping and, where the last one stays open, a collection.
        let most = 1 + 2 * self.candidates.len();
        assert!(
            decision.effects.len() <= most,
            "{} effects",
            decision.effects.len()
        );
        for effect in &decision.effects {
            match effect {
                Effect::Create(record) => {
                    assert!(self.election.lease().is_none());
                    wire::check_born(key, record);
                }
                Effect::Write(write) => {
                    let (Some(known), Some(object)) = (self.election.lease(), &self.lease) else {
                        panic!("a write without a lease");
                    };
                    assert_eq!(
                        (&write.uid, write.version),
                        (&known.uid, known.version),
                        "R2"
                    );
                    wire::check_lease_write(object, &write.record);
                    let moved = audit(&known.record, &write.record, Actor::Elector);
                    assert!(moved.is_ok(), "{moved:?}: {known:?} -> {:?}", write.record);
                }
                Effect::Ping { name, ping, .. } => {
                    let Some(object) = self.candidates.get(name) else {
                        panic!("{name} does not exist");
                    };
                    wire::check_ping(object, *ping);
                }
                Effect::Collect { name, .. } => {
                    let known = self.candidates.get(name);
                    let deleting =
                        |known: &LeaseCandidate| known.metadata.deletion_timestamp.is_some();
                    assert!(known.is_some_and(|known| !deleting(known)), "{name}");
                }
            }
        }
    }

    /// The answers of `elector explain` to the objects alone, long before and long after their times.
    pub(super) fn explain(&self, settings: &Settings) {
        let created = |object: &Lease| {
            let time = object.metadata.creation_timestamp.as_ref()?;
            Timestamp::from_micros(time.0.as_microsecond())
        };
        let lease = self.lease.as_ref().and_then(|object| {
            Some((
                object.snapshot().ok()?,
                created(object).unwrap_or(Timestamp::MIN),
            ))
        });
        let candidates = self.election.candidates().cloned().collect();
        let objects = Objects {
            lease,
            candidates,
            ..Objects::default()
        };
        for now in [Timestamp::MIN, wall(), Timestamp::MAX] {
            let explained = Explanation::of(&objects, now, settings);
            wire::check_line(&explained.reason.to_string());
            explained
                .candidates
                .iter()
                .for_each(|ranked| wire::check_line(&ranked.reason));
        }
    }
}
