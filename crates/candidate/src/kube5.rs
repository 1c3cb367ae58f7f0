//! kube 5: the client of the program, as a [`Cluster`], under leadership and by ranges, and the key of an object. Another
//! version of kube is another module.

use std::sync::Arc;

use elector_protocol::shard::{ShardLayout, ShardRange, ShardSelector};
use elector_runtime::Cluster as ApiServer;
use futures::StreamExt as _;
use http::Request;
use kube::client::Body;
use kube::{Client, Resource};
use tokio::sync::watch;
use tower::{Layer as _, service_fn};

use crate::cluster::Cluster;
use crate::group::GroupHandle;
use crate::leader_only::LeaderOnlyLayer;
use crate::object_key::ObjectKey;
use crate::sharded_reads::{ShardedReads, ShardedResource};

/// The ranges of a process that leads none: no selector says *nothing*, and one hash of 2^64 comes next to it.
const NEXT_TO_NONE: Option<ShardRange> = ShardRange::new(0, 0);

impl From<Client> for Cluster {
    /// The connections and the namespace of a client that the program has. Requests take 5 s at most; what the client
    /// adds, such as retries, stays within that. Set `default_retry` of its `kube::Config` to false to see each failure
    /// when it happens.
    ///
    /// The tasks of the client stay on the executor on which it was made, and so do renewals: see
    /// [`Cluster::on_own_thread`].
    fn from(client: Client) -> Self {
        Self::from(ApiServer::from(client))
    }
}

/// A client that writes only while this process leads, over one that is not bound, whose connections it shares.
///
/// # Panics
///
/// When it is called outside of a Tokio runtime, as those of kube do.
#[must_use]
pub fn guarded(client: &Client, layer: &LeaderOnlyLayer) -> Client {
    let (namespace, valid_until) = (client.default_namespace(), client.valid_until());
    let inner = client.clone();
    let send = service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Client::new(layer.layer(send), namespace).with_valid_until(*valid_until)
}

/// The key of an object, for [`GroupHandle::owns`] and [`ShardGate`](crate::ShardGate). Before an object is created it has
/// no uid.
#[must_use]
pub fn key<K: Resource>(object: &K) -> ObjectKey<'_> {
    let meta = object.meta();
    let (uid, namespace) = (meta.uid.as_deref(), meta.namespace.as_deref());
    ObjectKey::new(uid.unwrap_or_default()).in_namespace(namespace.unwrap_or_default())
}

/// A client whose lists and watches of these resources bring the objects of the ranges that this process leads, and no
/// others. It shares the connections of the client that it is made from; everything else passes as it is.
///
/// A resource is named by its plural, as in `configmaps`, or by plural and group, as in `widgets.example.com`. Reads of one
/// object by its name pass, and so do watches of one.
///
/// It takes an API server that selects by ranges: Kubernetes 1.36 with the feature gate ShardedListAndWatch, which is alpha
/// and off there. Another one sends all objects. That is logged once, and from then on this client reads everything, until
/// the program is started again. [`ShardGate`](crate::ShardGate) filters in either case, since objects of a range that is
/// lost are cached until the next list.
///
/// When the ranges change, open watches end with an error of status 410, on which a watcher of kube-runtime lists anew,
/// about a second later; its controller reports the error and reconciles what it has listed. Use the watcher's usual lists
/// and watches, not its streaming lists: those do not say when they are complete, so an object that was gained may be
/// overlooked. A watch has to go on from a list by this very client.
///
/// The client is made before the run and follows the ranges by itself. With named parts nothing is selected.
///
/// # Panics
///
/// When it is called outside of a Tokio runtime, as those of kube do.
#[must_use]
pub fn sharded(client: &Client, group: &GroupHandle, resources: &[&str]) -> Client {
    let Some(layout) = group.ranges() else {
        return client.clone();
    };
    let Some(led) = led_ranges(group, layout) else {
        return client.clone();
    };
    let (namespace, valid_until) = (client.default_namespace(), client.valid_until());
    let (sender, led) = watch::channel(led);
    tokio::spawn(follow_ranges(group.clone(), layout, sender));
    let resources = resources.iter().copied().map(ShardedResource::from);
    let lists = group.lists().clone();
    let reads = ShardedReads::new(client.clone(), resources.collect(), led, lists);
    let reads = Arc::new(reads);
    let send = service_fn(move |request: Request<Body>| Arc::clone(&reads).send(request));
    Client::new(send, namespace).with_valid_until(*valid_until)
}

/// The selector of the ranges that are led.
fn led_ranges(group: &GroupHandle, layout: ShardLayout) -> Option<ShardSelector> {
    let parts = (0..).zip(group.parts());
    let led = parts.filter(|(_, part)| part.is_leader());
    let led = led.filter_map(|(index, _)| layout.range(index));
    let selector = ShardSelector::new(layout.field(), led);
    selector.or_else(|| ShardSelector::new(layout.field(), NEXT_TO_NONE))
}

/// Passes on which ranges are led, until the run has ended or the client is gone.
async fn follow_ranges(
    group: GroupHandle,
    layout: ShardLayout,
    sender: watch::Sender<ShardSelector>,
) {
    let mut changes = group.changes();
    loop {
        tokio::select! {
            biased;
            () = sender.closed() => return,
            change = changes.next() => if change.is_none() {
                return;
            },
        }
        let led = led_ranges(&group, layout);
        sender.send_if_modified(|known| match led {
            Some(led) if led != *known => {
                *known = led;
                true
            }
            _ => false,
        });
    }
}
