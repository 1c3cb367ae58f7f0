//! The shell of the registration: its machine, the own LeaseCandidate, and its request under way.

use std::time::Duration;

use elector_api::{CandidateApi, LeaseCandidate};
use elector_protocol::holder::ReadFailed;
use elector_protocol::registration::{CandidateEvent, CandidateSnapshot, Registration};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{RequestSlot, WatchEvent, WriteOutcome, Writer};

use crate::error::Error;
use crate::resolved_config::ResolvedConfig;
use crate::session::failures::{ServerPath, SessionFailures};
use crate::session::inputs::{candidate_outcome, candidate_snapshot};
use crate::session::requests::{CandidateResponse, candidate_request};
use crate::session::sources::{EventSource, SessionSources};

/// The machine that registers this process and answers for it, with its LeaseCandidate.
///
/// It does nothing until an API is known to serve LeaseCandidates, and for ever in plain mode.
pub(crate) struct RegistrationShell {
    /// The writer for that API.
    writer: Option<Writer>,
    pub(crate) machine: Registration,
    /// The newest revision of the own LeaseCandidate as an object.
    object: Option<LeaseCandidate>,
    /// When this process first saw what an operator says in it.
    told_at: Option<Instant>,
    /// The resourceVersion that this process wrote last.
    written: Option<String>,
    pub(crate) request: RequestSlot<CandidateResponse>,
    /// True once the registration of this process was reported to the observer.
    told: bool,
    /// The newest ping of the own LeaseCandidate.
    ping: Option<Timestamp>,
    /// True if one was seen that has not been reported to the holder.
    pinged: bool,
    /// True from when a read brought what the watch had not, until the watch brings anything.
    pub(crate) watch_lags: bool,
}

// === impl RegistrationShell ===

impl RegistrationShell {
    pub(crate) fn new(config: &ResolvedConfig, writer: Option<Writer>) -> Self {
        Self {
            writer,
            machine: Registration::new(config.lease.name.clone()),
            object: None,
            told_at: None,
            written: None,
            request: RequestSlot::default(),
            told: false,
            ping: None,
            pinged: false,
            watch_lags: false,
        }
    }

    /// Which LeaseCandidates are used, `None` while that is not known.
    pub(crate) fn api(&self) -> Option<CandidateApi> {
        self.writer.as_ref().map(Writer::candidate_api)
    }

    /// The events about the own LeaseCandidate.
    pub(crate) fn events(
        &self,
        sources: &SessionSources,
        config: &ResolvedConfig,
        seed: u64,
    ) -> Option<EventSource<LeaseCandidate>> {
        let writer = self.writer.as_ref()?;
        Some(sources.candidate(writer, config, seed))
    }

