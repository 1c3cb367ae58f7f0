//! The requests of programs.

use std::sync::Arc;

use elector_protocol::Instant;
use http::{Method, Uri};
use serde_json::Value;

/// A request of a program, at the moment at which it was sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SentRequest {
    /// The name of the program that sent it.
    pub client: Arc<str>,
    /// The method, and the path with its query: `PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/web`.
    pub what: String,
    /// The method and the end of the path where it is for one object: `PUT leases/web`.
    pub object: Option<String>,
    /// When it was sent, by the holder's clock.
    pub at: Instant,
    /// The object in its body, null without one.
    pub body: Value,
}

/// Every request so far, and every write that was carried out and confirmed.
#[derive(Default)]
pub(crate) struct RequestLog {
    pub(crate) requests: Vec<SentRequest>,
    pub(crate) writes: Vec<String>,
}

// === impl SentRequest ===

impl SentRequest {
    pub(crate) fn new(
        client: &Arc<str>,
        (method, uri): (&Method, &Uri),
        at: Instant,
        body: Value,
    ) -> Self {
        let end: Vec<_> = uri.path().rsplit('/').take(2).collect();
        let object = match end[..] {
            [name, plural @ ("leases" | "leasecandidates")] => {
                Some(format!("{method} {plural}/{name}"))
            }
            _ => None,
        };
        Self {
            client: Arc::clone(client),
            what: format!("{method} {uri}"),
            object,
            at,
            body,
        }
    }

    /// True if it reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.what.starts_with("GET ")
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.what.split_once(' ').map_or("", |(_, target)| target);
        path.split_once('?').map_or(path, |(path, _)| path)
    }

    /// Its write, once it is carried out: `POST leases/ns/l`.
    pub(crate) fn write(&self) -> Option<String> {
        let (method, _) = self.what.split_once(' ')?;
        let mut parts = self.path().split("/namespaces/").nth(1)?.split('/');
        let (namespace, plural) = (parts.next()?, parts.next()?);
        let name = parts
            .next()
            .or_else(|| self.body["metadata"]["name"].as_str())?;
        (method != "GET").then(|| format!("{method} {plural}/{namespace}/{name}"))
    }
}
