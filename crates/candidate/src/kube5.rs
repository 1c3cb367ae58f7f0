//! kube 5: the client of the program, as a [`Cluster`] and under leadership. Another version of kube is another module.

use elector_runtime::Cluster as ApiServer;
use http::Request;
use kube::Client;
use kube::client::Body;
use tower::{Layer as _, service_fn};

use crate::cluster::Cluster;
use crate::leader_only::LeaderOnlyLayer;

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
