//! The work of a program without its types, so that the machinery of a run is compiled once and not for each work.
//!
//! ```text
//!  caller's executor                            run loop, on the same executor or on a thread of its own
//!  Candidate::run: makes the work of each term <── WorkOrders ── session: the term begins
//!  the work, a task of that executor           <──── aborts ──── session: the term is over
//! ```

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::{Notify, oneshot};
use tower::BoxError;

use crate::error::{Error, with_causes};
use crate::finish::RunEnd;
use crate::leadership::Leadership;
use crate::outcome::Outcome;

/// The work of one term. What it returned lies in the [`WorkResult`] of its run: the run learns whether the work failed,
/// and the text of its error.
pub(crate) type BoxedWork = BoxFuture<'static, Result<(), String>>;
/// The function that a session calls when a term begins.
pub(crate) type MakeWork<'a> = dyn FnMut(Leadership) -> BoxedWork + Send + 'a;

/// The place where a run leaves the guards of terms that begin, and the caller's executor takes them to make the work.
#[derive(Clone, Default)]
pub(crate) struct WorkOrders(Arc<OrderSlot>);

#[derive(Default)]
struct OrderSlot {
    /// At most one for each lease: the work of a term begins when that of the term before is gone.
    orders: Mutex<VecDeque<WorkOrder>>,
    placed: Notify,
}

/// The order for the work of one term.
pub(crate) struct WorkOrder {
    leadership: Leadership,
    give: oneshot::Sender<MadeWork>,
}

/// The work of a term as the caller's function has made it, or the panic in which that ended.
type MadeWork = Result<BoxedWork, Box<dyn Any + Send>>;

/// The place where the work of a run leaves what it returned. The outcome of a run is never about any but the last.
pub(crate) struct WorkResult<T>(Arc<Mutex<Option<Result<T, BoxError>>>>);

// === impl WorkOrders ===

impl WorkOrders {
    /// Orders the work of a term. The future is that work: it waits until the work is made, and then runs it.
    pub(crate) fn place(&self, leadership: Leadership) -> BoxedWork {
        let (give, given) = oneshot::channel();
        let order = WorkOrder { leadership, give };
        self.0.lock().push_back(order);
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
        let mut orders = self.0.lock();
        // Work that was dropped before it was made is not wanted any more.
        orders.retain(|order| !order.give.is_closed());
        orders.pop_front()
    }
}

// === impl OrderSlot ===

impl OrderSlot {
    fn lock(&self) -> MutexGuard<'_, VecDeque<WorkOrder>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WorkOrder ===

impl WorkOrder {
    /// Has the caller's function make the work. A panic while it is made counts as a panic of the work.
    pub(crate) fn fill(self, make: impl FnOnce(Leadership) -> BoxedWork) {
        let leadership = self.leadership;
        let made = catch_unwind(AssertUnwindSafe(|| make(leadership)));
        // The term may have ended meanwhile.
        let _: Result<(), MadeWork> = self.give.send(made);
    }
}

// === impl WorkResult ===

impl<T> Default for WorkResult<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + 'static> WorkResult<T> {
    /// The work without its types.
    pub(crate) fn boxed<E: Into<BoxError>>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> BoxedWork {
        let place = Arc::clone(&self.0);
        let leave = move |result: Result<T, E>| {
            let result = result.map_err(Into::into);
            let reported = result.as_ref().map(drop);
            let reported = reported.map_err(|error| with_causes(&**error));
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            reported
        };
        work.map(leave).boxed()
    }

    /// The result of a run that ended so, with what the work returned.
    pub(crate) fn of(&self, end: RunEnd) -> Result<Outcome<T>, Error> {
        let returned = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        end.into_result(returned)
    }
}
