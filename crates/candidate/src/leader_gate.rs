//! Controllers that reconcile only while this process leads, of any version of kube.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, stream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::leadership::Leadership;

/// Lets the controllers of a process reconcile while that leads. Clones are the same one.
///
/// The controllers run all the time: their watches stay open and their caches full on standbys too, so a new leader
/// reconciles at once. Only their reconcilers are held back ([`Self::reconciler`]), and each term begins with every
/// object that is cached ([`Self::starts`]). The work of a term ([`Self::lead`]) opens the gate, and ends when the
/// reconciles that run have ended; only then is the lease handed over or released. A reconcile that does not end in time
/// is dropped where it awaits something, as all work is.
///
/// The run owns the controller ([`Candidate::alongside`](crate::Candidate::alongside)): where it ends or panics, the lease
/// is given up and the run ends, so that no process leads whose controller is gone.
///
/// A controller that is given none of this is not affected by any term.
///
#[cfg_attr(feature = "kube5", doc = "```no_run")]
#[cfg_attr(not(feature = "kube5"), doc = "```ignore")]
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use elector_candidate::{Candidate, Error, LeaderGate, Leadership, kube5};
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
/// # async fn example(candidate: Candidate, client: Client) -> Result<(), Error> {
/// let client = kube5::guarded(&client, &candidate.handle().leader_only());
/// let gate = LeaderGate::new();
/// let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
///     .reconcile_all_on(gate.starts())
///     .run(
///         gate.reconciler(reconcile, Action::await_change),
///         |_, error, _| match *error {},
///         Arc::new(client),
///     )
///     .for_each(|_| async {});
/// let candidate = candidate.alongside("controller", |_| controller);
/// candidate.run(move |leadership| gate.lead(leadership), tokio::signal::ctrl_c()).await?;
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
struct OpenTerm(Arc<GateState>);

/// A reconcile that runs, until this is dropped.
struct RunningReconcile(Arc<GateState>);

/// A reconcile as a task of its term, which ends too where the controller drops it. Gives nothing where the term ended
/// first.
struct ReconcileTask<T>(JoinHandle<T>);

// === impl LeaderGate ===

impl LeaderGate {
    /// A gate that is shut until [`Self::lead`] runs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An item for each term that begins, for `Controller::reconcile_all_on`: what changed while another process led is
    /// reconciled then. Each controller needs a stream of its own.
    pub fn starts(&self) -> impl Stream<Item = ()> + Send + 'static + use<> {
        stream::unfold(self.0.term.subscribe(), |mut term| async move {
            loop {
                term.changed().await.ok()?;
                if term.borrow_and_update().is_some() {
                    return Some(((), term));
                }
            }
        })
    }

    /// A reconciler for `Controller::run`, which calls this one while the gate is open, with the guard of the term. While
    /// the gate is shut it answers with `idle`, which is `Action::await_change`: the next term reconciles the object
    /// anyway. So it does for a reconcile that the end of its term cuts short.
    ///
    /// A reconcile runs as a task of its term ([`Leadership::spawn`]): a panic in it ends the run of the candidate.
    pub fn reconciler<K, C, R, F, A, E>(
        &self,
        reconcile: R,
        idle: fn() -> A,
    ) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<A, E>>
    + Send
    + 'static
    + use<K, C, R, F, A, E>
    where
        K: Send + Sync + 'static,
        C: Send + Sync + 'static,
        R: FnMut(Arc<K>, Arc<C>, Leadership) -> F + Send + 'static,
        F: Future<Output = Result<A, E>> + Send + 'static,
        A: Send + 'static,
        E: Send + 'static,
    {
        self.observing_reconciler(reconcile, move |_, _| async move { Ok(idle()) })
    }

    /// The same with a reconciler for standbys, which may observe, and must not write: to keep figures, say. It answers
    /// also where the end of its term cuts a reconcile short.
    pub fn observing_reconciler<K, C, R, F, O, G, A, E>(
        &self,
        reconcile: R,
        observe: O,
    ) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<A, E>>
    + Send
    + 'static
    + use<K, C, R, F, O, G, A, E>
    where
        K: Send + Sync + 'static,
        C: Send + Sync + 'static,
        R: FnMut(Arc<K>, Arc<C>, Leadership) -> F + Send + 'static,
        F: Future<Output = Result<A, E>> + Send + 'static,
        O: FnMut(Arc<K>, Arc<C>) -> G + Send + 'static,
        G: Future<Output = Result<A, E>> + Send + 'static,
        A: Send + 'static,
        E: Send + 'static,
    {
        let gate = self.clone();
        gated_reconciler(move |_: &K| Some(gate.clone()), reconcile, observe)
    }

    /// The work of a term, or a part of it: lets controllers reconcile in that term, and is done when it is to stop and
    /// what they had begun has ended.
    pub fn lead(
        &self,
        leadership: Leadership,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static + use<> {
        let state = Arc::clone(&self.0);
        async move {
            let open = OpenTerm::new(Arc::clone(&state), leadership.clone());
            leadership.stopped().await;
            drop(open);
            let mut running = state.running.subscribe();
            // It cannot be closed: this holds its sender.
            let _ = running.wait_for(|running| *running == 0).await;
            Ok(())
        }
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

/// A reconciler that is held back by the gate of each object, and answers by `observe` while that is shut.
pub(crate) fn gated_reconciler<K, C, R, F, O, G, A, E>(
    gate_of: impl Fn(&K) -> Option<LeaderGate> + Send + 'static,
    mut reconcile: R,
    observe: O,
) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<A, E>> + Send + 'static
where
    K: Send + Sync + 'static,
    C: Send + Sync + 'static,
    R: FnMut(Arc<K>, Arc<C>, Leadership) -> F + Send + 'static,
    F: Future<Output = Result<A, E>> + Send + 'static,
    O: FnMut(Arc<K>, Arc<C>) -> G + Send + 'static,
    G: Future<Output = Result<A, E>> + Send + 'static,
    A: Send + 'static,
    E: Send + 'static,
{
    let observe = Arc::new(Mutex::new(observe));
    move |object: Arc<K>, context: Arc<C>| {
        let gate = gate_of(&object);
        let open = gate.and_then(|gate| Some((gate.0.leadership()?, gate)));
        let observe = {
            let (observe, object, context) = (
                Arc::clone(&observe),
                Arc::clone(&object),
                Arc::clone(&context),
            );
            move || {
                let mut observe = observe.lock().unwrap_or_else(PoisonError::into_inner);
                (*observe)(object, context)
            }
        };
        let Some((leadership, gate)) = open else {
            return observe().boxed();
        };
        // A future spawned after the end of a term is dropped without being run, so no reconcile slips through.
        let running = RunningReconcile::begin(&gate.0);
        let reconcile = reconcile(object, context, leadership.clone());
        let reconcile = async move {
            let _running = running;
            reconcile.await
        };
        let task = ReconcileTask(leadership.spawn(reconcile.in_current_span()));
        async move {
            match task.await {
                Some(done) => done,
                None => {
                    let observed = observe();
                    observed.await
                }
            }
        }
        .boxed()
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

impl OpenTerm {
    fn new(state: Arc<GateState>, leadership: Leadership) -> Self {
        state.term.send_replace(Some(leadership));
        Self(state)
    }
}

impl Drop for OpenTerm {
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

impl<T> Future for ReconcileTask<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        // A task that was dropped with its term, or panicked, has nothing to say to the policy for errors.
        let done = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(done.ok())
    }
}

impl<T> Drop for ReconcileTask<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
