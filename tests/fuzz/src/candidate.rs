//! The candidate's side: whatever the Lease and its own object say, and however its requests end.

use std::sync::Arc;
use std::time::Duration;

use elector_api::{Carrier, Lease, LeaseCandidate, parse_time};
use elector_protocol::candidate::{
    CandidateEvent, CandidateSnapshot, Decision, Effect, LeaseEvent, Outcome, ReadFailed,
    Registration, RegistrationEffect, RegistrationOutcome, StopReason, Tenure, TenureConfig,
    WriteKind,
};
use elector_protocol::elector::{Actor, audit};
use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseKey, LeaseRecord, LeaseSnapshot, LeaseWrite, Term,
    Timestamp, Token, Uid,
};
use serde_json::Value;

use crate::objects::wall;
use crate::script::{Document, Told, documents, duration};
use crate::wire;

/// One process `me` and its lease `ns/l`.
struct Process {
    me: Identity,
    tenure: Tenure,
    registration: Registration,
    now: Instant,
    wall: Timestamp,
    version: u64,
    /// The newest Lease that the server told of.
    lease: Option<Lease>,
    object: Option<LeaseCandidate>,
    /// The request for the Lease that is under way.
    request: Option<Request>,
    registering: bool,
    /// Each write that may carry a belief: its term, and when it was sent.
    sent: Vec<Sent>,
    working: bool,
}

enum Request {
    Read,
    Write(Box<LeaseWrite>),
}

struct Sent {
    term: (Uid, Term),
    token: Option<Token>,
    at: Instant,
}

/// Plays a script to a candidate.
///
/// Orders: `pass` (a duration), `wall` (a time), `done` (the request for the Lease succeeds, with this object or the
/// one that fits), `fails` (`conflict`, `gone`, `refused` or anything else), `registered` and `unregistered` (the same
/// for its own object), `grant` (the server grants it the Lease), `prefer` (somebody is preferred), `stopped`,
/// `shutDown`, `withdrawn`, `listen` (it reads both).
///
/// # Panics
///
/// Where something that must hold does not.
pub fn drive_candidate(script: &[u8]) {
    let timing = CandidateTiming::default();
    let me = wire::identity("me");
    let config = TenureConfig {
        identity: me.clone(),
        timing,
    };
    let mut process = Process {
        me,
        tenure: Tenure::new(Arc::new(config)),
        registration: Registration::new("l"),
        now: Instant::from_epoch(Duration::from_secs(1_000)),
        wall: wall(),
        version: 1_000,
        lease: None,
        object: None,
        request: None,
        registering: false,
        sent: Vec::new(),
        working: false,
    };
    for document in documents(script) {
        process.take(document);
        process.step();
    }
    process.go_quiet();
}

// === impl Process ===

impl Process {
    fn take(&mut self, document: Document) {
        match document {
            Document::Leases(Told::Seen(lease, _)) => self.see_lease(lease),
            Document::Leases(Told::Deleted(lease)) => match self.read(lease) {
                Some((last, _)) => {
                    let deleted = LeaseEvent::Deleted(last.version);
                    self.tenure.handle_event(self.now, deleted);
                }
                None => self.tenure.ask_read(),
            },
            Document::Leases(Told::Listed(leases)) => {
                let ours = |lease: &Lease| lease.metadata.name.as_deref() == Some("l");
                match leases.into_iter().find(ours) {
                    Some(lease) => self.see_lease(lease),
                    None => self.tenure.handle_event(self.now, LeaseEvent::Absent),
                }
            }
            Document::Candidates(Told::Seen(object, _)) => self.see_object(object),
            Document::Candidates(Told::Deleted(object)) => {
                if let Some((last, _)) = self.read_object(object) {
                    let deleted = CandidateEvent::Deleted(last.version);
                    self.registration.handle_event(deleted);
                }
            }
            Document::Candidates(Told::Listed(objects)) => match objects.into_iter().next() {
                Some(object) => self.see_object(object),
                None => self.registration.handle_event(CandidateEvent::Absent),
            },
            Document::Order(name, about) => self.obey(&name, about),
            Document::Noise => {}
        }
    }

