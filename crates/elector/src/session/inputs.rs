//! The inputs: watch events and responses, taken into the view.

use std::sync::Arc;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{Identity, Instant, LeaseKey};
use elector_runtime::{FailureLog, RequestError, Watch, WatchEvent, WriteOutcome};
use tracing::{debug, error, info};

use crate::builtin::{LOCK_NAME, LOCK_NAMESPACE};
use crate::config::{Config, SYSTEM_NAMESPACE};
use crate::elector_lock::ElectorLock;
use crate::lock_driver::LockInput;
use crate::session::line_budget::LineBudget;
use crate::session::races::WriteRaces;
use crate::session::requests::{BatchResponse, ElectionRequests, ElectionResponse, LeaseRead};
use crate::view::{
    CandidateList, CandidateSeen, LeaseList, LeaseSeen, LeaseVersion, ObjectName, ParsedCandidate,
    Restored, View,
};

/// One thing that the loop of a session waits for.
pub(crate) enum ElectorInput {
    Response(BatchResponse),
    LeaseEvent(WatchEvent<Lease, LeaseList>),
    CandidateEvent(WatchEvent<LeaseCandidate, CandidateList>),
    BuiltinLock(LockInput),
    ElectorLock(LockInput),
    /// LeaseCandidates are to be used from this API from now on.
    ApiMoved(CandidateApi),
    ShutDown,
    /// A deadline has come.
    Time,
}

/// The view, and the way of inputs into it.
pub(crate) struct InputHandler {
    pub(crate) view: View,
    pub(crate) failures: FailureLog,
    pub(crate) lines: LineBudget,
    pub(crate) races: WriteRaces,
    /// True if leases of `kube-system` are served.
    serves_system: bool,
    /// The lock of the electors, where they elect one of themselves.
    elector_lock: Option<LeaseKey>,
}

/// The aim of a request. Failures of one kind end with a success of the same kind.
#[derive(Clone, Copy)]
enum RequestKind {
    Create,
    Write,
    Read,
    Ping,
    Collect,
}

/// The next response or watch event. Nothing is lost where it is not waited for.
pub(crate) async fn next_news(
    requests: &mut ElectionRequests,
    leases: &mut Watch<Lease, LeaseList>,
    candidates: &mut Watch<LeaseCandidate, CandidateList>,
) -> ElectorInput {
    tokio::select! {
        biased;
        response = requests.next() => ElectorInput::Response(response),
        event = leases.next() => ElectorInput::LeaseEvent(event),
        event = candidates.next() => ElectorInput::CandidateEvent(event),
    }
}

/// The next news of the lock of the electors; forever, where there is none.
pub(crate) async fn elector_lock_input(lock: &mut Option<&mut ElectorLock>) -> LockInput {
    match lock {
        Some(lock) => lock.next().await,
        None => std::future::pending().await,
    }
}

// === impl InputHandler ===

impl InputHandler {
    pub(crate) fn new(config: &Config, watched: Vec<Option<Arc<str>>>) -> Self {
        Self {
            view: View::new(watched),
            failures: FailureLog::default(),
            lines: LineBudget::new(),
            races: WriteRaces::default(),
            serves_system: config.serves_system(),
            elector_lock: config.leader_election.as_ref().map(|it| it.lease.clone()),
        }
    }

    /// Takes an event of the watch of Leases, and names the lease of which that brought a revision.
    pub(crate) fn handle_lease_event(
        &mut self,
        now: Instant,
        event: WatchEvent<Lease, LeaseList>,
    ) -> Result<Option<LeaseKey>, Restored> {
        match event {
            WatchEvent::Gap { namespace } => self.view.handle_lease_gap(&namespace),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed {
                namespace,
                version,
                items,
            } => {
                let ours = items.into_leases();
                let ours = ours
                    .filter(|seen| self.serves(&seen.key.namespace))
                    .collect();
                self.view.handle_leases(now, &namespace, version, ours)?;
            }
            WatchEvent::Synced => self.log_recovery(now, "leases"),
            WatchEvent::Applied(lease) => {
                let revision = LeaseVersion::of(&lease);
                let key = revision.key.clone();
                // The response to a write of ours has brought what the watch brings then.
                if self.serves(&revision.key.namespace) && !self.view.has_seen(&revision) {
                    self.view
                        .handle_lease(now, LeaseSeen::kept(revision, lease));
                }
                return Ok(Some(key));
            }
            WatchEvent::Deleted(lease) => {
                let LeaseVersion { key, version } = LeaseVersion::of(&lease);
                self.view.handle_lease_gone(now, &key, version);
            }
            WatchEvent::Failed(error) => self.log_failure(now, "leases", &error),
        }
        Ok(None)
    }

