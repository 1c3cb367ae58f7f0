//! Reads of one object and of lists.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::Node;
use crate::kind::Kind;
use crate::options::{self, At, ListOptions};
use crate::store::{ObjectStore, StoreKey, Stored};

/// A list on its way out.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    revision: u64,
    /// Where the next page begins.
    resume: Option<String>,
    remaining: Option<usize>,
}

/// Where an earlier page ended.
struct Resume {
    /// The revision of the list, none to go on at the present one.
    revision: Option<u64>,
    /// The first key that may be of the next page.
    from: StoreKey,
}

/// The wait of a read for a revision of the future.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads one object. `cache` is the revision of the client's cache, if that lags behind.
pub(crate) async fn get(
    store: &ObjectStore,
    kind: &Kind,
    key: &StoreKey,
    resource_version: Option<&str>,
    cache: Option<u64>,
) -> Result<Arc<Stored>, Failure> {
    let missing = || Failure::not_found(kind, &key.name);
    let Some(text) = resource_version else {
        return store
            .with(|state| state.table(kind.bucket).object(key).cloned())
            .ok_or_else(missing);
    };
    let revision = options::revision(text).map_err(Failure::internal)?;
    wait(store, revision, cache).await?;
    let object = store.with(|state| match cache {
        Some(cache) => {
            let past = state.table(kind.bucket).object_at(cache, key);
            past.ok()?.cloned()
        }
        None => state.table(kind.bucket).object(key).cloned(),
    });
    object.ok_or_else(missing)
}

/// Reads a list.
pub(crate) async fn list(
    store: &ObjectStore,
    kind: &Kind,
    namespace: Option<&str>,
    options: &ListOptions,
    cache: Option<u64>,
) -> Result<Page, Failure> {
    if let Some(token) = &options.resume {
        let resume = Resume::parse(token, namespace)?;
        if options
            .resource_version
            .as_deref()
            .is_some_and(|version| version != "0")
        {
            return Err(Failure::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        if let Some(revision) = resume.revision {
            wait(store, revision, None).await?;
        }
        return store.with(|state| {
            let table = state.table(kind.bucket);
            let revision = resume.revision.unwrap_or(state.revision());
            let objects = table.at(revision, namespace, Some(&resume.from));
            let objects = objects.map_err(|_| {
                let present = Resume {
                    revision: None,
                    from: resume.from.clone(),
                };
                Failure::expired_continue(present.token(namespace))
            })?;
            Ok(Page::of(objects, revision, namespace, options))
        });
    }
    let at = options.at()?;
    if let At::NotOlderThan(revision) | At::Exact(revision) = at {
        wait(
            store,
            revision,
            cache.filter(|_| !matches!(at, At::Exact(_))),
        )
        .await?;
    }
    store.with(|state| {
        let table = state.table(kind.bucket);
        let present = state.revision();
        let revision = match at {
            At::Latest => present,
            At::NotOlderThan(_) => cache.map_or(present, |cache| cache.min(present)),
            At::Exact(revision) => revision,
        };
        let objects = table.at(revision, namespace, None);
        let objects = objects.map_err(|_| Failure::expired_list())?;
        Ok(Page::of(objects, revision, namespace, options))
    })
}

/// Waits for a revision, for as long as the API server does.
async fn wait(store: &ObjectStore, revision: u64, cache: Option<u64>) -> Result<(), Failure> {
    let current = || cache.unwrap_or(u64::MAX).min(store.revision());
    if revision <= current() {
        return Ok(());
    }
    if cache.is_some() {
        // A cache that is held back does not advance while we wait.
        tokio::time::sleep(PATIENCE).await;
        return Err(Failure::future_revision(revision, current()));
    }
    let reached = tokio::time::timeout(PATIENCE, store.reached(revision)).await;
    reached.map_err(|_| Failure::future_revision(revision, current()))
}

// === impl Page ===

impl Page {
    /// Takes what is selected, up to the limit, from objects in order.
    fn of<'a>(
        mut objects: impl Iterator<Item = &'a Arc<Stored>>,
        revision: u64,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Self {
        let selector = &options.selector;
        // Answers of the cache are never cut into pages.
        let cached = options.resource_version.as_deref() == Some("0") && options.resume.is_none();
        let limit = if options.limit == 0 || cached {
            usize::MAX
        } else {
            options.limit
        };
        let wanted = objects
            .by_ref()
            .filter(|object| selector.matches(object.fields()));
        let page: Vec<_> = wanted.take(limit).cloned().collect();
        // The selector is not applied to the rest: the next page may be empty.
        let rest = objects.count();
        let more = page.last().filter(|_| rest > 0);
        let resume = more.map(|last| {
            let mut from = last.key().clone();
            from.name.push('\0');
            let revision = Some(revision);
            Resume { revision, from }.token(namespace)
        });
        let remaining = (rest > 0 && selector.is_empty()).then_some(rest);
        Self {
            objects: page,
            revision,
            resume,
            remaining,
        }
    }

    /// The metadata of the list.
    pub(crate) fn meta(&self) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if let Some(resume) = &self.resume {
            meta["continue"] = resume.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            meta["remainingItemCount"] = remaining.into();
        }
        meta
    }
}

// === impl Resume ===

impl Resume {
    /// Reads a token: base64 of JSON with a revision and the key where the next page starts.
    fn parse(token: &str, namespace: Option<&str>) -> Result<Self, Failure> {
        let invalid = |why: &str| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|error| invalid(&error.to_string()))?;
        let node = Node::parse(&bytes).map_err(|error| invalid(&error.0))?;
        let version = node.text("v");
        if version != "meta.k8s.io/v1" {
            let why = format!("server does not recognize this encoded version {version}");
            return Err(invalid(&why));
        }
        let revision = match node.field("rv") {
            Some(Node::Number(number)) => number.as_i64().unwrap_or_default(),
            _ => 0,
        };
        if revision == 0 {
            let why = format!("incorrect encoded start resourceVersion (version {version})");
            return Err(invalid(&why));
        }
        let start = node.text("start");
        if start.is_empty() {
            let why = format!("encoded start key empty (version {version})");
            return Err(invalid(&why));
        }
        let key = start.strip_prefix('/').unwrap_or(start);
        let leaves = |part: &str| matches!(part, "" | "." | "..");
        if !key.is_empty() && key.split('/').any(leaves) {
            return Err(invalid(start));
        }
        let from = match namespace {
            Some(namespace) => StoreKey::new(namespace, key),
            None => {
                let (namespace, name) = key.split_once('/').unwrap_or((key, ""));
                StoreKey::new(namespace, name)
            }
        };
        Ok(Self {
            revision: u64::try_from(revision)
                .ok()
                .filter(|revision| *revision > 0),
            from,
        })
    }

    fn token(&self, namespace: Option<&str>) -> String {
        let start = match namespace {
            Some(_) => format!("/{}", self.from.name),
            None => format!("{}/{}", self.from.namespace, self.from.name),
        };
        let revision = self
            .revision
            .map_or_else(|| json!(-1), |revision| json!(revision));
        URL_SAFE_NO_PAD
            .encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).to_string())
    }
}
