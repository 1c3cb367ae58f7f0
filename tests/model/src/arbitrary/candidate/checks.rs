//! The invariants of each step of a candidate.

use std::time::Duration;

use elector_api::{Lease, validate_candidate_update};
use elector_protocol::holder::{Decision, Effect, StopReason, WriteKind};
use elector_protocol::registration::{RegistrationEffect, RegistrationOutcome};
use elector_protocol::{CandidateTiming, LeaseRecord, LeaseWrite, Moment};
use elector_verify::{Actor, audit};

use super::{CandidateDriver, PendingRequest, PendingWrite};
use crate::arbitrary::wire;

// === impl CandidateDriver ===

impl CandidateDriver {
    /// Steps both machines until they have nothing more to do now.
    pub(super) fn step(&mut self) {
        for turn in 0.. {
            assert!(turn < 8, "it has always something to do: {:?}", self.holder);
            let decision = self.holder.step(Moment::same(self.now), self.wall);
            if decision.effects.is_empty() {
                self.check_rest(&decision);
                break;
            }
            for effect in decision.effects {
                self.perform(effect);
            }
        }
        let registration = self.registration.step(self.now, self.wall);
        if let Some(at) = registration.wake_at {
            assert!(at > self.now, "a deadline in the past would spin");
        }
        if let Some(effect) = registration.effect {
            self.register(&effect);
        }
        if self.holder.believes(self.now) {
            self.check_belief();
        }
    }

    fn check_rest(&self, decision: &Decision) {
        if let Some(at) = decision.wake_at {
            assert!(
                at > self.now,
                "a deadline in the past would spin: {decision:?}"
            );
        }
        if let Some(belief) = self.holder.belief() {
            let ends = decision.wake_at.is_some_and(|at| at <= belief.deadline);
            assert!(ends, "nobody would end the belief");
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Read => {
                assert!(self.request.is_none(), "two requests at once");
                self.request = Some(PendingRequest::Read);
            }
            Effect::Create(record) => {
                assert!(self.request.is_none(), "two requests at once");
                assert_eq!(record, LeaseRecord::born(None), "R2");
                self.request = Some(PendingRequest::Create);
            }
            Effect::Write { kind, write } => self.send(&kind, write),
            Effect::Start { .. } => {
                assert!(!self.working, "work of two terms at once");
                self.working = true;
            }
            Effect::Stop(why) => {
                assert!(self.working);
                let lost = matches!(why, StopReason::Lost(_));
                assert!(!lost || !self.holder.believes(self.now));
                wire::check_line(&why.to_string());
            }
            Effect::Ended(ending) => {
                assert!(!self.working);
                wire::check_line(&ending.to_string());
            }
        }
    }

    fn send(&mut self, kind: &WriteKind, write: LeaseWrite) {
        assert!(self.request.is_none(), "two requests at once");
        let Some(known) = self.holder.known() else {
            panic!("{kind} of a Lease that is not known");
        };
        assert_eq!(
            (&write.uid, write.version),
            (&known.uid, known.version),
            "R2"
        );
        let base = LeaseRecord {
            // A renewal undoes a stranger's change of the duration.
            duration_seconds: match kind {
                WriteKind::Renew => write.record.duration_seconds,
                _ => known.record.duration_seconds,
            },
            ..known.record.clone()
        };
        if let Err(violation) = audit(&base, &write.record, Actor::Candidate(&self.me)) {
            panic!("{kind}: {violation}: {base:?} -> {:?}", write.record);
        }
        if matches!(kind, WriteKind::Release | WriteKind::HandOff(_)) {
            assert!(!self.working && !self.holder.believes(self.now), "{kind}");
        } else {
            self.sent.push(PendingWrite {
                term: (write.uid.clone(), write.record.term),
                token: write.record.token,
                at: self.now,
            });
        }
        if let Some(base) = self.base(&write) {
            wire::check_lease_write(base, &write.record);
        }
        self.request = Some(PendingRequest::Write(Box::new(write)));
    }

    /// The newest Lease, where it is the one that a write replaces.
    pub(super) fn base(&self, write: &LeaseWrite) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| {
            let base = lease.snapshot();
            base.is_ok_and(|it| (&it.uid, it.version) == (&write.uid, write.version))
        })
    }

    fn register(&mut self, effect: &RegistrationEffect) {
        match effect {
            RegistrationEffect::Read => {
                let snapshot = self
                    .object
                    .clone()
                    .and_then(|object| self.read_object(object));
                let snapshot = snapshot.map(|(snapshot, _)| snapshot);
                self.registration.handle_read(self.now, Ok(snapshot));
            }
            RegistrationEffect::Create { .. } | RegistrationEffect::Delete { .. } => {
                self.registering = true;
            }
            RegistrationEffect::Replace { ping, renew, .. } => {
                assert!(ping.is_none_or(|ping| ping <= *renew) || Some(*renew) > self.wall.next());
                if let Some(object) = &self.object {
                    let written = object.with_renewal(*renew);
                    let errors = validate_candidate_update(object, object);
                    let again = validate_candidate_update(&written, object);
                    assert!(!errors.is_empty() || again.is_empty(), "{again:?}");
                }
                self.registering = true;
            }
        }
    }

    /// S2: belief rests on a write of this process in this very term, and not for longer than that carries.
    fn check_belief(&self) {
        let (Some(belief), Some(known)) = (self.holder.belief(), self.holder.known()) else {
            panic!("a belief without a term");
        };
        assert!(self.working);
        assert_eq!(known.record.holder.as_ref(), Some(&self.me));
        let term = (known.uid.clone(), belief.term);
        let carries = CandidateTiming::default().renew_deadline;
        let carried = self
            .sent
            .iter()
            .filter(|sent| sent.term == term && sent.token == Some(belief.token))
            .map(|sent| sent.at.after(carries))
            .max();
        assert!(
            carried.is_some_and(|until| belief.deadline <= until),
            "believes until {:?}, carried until {carried:?}",
            belief.deadline
        );
    }

    /// Nothing more is heard and every request fails: it neither spins nor storms, and believes nothing in the end.
    pub(super) fn run_without_news(&mut self) {
        let start = self.now;
        let mut requests = 0;
        for _ in 0..200 {
            if self.now.since(start) > Duration::from_secs(60) {
                break;
            }
            requests += usize::from(self.request.is_some()) + usize::from(self.registering);
            self.fail("unknown");
            self.registered(RegistrationOutcome::Unknown);
            self.step();
            let wake = [
                self.holder.step(Moment::same(self.now), self.wall).wake_at,
                self.registration.step(self.now, self.wall).wake_at,
            ];
            let Some(at) = wake.into_iter().flatten().min() else {
                if self.request.is_none() {
                    break;
                }
                continue;
            };
            self.now = at;
        }
        assert!(requests < 150, "{requests} requests in a minute");
        self.now = self.now.after(Duration::from_secs(60));
        self.step();
        assert!(!self.holder.believes(self.now));
    }
}
