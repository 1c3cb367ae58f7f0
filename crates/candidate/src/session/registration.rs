//! The shell of the registration: its machine, the own LeaseCandidate, and its request under way.

use elector_api::LeaseCandidate;
use elector_protocol::Instant;
use elector_protocol::holder::ReadFailed;
use elector_protocol::registration::{CandidateEvent, Registration, RegistrationEffect};
use elector_runtime::{RequestSlot, WatchEvent, WriteOutcome, Writer};

use crate::config::Config;
use crate::outcome::RunError;
use crate::session::failures::{ServerPath, SessionFailures};
use crate::session::inputs::{candidate_outcome, candidate_snapshot};
use crate::session::requests::{CandidateResponse, candidate_request};

/// The machine that registers this process and answers for it, with its LeaseCandidate.
pub(crate) struct RegistrationShell {
    pub(crate) machine: Registration,
    /// The newest revision of the own LeaseCandidate as an object.
    object: Option<LeaseCandidate>,
    /// The resourceVersion that this process wrote last.
    written: Option<String>,
    pub(crate) request: RequestSlot<CandidateResponse>,
    /// Whether the observer has been told that this process is registered.
    told: bool,
}

// === impl RegistrationShell ===

impl RegistrationShell {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            machine: Registration::new(config.lease.name.clone()),
            object: None,
            written: None,
            request: RequestSlot::default(),
            told: false,
        }
    }

    /// Whether this process has been registered since this was last asked.
    pub(crate) fn take_registered(&mut self) -> bool {
        self.machine.is_registered() && !std::mem::replace(&mut self.told, true)
    }

    /// The LeaseCandidate that is registered, given away because this process is to be registered elsewhere.
    pub(crate) fn into_object(self) -> Option<LeaseCandidate> {
        let registered = self.machine.is_registered();
        self.object.filter(|_| registered)
    }

    /// Fails where the LeaseCandidate belongs to another lease.
    pub(crate) fn check_lease(&self, config: &Config) -> Result<(), RunError> {
        match self.machine.bound_elsewhere() {
            Some(lease) => Err(RunError::BoundElsewhere {
                name: config.identity.clone(),
                lease: lease.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Sends the request that an effect asks for.
    pub(crate) fn send(&mut self, effect: &RegistrationEffect, config: &Config, writer: &Writer) {
        let timeout = config.timing.request_timeout;
        let request = candidate_request(effect, self.object.as_ref(), config, writer, timeout);
        self.request.send(request);
    }

    /// # Errors
    ///
    /// When the server refuses the LeaseCandidate as invalid.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        response: CandidateResponse,
        config: &Config,
        failures: &mut SessionFailures,
    ) -> Result<(), RunError> {
        let path = ServerPath::CandidateRequests;
        match response {
            CandidateResponse::Read(response) => {
                failures.log_result(now, path, response.as_ref().err());
                let read = match &response {
                    Ok(None) => Ok(None),
                    Ok(Some(object)) => candidate_snapshot(object).map(Some).ok_or(ReadFailed),
                    Err(_) => Err(ReadFailed),
                };
                self.machine.handle_read(now, read);
                if let Some(object) = response.ok().flatten() {
                    log_fault(now, &object, failures);
                    self.keep(now, object, config, failures);
                }
            }
            CandidateResponse::Wrote(outcome) => {
                if let WriteOutcome::Refused(error) = &outcome
                    && error.code() == Some(422)
                {
                    return Err(RunError::Invalid(error.clone()));
                }
                failures.log_result(now, path, outcome.error());
                let read = candidate_outcome(&outcome, candidate_snapshot);
                self.machine.handle_outcome(now, read);
                if let Some(object) = outcome.done() {
                    self.written.clone_from(&object.metadata.resource_version);
                    self.object = Some(object);
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
        config: &Config,
        failures: &mut SessionFailures,
    ) {
        match event {
            WatchEvent::Applied(object) => self.handle_seen(now, object, config, failures),
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(object) => self.handle_seen(now, object, config, failures),
                None => self.machine.handle_event(CandidateEvent::Deleted(version)),
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
        config: &Config,
        failures: &mut SessionFailures,
    ) {
        log_fault(now, &object, failures);
        let Some(snapshot) = candidate_snapshot(&object) else {
            return;
        };
        self.machine.handle_event(CandidateEvent::Seen(snapshot));
        self.keep(now, object, config, failures);
    }

    /// Keeps the object that belongs to what the machine knows.
    fn keep(
        &mut self,
        now: Instant,
        object: LeaseCandidate,
        config: &Config,
        failures: &mut SessionFailures,
    ) {
        self.check_damage(now, &object, config, failures);
        let version = candidate_snapshot(&object).map(|snapshot| snapshot.version);
        if self.machine.seen() == version {
            self.object = Some(object);
        }
    }

    /// Has the own LeaseCandidate written anew where a stranger wrote into it what this process does not offer.
    fn check_damage(
        &mut self,
        now: Instant,
        object: &LeaseCandidate,
        config: &Config,
        failures: &mut SessionFailures,
    ) {
        let version = &object.metadata.resource_version;
        let intact = object.faults().is_empty() && config.offer(object.clone()) == *object;
        if !self.told || intact || *version == self.written {
            return;
        }
        if let Some(snapshot) = candidate_snapshot(object) {
            let text = format!(
                "somebody else changed the own LeaseCandidate {}; writing it anew",
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
