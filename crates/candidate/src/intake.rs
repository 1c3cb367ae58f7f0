//! What the loop of a session was waiting for, and what each of the two machines is told of it.

use elector_api::{CandidateApi, Lease, LeaseCandidate, Malformed};
use elector_protocol::holder::{LeaseEvent, ReadFailed};
use elector_protocol::registration::CandidateEvent;
use elector_protocol::{Instant, ResourceVersion};
use elector_runtime::{RequestError, WatchEvent, WriteOutcome};

use crate::outcome::{Event, RunError};
use crate::requests::{
    CandidateAnswer, LeaseAnswer, candidate_outcome, candidate_snapshot, lease_outcome,
    lease_snapshot, read_lease,
};
use crate::session::{Finish, Session};
use crate::work::WorkEnd;

/// One thing that the loop waits for.
pub(crate) enum Input<T, E> {
    Lease(LeaseAnswer),
    Candidate(CandidateAnswer),
    WorkEnd(WorkEnd<T, E>),
    ShutDown,
    LeaseEvent(WatchEvent<Lease>),
    CandidateEvent(WatchEvent<LeaseCandidate>),
    /// LeaseCandidates are to be registered in this API.
    Moved(CandidateApi),
    /// The LeaseCandidate is gone from where it was before.
    Left,
    Time,
}

/// The ways to the server: what works one way may fail another, so their failures are logged apart.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Lease,
    Candidate,
    LeaseWatch,
    CandidateWatch,
}

// === impl Way ===

impl Way {
    /// What its failures are filed under.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "requests for the Lease",
            Self::Candidate => "requests for the LeaseCandidate",
            Self::LeaseWatch => "the watch of the Lease",
            Self::CandidateWatch => "the watch of the LeaseCandidate",
        }
    }
}

// === impl Session ===

impl<T: Send + 'static, E: Send + 'static> Session<T, E> {
    pub(crate) fn take(&mut self, input: Input<T, E>) -> Result<(), RunError> {
        let now = self.clock.holder();
        match input {
            Input::Lease(answer) => self.take_lease_answer(now, answer),
            Input::Candidate(answer) => self.take_candidate_answer(now, answer)?,
            Input::WorkEnd(end) => self.take_work_end(now, end),
            Input::ShutDown => self.close(Finish::ShutDown),
            Input::LeaseEvent(event) => self.take_lease_event(now, event),
            Input::CandidateEvent(event) => self.take_candidate_event(now, event),
            Input::Left => self.farewell_request = None,
            // The loop moves, as the watch is its own.
            Input::Moved(_) | Input::Time => {}
        }
        if self.registration.is_withdrawn() {
            self.holder.handle_withdrawn();
        }
        Ok(())
    }

    fn take_lease_answer(&mut self, now: Instant, answer: LeaseAnswer) {
        self.lease_request = None;
        match answer {
            LeaseAnswer::Read(answer) => {
                self.note(now, Way::Lease, answer.as_ref().err());
                if let Ok(Some(lease)) = &answer {
                    self.note_lease(now, lease);
                }
                self.holder.handle_read(now, read_lease(&answer));
                self.keep_lease(now, answer.ok().flatten());
            }
            LeaseAnswer::Wrote(outcome) => {
                self.note(now, Way::Lease, outcome.error());
                self.holder.handle_outcome(now, lease_outcome(&outcome));
                self.keep_lease(now, outcome.done());
            }
        }
    }

    fn take_candidate_answer(
        &mut self,
        now: Instant,
        answer: CandidateAnswer,
    ) -> Result<(), RunError> {
        self.candidate_request = None;
        match answer {
            CandidateAnswer::Read(answer) => {
                self.note(now, Way::Candidate, answer.as_ref().err());
                let read = match &answer {
                    Ok(None) => Ok(None),
                    Ok(Some(object)) => candidate_snapshot(object).map(Some).ok_or(ReadFailed),
                    Err(_) => Err(ReadFailed),
                };
                self.registration.handle_read(now, read);
                if let Some(object) = answer.ok().flatten() {
                    self.note_candidate(now, &object);
                    self.keep_candidate(object);
                }
            }
            CandidateAnswer::Wrote(outcome) => {
                if let WriteOutcome::Refused(error) = &outcome
                    && error.code() == Some(422)
                {
                    return Err(RunError::Invalid(error.clone()));
                }
                self.note(now, Way::Candidate, outcome.error());
                if let Some(error) = outcome.error() {
                    self.api_discovery.suspect(error);
                }
                let read = candidate_outcome(&outcome, candidate_snapshot);
                self.registration.handle_outcome(now, read);
                if let Some(object) = outcome.done() {
                    self.written.clone_from(&object.metadata.resource_version);
                    self.object = Some(object);
                }
            }
            CandidateAnswer::Deleted(outcome) => {
                self.note(now, Way::Candidate, outcome.error());
                self.registration
                    .handle_outcome(now, candidate_outcome(&outcome, |()| None));
                // The release does not wait for a server that does not delete.
                self.holder.handle_withdrawn();
            }
        }
        Ok(())
    }

    fn take_work_end(&mut self, now: Instant, end: WorkEnd<T, E>) {
        let Some(work) = self.work.take() else {
            return;
        };
        let term = work.term;
        self.tell(&Event::WorkStopped { term });
        match end {
            WorkEnd::Failed(error) => self.close(Finish::WorkFailed(error)),
            WorkEnd::Panicked(message) => self.close(Finish::WorkPanicked(message)),
            WorkEnd::Ended(value) if !work.is_told() => self.close(Finish::WorkEnded(value)),
            WorkEnd::Ended(_) | WorkEnd::Dropped => {}
        }
        self.holder.handle_work_stopped(now);
    }