    pub(crate) fn handle_candidate_event(
        &mut self,
        now: Instant,
        event: WatchEvent<LeaseCandidate, CandidateList>,
    ) -> Result<(), Restored> {
        match event {
            WatchEvent::Gap { namespace } => self.view.handle_candidate_gap(&namespace),
            WatchEvent::Rewound { .. } => return Err(Restored),
            WatchEvent::Listed {
                namespace,
                version,
                items,
            } => {
                let items: Vec<_> = items
                    .into_candidates()
                    .filter_map(|parsed| self.admit(now, parsed))
                    .collect();
                self.view.handle_candidates(now, &namespace, version, items);
            }
            WatchEvent::Synced => self.log_recovery(now, "candidates"),
            WatchEvent::Applied(candidate) => {
                let Some(parsed) = ParsedCandidate::of(&candidate) else {
                    return Ok(());
                };
                let object = parsed.object();
                match self.admit(now, parsed) {
                    Some(seen) => self.view.handle_candidate(now, seen),
                    // One that cannot be read any more belongs to no election.
                    None => self.remove_candidate(now, &object),
                }
            }
            WatchEvent::Deleted(candidate) => {
                if let Some(object) = ObjectName::of(&candidate) {
                    self.failures.end(now, object.subject(), None);
                    self.remove_candidate(now, &object);
                }
            }
            WatchEvent::Failed(error) => self.log_failure(now, "candidates", &error),
        }
        Ok(())
    }

