//! The candidate's side: any Lease, any object of its own, and any end of its requests.

mod checks;

use std::sync::Arc;
use std::time::Duration;

use elector_api::{Carrier, Lease, LeaseCandidate, parse_time};
use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Acquisition, Holder, HolderConfig, HolderMode, LeaseEvent, LeaseOutcome, ReadFailed,
};
use elector_protocol::registration::{
    CandidateEvent, CandidateSnapshot, Registration, RegistrationOutcome,
};
use elector_protocol::{
    CandidateTiming, Identity, Instant, LeaseKey, LeaseRecord, LeaseSnapshot, LeaseWrite, Moment,
    ResourceVersion, Term, Timestamp, Token, Uid,
};
use serde_json::Value;

use crate::arbitrary::script::{Notification, ScriptDocument, documents, duration};
use crate::arbitrary::time::wall;
use crate::arbitrary::wire;

/// One process `me` and its lease `ns/l`.
struct CandidateDriver {
    me: Identity,
    holder: Holder,
    registration: Registration,
    now: Instant,
    wall: Timestamp,
    version: u64,
    /// The newest Lease that the server showed.
    lease: Option<Lease>,
    object: Option<LeaseCandidate>,
    /// The request for the Lease that is under way.
    request: Option<PendingRequest>,
    registering: bool,
    /// Each write that may carry a belief: its term, and when it was sent.
    sent: Vec<PendingWrite>,
    working: bool,
}

enum PendingRequest {
    Read,
    Create,
    Write(Box<LeaseWrite>),
}

struct PendingWrite {
    term: (Uid, Term),
    token: Option<Token>,
    at: Instant,
}

/// Feeds a script to a candidate.
///
/// Orders: `pass` (a duration), `wall` (a time), `done` (the request for the Lease succeeds, with this object or the
/// one that fits), `fails` (`conflict`, `gone`, `refused` or anything else), `registered` and `unregistered` (the same
/// for its own object), `grant` (the server grants it the Lease), `prefer` (a candidate is preferred), `stopped`,
/// `shutDown`, `withdrawn`, `listen` (it reads both), `mode` (a new life begins, `auto`, `plain` or `elected`), `pinged` (a ping
/// of its candidate is seen).
///
/// # Panics
///
/// Where something that must hold does not.
pub fn drive_candidate(script: &[u8]) {
    let me = wire::identity("me");
    let mut driver = CandidateDriver {
        holder: holder(&me, HolderMode::Elected),
        me,
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
        driver.handle_document(document);
        driver.step();
    }
    driver.run_without_news();
}

fn holder(me: &Identity, mode: HolderMode) -> Holder {
    Holder::new(Arc::new(HolderConfig {
        identity: me.clone(),
        timing: CandidateTiming::default(),
        mode,
        life: None,
    }))
}

// === impl CandidateDriver ===

impl CandidateDriver {
    fn handle_document(&mut self, document: ScriptDocument) {
        match document {
            ScriptDocument::Leases(Notification::Seen(lease, _)) => {
                self.see_lease(lease, NewsSource::Watch);
            }
            ScriptDocument::Leases(Notification::Deleted(lease)) => match self.read(lease) {
                Some((last, _)) => {
                    let deleted = LeaseEvent::Deleted(last.version);
                    self.holder.handle_event(Moment::same(self.now), deleted);
                }
                None => self.holder.request_read(),
            },
            ScriptDocument::Leases(Notification::Listed(leases)) => {
                let ours = |lease: &Lease| lease.metadata.name.as_deref() == Some("l");
                match leases.into_iter().find(ours) {
                    Some(lease) => self.see_lease(lease, NewsSource::List),
                    None => {
                        let absent = LeaseEvent::Absent(self.next_version());
                        self.holder.handle_event(Moment::same(self.now), absent);
                    }
                }
            }
            ScriptDocument::Candidates(Notification::Seen(object, _)) => {
                self.see_object(object, CandidateEvent::Seen);
            }
            ScriptDocument::Candidates(Notification::Deleted(object)) => {
                if let Some((last, _)) = self.read_object(object) {
                    let deleted = CandidateEvent::Deleted(last.version);
                    self.registration.handle_event(deleted);
                }
            }
            ScriptDocument::Candidates(Notification::Listed(objects)) => {
                match objects.into_iter().next() {
                    Some(object) => self.see_object(object, CandidateEvent::Listed),
                    None => {
                        let absent = CandidateEvent::Absent(self.next_version());
                        self.registration.handle_event(absent);
                    }
                }
            }
            ScriptDocument::Order(name, about) => self.handle_order(&name, about),
            ScriptDocument::Other => {}
        }
    }

