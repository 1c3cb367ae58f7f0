//! Lists of objects that no type of the workspace stands for, page by page.

use std::sync::Arc;

use elector_runtime::{Cluster, RequestError, Target, Verb};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One page of a list.
#[derive(Debug, Deserialize)]
struct ListPage<T> {
    #[serde(default)]
    metadata: ListPosition,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
struct ListPosition {
    #[serde(rename = "continue", default)]
    next: Option<String>,
}

/// The number of objects that are read at once.
const PAGE: usize = 500;

/// All objects at a path, `None` for all namespaces, that `query` selects: empty, or `&labelSelector=…`.
pub(super) async fn list_all<T: DeserializeOwned>(
    cluster: &Cluster,
    resource: &'static str,
    namespace: Option<&str>,
    path: &str,
    query: &str,
) -> Result<Vec<T>, RequestError> {
    let mut found = Vec::new();
    let mut next = String::new();
    loop {
        let target = Target {
            verb: Verb::List,
            resource: resource.into(),
            namespace: namespace.map(Arc::from),
            name: None,
        };
        let path = format!("{path}?limit={PAGE}{query}{next}");
        let page: ListPage<T> = cluster.request(target, &path, None).await?;
        found.extend(page.items);
        match page.metadata.next.filter(|token| !token.is_empty()) {
            // A token is of the characters that stand in an URL as they are; kube-apiserver's is base64 for URLs.
            Some(token) => next = format!("&continue={token}"),
            None => return Ok(found),
        }
    }
}
