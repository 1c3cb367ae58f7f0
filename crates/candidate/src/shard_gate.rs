//! Controllers that reconcile the objects of the ranges that this process leads, of any version of kube.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt as _, stream};

use crate::group::GroupHandle;
use crate::leader_gate::{LeaderGate, gated_reconciler};
use crate::leadership::Leadership;
use crate::object_key::ObjectKey;

/// Lets the controllers of a process reconcile the objects of the ranges that it leads. Clones are the same one.
///
/// It is a [`LeaderGate`] for each range: the key of an object says which of them it passes. A reconcile is given the guard
/// of the part that the object is in, and is a task of that term: the part is given away when the reconciles of its objects
/// have ended, and those of other parts go on. So no object is reconciled by two processes at once that both keep to their
/// time ([`Leadership::is_leader`]).
///
/// A part that is gained opens its gate first, and then everything that is cached is reconciled once ([`Self::starts`]), or
/// what is in that part alone ([`Self::gained`]). [`GroupHandle::owns`] is true from before that on.
///
#[cfg_attr(all(feature = "kube5", feature = "connect"), doc = "```no_run")]
#[cfg_attr(not(all(feature = "kube5", feature = "connect")), doc = "```ignore")]
/// use std::convert::Infallible;
/// use std::sync::Arc;
///
/// use elector_candidate::{Config, Error, GroupCandidate, Leadership, Parts, ShardGate, kube5, shutdown_signal};
/// use futures::StreamExt as _;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::runtime::controller::{Action, Controller};
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
///
/// async fn reconcile(_: Arc<ConfigMap>, _: Arc<Client>, leadership: Leadership) -> Result<Action, Infallible> {
///     println!("reconciling {:?} under token {}", leadership.part(), leadership.token());
///     Ok(Action::await_change())
/// }
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// let config = Config::new("maps", env!("CARGO_PKG_VERSION"));
/// let group = GroupCandidate::connect(config, Parts::by_uid(16)).await?;
/// let (handle, gate) = (group.handle(), ShardGate::new(&group.handle()));
/// let maps = Api::<ConfigMap>::all(kube5::sharded(&client, &handle, &["configmaps"]));
/// let controller = Controller::new(maps, watcher::Config::default())
///     .reconcile_all_on(gate.starts())
///     .run(
///         gate.reconciler(kube5::key, reconcile, Action::await_change),
///         |_, error, _| match *error {},
///         Arc::new(client),
///     )
///     .for_each(|_| async {});
/// let group = group.alongside("controller", |_| controller);
/// group.run(move |leadership| gate.lead(leadership), shutdown_signal()?).await
/// # }
/// ```
///
/// Named parts take a [`LeaderGate`] each.
#[derive(Clone)]
pub struct ShardGate(Arc<ShardGates>);

struct ShardGates {
    group: GroupHandle,
    /// One for each part, in their order.
    gates: Box<[LeaderGate]>,
}

/// The news after which objects are to be reconciled anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateNews {
    /// The gate of this part has been opened.
    Opened(usize),
    /// A client holds what it has listed of other ranges than before.
    Listed,
}

// === impl ShardGate ===

impl ShardGate {
    /// A gate for the ranges of that group, each shut until [`Self::lead`] runs for its part.
    #[must_use]
    pub fn new(group: &GroupHandle) -> Self {
        let gates = group.parts().iter().map(|_| LeaderGate::new());
        Self(Arc::new(ShardGates {
            group: group.clone(),
            gates: gates.collect(),
        }))
    }

