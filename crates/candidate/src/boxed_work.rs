//! The work of a program without its types, so that the machinery of a run is compiled once and not for each work.
//!
//! ```text
//!  caller's executor                            campaign, on the same executor or on a thread of its own
//!  Candidate::run: makes the work of each term <── WorkOrders ── session: the term begins
//!  the work, a task of that executor           <──── aborts ──── session: the term is over
//! ```

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Fuse};
use tokio::sync::{Notify, oneshot};

use crate::leadership::Leadership;
use crate::outcome::{RunError, RunOutcome};

/// The value that work returned.
pub(crate) type WorkValue = Box<dyn Any + Send>;
/// The error that work failed with.
pub(crate) type WorkError = Box<dyn DisplayAny>;
/// The work of one term.
pub(crate) type BoxedWork = BoxFuture<'static, Result<WorkValue, WorkError>>;
/// The outcome of a run, as long as the types of its work are hidden.
pub(crate) type BoxedOutcome = RunOutcome<WorkValue, WorkError>;
/// The function that a session calls when a term begins.
pub(crate) type MakeWork<'a> = dyn FnMut(Leadership) -> BoxedWork + Send + 'a;

/// A channel that carries nothing: its end is a shutdown.
pub(crate) type ShutdownSignal = Fuse<oneshot::Receiver<Infallible>>;

/// A value of any type that has a text.
pub(crate) trait DisplayAny: Any + fmt::Display + Send {}

/// The place where a run leaves the guard of a term that begins, and the caller's executor takes it to make the work.
#[derive(Clone, Default)]
pub(crate) struct WorkOrders(Arc<OrderSlot>);

#[derive(Default)]
struct OrderSlot {
    /// At most one: the work of a term begins when that of the term before is gone.
    order: Mutex<Option<WorkOrder>>,
    placed: Notify,
}

/// The order for the work of one term.
pub(crate) struct WorkOrder {
    leadership: Leadership,
    give: oneshot::Sender<MadeWork>,
}

/// The work of a term as the caller's function has made it, or the panic in which that ended.
type MadeWork = Result<BoxedWork, Box<dyn Any + Send>>;

// === impl DisplayAny ===

impl<E: Any + fmt::Display + Send> DisplayAny for E {}

// === impl WorkOrders ===

impl WorkOrders {
    /// Orders the work of a term. The future is that work: it waits until the work is made, and then runs it.
    pub(crate) fn place(&self, leadership: Leadership) -> BoxedWork {
        let (give, given) = oneshot::channel();
        let order = WorkOrder { leadership, give };
        *self.0.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        self.0.placed.notify_one();
        async move {
            match given.await {
                Ok(Ok(work)) => work.await,
                Ok(Err(panic)) => resume_unwind(panic),
                // The run was dropped, and this task will be.
                Err(_) => std::future::pending().await,
            }
        }
        .boxed()
    }

    /// The next order. May be dropped and called again.
    pub(crate) async fn next(&self) -> WorkOrder {
        loop {
            if let Some(order) = self.take() {
                return order;
            }
            self.0.placed.notified().await;
        }
    }

    fn take(&self) -> Option<WorkOrder> {
        let mut order = self.0.order.lock().unwrap_or_else(PoisonError::into_inner);
        order.take()
    }
}

// === impl WorkOrder ===

impl WorkOrder {
    /// Makes the work. A panic while it is made counts as a panic of the work.
    pub(crate) fn fill<F, T, E>(self, make: &mut impl FnMut(Leadership) -> F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let leadership = self.leadership;
        let made = catch_unwind(AssertUnwindSafe(|| make(leadership)));
        let boxed = |work: F| {
            let work = work.map(|result| match result {
                Ok(value) => Ok(Box::new(value) as WorkValue),
                Err(error) => Err(Box::new(error) as WorkError),
            });
            work.boxed()
        };
        // The term may have ended meanwhile.
        let _: Result<(), MadeWork> = self.give.send(made.map(boxed));
    }
}

/// The outcome with the types of its work, which are those of every work that was made.
pub(crate) fn typed<T: 'static, E: 'static>(
    outcome: Result<BoxedOutcome, RunError>,
) -> Result<RunOutcome<T, E>, RunError> {
    const SAME: &str = "all work of a run has the types of the function that makes it";
    Ok(match outcome? {
        RunOutcome::ShutDown(term) => RunOutcome::ShutDown(term),
        RunOutcome::WorkEnded { value, term } => RunOutcome::WorkEnded {
            value: *value.downcast().expect(SAME),
            term,
        },
        RunOutcome::WorkFailed { error, term } => {
            let error: Box<dyn Any> = error;
            RunOutcome::WorkFailed {
                error: *error.downcast().expect(SAME),
                term,
            }
        }
        RunOutcome::WorkPanicked { message, term } => RunOutcome::WorkPanicked { message, term },
        RunOutcome::Unwell { error, term } => RunOutcome::Unwell { error, term },
        RunOutcome::TermEnded(term) => RunOutcome::TermEnded(term),
    })
}
