//! A call that waits until this process leads, for programs whose work is no future.

use std::convert::Infallible;
use std::future::pending;
use std::ops::Deref;
use std::panic::resume_unwind;

use futures::future::maybe_done;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::candidate::Candidate;
use crate::error::Error;
use crate::leadership::Leadership;
use crate::outcome::Outcome;
use crate::term_tasks::TaskEntry;

/// A term that the caller holds, from [`Candidate::become_leader`]. It is a [`Leadership`], which it gives by reference.
///
/// The lease is renewed as long as the guard is there, by a task of the runtime in which it was obtained. It is given away
/// when the guard has been dropped, and never before:
///
/// | the guard is | |
/// |---|---|
/// | released ([`Self::release`]) | waits until the lease is released, or handed to the successor, and says how the term ended |
/// | dropped | the same happens beside the program, in two request timeouts at most. Where the runtime ends first, the lease expires |
/// | kept although the term is over | the lease is left to expire, and the [`CandidateHandle`](crate::CandidateHandle) says that the work [is overdue](crate::CandidateHandle::check_live) |
///
/// **A candidate cannot stop what holds the guard.** A future that is given to [`Candidate::run`] is dropped when its time
/// to stop is over; the code behind a guard goes on beside the next leader unless it asks. So it has to ask before each
/// effect ([`Leadership::is_leader`]), or to wait for the end beside what it does ([`Leadership::stopped`]), and then to
/// stop within [`Leadership::time_to_stop`]. What it starts by [`Leadership::spawn`] is stopped for it.
#[derive(Debug)]
#[must_use = "a guard that is dropped gives the lease away"]
pub struct HeldLease {
    leadership: Leadership,
    hold: TermHold,
    run: JoinHandle<Result<Outcome<()>, Error>>,
}

/// The release that the work of the term awaits, and the entry that keeps the lease even when that work is dropped.
#[derive(Debug)]
struct TermHold {
    _released: oneshot::Sender<Infallible>,
    _entry: Option<TaskEntry>,
}

// === impl Candidate ===

impl Candidate {
    /// Registers, waits until this process leads, and gives the guard of that term, in the place of a run with work
    /// ([`Self::run`]). For programs that are written from top to bottom:
    ///
    #[cfg_attr(feature = "connect", doc = "```no_run")]
    #[cfg_attr(not(feature = "connect"), doc = "```ignore")]
    /// use elector_candidate::{Candidate, Config, Error};
    ///
    /// # fn next_job() -> Option<u32> { None }
    /// # fn do_job(job: u32) {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Error> {
    /// let candidate = Candidate::connect(Config::new("jobs", env!("CARGO_PKG_VERSION"))).await?;
    /// let lease = candidate.become_leader().await?;
    /// while let Some(job) = next_job() {
    ///     if lease.stop_reason().is_some() {
    ///         break;
    ///     }
    ///     do_job(job);
    /// }
    /// lease.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is for one term: [`Config::one_term`](crate::Config::one_term) and
    /// [`Config::retry_work`](crate::Config::retry_work) do not matter. To lead again takes another candidate.
    ///
    /// It can be waited for beside a shutdown. When this future is dropped before it is done, the run is dropped: what it
    /// has written is left to expire.
    ///
    /// # Errors
    ///
    /// As [`Self::run`], when it cannot go on.
    ///
    /// # Panics
    ///
    /// When it is awaited outside of a Tokio runtime.
    pub async fn become_leader(self) -> Result<HeldLease, Error> {
        let (give, mut given) = oneshot::channel();
        let mut give = Some(give);
        let work = move |leadership: Leadership| {
            let (release, released) = oneshot::channel::<Infallible>();
            let hold = TermHold {
                _released: release,
                _entry: leadership.hold(),
            };
            if let Some(give) = give.take() {
                // Where the caller waits no more, the hold ends at once.
                let _: Result<(), (Leadership, TermHold)> = give.send((leadership, hold));
            }
            async move {
                let Err(_) = released.await;
                Ok::<(), Infallible>(())
            }
        };
        let run = self.for_one_term().run(work, pending::<Infallible>());
        let mut run = Box::pin(maybe_done(run));
        let given = tokio::select! {
            biased;
            () = &mut run => given.try_recv().ok(),
            Ok(given) = &mut given => Some(given),
        };
        let Some((leadership, hold)) = given else {
            let Some(Err(error)) = run.as_mut().take_output() else {
                unreachable!("a run without a shutdown has a term before it ends, or fails");
            };
            return Err(error);
        };
        let run = tokio::spawn(async move {
            run.as_mut().await;
            let outcome = run.as_mut().take_output();
            outcome.expect("what is done has an output, which is taken once")
        });
        Ok(HeldLease {
            leadership,
            hold,
            run,
        })
    }
}

// === impl HeldLease ===

impl HeldLease {
    /// Gives the term up: withdraws the candidate, and releases the lease, or hands it to the successor. Waits for the
    /// server no longer than two request timeouts. To be called when the work has stopped.
    ///
    /// # Errors
    ///
    /// When the term had ended before, by a loss or a hand-over ([`Error::TermEnded`]) or by a health probe
    /// ([`Error::Unwell`]), and when the run could not go on ([`Candidate::run`]).
    pub async fn release(self) -> Result<Outcome<()>, Error> {
        drop(self.hold);
        match self.run.await {
            Ok(outcome) => outcome,
            Err(error) => resume_unwind(error.into_panic()),
        }
    }
}

impl Deref for HeldLease {
    type Target = Leadership;

    fn deref(&self) -> &Leadership {
        &self.leadership
    }
}
