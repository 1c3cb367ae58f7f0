//! Controllers of kube-runtime that reconcile only while this process leads.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, stream};
use kube::runtime::controller::Action;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::leadership::Leadership;

/// Lets the [`Controller`](kube::runtime::Controller)s of a process reconcile while that leads. Clones are the same one.
///
/// The controllers run all the time: their watches stay open and their caches full on standbys too, so a new leader
/// reconciles at once. Only their reconcilers are held back ([`Self::reconciler`]), and each term begins with every
/// object that is cached ([`Self::term_starts`]). The work of a term ([`Self::work`]) opens the gate, and ends when the
/// reconciles that run have ended; only then is the lease handed over or released. A reconcile that does not end in time
/// is dropped where it awaits something, as all work is.
///
/// The run owns the controller ([`Candidate::alongside`](crate::Candidate::alongside)): where it ends or panics, the lease
/// is given up and the run ends, so that no process leads whose controller is gone. A candidate that has made its own
/// client (`Candidate::connect`) renews on a thread of its own, whatever the reconciles block.
///
/// A controller that is given none of this is not affected by any term.
///
/// ```no_run
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use elector_candidate::{Candidate, Leadership, LeaderGate};
/// use futures::StreamExt as _;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::runtime::controller::{Action, Controller};
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
///
/// async fn reconcile(_: Arc<ConfigMap>, _: Arc<Client>, leadership: Leadership) -> Result<Action, Infallible> {
///     println!("reconciling under token {}", leadership.token());
///     Ok(Action::requeue(Duration::from_secs(300)))
/// }
///
/// # async fn example(candidate: Candidate, client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let client = candidate.handle().write_guard().client(&client);
/// let gate = LeaderGate::new();
/// let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
///     .reconcile_all_on(gate.term_starts())
///     .run(gate.reconciler(reconcile), |_, error, _| match *error {}, Arc::new(client))
///     .for_each(|_| async {});
/// let candidate = candidate.alongside("controller", |_| controller);
/// candidate.run(gate.work(), tokio::signal::ctrl_c()).await?.into_result()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct LeaderGate(Arc<GateState>);

#[derive(Default)]
struct GateState {
    /// The term in which reconciles may begin.
    term: watch::Sender<Option<Leadership>>,
    /// The number of reconciles that run.
    running: watch::Sender<usize>,
}

/// A term in which reconciles may begin, until this is dropped.
struct OpenTerm<'a>(&'a GateState);

/// A reconcile that runs, until this is dropped.
struct RunningReconcile(Arc<GateState>);

/// A reconcile as a task of its term, which ends too where the controller drops it.
struct ReconcileTask<E>(JoinHandle<Result<Action, E>>);

// === impl LeaderGate ===

impl LeaderGate {
    /// A gate that is shut until [`Self::work`] runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells of each term that begins, for
    /// [`Controller::reconcile_all_on`](kube::runtime::Controller::reconcile_all_on): what changed while another process
    /// led is reconciled then. Each controller needs a stream of its own.
    pub fn term_starts(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::unfold(self.0.term.subscribe(), |mut term| async move {
            loop {
                term.changed().await.ok()?;
                if term.borrow_and_update().is_some() {
                    return Some(((), term));
                }
            }
        })
    }

    /// A reconciler for [`Controller::run`](kube::runtime::Controller::run), which calls this one while the gate is open,
    /// with the guard of the term.
    ///
    /// While the gate is shut it does nothing and awaits a change: the next term reconciles the object anyway. A reconcile
    /// runs as a task of its term ([`Leadership::spawn`]): a panic in it ends the run of the candidate.
    pub fn reconciler<K, C, R, F, E>(
        &self,
        mut reconcile: R,
    ) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<Action, E>> + use<K, C, R, F, E>
    where
        R: FnMut(Arc<K>, Arc<C>, Leadership) -> F,
        F: Future<Output = Result<Action, E>> + Send + 'static,
        E: Send + 'static,
    {
        let state = Arc::clone(&self.0);
        move |object, context| {
            let Some(leadership) = state.leadership() else {
                return async { Ok(Action::await_change()) }.boxed();
            };
            // A future spawned after the end of a term is dropped without being run, so no reconcile slips through.
            let running = RunningReconcile::begin(&state);
            let reconcile = reconcile(object, context, leadership.clone());
            let reconcile = async move {
                let _running = running;
                reconcile.await
            };
            ReconcileTask(leadership.spawn(reconcile.in_current_span())).boxed()
        }
    }

    /// The work of a candidate whose work is that of its controllers, for [`Candidate::run`](crate::Candidate::run).
    pub fn work(
        &self,
    ) -> impl FnMut(Leadership) -> BoxFuture<'static, Result<(), Infallible>> + Send + use<> {
        let gate = self.clone();
        move |leadership| {
            let gate = gate.clone();
            async move {
                gate.lead(leadership).await;
                Ok(())
            }
            .boxed()
        }
    }

    /// Lets controllers reconcile in that term, and returns when it is to stop and what they had begun has ended. For work
    /// that does something else besides.
    pub async fn lead(&self, leadership: Leadership) {
        let open = OpenTerm::new(&self.0, leadership.clone());
        leadership.stopped().await;
        drop(open);
        let mut running = self.0.running.subscribe();
        // It cannot be closed: this holds its sender.
        let _ = running.wait_for(|running| *running == 0).await;
    }
}

impl fmt::Debug for LeaderGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderGate")
            .field("term", &*self.0.term.borrow())
            .field("running", &*self.0.running.borrow())
            .finish()
    }
}

// === impl GateState ===

impl GateState {
    /// The guard of the term in which a reconcile may begin now, by the clock too.
    fn leadership(&self) -> Option<Leadership> {
        let leadership = self.term.borrow().clone();
        leadership.filter(Leadership::is_leader)
    }
}

// === impl OpenTerm ===

impl<'a> OpenTerm<'a> {
    fn new(state: &'a GateState, leadership: Leadership) -> Self {
        state.term.send_replace(Some(leadership));
        Self(state)
    }
}

impl Drop for OpenTerm<'_> {
    fn drop(&mut self) {
        self.0.term.send_replace(None);
    }
}

// === impl RunningReconcile ===

impl RunningReconcile {
    fn begin(state: &Arc<GateState>) -> Self {
        state.running.send_modify(|running| *running += 1);
        Self(Arc::clone(state))
    }
}

impl Drop for RunningReconcile {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

// === impl ReconcileTask ===

impl<E> Future for ReconcileTask<E> {
    type Output = Result<Action, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A task that was dropped with its term, or panicked, has nothing to say to the policy for errors.
        let done = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(done.unwrap_or_else(|_| Ok(Action::await_change())))
    }
}

impl<E> Drop for ReconcileTask<E> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