    /// Takes the response to one request for a lease, and says whether the request failed. Where the request was
    /// overtaken, its write has lost its race before, and another one may have taken its place.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        response: ElectionResponse,
        overtaken: bool,
    ) -> Result<bool, Restored> {
        match response {
            ElectionResponse::Created(outcome) => Ok(self.handle_created(now, key, &outcome)),
            ElectionResponse::Wrote { outcome, read } => {
                let failed = self.handle_written(now, key, outcome, overtaken);
                match read {
                    // A read is a gap (R4), and the watch has brought what came before an overtaken write.
                    Some(read) if !overtaken => Ok(self.handle_read(now, key, *read)? || failed),
                    _ => Ok(failed),
                }
            }
            ElectionResponse::Pinged(name, outcome) => {
                Ok(self.handle_pinged(now, key, &name, outcome))
            }
            ElectionResponse::Collected(name, outcome) => {
                Ok(self.handle_collected(now, key, &name, &outcome))
            }
            ElectionResponse::Read(read)
                if self.races.lose_before_sent(now, key, read.version()) =>
            {
                self.view.look_again(key);
                Ok(false)
            }
            ElectionResponse::Read(read) => {
                let failed = self.handle_read(now, key, *read)?;
                let newest = self.view.lease_version(key);
                let failed = self.races.is_refused(key, newest) || failed;
                if !failed {
                    self.view.look_again(key);
                }
                Ok(failed)
            }
            ElectionResponse::Panicked(text) => {
                error!(lease = %key, panic = text, "sending a request panicked, retrying");
                Ok(true)
            }
            // The elector that acts does what there is to do, or this one once it acts.
            ElectionResponse::GivenUp => Ok(false),
        }
    }

    fn handle_created(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        outcome: &WriteOutcome<Lease>,
    ) -> bool {
        debug!(lease = %key, outcome = %outcome.kind(), "created the Lease");
        match outcome {
            // The name is taken, so the watch is about to bring it all the same.
            WriteOutcome::Done(_) | WriteOutcome::AlreadyExists => {
                self.view.handle_created(now, key);
                self.log_success(now, RequestKind::Create, key)
            }
            other => self.log_request_failure(now, RequestKind::Create, key, other.error()),
        }
    }

    fn handle_written(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        outcome: WriteOutcome<Lease>,
        overtaken: bool,
    ) -> bool {
        debug!(lease = %key, outcome = %outcome.kind(), "wrote the Lease");
        match outcome {
            WriteOutcome::Conflict if overtaken => return false,
            WriteOutcome::Conflict => {
                self.races.lose(now, key);
                self.view.look_again(key);
                return false;
            }
            _ if overtaken => {}
            _ => self.races.end(key),
        }
        match outcome {
            WriteOutcome::Done(lease) => {
                self.view.handle_lease_reply(now, LeaseSeen::of(lease));
                self.log_success(now, RequestKind::Write, key)
            }
            other => self.log_request_failure(now, RequestKind::Write, key, other.error()),
        }
    }

    fn handle_pinged(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        name: &Identity,
        outcome: WriteOutcome<LeaseCandidate>,
    ) -> bool {
        debug!(lease = %key, candidate = %name, outcome = %outcome.kind(), "pinged a candidate");
        match outcome {
            WriteOutcome::Done(candidate) => {
                let parsed = ParsedCandidate::of(&candidate);
                if let Some(seen) = parsed.and_then(|parsed| self.admit(now, parsed)) {
                    self.view.handle_candidate_reply(now, seen);
                }
                self.log_success(now, RequestKind::Ping, key)
            }
            // It wrote first, which may be the ack; the watch brings it.
            other => self.log_request_failure(now, RequestKind::Ping, key, other.error()),
        }
    }

    fn handle_collected(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        name: &Identity,
        outcome: &WriteOutcome<()>,
    ) -> bool {
        match outcome {
            WriteOutcome::Done(()) => {
                if let Some(left_out) = self.lines.take(now, &key.namespace) {
                    info!(lease = %key, candidate = %name, left_out, "collected a dead candidate");
                }
                self.log_success(now, RequestKind::Collect, key)
            }
            WriteOutcome::Gone => false,
            other => self.log_request_failure(now, RequestKind::Collect, key, other.error()),
        }
    }

    fn handle_read(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        read: LeaseRead,
    ) -> Result<bool, Restored> {
        match read.response {
            Ok(Some(lease)) => {
                let failed = self.log_success(now, RequestKind::Read, key);
                let (seen, asked_at) = (LeaseSeen::whole(lease), Some(read.asked_at));
                self.view.handle_lease_read(now, seen, asked_at)?;
                Ok(failed)
            }
            // The watch brings the deletion.
            Ok(None) => Ok(true),
            Err(error) => Ok(self.log_request_failure(now, RequestKind::Read, key, Some(&error))),
        }
    }

    /// A candidate that is in scope and belongs to an election of ours.
    fn admit(&mut self, now: Instant, parsed: ParsedCandidate) -> Option<CandidateSeen> {
        let object = parsed.object();
        if !self.serves(&object.namespace) {
            return None;
        }
        let refusal = match parsed {
            ParsedCandidate::Malformed(_, fault) => {
                format!("failed to read a LeaseCandidate: {fault}")
            }
            ParsedCandidate::Seen(seen) => match self.lock_of(&seen.lease) {
                Some(lock) => {
                    let key = &seen.lease;
                    format!("failed to admit LeaseCandidate {object}: {key} is {lock}")
                }
                None => {
                    self.failures.end(now, object.subject(), None);
                    return Some(seen);
                }
            },
        };
        let group = namespace_group(&object.namespace);
        self.failures
            .note_in(now, &group, &object.subject().to_string(), &refusal);
        None
    }

    /// The name of a lock, if this lease is one.
    fn lock_of(&self, key: &LeaseKey) -> Option<&'static str> {
        if (key.namespace.as_ref(), key.name.as_ref()) == (LOCK_NAMESPACE, LOCK_NAME) {
            return Some("the lock of the built-in controller");
        }
        let ours = self.elector_lock.as_ref() == Some(key);
        ours.then_some("the lock of the electors")
    }

    fn remove_candidate(&mut self, now: Instant, object: &ObjectName) {
        self.view
            .handle_candidate_gone(now, &object.namespace, &object.name, object.version);
    }

    /// True if leases of that namespace are ours to touch.
    fn serves(&self, namespace: &str) -> bool {
        // The watches of all namespaces leave out that of the nodes' heartbeats.
        namespace != SYSTEM_NAMESPACE || self.serves_system
    }

    fn log_failure(&mut self, now: Instant, watch: &str, error: &RequestError) {
        self.failures
            .note(now, watch, &format!("failed to {error}"));
    }

    fn log_recovery(&mut self, now: Instant, watch: &str) {
        let text = format!("{watch} are watched again");
        self.failures.end(now, watch, Some(&text));
    }

    /// A request for this lease has not failed.
    fn log_success(&mut self, now: Instant, kind: RequestKind, key: &LeaseKey) -> bool {
        let subject = kind.subject();
        self.failures
            .end(now, format_args!("{subject} {key}"), None);
        false
    }

    /// A request for this lease failed; it is tried again after a pause.
    fn log_request_failure(
        &mut self,
        now: Instant,
        kind: RequestKind,
        key: &LeaseKey,
        error: Option<&RequestError>,
    ) -> bool {
        if let Some(error) = error {
            let text = format!("failed to {error}");
            self.failures.note_in(
                now,
                &namespace_group(&key.namespace),
                &format!("{} {key}", kind.subject()),
                &text,
            );
        }
        true
    }
}

