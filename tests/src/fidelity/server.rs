//! A server that cases run on.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use elector_apiserver::{ApiServer, Config, NativeCandidates};
use futures::TryStreamExt as _;
use http_body_util::BodyStream;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::fidelity::answer::{ComparableAnswer, RawAnswer, comparable};
use crate::fidelity::case::{CaseRequest, FidelityCase};

/// A server, embedded or real, behind a client.
#[derive(Clone)]
pub struct FidelityServer(Client);

/// The headers that are compared.
const HEADERS: [&str; 3] = ["content-type", "warning", "retry-after"];

// === impl FidelityServer ===

impl FidelityServer {
    /// The embedded server, in process.
    #[must_use]
    pub fn embedded(gate: bool) -> Self {
        let config = Config {
            gate,
            native: NativeCandidates::V1Beta1AndV1Alpha2,
            ..Config::default()
        };
        Self(Client::new(
            ApiServer::new(config).service("fidelity"),
            "default",
        ))
    }

    /// The server that this client speaks to.
    #[must_use]
    pub fn behind(client: Client) -> Self {
        Self(client)
    }

    /// Runs a case in its namespace.
    ///
    /// # Errors
    ///
    /// When the server does not answer at all, or the case refers to what no answer had.
    pub async fn run(&self, case: &FidelityCase) -> Result<Vec<ComparableAnswer>> {
        let namespace = case.namespace();
        let made = self.send(&new_namespace(&namespace)).await?;
        ensure!(
            made.status == 201,
            "failed to create the namespace {namespace}: {}",
            made.body
        );
        let mut named: BTreeMap<String, Value> = BTreeMap::new();
        let mut answers = Vec::new();
        for step in &case.steps {
            let request = step.request(&namespace, |name| named.get(name))?;
            let raw = self
                .send(&request)
                .await
                .with_context(|| format!("{}: {}", case.title, step.line))?;
            if let Some(name) = &step.name {
                let body = serde_json::from_str(&raw.body).unwrap_or_default();
                named.insert(name.clone(), body);
            }
            answers.push((step.line.clone(), raw));
        }
        Ok(comparable(&answers))
    }

    async fn send(&self, request: &CaseRequest) -> Result<RawAnswer> {
        let mut message = http::Request::builder()
            .method(request.method.as_str())
            .uri(&request.path);
        for (name, value) in &request.headers {
            message = message.header(name, value);
        }
        let body = request.body.clone().unwrap_or_default().into_bytes();
        let answer = self.0.send(message.body(Body::from(body))?).await?;
        let header = |name: &&str| {
            let values = answer.headers().get_all(*name).iter();
            let values = values.filter_map(|value| value.to_str().ok());
            values
                .map(|value| ((*name).to_owned(), value.to_owned()))
                .collect::<Vec<_>>()
        };
        let headers = HEADERS.iter().flat_map(header).collect();
        let status = answer.status().as_u16();
        let frames: Vec<_> = BodyStream::new(answer.into_body()).try_collect().await?;
        let mut body = Vec::new();
        for frame in frames {
            if let Ok(data) = frame.into_data() {
                body.extend_from_slice(&data);
            }
        }
        Ok(RawAnswer {
            status,
            headers,
            body: String::from_utf8(body)?,
        })
    }
}

fn new_namespace(name: &str) -> CaseRequest {
    CaseRequest {
        method: "POST".to_owned(),
        path: "/api/v1/namespaces".to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: Some(json!({"metadata": {"name": name}}).to_string()),
    }
}