    fn obey(&mut self, order: &str, about: Value) {
        match order {
            "pass" => self.now = self.now.after(duration(&about)),
            "wall" => {
                let time = about.as_str().and_then(|text| parse_time(text).ok());
                self.wall = time.unwrap_or(self.wall);
            }
            "done" => self.finish(about),
            "fails" => self.fail(about.as_str().unwrap_or_default()),
            "registered" => {
                let read = self.read_object(LeaseCandidate::from_value(about));
                let outcome = RegistrationOutcome::Done(read.map(|(snapshot, _)| snapshot));
                self.registered(outcome);
            }
            "unregistered" => self.registered(match about.as_str() {
                Some("conflict") => RegistrationOutcome::Conflict,
                Some("gone") => RegistrationOutcome::Gone,
                Some("refused") => RegistrationOutcome::Refused,
                _ => RegistrationOutcome::Unknown,
            }),
            "grant" => {
                self.edit(|record, me, now| {
                    record.granted(me.clone(), Duration::from_secs(5), now)
                });
            }
            "prefer" => {
                let preferred = about.as_str().and_then(Identity::new);
                self.edit(|record, _, _| record.preferring(preferred, None));
            }
            "stopped" => {
                self.working = false;
                self.tenure.handle_work_stopped(self.now);
            }
            "shutDown" => {
                self.tenure.shut_down(self.now);
                self.registration.withdraw();
            }
            "withdrawn" => self.tenure.handle_withdrawn(),
            "listen" => {
                self.tenure.ask_read();
                self.registration.ask_read();
            }
            _ => {}
        }
    }

    /// The server changes the newest Lease, and says so.
    fn edit(&mut self, change: impl FnOnce(&LeaseRecord, &Identity, Timestamp) -> LeaseRecord) {
        let lease = self
            .lease
            .clone()
            .unwrap_or_else(|| Lease::named(&LeaseKey::new("ns", "l")));
        let Ok(record) = lease.record() else { return };
        let next = change(&record, &self.me, self.wall);
        let mut next = lease.with_record(&next, Carrier::Unknown);
        next.metadata.resource_version = None;
        self.see_lease(next);
    }

    fn see_lease(&mut self, lease: Lease) {
        match self.read(lease) {
            Some((snapshot, lease)) => {
                let seen = LeaseEvent::Seen(snapshot);
                self.tenure.handle_event(self.now, seen);
                self.lease = Some(lease);
            }
            None => self.tenure.ask_read(),
        }
    }

    fn see_object(&mut self, object: LeaseCandidate) {
        if let Some((snapshot, object)) = self.read_object(object) {
            let seen = CandidateEvent::Seen(snapshot);
            self.registration.handle_event(seen);
            self.object = Some(object);
        }
    }

    /// The request under way succeeds, with what the script says or what a server would say.
    fn finish(&mut self, about: Value) {
        let told = about.is_object().then(|| Lease::from_value(about));
        match self.request.take() {
            None => {}
            Some(Request::Read) => {
                let answer = match told.or_else(|| self.lease.clone()) {
                    None => Ok(None),
                    Some(lease) => match self.read(lease) {
                        Some((snapshot, lease)) => {
                            self.lease = Some(lease);
                            Ok(Some(snapshot))
                        }
                        None => Err(ReadFailed),
                    },
                };
                self.tenure.handle_read(self.now, answer);
            }
            Some(Request::Write(write)) => {
                let judged = self.judged(&write).cloned();
                let reply = match (told, judged) {
                    // No server applies a write to another object than the one it names (R2).
                    (Some(mut told), _) => {
                        told.metadata.uid = Some(write.uid.as_str().to_owned());
                        Some(told)
                    }
                    (None, judged) => judged.map(|judged| {
                        let mut reply = judged.with_record(&write.record, Carrier::Unknown);
                        reply.metadata.resource_version = None;
                        reply
                    }),
                };
                let outcome = match reply.map(|reply| self.read(reply)) {
                    Some(Some((snapshot, lease))) => {
                        self.lease = Some(lease);
                        Outcome::Done(snapshot)
                    }
                    Some(None) => Outcome::Unknown,
                    None => Outcome::Conflict,
                };
                self.tenure.handle_outcome(self.now, outcome);
            }
        }
    }

