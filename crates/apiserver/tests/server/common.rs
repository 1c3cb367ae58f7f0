//! Common parts of the tests of the server.

use elector_api::Lease;
use elector_apiserver::ApiServer;
use futures::StreamExt as _;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// Where the leases of the tests are.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A watch, frame by frame.
pub(crate) struct Frames {
    body: Body,
    rest: Vec<u8>,
}

/// A client of that name.
pub(crate) fn client(server: &ApiServer, name: &str) -> Client {
    Client::new(server.service(name), "default")
}

/// One request; the status and the JSON of its answer.
pub(crate) async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> kube::Result<(StatusCode, Value)> {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = body
        .map(|body| body.to_string().into_bytes())
        .unwrap_or_default();
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    let answer = client
        .send(request.body(Body::from(bytes)).unwrap())
        .await?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

/// Reads what there is at a path.
pub(crate) async fn get(client: &Client, path: &str) -> (StatusCode, Value) {
    ask(client, Method::GET, path, None).await.unwrap()
}

/// Creates a lease and returns its revision.
pub(crate) async fn create(client: &Client, name: &str) -> u64 {
    let (status, lease) = ask(
        client,
        Method::POST,
        LEASES,
        Some(json!({"metadata": {"name": name}})),
    )
    .await
    .unwrap();
    assert_eq!(status, StatusCode::CREATED);
    revision(&lease)
}

/// Gives a lease a holder and returns its revision.
pub(crate) async fn hold(client: &Client, name: &str, holder: &str) -> u64 {
    let patch = json!({"spec": {"holderIdentity": holder}});
    let (status, lease) = ask(
        client,
        Method::PATCH,
        &format!("{LEASES}/{name}"),
        Some(patch),
    )
    .await
    .unwrap();
    assert_eq!(status, StatusCode::OK);
    revision(&lease)
}

/// The holder of a lease; `None` if there is no such lease.
pub(crate) async fn holder(client: &Client, name: &str) -> Option<String> {
    let (status, lease) = get(client, &format!("{LEASES}/{name}")).await;
    (status == StatusCode::OK).then(|| {
        Lease::from_value(lease)
            .spec
            .holder_identity
            .unwrap_or_default()
    })
}

/// Opens a watch of the leases with this query.
pub(crate) async fn watch(client: &Client, query: &str) -> Frames {
    watch_at(client, LEASES, query).await
}

/// Opens a watch.
pub(crate) async fn watch_at(client: &Client, path: &str, query: &str) -> Frames {
    let request = http::Request::get(format!("{path}?watch=1&{query}"));
    let answer = client
        .send(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    Frames {
        body: answer.into_body(),
        rest: Vec::new(),
    }
}

/// The revision of an object or a list.
pub(crate) fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

// === impl Frames ===

impl Frames {
    /// The next frame; `None` at a clean end, an error in the middle of one.
    pub(crate) async fn next(&mut self) -> Option<Result<Value, String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.rest.drain(..=end).collect();
                return Some(Ok(serde_json::from_slice(&line).unwrap()));
            }
            match self.body.frame().await? {
                Ok(frame) => self
                    .rest
                    .extend_from_slice(&frame.into_data().unwrap_or_default()),
                Err(error) => return Some(Err(error.to_string())),
            }
        }
    }

    /// The type of the event, the name of the object and its revision.
    pub(crate) async fn event(&mut self) -> (String, String, u64) {
        let frame = self.next().await.unwrap().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&frame["type"]),
            text(&frame["object"]["metadata"]["name"]),
            revision(&frame["object"]),
        )
    }

    /// All frames up to a clean end.
    pub(crate) async fn rest(self) -> Vec<Value> {
        let frames = futures::stream::unfold(self, |mut frames| async move {
            let frame = frames.next().await?;
            Some((frame.unwrap(), frames))
        });
        frames.collect().await
    }

    /// True if nothing comes for a virtual second.
    pub(crate) async fn is_silent(&mut self) -> bool {
        let second = std::time::Duration::from_secs(1);
        tokio::time::timeout(second, self.next()).await.is_err()
    }
}
