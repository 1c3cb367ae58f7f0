//! The place that is checked, and the requests to it.

use std::sync::Arc;

use elector_protocol::Timestamp;
use elector_runtime::{Cluster, RequestError, Target, Verb};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The cluster, and where in it to look.
#[derive(Clone, Debug)]
pub(super) struct CheckedPlace {
    pub(super) cluster: Cluster,
    /// `None` for all.
    pub(super) namespace: Option<String>,
    /// `None` for all.
    pub(super) lease: Option<String>,
    pub(super) elector_namespace: String,
    pub(super) elector_lock: String,
    pub(super) elector_user: String,
    /// The server's time.
    pub(super) now: Timestamp,
}

// === impl CheckedPlace ===

impl CheckedPlace {
    /// Reads what stands at a path.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        resource: &'static str,
        (namespace, name): (Option<&str>, Option<&str>),
        path: &str,
    ) -> Result<T, RequestError> {
        let verb = if name.is_some() {
            Verb::Get
        } else {
            Verb::List
        };
        let target = target(verb, resource, (namespace, name));
        self.cluster.request(target, path, None).await
    }

    /// Reads what stands at a path, `None` where there is nothing.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        resource: &'static str,
        key: (Option<&str>, Option<&str>),
        path: &str,
    ) -> Result<Option<T>, RequestError> {
        match self.read(resource, key, path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Has the server answer a question, which writes nothing.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        resource: &'static str,
        path: &str,
        question: &Value,
    ) -> Result<T, RequestError> {
        let target = target(Verb::Create, resource, (None, None));
        self.cluster.request(target, path, Some(question)).await
    }

    /// `kubectl -n NAMESPACE`, or with `-A`.
    pub(super) fn kubectl(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("kubectl -n {namespace}"),
            None => "kubectl -A".to_owned(),
        }
    }
}

fn target(
    verb: Verb,
    resource: &'static str,
    (namespace, name): (Option<&str>, Option<&str>),
) -> Target {
    Target {
        verb,
        resource: resource.into(),
        namespace: namespace.map(Arc::from),
        name: name.map(Arc::from),
    }
}
