//! The handle of a candidate: who leads, asked from anywhere in the process and at any time.

use std::fmt;

use elector_protocol::{Identity, LeaseKey, Token};

use crate::health::{Unwell, WorkOverdue};
use crate::status::{LeadershipStatus, StatusReader, StatusView};
use crate::term_state::TermState;

/// The current leader, for the rest of the process: web handlers, metrics, controllers that outlive a term.
///
/// It is obtained before the run ([`Candidate::handle`](crate::Candidate::handle)) and lives before, between and after
/// the terms. The work of a term holds a [`Leadership`](crate::Leadership), which is the guard of that term alone.
///
/// [`Self::is_leader`] compares the deadline of the belief with the clock on every call: neither a blocked executor nor
/// a session that stands still prolongs a term. When the run has ended, or was dropped, the handle does not lead.
///
/// ```no_run
/// use elector_candidate::{Candidate, CandidateHandle};
///
/// async fn follow(mut handle: CandidateHandle) {
///     while let Some(status) = handle.changed().await {
///         match &status.holder {
///             Some(holder) => println!("{holder} leads, here: {}", status.is_leader()),
///             None => println!("no leader is known"),
///         }
///     }
/// }
///
/// # fn example(candidate: &Candidate) {
/// tokio::spawn(follow(candidate.handle()));
/// # }
/// ```
#[derive(Clone)]
pub struct CandidateHandle {
    reader: StatusReader,
    /// The status with which [`Self::changed`] last compared.
    seen: StatusView,
}

// === impl CandidateHandle ===

impl CandidateHandle {
    pub(crate) fn new(reader: StatusReader) -> Self {
        let seen = reader.status().view();
        Self { reader, seen }
    }

    /// The lease.
    pub const fn lease(&self) -> &LeaseKey {
        &self.reader.lease
    }

    /// The identity of this process.
    pub const fn identity(&self) -> &Identity {
        &self.reader.identity
    }

    /// True if this process may believe that it leads, by its clock, now.
    ///
    /// It is true from before the work of a term is made until that has stopped: also while it drains for a hand-over or
    /// a shutdown, and never after the deadline.
    pub fn is_leader(&self) -> bool {
        // The deadline first: the later the clock is read, the better.
        let deadline = self.reader.known.borrow().deadline();
        deadline.is_some_and(|deadline| self.reader.clock.holder() < deadline)
    }

    /// True if this process leads now, and in the term of this token.
    ///
    /// For what belongs to one term and may outlive it: in a later term of the same process it is false.
    pub fn is_leader_under(&self, token: Token) -> bool {
        let known = self.reader.known.borrow();
        let term = known.term.as_ref().filter(|term| term.token == token);
        let deadline = term.and_then(TermState::deadline);
        deadline.is_some_and(|deadline| self.reader.clock.holder() < deadline)
    }

    /// The status at this instant.
    pub fn status(&self) -> LeadershipStatus {
        self.reader.status()
    }

    /// The check of a liveness probe (`/livez`): no work of a term runs that may act no more.
    ///
    /// After a loss the work has until [`Config::stop_budget`](crate::Config::stop_budget) to end, and is dropped then.
    /// That takes effect where the work awaits something, and on an executor that turns. Where either is blocked, only a
    /// restart of the process ends the work, and another process may lead already: the check fails, by the clock alone,
    /// whether or not the session still turns. It goes on failing where a run has ended and left such work behind.
    ///
    /// It does not depend on who leads, nor on whether the API server answers: a standby, and a leader that has just
    /// lost, pass. Neither is a reason not to be ready. Ask it from a thread that work cannot block, and give the
    /// probe a failure threshold of more than one: dropped work may take a moment to end.
    ///
    /// # Errors
    ///
    /// When it should have stopped; the text says since when.
    pub fn check_work(&self) -> Result<(), WorkOverdue> {
        let known = self.reader.known.borrow();
        let now = self.reader.clock.holder();
        match known.term.as_ref().and_then(TermState::acts_until) {
            Some(until) if until < now => Err(WorkOverdue {
                since: now.since(until),
            }),
            _ => Ok(()),
        }
    }

    /// True once the run has ended, or was dropped.
    #[cfg(feature = "metrics")]
    pub(crate) fn has_ended(&self) -> bool {
        self.reader.known.has_changed().is_err()
    }

    /// The health of this process, by its probe ([`Candidate::with_health`](crate::Candidate::with_health)), for a
    /// readiness probe (`/readyz`). A process without a probe is well, and so is one whose probe has not answered yet.
    ///
    /// # Errors
    ///
    /// While it is unwell, and so no candidate; the text is what the probe said last.
    pub fn check_health(&self) -> Result<(), Unwell> {
        match &self.reader.known.borrow().unwell {
            Some(error) => Err(Unwell {
                error: error.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Waits until the status is another than it was when this last returned, or when the handle was made, and returns
    /// it. `None` once the run has ended or was dropped.
    ///
    /// A deadline that a renewal has moved is no change. The end of a belief by the clock is one, and so is the expiry of
    /// another holder's record. Of changes that follow each other quickly, only the last may be reported.
    ///
    /// It may be dropped and called again; a clone goes on from where this one is.
    pub async fn changed(&mut self) -> Option<LeadershipStatus> {
        let StatusReader {
            identity,
            clock,
            known,
            ..
        } = &mut self.reader;
        loop {
            let now = clock.holder();
            let (status, next) = {
                let known = known.borrow_and_update();
                (known.at(now, identity), known.next_change(now))
            };
            let view = status.view();
            if known.has_changed().is_err() {
                self.seen = view;
                return None;
            }
            if view != self.seen {
                self.seen = view;
                return Some(status);
            }
            let by_clock = async {
                match next {
                    Some(next) => clock.sleep_until_holder(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // An end of the run is seen at the head of the loop.
                _ = known.changed() => {}
                () = by_clock => {}
            }
        }
    }
}

impl fmt::Debug for CandidateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CandidateHandle")
            .field("lease", &self.reader.lease)
            .field("identity", &self.reader.identity)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