    fn handle_order(&mut self, order: &str, about: Value) {
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
                self.holder.handle_work_stopped(Moment::same(self.now));
            }
            "shutDown" => {
                self.holder.shut_down(Moment::same(self.now));
                self.registration.withdraw();
            }
            "mode" => self.restart(match about.as_str() {
                Some("plain") => HolderMode::Plain(Acquisition::plain()),
                Some("auto") => HolderMode::Auto {
                    fallback: Duration::from_secs(5),
                    acquisition: Acquisition::plain(),
                },
                _ => HolderMode::Elected,
            }),
            "pinged" => self.holder.handle_ping(Moment::same(self.now)),
            "withdrawn" => self.holder.handle_withdrawn(),
            "listen" => {
                self.holder.request_read();
                self.registration.request_read();
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
        self.see_lease(next, NewsSource::Watch);
    }

    /// Another life of the process begins, which comes by its terms in this way.
    fn restart(&mut self, mode: HolderMode) {
        self.holder = holder(&self.me, mode);
        (self.request, self.working) = (None, false);
        self.sent.clear();
    }

    fn see_lease(&mut self, lease: Lease, source: NewsSource) {
        match self.read(lease) {
            Some((snapshot, lease)) => {
                let seen = LeaseEvent::Seen(snapshot, source);
                self.holder.handle_event(Moment::same(self.now), seen);
                self.lease = Some(lease);
            }
            None => self.holder.request_read(),
        }
    }

    /// The version of a list above all that was seen.
    fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }

    fn see_object(
        &mut self,
        object: LeaseCandidate,
        event: fn(CandidateSnapshot) -> CandidateEvent,
    ) {
        if let Some((snapshot, object)) = self.read_object(object) {
            self.registration.handle_event(event(snapshot));
            self.object = Some(object);
        }
    }

    /// The request under way succeeds, with what the script says or what a server would say.
    fn finish(&mut self, about: Value) {
        let given = about.is_object().then(|| Lease::from_value(about));
        match self.request.take() {
            None => {}
            Some(PendingRequest::Read) => {
                let answer = match given.or_else(|| self.lease.clone()) {
                    None => Ok(None),
                    Some(lease) => match self.read(lease) {
                        Some((snapshot, lease)) => {
                            self.lease = Some(lease);
                            Ok(Some(snapshot))
                        }
                        None => Err(ReadFailed),
                    },
                };
                self.holder.handle_read(Moment::same(self.now), answer);
            }
            Some(PendingRequest::Create) => {
                let outcome = match given.map(|given| self.read(given)) {
                    Some(Some((snapshot, _))) => LeaseOutcome::Done(snapshot),
                    Some(None) => LeaseOutcome::Unknown,
                    None => LeaseOutcome::Conflict,
                };
                self.holder.handle_outcome(Moment::same(self.now), outcome);
            }
            Some(PendingRequest::Write(write)) => {
                let base = self.base(&write).cloned();
                let reply = match (given, base) {
                    // No server applies a write to another object than the one it names (R2).
                    (Some(mut given), _) => {
                        given.metadata.uid = Some(write.uid.to_string());
                        Some(given)
                    }
                    (None, base) => base.map(|base| {
                        let mut reply = base.with_record(&write.record, Carrier::Unknown);
                        reply.metadata.resource_version = None;
                        reply
                    }),
                };
                let outcome = match reply.map(|reply| self.read(reply)) {
                    Some(Some((snapshot, lease))) => {
                        self.lease = Some(lease);
                        LeaseOutcome::Done(snapshot)
                    }
                    Some(None) => LeaseOutcome::Unknown,
                    None => LeaseOutcome::Conflict,
                };
                self.holder.handle_outcome(Moment::same(self.now), outcome);
            }
        }
    }

    fn fail(&mut self, how: &str) {
        match self.request.take() {
            None => {}
            Some(PendingRequest::Read) => self
                .holder
                .handle_read(Moment::same(self.now), Err(ReadFailed)),
            Some(PendingRequest::Create | PendingRequest::Write(_)) => {
                let outcome = match how {
                    "conflict" => LeaseOutcome::Conflict,
                    "gone" => LeaseOutcome::Gone,
                    "refused" => LeaseOutcome::Refused,
                    _ => LeaseOutcome::Unknown,
                };
                self.holder.handle_outcome(Moment::same(self.now), outcome);
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
        wire::check_lease_messages(&lease);
        Some((lease.snapshot().ok()?, lease))
    }

    fn read_object(
        &mut self,
        mut object: LeaseCandidate,
    ) -> Option<(CandidateSnapshot, LeaseCandidate)> {
        self.complete(&mut object.metadata);
        wire::check_candidate_messages(&object);
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
}
