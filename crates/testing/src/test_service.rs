//! The API server of a cluster in memory, as the clients of one program reach it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use tower::{BoxError, Service, ServiceExt as _};

use crate::program_record::ProgramRecord;
use crate::requests::SentRequest;
use crate::test_cluster::TestCluster;

/// The API server, as the clients of one program reach it ([`TestCluster::service`]): a tower service over HTTP, of which
/// `kube::Client::new` of any version of kube makes a client.
#[derive(Clone)]
pub struct TestService {
    cluster: TestCluster,
    program: Arc<str>,
    /// Where writes are recorded as effects of the program.
    record: Option<Arc<ProgramRecord>>,
}

/// The body of an answer.
pub struct TestBody(Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>);

/// The groups whose objects are questions: a POST of one stores nothing.
const QUESTIONS: [&str; 2] = [
    "/apis/authentication.k8s.io/",
    "/apis/authorization.k8s.io/",
];

// === impl TestCluster ===

impl TestCluster {
    /// A client of the API server for the program of that name, for `kube::Client::new(service, "default")` of any version
    /// of kube. What it writes is an effect of the program's term ([`TermReport::effects`](crate::TermReport::effects)).
    ///
    /// # Panics
    ///
    /// When the name is not visible ASCII.
    #[must_use]
    pub fn service(&self, name: &str) -> TestService {
        self.client(name).recording(self.record_of(name))
    }

    /// A bare client of the program of that name.
    pub(crate) fn client(&self, name: &str) -> TestService {
        self.record_of(name);
        TestService::new(self.clone(), name)
    }
}

// === impl TestService ===

impl TestService {
    pub(crate) fn new(cluster: TestCluster, program: &str) -> Self {
        // The name is a header of requests, and this panics where it cannot be one.
        let _ = cluster.server().service(program);
        Self {
            cluster,
            program: program.into(),
            record: None,
        }
    }

    /// The same, which writes down there what is written by it.
    pub(crate) fn recording(mut self, record: Arc<ProgramRecord>) -> Self {
        self.record = Some(record);
        self
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<TestBody>, BoxError> {
        let (parts, bytes) = request.into_parts();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        let place = (&parts.method, &parts.uri);
        let sent = SentRequest::new(&self.program, place, self.cluster.now(), body);
        if let Some(record) = &self.record
            && let Some(effect) = effect(&parts.method, &parts.uri, &sent)
        {
            record.note_write(effect);
        }
        let server = self.cluster.note(&sent);
        let request = Request::from_parts(parts, Full::new(bytes));
        let answer = server.service(&self.program).oneshot(request).await?;
        if answer.status().is_success() {
            self.cluster.state().log.writes.extend(sent.write());
        }
        Ok(answer.map(|body| TestBody(Box::pin(body.map_err(BoxError::from)))))
    }
}

impl<B> Service<Request<B>> for TestService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<TestBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<TestBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
            service.send(Request::from_parts(parts, bytes)).await
        }
        .boxed()
    }
}

impl fmt::Debug for TestService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestService")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// A request that writes, in the words of a report: `PATCH configmaps default/a`.
fn effect(method: &Method, uri: &Uri, sent: &SentRequest) -> Option<String> {
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let asks = QUESTIONS.iter().any(|group| uri.path().starts_with(group));
    if reads
        || asks
        || uri
            .query()
            .is_some_and(|query| query.contains("dryRun=All"))
    {
        return None;
    }
    let segments: Vec<_> = uri.path().split('/').filter(|it| !it.is_empty()).collect();
    let rest = match segments.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        rest => rest,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
        rest => (None, rest),
    };
    let (plural, rest) = rest.split_first()?;
    let named = sent.body["metadata"]["name"].as_str();
    let (name, rest) = rest
        .split_first()
        .map_or((named, rest), |(name, rest)| (Some(*name), rest));
    let resource = std::iter::once(*plural).chain(rest.iter().copied());
    let resource = resource.collect::<Vec<_>>().join("/");
    let place: Vec<_> = namespace.into_iter().chain(name).collect();
    Some(format!("{method} {resource} {}", place.join("/")))
}

// === impl TestBody ===

impl Body for TestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for TestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestBody")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_write_is_said_in_few_words() {
        let cluster = TestCluster::new();
        for line in [
            "GET /api/v1/namespaces/ns/configmaps/a: none",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews: none",
            "PATCH /api/v1/namespaces/ns/configmaps/a?dryRun=All: none",
            "PATCH /api/v1/namespaces/ns/configmaps/a: PATCH configmaps ns/a",
            "POST /apis/example.com/v1/namespaces/ns/widgets: POST widgets ns/new",
            "PUT /apis/example.com/v1/namespaces/ns/widgets/a/status: PUT widgets/status ns/a",
            "DELETE /api/v1/namespaces/ns: DELETE namespaces ns",
            "POST /apis/rbac.authorization.k8s.io/v1/clusterroles: POST clusterroles new",
        ] {
            let (request, expected) = line.split_once(": ").unwrap();
            let (method, path) = request.split_once(' ').unwrap();
            let (method, uri): (Method, Uri) = (method.parse().unwrap(), path.parse().unwrap());
            let body = json!({"metadata": {"name": "new"}});
            let sent = SentRequest::new(&"p".into(), (&method, &uri), cluster.now(), body);
            let effect = effect(&method, &uri, &sent);
            assert_eq!(effect.as_deref().unwrap_or("none"), expected, "{line}");
        }
    }
}
