//! The handle of a candidate: who leads, asked from anywhere in the process and at any time.

use std::fmt;

use elector_protocol::{Identity, LeaseKey};
use futures::{Stream, StreamExt as _, stream};
use tokio::sync::watch;

use crate::health::Unhealthy;
use crate::leader_only::LeaderOnlyLayer;
use crate::leadership::Leadership;
use crate::status::{LeaseStatus, StatusReader, StatusView};

/// The current leader, for the rest of the process: web handlers, metrics, controllers that outlive a term.
///
/// It is obtained before the run ([`Candidate::handle`](crate::Candidate::handle)) and lives before, between and after
/// the terms. The work of a term holds a [`Leadership`], which is the guard of that term alone.
///
/// [`Self::is_leader`] compares the deadline of the belief with the clock on every call: neither a blocked executor nor
/// a session that stands still prolongs a term. When the run has ended, or was dropped, the handle does not lead.
///
/// ```no_run
/// use elector_candidate::{Candidate, CandidateHandle};
/// use futures::StreamExt as _;
///
/// async fn follow(handle: CandidateHandle) {
///     let mut changes = handle.changes();
///     while let Some(status) = changes.next().await {
///         match status.holder() {
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
}

// === impl CandidateHandle ===

impl CandidateHandle {
    pub(crate) const fn new(reader: StatusReader) -> Self {
        Self { reader }
    }

    /// The lease.
    pub fn lease(&self) -> &LeaseKey {
        self.reader.belief.lease()
    }

    /// The identity of this process.
    pub fn identity(&self) -> &Identity {
        self.reader.belief.identity()
    }

    /// True if this process may believe that it leads, by its clock, now.
    ///
    /// It is true from before the work of a term is made until that has stopped: also while it drains for a hand-over or
    /// a shutdown, and never after the deadline.
    pub fn is_leader(&self) -> bool {
        self.reader.belief.led(None).is_some()
    }

    /// The guard of the term in which new work may begin now, for what is not called by the work: a web handler, a timer.
    /// `None` where this process does not lead, before the work of a term has begun, and as soon as that is to stop.
    ///
    /// Work that outlives its call is spawned by the guard ([`Leadership::spawn`]), so that the lease is not given away
    /// under it.
    pub fn leadership(&self) -> Option<Leadership> {
        let led = self.reader.belief.led(None).filter(|led| !led.stops)?;
        let tasks = self.reader.belief.state().tasks_of(led.number)?;
        let reader = self.reader.clone();
        Some(Leadership::new(
            reader, led.number, led.term, led.token, tasks,
        ))
    }

    /// True where [`Self::leadership`] has a guard.
    pub(crate) fn may_begin_work(&self) -> bool {
        let belief = &self.reader.belief;
        let led = belief.led(None).filter(|led| !led.stops);
        led.is_some_and(|led| belief.state().tasks_of(led.number).is_some())
    }

    /// The status of the lease.
    pub fn status(&self) -> LeaseStatus {
        self.reader.status()
    }

    /// The status of the lease now, and again whenever it has changed, until the run has ended or was dropped.
    ///
    /// A deadline that a renewal has moved is no change. The end of a belief by the clock is one, and so are the expiry of
    /// another holder's record and staleness: the stream sleeps by the clock itself. Of changes that follow each other
    /// quickly, only the last may be reported.
    pub fn changes(&self) -> impl Stream<Item = LeaseStatus> + Send + Unpin + 'static + use<> {
        let state = (self.reader.clone(), None);
        stream::unfold(state, |(mut reader, seen)| async move {
            let (status, view) = next_change(&mut reader, seen).await?;
            Some((status, (reader, Some(view))))
        })
        .boxed()
    }

    /// The status of the lease as a channel of tokio. It is right when it is read: each method of a status asks the clock.
    /// It wakes for changes as [`Self::changes`] does, but by the session of the candidate, so late where that stands
    /// still. Its sender is dropped when the run ends.
    pub fn watch(&self) -> watch::Receiver<LeaseStatus> {
        self.reader.known.clone()
    }

    /// A layer that lets writes of an HTTP client pass while this process leads, in any term.
    #[must_use]
    pub fn leader_only(&self) -> LeaderOnlyLayer {
        LeaderOnlyLayer::new(self.reader.clone(), None)
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
    pub fn check_live(&self) -> Result<(), Unhealthy> {
        match self.reader.belief.overdue() {
            Some(since) => Err(Unhealthy::overdue(since)),
            None => Ok(()),
        }
    }

    /// The check of a readiness probe (`/readyz`): this process is well, by its probe
    /// ([`Candidate::with_health`](crate::Candidate::with_health)), so that it could lead. A process without a probe is
    /// well, and so is one whose probe has not answered yet. Readiness is not leadership: a standby is ready.
    ///
    /// # Errors
    ///
    /// While it is unwell, and so no candidate; the text is what the probe said last.
    pub fn check_ready(&self) -> Result<(), Unhealthy> {
        match &self.reader.belief.state().unwell {
            Some(reason) => Err(Unhealthy::unwell(reason)),
            None => Ok(()),
        }
    }

    /// True once the run has ended, or was dropped.
    #[cfg(feature = "metrics")]
    pub(crate) fn has_ended(&self) -> bool {
        self.reader.known.has_changed().is_err()
    }
}

/// Waits until the status looks otherwise than it was seen, `None` once the run has ended.
async fn next_change(
    reader: &mut StatusReader,
    seen: Option<StatusView>,
) -> Option<(LeaseStatus, StatusView)> {
    loop {
        let now = reader.belief.now();
        let status = reader.known.borrow_and_update().clone();
        let (view, next) = (status.view(), status.next_change(now));
        match &seen {
            None => return Some((status, view)),
            Some(_) if reader.known.has_changed().is_err() => return None,
            Some(seen) if view != *seen => return Some((status, view)),
            Some(_) => {}
        }
        let (belief, known) = (&reader.belief, &mut reader.known);
        let by_clock = async {
            match next {
                Some(next) => belief.clock().sleep_until_holder(next).await,
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

impl fmt::Debug for CandidateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CandidateHandle")
            .field("lease", self.lease())
            .field("identity", self.identity())
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