    /// An item for each part that is gained, for `Controller::reconcile_all_on`: everything that is cached is reconciled
    /// then. Each controller needs a stream of its own.
    ///
    /// With `kube5::sharded` an item comes too when a list of other ranges is complete: a controller of kube-runtime
    /// overlooks an object that it had not cached before and finds on a page that is not the last.
    pub fn starts(&self) -> impl Stream<Item = ()> + Send + 'static + use<> {
        self.news().map(|_| ())
    }

    /// The cached objects of each part that is gained, for `Controller::reconcile_on`, a part of kube-runtime that its
    /// feature `unstable-runtime-reconcile-on` brings: nothing else is reconciled then. `objects` is asked at that moment;
    /// it is the store of the controller. Each controller needs a stream of its own.
    ///
    /// With `kube5::sharded` those of all parts that are led come too when a list of other ranges is complete, as with
    /// [`Self::starts`].
    ///
    /// ```ignore
    /// let store = controller.store();
    /// let gained = gate.gained(kube5::key, move || store.state());
    /// let controller = controller.reconcile_on(gained.map(|object| ObjectRef::from_obj(&*object)));
    /// ```
    pub fn gained<K, P, O>(
        &self,
        key: P,
        objects: O,
    ) -> impl Stream<Item = Arc<K>> + Send + 'static + use<K, P, O>
    where
        K: Send + Sync + 'static,
        P: for<'a> Fn(&'a K) -> ObjectKey<'a> + Send + Sync + 'static,
        O: Fn() -> Vec<Arc<K>> + Send + 'static,
    {
        let gates = Arc::clone(&self.0);
        self.news().flat_map(move |news| {
            let mut gained = objects();
            gained.retain(|object| {
                let key = key(object);
                match news {
                    GateNews::Opened(part) => gates.group.index_of(key) == Some(part),
                    GateNews::Listed => gates.group.owns(key),
                }
            });
            stream::iter(gained)
        })
    }

    /// A reconciler for `Controller::run`, which calls this one for objects of the parts that are led, with the guard of
    /// the part's term. `key` is `kube5::key`, or says the same of an object of another version of kube. For all other
    /// objects it answers with `idle`, which is `Action::await_change`: when their part is gained they are reconciled
    /// anyway. So it does for a reconcile that the end of its term cuts short.
    ///
    /// A reconcile runs as a task of its term ([`Leadership::spawn`]): a panic in it gives the part back, as one of the
    /// part's work does.
    pub fn reconciler<K, C, P, R, F, A, E>(
        &self,
        key: P,
        reconcile: R,
        idle: fn() -> A,
    ) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<A, E>>
    + Send
    + 'static
    + use<K, C, P, R, F, A, E>
    where
        P: for<'a> Fn(&'a K) -> ObjectKey<'a> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        C: Send + Sync + 'static,
        R: FnMut(Arc<K>, Arc<C>, Leadership) -> F + Send + 'static,
        F: Future<Output = Result<A, E>> + Send + 'static,
        A: Send + 'static,
        E: Send + 'static,
    {
        self.observing_reconciler(key, reconcile, move |_, _| async move { Ok(idle()) })
    }

    /// The same with a reconciler for the objects of other processes, which may observe, and must not write.
    pub fn observing_reconciler<K, C, P, R, F, O, G, A, E>(
        &self,
        key: P,
        reconcile: R,
        observe: O,
    ) -> impl FnMut(Arc<K>, Arc<C>) -> BoxFuture<'static, Result<A, E>>
    + Send
    + 'static
    + use<K, C, P, R, F, O, G, A, E>
    where
        P: for<'a> Fn(&'a K) -> ObjectKey<'a> + Send + Sync + 'static,
        K: Send + Sync + 'static,
        C: Send + Sync + 'static,
        R: FnMut(Arc<K>, Arc<C>, Leadership) -> F + Send + 'static,
        F: Future<Output = Result<A, E>> + Send + 'static,
        O: FnMut(Arc<K>, Arc<C>) -> G + Send + 'static,
        G: Future<Output = Result<A, E>> + Send + 'static,
        A: Send + 'static,
        E: Send + 'static,
    {
        let gates = Arc::clone(&self.0);
        let gate_of = move |object: &K| {
            let part = gates.group.index_of(key(object))?;
            gates.gates.get(part).cloned()
        };
        gated_reconciler(gate_of, reconcile, observe)
    }

    /// The work of a part, or a piece of it: lets controllers reconcile the objects of that part in that term, and is done
    /// when it is to stop and what they had begun there has ended.
    ///
    /// # Panics
    ///
    /// When it is polled with the guard of a lease that is none of the group.
    pub fn lead(
        &self,
        leadership: Leadership,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static + use<> {
        let gates = Arc::clone(&self.0);
        async move {
            let mut parts = gates.group.parts().iter().zip(&gates.gates);
            let part = parts.find(|(part, _)| part.lease() == leadership.lease());
            let Some((_, gate)) = part else {
                panic!("{} is no lease of this group", leadership.lease());
            };
            gate.lead(leadership).await
        }
    }

    fn news(&self) -> impl Stream<Item = GateNews> + Send + 'static + use<> {
        let gates = self.0.gates.iter().enumerate();
        let opened = gates.map(|(part, gate)| {
            let starts = gate.starts();
            starts.map(move |()| GateNews::Opened(part)).boxed()
        });
        let lists = self.0.group.lists().subscribe();
        let listed = stream::unfold(lists, |mut lists| async move {
            lists.changed().await.ok()?;
            Some((GateNews::Listed, lists))
        });
        stream::select_all(opened.chain([listed.boxed()]))
    }
}

impl fmt::Debug for ShardGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardGate")
            .field("group", &self.0.group)
            .field("gates", &self.0.gates)
            .finish()
    }
}

#[cfg(test)]
#[cfg(feature = "test-util")]
mod tests;
