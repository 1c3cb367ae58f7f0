//! A client of kube 4 as Elector takes it, and as it gives it back.

use elector_candidate::{Cluster, LeaderOnlyLayer};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Layer as _;
use tower::util::BoxCloneService;

type HttpService = BoxCloneService<Request<Body>, Response<Body>, kube::Error>;

/// The connection of the candidate.
pub async fn connect() -> kube::Result<Cluster> {
    let client = Client::try_default().await?;
    Ok(Cluster::over(service(&client)).in_namespace(client.default_namespace()))
}

/// A client that writes only while this process leads.
pub fn guarded(client: &Client, layer: &LeaderOnlyLayer) -> Client {
    Client::new(layer.layer(service(client)), client.default_namespace())
}

fn service(client: &Client) -> HttpService {
    let client = client.clone();
    let send = move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    };
    BoxCloneService::new(tower::service_fn(send))
}
