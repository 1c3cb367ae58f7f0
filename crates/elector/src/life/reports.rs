//! What came of the requests, taken into the view and the queue.

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::{RequestError, WriteOutcome};
use tracing::{debug, error};

use crate::life::Life;
use crate::view::{LeaseSeen, Restored};
use crate::work::{Progress, Reading, Report};

/// What a request was to do. Failures of one kind end with a success of the same kind.
#[derive(Clone, Copy)]
enum Attempt {
    Create,
    Write,
    Read,
    Ping,
    Collect,
}

// === impl Life ===

impl Life<'_> {
    /// Takes one report of the work on a lease, or its end.
    pub(super) fn take(&mut self, key: &LeaseKey, progress: Progress) -> Result<(), Restored> {
        let now = self.clock.monotonic();
        let Progress::Reported(report) = progress else {
            match self.at_work.remove(key) {
                // Whatever failed stays queued until the desired state is reached.
                Some(true) => self.queue.add_rate_limited(key.clone(), now.since_epoch()),
                _ => self.queue.forget(key),
            }
            self.queue.done(key, now.since_epoch());
            return Ok(());
        };
        match *report {
            Report::Created(outcome) => self.take_created(key, &outcome),
            Report::Wrote { outcome, read } => {
                self.take_written(key, outcome);
                if let Some(reading) = read {
                    return self.take_reading(key, *reading);
                }
            }
            Report::Pinged(name, outcome) => self.take_pinged(key, &name, outcome),
            Report::Collected(name, outcome) => self.take_collected(key, &name, &outcome),
            Report::Read(reading) => return self.take_reading(key, *reading),
            Report::Panicked(text) => {
                error!(lease = %key, panic = text, "failed to perform a request, which is tried again");
                self.failed(key, Attempt::Write, None);
            }
        }
        Ok(())
    }

    fn take_created(&mut self, key: &LeaseKey, outcome: &WriteOutcome<Lease>) {
        debug!(lease = %key, outcome = %outcome.kind(), "created the Lease");
        match outcome {
            // The name is taken, so the watch is about to bring it all the same.
            WriteOutcome::Done(_) | WriteOutcome::AlreadyExists => {
                self.view.handle_created(self.clock.monotonic(), key);
                self.settle_complaint(&Attempt::Create.on(key));
            }
            other => self.failed(key, Attempt::Create, other.error()),
        }
    }

    fn take_written(&mut self, key: &LeaseKey, outcome: WriteOutcome<Lease>) {
        debug!(lease = %key, outcome = %outcome.kind(), "wrote the Lease");
        match outcome {
            WriteOutcome::Done(lease) => {
                let seen = LeaseSeen::of(lease);
                self.view.handle_lease_reply(self.clock.monotonic(), seen);
                self.settle_complaint(&Attempt::Write.on(key));
            }
            other => self.failed(key, Attempt::Write, other.error()),
        }
    }

    fn take_pinged(
        &mut self,
        key: &LeaseKey,
        name: &Identity,
        outcome: WriteOutcome<LeaseCandidate>,
    ) {
        debug!(lease = %key, candidate = %name, outcome = %outcome.kind(), "asked a candidate");
        match outcome {
            WriteOutcome::Done(candidate) => {
                if let Some(seen) = self.admit(candidate) {
                    self.view
                        .handle_candidate_reply(self.clock.monotonic(), seen);
                }
                self.settle_complaint(&Attempt::Ping.on(key));
            }
            // It wrote first, which may be the answer; the watch brings it.
            other => self.failed(key, Attempt::Ping, other.error()),
        }
    }

    fn take_collected(&mut self, key: &LeaseKey, name: &Identity, outcome: &WriteOutcome<()>) {
        match outcome {
            WriteOutcome::Done(()) => {
                tracing::info!(lease = %key, candidate = %name, "collected a dead candidate");
                self.settle_complaint(&Attempt::Collect.on(key));
            }
            WriteOutcome::Gone => {}
            other => self.failed(key, Attempt::Collect, other.error()),
        }
    }

    fn take_reading(&mut self, key: &LeaseKey, reading: Reading) -> Result<(), Restored> {
        match reading.answer {
            Ok(Some(lease)) => {
                let now = self.clock.monotonic();
                let seen = LeaseSeen::of(lease);
                self.settle_complaint(&Attempt::Read.on(key));
                self.view
                    .handle_lease_read(now, seen, Some(reading.asked_at))
            }
            // The watch brings the deletion.
            Ok(None) => {
                self.failed(key, Attempt::Read, None);
                Ok(())
            }
            Err(error) => {
                self.failed(key, Attempt::Read, Some(&error));
                Ok(())
            }
        }
    }

    /// A request for this lease failed; it is tried again after a pause.
    fn failed(&mut self, key: &LeaseKey, attempt: Attempt, error: Option<&RequestError>) {
        if let Some(failed) = self.at_work.get_mut(key) {
            *failed = true;
        }
        if let Some(error) = error {
            self.complain(&attempt.on(key), &format!("failed to {error}"));
        }
    }
}

// === impl Attempt ===

impl Attempt {
    /// What complaints are filed under: one subject for all candidates of a lease, as thousands may fail for one reason.
    fn on(self, key: &LeaseKey) -> String {
        match self {
            Self::Create => format!("the creation of {key}"),
            Self::Write => format!("writes of {key}"),
            Self::Read => format!("reads of {key}"),
            Self::Ping => format!("questions to the candidates of {key}"),
            Self::Collect => format!("collections of the candidates of {key}"),
        }
    }
}
