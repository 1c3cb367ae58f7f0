//! A server that cases run on.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_apiserver::{ApiServer, Config, NativeCandidates, OtherKinds};
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
            sharding: gate,
            native: NativeCandidates::V1Beta1AndV1Alpha2,
            other_kinds: OtherKinds::Defined,
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

    /// Defines the custom resources of the cases, and waits until they are served.
    ///
    /// # Errors
    ///
    /// When the server refuses them, or does not serve them within a minute.
    pub async fn define_kinds(&self) -> Result<()> {
        for (plural, kind, scope, subresources) in [
            ("widgets", "Widget", "Namespaced", json!({"status": {}})),
            ("gadgets", "Gadget", "Cluster", json!({})),
        ] {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            let version = json!({
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema},
            });
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.example.com")},
                "spec": {
                    "group": "example.com", "scope": scope, "versions": [version],
                    "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                },
            });
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let made = self.send(&post(path, &definition)).await?;
            ensure!(made.status == 201, "failed to define {kind}: {}", made.body);
        }
        let lists = ["widgets", "gadgets"].map(|plural| CaseRequest {
            method: "GET".to_owned(),
            path: format!("/apis/example.com/v1/{plural}"),
            headers: Vec::new(),
            body: None,
        });
        let served = async {
            for list in &lists {
                while self.send(list).await?.status != 200 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            anyhow::Ok(())
        };
        let served = tokio::time::timeout(Duration::from_secs(60), served).await;
        served.context("the custom resources are not served")?
    }

    /// Runs a case in its namespace.
    ///
    /// # Errors
    ///
    /// When the server does not answer at all, or the case refers to what no answer had.
    pub async fn run(&self, case: &FidelityCase) -> Result<Vec<ComparableAnswer>> {
        let namespace = case.namespace();
        let new = json!({"metadata": {"name": namespace}});
        let made = self.send(&post("/api/v1/namespaces", &new)).await?;
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

fn post(path: &str, object: &Value) -> CaseRequest {
    CaseRequest {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: Some(object.to_string()),
    }
}