/// The group of what fails in a namespace, whose tenants choose how many objects there are.
pub(crate) fn namespace_group(namespace: &str) -> String {
    format!("namespace {namespace}")
}

// === impl RequestKind ===

impl RequestKind {
    /// The subject of failures, with the lease: one for all of its candidates, as thousands may fail for one reason.
    const fn subject(self) -> &'static str {
        match self {
            Self::Create => "the creation of",
            Self::Write => "writes of",
            Self::Read => "reads of",
            Self::Ping => "pings of the candidates of",
            Self::Collect => "collections of the candidates of",
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{LeaseRecord, ResourceVersion};

    use super::*;
    use crate::session::races::RaceStep;

    /// Another write stands in its place by then, and the watch has brought what came before it.
    #[test]
    fn the_answer_to_an_overtaken_write_is_no_lost_race_and_what_was_read_after_it_does_not_count()
    {
        let (now, key, newest) = (
            Instant::default(),
            LeaseKey::new("ns", "l"),
            ResourceVersion(7),
        );
        for (overtaken, next) in [(true, RaceStep::Judge), (false, RaceStep::Read(newest))] {
            let mut inputs = InputHandler::new(&Config::default(), vec![None]);
            let born = LeaseRecord::born(None);
            inputs.races.note_sent(&key, newest, true, &born);
            let response = ElectionResponse::Wrote {
                outcome: WriteOutcome::Conflict,
                read: Some(Box::new(LeaseRead {
                    asked_at: newest,
                    response: Ok(None),
                })),
            };
            let failed = inputs.handle_response(now, &key, response, overtaken);
            assert_eq!(failed, Ok(!overtaken));
            assert_eq!(inputs.races.next_look(now, &key, Some(newest)), next);
            assert_eq!(inputs.view.next_dirty().is_none(), overtaken);
        }
        let mut inputs = InputHandler::new(&Config::default(), vec![None]);
        let born = LeaseRecord::born(None);
        inputs.races.note_sent(&key, newest, true, &born);
        let gone = ElectionResponse::Wrote {
            outcome: WriteOutcome::Gone,
            read: None,
        };
        assert_eq!(inputs.handle_response(now, &key, gone, true), Ok(true));
        let again = inputs.races.note_sent(&key, newest, true, &born);
        assert!(again, "the newer write goes on");
    }
}
