//! The tokens in the objects that replicas reconcile, as a watch of the API server shows them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{Testbed, eventually};
use futures::{StreamExt as _, future};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinHandle;

use super::replica::RECONCILED;

/// The content that a reconcile wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenToken {
    /// The token of its term.
    pub(super) token: u64,
    /// The replica.
    pub(super) by: String,
}

/// The objects, followed until this is dropped.
pub(super) struct ReconciledTokens {
    seen: Arc<Mutex<SeenTokens>>,
    follower: JoinHandle<()>,
}

#[derive(Default)]
struct SeenTokens {
    newest: BTreeMap<String, WrittenToken>,
    writes: u32,
    /// The revisions whose token is lower than that of the one before.
    lower: Vec<String>,
}

// === impl ReconciledTokens ===

impl ReconciledTokens {
    /// Creates this number of objects, and follows them.
    pub(super) async fn follow(testbed: &Testbed, count: usize) -> Result<Self> {
        let client = testbed.site().client().clone();
        let api = Api::<ConfigMap>::namespaced(client, testbed.namespace());
        for object in 0..count {
            let object: ConfigMap = serde_json::from_value(json!({
                "metadata": {"name": format!("object-{object}"), "labels": {RECONCILED: "yes"}},
                "data": {},
            }))?;
            api.create(&PostParams::default(), &object).await?;
        }
        let seen = Arc::<Mutex<SeenTokens>>::default();
        let handled = Arc::clone(&seen);
        let follow = watcher(api, watcher::Config::default().labels(RECONCILED))
            .default_backoff()
            .applied_objects()
            .filter_map(|object| future::ready(object.ok()))
            .for_each(move |object| {
                handled.lock().handle(&object);
                future::ready(())
            });
        let tokens = Self {
            seen,
            follower: tokio::spawn(follow),
        };
        Ok(tokens)
    }

    /// Waits until all objects have one token, which is higher than `token`.
    pub(super) async fn later_than(&self, token: u64, patience: Duration) -> Result<WrittenToken> {
        let ask = || async {
            let seen = self.seen.lock();
            seen.common(token).with_context(|| {
                let newest = &seen.newest;
                format!("not all objects have a token higher than {token}: {newest:?}")
            })
        };
        eventually(patience, ask).await
    }

    /// Checks that no write had a lower token than the one before.
    pub(super) fn only_grew(&self) -> Result<()> {
        let seen = self.seen.lock();
        ensure!(seen.lower.is_empty(), "tokens went back: {:?}", seen.lower);
        Ok(())
    }

    /// The number of writes seen.
    pub(super) fn writes(&self) -> u32 {
        self.seen.lock().writes
    }
}

impl Drop for ReconciledTokens {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

// === impl SeenTokens ===

impl SeenTokens {
    fn handle(&mut self, object: &ConfigMap) {
        let field = |name: &str| object.data.as_ref().and_then(|data| data.get(name));
        let token = field("token")
            .and_then(|token| token.parse().ok())
            .unwrap_or(0);
        let by = field("by").cloned().unwrap_or_default();
        let written = WrittenToken { token, by };
        let name = object.name_any();
        self.writes += 1;
        if let Some(before) = self.newest.get(&name)
            && written.token < before.token
        {
            self.lower
                .push(format!("{name}: {before:?}, then {written:?}"));
        }
        self.newest.insert(name, written);
    }

    /// The objects' common content, if it is of a later term.
    fn common(&self, than: u64) -> Option<WrittenToken> {
        let first = self.newest.values().next()?;
        let all = self.newest.len() == super::OBJECTS;
        let same = self.newest.values().all(|written| written == first);
        (all && same && first.token > than).then(|| first.clone())
    }
}