    fn fail(&mut self, how: &str) {
        match self.request.take() {
            None => {}
            Some(Request::Read) => self.tenure.handle_read(self.now, Err(ReadFailed)),
            Some(Request::Write(_)) => {
                let outcome = match how {
                    "conflict" => Outcome::Conflict,
                    "gone" => Outcome::Gone,
                    "refused" => Outcome::Refused,
                    _ => Outcome::Unknown,
                };
                self.tenure.handle_outcome(self.now, outcome);
            }
        }
    }

    fn registered(&mut self, outcome: RegistrationOutcome) {
        if std::mem::take(&mut self.registering) {
            self.registration.handle_outcome(self.now, outcome);
        }
    }

    /// Reads a Lease as the candidate does. What a server would have assigned is assigned.
    fn read(&mut self, mut lease: Lease) -> Option<(LeaseSnapshot, Lease)> {
        self.complete(&mut lease.metadata);
        wire::check_lease_words(&lease);
        Some((lease.snapshot().ok()?, lease))
    }

    fn read_object(
        &mut self,
        mut object: LeaseCandidate,
    ) -> Option<(CandidateSnapshot, LeaseCandidate)> {
        self.complete(&mut object.metadata);
        wire::check_candidate_words(&object);
        let candidate = object.candidate().ok()?;
        let snapshot = CandidateSnapshot {
            uid: candidate.uid,
            version: candidate.version,
            lease: object.spec.lease_name.as_str().into(),
            ping: candidate.ping,
            renew: candidate.renew,
        };
        Some((snapshot, object))
    }

    fn complete(
        &mut self,
        metadata: &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    ) {
        if metadata.resource_version.is_none() {
            self.version += 1;
            metadata.resource_version = Some(self.version.to_string());
        }
        metadata.uid.get_or_insert_with(|| "u".to_owned());
    }

    /// Steps both machines until they have nothing more to do now.
    fn step(&mut self) {
        for turn in 0.. {
            assert!(turn < 8, "it has always something to do: {:?}", self.tenure);
            let decision = self.tenure.step(self.now, self.wall);
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
        if self.tenure.believes(self.now) {
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
        if let Some(belief) = self.tenure.belief() {
            let ends = decision.wake_at.is_some_and(|at| at <= belief.deadline);
            assert!(ends, "nobody would end the belief");
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Read => {
                assert!(self.request.is_none(), "two requests at once");
                self.request = Some(Request::Read);
            }
            Effect::Write { kind, write } => self.send(&kind, write),
            Effect::Start { .. } => {
                assert!(!self.working, "work of two terms at once");
                self.working = true;
            }
            Effect::Stop(why) => {
                assert!(self.working);
                let lost = matches!(why, StopReason::Lost(_));
                assert!(!lost || !self.tenure.believes(self.now));
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
        let Some(known) = self.tenure.known() else {
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
        if let Err(violation) = audit(&base, &write.record, &Actor::Candidate(&self.me)) {
            panic!("{kind}: {violation}: {base:?} -> {:?}", write.record);
        }
        if matches!(kind, WriteKind::Release | WriteKind::HandOff(_)) {
            assert!(!self.working && !self.tenure.believes(self.now), "{kind}");
        } else {
            self.sent.push(Sent {
                term: (write.uid.clone(), write.record.term),
                token: write.record.token,
                at: self.now,
            });
        }
        if let Some(judged) = self.judged(&write) {
            wire::check_lease_write(judged, &write.record);
        }
        self.request = Some(Request::Write(Box::new(write)));
    }

    /// The newest Lease, where it is the one that a write replaces.
    fn judged(&self, write: &LeaseWrite) -> Option<&Lease> {
        self.lease.as_ref().filter(|lease| {
            let judged = lease.snapshot();
            judged.is_ok_and(|it| (&it.uid, it.version) == (&write.uid, write.version))
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
                    let errors = elector_api::validate_candidate_update(object, object);
                    let again = elector_api::validate_candidate_update(&written, object);
                    assert!(!errors.is_empty() || again.is_empty(), "{again:?}");
                }
                self.registering = true;
            }
        }
    }

    /// S2: belief rests on a write of this process in this very term, and not for longer than that carries.
    fn check_belief(&self) {
        let (Some(belief), Some(known)) = (self.tenure.belief(), self.tenure.known()) else {
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
    fn go_quiet(&mut self) {
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
                self.tenure.step(self.now, self.wall).wake_at,
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
        assert!(!self.tenure.believes(self.now));
    }
}