    /// True if this process is no candidate any more, for good, or never was one.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.writer.is_none() || self.machine.is_withdrawn()
    }

    /// True if this process has been registered since the last call.
    pub(crate) fn take_registered(&mut self) -> bool {
        self.machine.is_registered() && !std::mem::replace(&mut self.told, true)
    }

    /// True if an elector has pinged this process since the last call.
    pub(crate) fn take_ping(&mut self) -> bool {
        std::mem::take(&mut self.pinged)
    }

    /// The time for which an operator wants this process not to lead, as the own LeaseCandidate says (R16).
    pub(crate) fn stands_down_for(&self, now: Instant, wall: Timestamp) -> Option<Duration> {
        let said = self.object.as_ref().and_then(LeaseCandidate::stand_down)?;
        said.remaining(self.told_at?, now, wall).ok()
    }

    /// Replaces the newest revision of the own LeaseCandidate.
    fn replace_object(&mut self, now: Instant, object: LeaseCandidate) {
        let said = self.object.as_ref().and_then(LeaseCandidate::stand_down);
        if object.stand_down() != said {
            self.told_at = Some(now);
        }
        self.object = Some(object);
    }

    /// The LeaseCandidate that is registered, with what writes it, given away because this process is to be registered
    /// elsewhere.
    pub(crate) fn into_object(self) -> Option<(Writer, LeaseCandidate)> {
        let registered = self.machine.is_registered();
        self.writer.zip(self.object.filter(|_| registered))
    }

    /// Fails where the LeaseCandidate belongs to another lease.
    pub(crate) fn check_lease(&self, config: &ResolvedConfig) -> Result<(), Error> {
        match self.machine.bound_elsewhere() {
            Some(lease) => Err(Error::Registration {
                candidate: config.identity.clone(),
                source: format!(
                    "its LeaseCandidate belongs to the lease {lease} and cannot change that"
                )
                .into(),
            }),
            None => Ok(()),
        }
    }

    /// Takes the machine as far as it goes now. Returns when to look again.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        wall: Timestamp,
        config: &ResolvedConfig,
        acks: bool,
    ) -> Option<Instant> {
        let writer = self.writer.as_ref()?;
        self.machine.ack_pings(acks);
        let decision = self.machine.step(now, wall);
        if let Some(effect) = decision.effect {
            let (seen, timeout) = (self.object.as_ref(), config.timing.request_timeout);
            self.request
                .send(candidate_request(&effect, seen, config, writer, timeout));
        }
        decision.wake_at
    }

    /// # Errors
    ///
    /// When the server refuses the LeaseCandidate as invalid, unless this process leads: then it goes on trying.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        response: CandidateResponse,
        config: &ResolvedConfig,
        failures: &mut SessionFailures,
        leads: bool,
    ) -> Result<(), Error> {
        let path = ServerPath::CandidateRequests;
        match response {
            CandidateResponse::Read(response) => {
                failures.log_result(now, path, response.as_ref().err());
                let read = match &response {
                    Ok(None) => Ok(None),
                    Ok(Some(object)) => candidate_snapshot(object).map(Some).ok_or(ReadFailed),
                    Err(_) => Err(ReadFailed),
                };
                let before = self.machine.seen();
                self.machine.handle_read(now, read);
                self.watch_lags |= self.machine.seen() != before;
                if let Some(object) = response.ok().flatten() {
                    log_fault(now, &object, failures);
                    self.keep(now, object, config, failures);
                }
            }
            CandidateResponse::Wrote(outcome) => {
                if let WriteOutcome::Refused(error) = &outcome
                    && error.code() == Some(422)
                    && !leads
                {
                    return Err(Error::Registration {
                        candidate: config.identity.clone(),
                        source: Box::new(error.clone()),
                    });
                }
                failures.log_result(now, path, outcome.error());
                let read = candidate_outcome(&outcome, candidate_snapshot);
                self.machine.handle_outcome(now, read);
                if let Some(object) = outcome.done() {
                    self.written.clone_from(&object.metadata.resource_version);
                    self.replace_object(now, object);
                }
            }
            CandidateResponse::Deleted(outcome) => {
                failures.log_result(now, path, outcome.error());
                self.machine
                    .handle_outcome(now, candidate_outcome(&outcome, |()| None));
            }
        }
        Ok(())
    }

    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        event: WatchEvent<LeaseCandidate>,
        config: &ResolvedConfig,
        failures: &mut SessionFailures,
    ) {
        match event {
            WatchEvent::Applied(object) => {
                self.handle_seen(now, object, CandidateEvent::Seen, config, failures);
            }
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(object) => {
                    self.handle_seen(now, object, CandidateEvent::Listed, config, failures);
                }
                None => self.machine.handle_event(CandidateEvent::Absent(version)),
            },
            WatchEvent::Deleted(object) => {
                if let Some(last) = candidate_snapshot(&object) {
                    let deleted = CandidateEvent::Deleted(last.version);
                    self.machine.handle_event(deleted);
                }
            }
            WatchEvent::Rewound { .. } => self.machine.request_read(),
            WatchEvent::Failed(error) => {
                failures.log_result(now, ServerPath::CandidateWatch, Some(&error));
            }
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => failures.log_result(now, ServerPath::CandidateWatch, None),
        }
    }

    fn handle_seen(
        &mut self,
        now: Instant,
        object: LeaseCandidate,
        event: fn(CandidateSnapshot) -> CandidateEvent,
        config: &ResolvedConfig,
        failures: &mut SessionFailures,
    ) {
        self.watch_lags = false;
        log_fault(now, &object, failures);
        let Some(snapshot) = candidate_snapshot(&object) else {
            return;
        };
        self.machine.handle_event(event(snapshot));
        self.keep(now, object, config, failures);
    }

    /// Keeps the object that belongs to what the machine knows.
    fn keep(
        &mut self,
        now: Instant,
        object: LeaseCandidate,
        config: &ResolvedConfig,
        failures: &mut SessionFailures,
    ) {
        self.check_damage(now, &object, config, failures);
        let snapshot = candidate_snapshot(&object);
        let version = snapshot.as_ref().map(|snapshot| snapshot.version);
        if self.machine.seen() == version {
            // A ping that was acked before this process saw it is from an earlier life of the name.
            if let Some(snapshot) = snapshot.filter(|it| it.ping > self.ping) {
                self.ping = snapshot.ping;
                self.pinged |= snapshot.ping > snapshot.renew;
            }
            self.replace_object(now, object);
        }
    }

    /// Has the own LeaseCandidate written anew where a stranger wrote into it what this process does not offer.
    fn check_damage(
        &mut self,
        now: Instant,
        object: &LeaseCandidate,
        config: &ResolvedConfig,
        failures: &mut SessionFailures,
    ) {
        let version = &object.metadata.resource_version;
        let intact = object.faults().is_empty() && config.offer(object.clone()) == *object;
        if !self.told || intact || *version == self.written {
            return;
        }
        if let Some(snapshot) = candidate_snapshot(object) {
            let text = format!(
                "another client changed the LeaseCandidate {}; restoring it",
                config.identity
            );
            failures.log_change(now, "changes of the own LeaseCandidate", &text);
            self.machine.handle_overwritten(snapshot.version);
        }
    }
}

/// Logs an own LeaseCandidate that cannot be read, which is ignored.
fn log_fault(now: Instant, object: &LeaseCandidate, failures: &mut SessionFailures) {
    failures.log_fault(
        now,
        "the own LeaseCandidate",
        object.candidate().err().as_ref(),
    );
}
