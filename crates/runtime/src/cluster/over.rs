//! A client over an HTTP service of the program's own, whatever its bodies are.

use bytes::Bytes;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt as _, service_fn};

use super::Cluster;

/// The placeholder of the address of an API server that only the program knows.
pub(super) const UNKNOWN_URL: &str = "the API server";
/// The namespace where none is given, as kubectl has it.
const NAMESPACE: &str = "default";

// === impl Cluster ===

impl Cluster {
    /// A connection by an HTTP service that the program has: a client of another version of kube, a bare one of hyper,
    /// one in process.
    ///
    /// It is asked for paths such as `/apis/coordination.k8s.io/v1/namespaces/ns/leases/web`, and adds to them what
    /// leads to the API server: scheme, host, credentials. Each request has its own clone of it. The answer comes back
    /// whatever its status is; bodies may come in parts, as those of watches do. The namespace is `default` unless
    /// [`in_namespace`](Self::in_namespace) names another, and requests take
    /// [`REQUEST_TIMEOUT`](Self::REQUEST_TIMEOUT) at most.
    ///
    /// A service that retries hides failures for as long, and does no other harm: each write names the revision that it
    /// replaces, and no request outlives its timeout.
    ///
    /// With kube 4, say, the two crates `kube` and `tower` of the program, and a client that they made:
    ///
    /// ```
    /// # use kube as kube4;
    /// use elector_runtime::Cluster;
    /// use kube4::client::Body;
    ///
    /// fn bridge(client: kube4::Client) -> Cluster {
    ///     let namespace = client.default_namespace().to_owned();
    ///     let service = tower::service_fn(move |request: http::Request<Body>| {
    ///         let client = client.clone();
    ///         async move { client.send(request).await }
    ///     });
    ///     Cluster::over(service).in_namespace(namespace)
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn over<S, B, R>(service: S) -> Self
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: From<Bytes> + Send + 'static,
        R: http_body::Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        let translated = service_fn(move |request: Request<Body>| {
            let service = service.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = B::from(body.collect_bytes().await?);
                let answer = service.oneshot(Request::from_parts(head, body)).await;
                answer.map_err(Into::<BoxError>::into)
            }
        });
        Self::from(Client::new(translated, NAMESPACE))
    }

    /// No API server: each request fails at once. For a program whose election is disabled, and which may run where there
    /// is no cluster.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn absent() -> Self {
        let refused = service_fn(|_: Request<Body>| async {
            Err::<Response<Body>, BoxError>("this program has no cluster".into())
        });
        Self::from(Client::new(refused, NAMESPACE)).with_url("no API server")
    }
}

impl From<Client> for Cluster {
    /// The connections and the namespace of a client that the program has. Requests take
    /// [`REQUEST_TIMEOUT`](Cluster::REQUEST_TIMEOUT) at most; what the client adds, such as retries, stays within that.
    /// Set `default_retry` of its `kube::Config` to false to see each failure when it happens.
    fn from(client: Client) -> Self {
        Self::new(client, UNKNOWN_URL, Self::REQUEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use elector_api::Lease;
    use http_body_util::{BodyExt as _, Full};
    use serde_json::json;

    use super::*;
    use crate::{Target, Verb};

    fn target(verb: Verb) -> Target {
        Target {
            verb,
            resource: "leases".into(),
            namespace: Some("ns".into()),
            name: Some("web".into()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_with_bodies_of_its_own_is_asked() {
        type Seen = Arc<Mutex<Vec<(String, Bytes)>>>;
        let seen = Seen::default();
        let log = seen.clone();
        let service = service_fn(move |request: Request<Full<Bytes>>| {
            let log = log.clone();
            async move {
                let content = request.headers()["content-type"].to_str().unwrap();
                let line = format!("{} {} {content}", request.method(), request.uri());
                let body = request.into_body().collect().await.unwrap().to_bytes();
                log.lock().unwrap().push((line, body));
                let lease = json!({"metadata": {"name": "web", "namespace": "ns"}});
                Ok::<_, BoxError>(Response::new(Full::new(Bytes::from(lease.to_string()))))
            }
        });
        let cluster = Cluster::over(service).in_namespace("ns");
        assert_eq!(cluster.namespace(), "ns");
        let sent = json!({"spec": {}});
        for verb in [Verb::Update, Verb::Patch] {
            let target = target(verb);
            let answer: Lease = cluster
                .request(target, "/apis/x", Some(&sent))
                .await
                .unwrap();
            assert_eq!(answer.key().to_string(), "ns/web");
        }
        let expected = [
            "PUT /apis/x application/json",
            "PATCH /apis/x application/merge-patch+json",
        ];
        let expected = expected.map(|line| (line.to_owned(), Bytes::from(sent.to_string())));
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_never_answers_is_given_up_after_the_usual_time_or_another() {
        let service = service_fn(|_: Request<Full<Bytes>>| {
            std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
        });
        let cluster = Cluster::over(service);
        assert_eq!(cluster.namespace(), "default");
        let hasty = cluster.clone().with_request_timeout(Duration::from_secs(1));
        for (cluster, time) in [(cluster, "5s"), (hasty, "1s")] {
            let error = cluster
                .request::<Lease>(target(Verb::Get), "/apis/x", None)
                .await;
            let expected = format!("get leases ns/web: no answer from the API server in {time}");
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_service_says_is_repeated() {
        let service = service_fn(|_: Request<Full<Bytes>>| async {
            Err::<Response<Full<Bytes>>, BoxError>("the tunnel is closed".into())
        });
        let there = Cluster::over(service).with_url("https://there");
        for (cluster, why) in [
            (there, "https://there is unreachable: the tunnel is closed"),
            (
                Cluster::absent(),
                "no API server is unreachable: this program has no cluster",
            ),
        ] {
            let error = cluster
                .request::<Lease>(target(Verb::Get), "/apis/x", None)
                .await;
            let expected = format!("get leases ns/web: {why}");
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }
}
