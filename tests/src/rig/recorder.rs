//! Watches a cluster, so that every revision of a Lease and of a LeaseCandidate stands in the journal of its namespace.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_verify::EntryContent;
use futures::{StreamExt as _, pin_mut};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::rig::journal::{Journal, now};

/// The journals of a cluster, by namespace.
#[derive(Debug, Default)]
pub struct Journals {
    by_namespace: Mutex<BTreeMap<String, Arc<Journal>>>,
}

/// The running watches of a cluster.
#[derive(Debug)]
pub struct Recorder {
    journals: Arc<Journals>,
    // Dropped with the recorder, which ends the watches.
    watches: Mutex<JoinSet<()>>,
}

/// The length that is asked of a watch; its end is no gap, since the next one starts where it ended.
const WATCH_SECONDS: u32 = 290;

/// The longest annotation of a candidate that is kept, in bytes.
const LONGEST_ANNOTATION: usize = 4096;

/// The pause after a watch that failed: an API server under load refuses one now and then.
const PAUSE: Duration = Duration::from_millis(100);

// === impl Journals ===

impl Journals {
    /// The journal of a namespace.
    pub fn of(&self, namespace: &str) -> Arc<Journal> {
        let mut journals = self.by_namespace.lock();
        Arc::clone(journals.entry(namespace.to_owned()).or_default())
    }
}

// === impl Recorder ===

impl Recorder {
    /// Starts to watch. From here on nothing is missed.
    pub async fn start(client: &Client, api: CandidateApi) -> Result<Self> {
        let journals = Arc::new(Journals::default());
        let leases: Api<Lease> = Api::all(client.clone());
        let version = list(&leases).await?.0;
        let book = Arc::clone(&journals);
        let mut watches = JoinSet::new();
        watches.spawn(follow(leases, version, move |lease: Lease, gone| {
            let journal = book.of(lease.metadata.namespace.as_deref().unwrap_or_default());
            journal.record(now(), EntryContent::lease(lease, gone));
        }));
        let recorder = Self {
            journals,
            watches: Mutex::new(watches),
        };
        recorder.follow_candidates(client, api).await?;
        Ok(recorder)
    }

    /// Watches the candidates of this API too, those that exist included, until it is served no more.
    pub async fn follow_candidates(&self, client: &Client, api: CandidateApi) -> Result<()> {
        let candidates: Api<LeaseCandidate> = Api::all_with(client.clone(), &api);
        let (version, found) = list(&candidates).await?;
        let book = Arc::clone(&self.journals);
        let seen = move |mut candidate: LeaseCandidate, gone: bool| {
            candidate.api = api;
            // The annotations of a flood are of no interest, and would fill the memory.
            if let Some(annotations) = &mut candidate.metadata.annotations {
                annotations.retain(|_, value| value.len() <= LONGEST_ANNOTATION);
            }
            let journal = book.of(candidate.metadata.namespace.as_deref().unwrap_or_default());
            journal.record(now(), EntryContent::candidate(candidate, gone));
        };
        for candidate in found {
            seen(candidate, false);
        }
        self.watches.lock().spawn(follow(candidates, version, seen));
        Ok(())
    }

    /// The journal of a namespace.
    pub fn journal(&self, namespace: &str) -> Arc<Journal> {
        self.journals.of(namespace)
    }
}

/// The version of a list, and what is in it.
async fn list<K>(api: &Api<K>) -> Result<(String, Vec<K>)>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let list = api
        .list(&ListParams::default())
        .await
        .context("failed to list what is to be watched")?;
    let version = list.metadata.resource_version;
    Ok((
        version.context("a list without a resourceVersion")?,
        list.items,
    ))
}

/// Follows all changes since `version`; opens the watch again where the last one ended, as long as the resource is
/// served. A server that was restarted has forgotten what happened before: then a list tells what there is now.
async fn follow<K>(api: Api<K>, mut version: String, mut seen: impl FnMut(K, bool))
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    loop {
        let Err(error) = follow_once(&api, &mut version, &mut seen).await else {
            continue;
        };
        // A gap would be noticed as an unexplained revision; the end of the cluster ends in this line too.
        tracing::debug!(%error, "a watch ended");
        match error.downcast_ref() {
            Some(kube::Error::Api(status)) if status.code == 404 => return,
            Some(kube::Error::Api(status)) if status.code == 410 => {
                if let Ok((now, found)) = list(&api).await {
                    let newest = number(&version);
                    for object in found {
                        if number(&object.resource_version().unwrap_or_default()) > newest {
                            seen(object, false);
                        }
                    }
                    version = now;
                }
            }
            _ => {}
        }
        sleep(PAUSE).await;
    }
}

/// A resourceVersion as the number that it is.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

async fn follow_once<K>(
    api: &Api<K>,
    version: &mut String,
    seen: &mut impl FnMut(K, bool),
) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let events = api.watch(&params, version).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let (object, gone) = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
        };
        if let Some(reached) = object.resource_version() {
            *version = reached;
        }
        seen(object, gone);
    }
    Ok(())
}