    fn take_lease_event(&mut self, now: Instant, event: WatchEvent<Lease>) {
        match event {
            WatchEvent::Applied(lease) => self.see_lease(now, lease),
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(lease) => self.see_lease(now, lease),
                None => self.miss_lease(now, version),
            },
            WatchEvent::Deleted(lease) => match lease_snapshot(&lease) {
                Some(last) => self.miss_lease(now, last.version),
                None => self.holder.request_read(),
            },
            WatchEvent::Rewound { .. } => self.holder.request_read(),
            WatchEvent::Failed(error) => self.note(now, Way::LeaseWatch, Some(&error)),
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => self.note(now, Way::LeaseWatch, None),
        }
    }

    fn see_lease(&mut self, now: Instant, lease: Lease) {
        self.note_lease(now, &lease);
        match lease_snapshot(&lease) {
            Some(snapshot) => {
                self.holder.handle_event(now, LeaseEvent::Seen(snapshot));
                self.keep_lease(now, Some(lease));
            }
            None => self.holder.request_read(),
        }
    }

    fn miss_lease(&mut self, now: Instant, version: ResourceVersion) {
        self.holder.handle_event(now, LeaseEvent::Deleted(version));
        self.keep_lease(now, None);
    }

    fn take_candidate_event(&mut self, now: Instant, event: WatchEvent<LeaseCandidate>) {
        match event {
            WatchEvent::Applied(object) => self.see_candidate(now, object),
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(object) => self.see_candidate(now, object),
                None => self
                    .registration
                    .handle_event(CandidateEvent::Deleted(version)),
            },
            WatchEvent::Deleted(object) => {
                if let Some(last) = candidate_snapshot(&object) {
                    let gone = CandidateEvent::Deleted(last.version);
                    self.registration.handle_event(gone);
                }
            }
            WatchEvent::Rewound { .. } => self.registration.request_read(),
            WatchEvent::Failed(error) => {
                self.api_discovery.suspect(&error);
                self.note(now, Way::CandidateWatch, Some(&error));
            }
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => {
                self.api_discovery.trust();
                self.note(now, Way::CandidateWatch, None);
            }
        }
    }

    fn see_candidate(&mut self, now: Instant, object: LeaseCandidate) {
        self.note_candidate(now, &object);
        let Some(snapshot) = candidate_snapshot(&object) else {
            return;
        };
        self.registration
            .handle_event(CandidateEvent::Seen(snapshot));
        self.keep_candidate(object);
    }

    /// Logs a request that failed, and that the next one of its kind did not.
    fn note(&mut self, now: Instant, way: Way, error: Option<&RequestError>) {
        let way = way.as_str();
        match error {
            Some(error) => self.failures.note(now, way, &format!("failed to {error}")),
            None => self
                .failures
                .end(now, way, Some("the API server answers again")),
        }
    }

    /// Logs a Lease that cannot be read, which is ignored.
    fn note_lease(&mut self, now: Instant, lease: &Lease) {
        let fault = lease.snapshot().err();
        self.note_fault(now, "the Lease", fault.as_ref());
    }

    /// Logs an own LeaseCandidate that cannot be read, which is ignored.
    fn note_candidate(&mut self, now: Instant, object: &LeaseCandidate) {
        let fault = object.candidate().err();
        self.note_fault(now, "the own LeaseCandidate", fault.as_ref());
    }

    fn note_fault(&mut self, now: Instant, subject: &str, fault: Option<&Malformed>) {
        match fault {
            Some(fault) => {
                let text = format!("ignored {subject}, which cannot be read: {fault}");
                self.failures.note(now, subject, &text);
            }
            None => self.failures.end(now, subject, None),
        }
    }

    /// Keeps the object that belongs to what the registration knows.
    fn keep_candidate(&mut self, object: LeaseCandidate) {
        self.look_for_damage(&object);
        let version = candidate_snapshot(&object).map(|snapshot| snapshot.version);
        if self.registration.seen() == version {
            self.object = Some(object);
        }
    }

    /// Whether somebody else wrote into the own LeaseCandidate what this process does not offer.
    fn look_for_damage(&mut self, object: &LeaseCandidate) {
        let version = &object.metadata.resource_version;
        let intact = object.faults().is_empty() && self.config.offer(object.clone()) == *object;
        if !self.registered || intact || *version == self.written {
            return;
        }
        if let Some(snapshot) = candidate_snapshot(object) {
            let (now, candidate) = (self.clock.holder(), &self.config.identity);
            let text = format!(
                "somebody else changed the own LeaseCandidate {candidate}; writing it anew"
            );
            self.failures
                .note(now, "changes of the own LeaseCandidate", &text);
            self.registration.handle_spoilt(snapshot.version);
        }
    }

    /// Keeps the object that belongs to what the holder knows.
    fn keep_lease(&mut self, now: Instant, lease: Option<Lease>) {
        let known = self.holder.known().map(|known| known.version);
        let version = |lease: &Lease| lease.snapshot().ok().map(|snapshot| snapshot.version);
        if known.is_none() {
            self.lease = None;
            return;
        }
        let Some(lease) = lease.filter(|lease| version(lease) == known) else {
            return;
        };
        if self.lease.as_ref().and_then(version) != known {
            self.heard_at = now;
            self.lease = Some(lease);
        }
    }
}
