//! The failures of a session in the log: each way to the server, and each object that cannot be read, is a subject.

use std::sync::Arc;

use elector_api::Malformed;
use elector_protocol::Instant;
use elector_runtime::{Cause, FailureLog, HolderLog, LeasePath, RequestError, Verb};

use crate::config::Mode;
use crate::request_monitor::RequestMonitor;

/// The failures of a session.
#[derive(Debug)]
pub(crate) struct SessionFailures {
    mode: Mode,
    log: FailureLog,
    /// The watches that were refused for lack of rights, which is reported once.
    unwatched: Vec<ServerPath>,
    monitor: Option<Arc<dyn RequestMonitor>>,
}

/// A way to the server: what works one way may fail another, so their failures are logged apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerPath {
    LeaseRequests,
    CandidateRequests,
    LeaseWatch,
    CandidateWatch,
}

// === impl SessionFailures ===

impl SessionFailures {
    pub(crate) fn new(mode: Mode, monitor: Option<Arc<dyn RequestMonitor>>) -> Self {
        Self {
            mode,
            log: FailureLog::default(),
            unwatched: Vec::new(),
            monitor,
        }
    }

    /// Logs a request that failed, and that the next one of its kind did not.
    pub(crate) fn log_result(
        &mut self,
        now: Instant,
        path: ServerPath,
        error: Option<&RequestError>,
    ) {
        let subject = path.as_str();
        if let (Some(monitor), Some(error)) = (&self.monitor, error) {
            monitor.note_failure(error);
        }
        match error {
            Some(error) if is_unwatched(error) => {
                if !self.unwatched.contains(&path) {
                    self.unwatched.push(path);
                    tracing::warn!(
                        "failed to {error}; it is listed every few seconds instead, so changes are noticed later"
                    );
                }
            }
            Some(error) => {
                let right = missing_right(error, self.mode).unwrap_or_default();
                let text = format!("failed to {error}{right}");
                self.log.note(now, subject, &text);
            }
            None => self
                .log
                .end(now, subject, Some("the API server answers again")),
        }
    }

    /// Logs an object that cannot be read, which is ignored, and that it can be read again.
    pub(crate) fn log_fault(&mut self, now: Instant, object: &str, fault: Option<&Malformed>) {
        match fault {
            Some(fault) => {
                let text = format!("ignored {object}, which cannot be read: {fault}");
                self.log.note(now, object, &text);
            }
            None => self.log.end(now, object, None),
        }
    }

    /// Logs that a stranger changed something.
    pub(crate) fn log_change(&mut self, now: Instant, subject: &str, text: &str) {
        self.log.note(now, subject, text);
    }

    /// The path leads elsewhere from now on: nothing more is said of it.
    pub(crate) fn forget(&mut self, path: ServerPath) {
        self.log.forget(path.as_str());
    }

    /// Logs what was left out, and says when there is more.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Instant> {
        self.log.tick(now);
        self.log.wake_at()
    }
}

impl HolderLog for SessionFailures {
    fn log_result(&mut self, now: Instant, path: LeasePath, error: Option<&RequestError>) {
        let path = match path {
            LeasePath::Requests => ServerPath::LeaseRequests,
            LeasePath::Watch => ServerPath::LeaseWatch,
        };
        self.log_result(now, path, error);
    }

    fn log_fault(&mut self, now: Instant, fault: Option<&Malformed>) {
        self.log_fault(now, "the Lease", fault);
    }
}

/// True if this process may not watch, so that its watch lists instead.
fn is_unwatched(error: &RequestError) -> bool {
    let is_forbidden = matches!(error.cause, Cause::Forbidden(_));
    error.target.verb == Verb::Watch && is_forbidden && error.is_refusal_of_rights()
}

/// The right that this process lacks, and the mode that needs it.
fn missing_right(error: &RequestError, mode: Mode) -> Option<String> {
    let target = &error.target;
    let namespace = target.namespace.as_ref()?;
    let is_missing = matches!(error.cause, Cause::Forbidden(_)) && error.is_refusal_of_rights();
    is_missing.then(|| {
        format!(
            " (mode {mode} needs the right to {} {} in namespace {namespace})",
            target.verb.as_str(),
            target.resource
        )
    })
}

// === impl ServerPath ===

impl ServerPath {
    /// The subject of its failures in the log.
    const fn as_str(self) -> &'static str {
        match self {
            Self::LeaseRequests => "requests for the Lease",
            Self::CandidateRequests => "requests for the LeaseCandidate",
            Self::LeaseWatch => "the watch of the Lease",
            Self::CandidateWatch => "the watch of the LeaseCandidate",
        }
    }
}
