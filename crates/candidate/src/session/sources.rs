//! Where a session hears of its objects: from watches of its own, or from those that all parts of its group share.

use std::future::pending;
use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::LeaseKey;
use elector_runtime::{
    ApiDiscovery, Cluster, RequestError, Scope, Watch, WatchEvent, WatchOptions, Writer,
    watch_candidates, watch_leases,
};
use tokio::sync::{mpsc, watch};

use crate::group::feeds::GroupFeeds;
use crate::group::pace::PartPace;
use crate::resolved_config::ResolvedConfig;

/// The sources of the sessions of a run.
#[derive(Clone)]
pub(crate) enum SessionSources {
    /// Each session has a watch of its Lease, one of its LeaseCandidate, and a discovery.
    Own,
    /// They are shared with the other parts of a group.
    Group { feeds: GroupFeeds, pace: PartPace },
}

/// The events about one object.
pub(crate) enum EventSource<T> {
    Watch(Box<Watch<T>>),
    Feed(mpsc::Receiver<WatchEvent<T>>),
}

/// The API of LeaseCandidates that is to be used.
pub(crate) enum ApiSource {
    Discovery(Box<ApiDiscovery>),
    Group {
        known: watch::Receiver<Option<CandidateApi>>,
        used: Option<CandidateApi>,
    },
}

/// The period of the search for a better API of LeaseCandidates, where one may exist. Candidates may be thousands.
pub(crate) const API_DISCOVERY_PERIOD: Duration = Duration::from_secs(60);

// === impl SessionSources ===

impl SessionSources {
    /// The events about the Lease.
    pub(crate) fn lease(
        &self,
        cluster: &Cluster,
        lease: &LeaseKey,
        seed: u64,
    ) -> EventSource<Lease> {
        match self {
            Self::Own => {
                let scope = Scope::Object(lease.clone());
                let watch = watch_leases(cluster, &scope, &WatchOptions::candidate(seed));
                EventSource::Watch(Box::new(watch))
            }
            Self::Group { feeds, .. } => EventSource::Feed(feeds.lease(&lease.name)),
        }
    }

    /// The events about the own LeaseCandidate in the API of that writer.
    pub(crate) fn candidate(
        &self,
        writer: &Writer,
        config: &ResolvedConfig,
        seed: u64,
    ) -> EventSource<LeaseCandidate> {
        let identity = config.identity.as_str();
        match self {
            Self::Own => {
                let own = LeaseKey::new(config.lease.namespace.clone(), identity);
                let (scope, options) = (Scope::Object(own), WatchOptions::candidate(seed));
                let (cluster, api) = (writer.cluster(), writer.candidate_api());
                let watch = watch_candidates(cluster, api, &scope, &options);
                EventSource::Watch(Box::new(watch))
            }
            Self::Group { feeds, .. } => EventSource::Feed(feeds.candidate(identity)),
        }
    }

    /// The API of LeaseCandidates.
    pub(crate) fn api(&self, cluster: &Cluster, seed: u64) -> ApiSource {
        match self {
            Self::Own => {
                let discovery = ApiDiscovery::new(cluster.clone(), API_DISCOVERY_PERIOD, seed);
                ApiSource::Discovery(Box::new(discovery))
            }
            Self::Group { feeds, .. } => ApiSource::Group {
                known: feeds.api(),
                used: None,
            },
        }
    }

    /// The pace at which this process acquires the lease, where it is to have one.
    pub(crate) fn pace(&self) -> Option<&PartPace> {
        match self {
            Self::Own => None,
            Self::Group { pace, .. } => Some(pace),
        }
    }
}

// === impl EventSource ===

impl EventSource<Lease> {
    /// The next event. Dropping this future loses nothing.
    pub(crate) async fn next(&mut self) -> WatchEvent<Lease> {
        match self {
            Self::Watch(watch) => watch.next().await,
            Self::Feed(events) => fed(events).await,
        }
    }
}

impl EventSource<LeaseCandidate> {
    /// The next event. Dropping this future loses nothing.
    pub(crate) async fn next(&mut self) -> WatchEvent<LeaseCandidate> {
        match self {
            Self::Watch(watch) => watch.next().await,
            Self::Feed(events) => fed(events).await,
        }
    }
}

/// The next event of a feed; none comes any more once the run of the group is over.
async fn fed<T>(events: &mut mpsc::Receiver<WatchEvent<T>>) -> WatchEvent<T> {
    match events.recv().await {
        Some(event) => event,
        None => pending().await,
    }
}

// === impl ApiSource ===

impl ApiSource {
    /// The API to use, and later each one that replaces it. Dropping this future loses nothing.
    pub(crate) async fn next(&mut self) -> CandidateApi {
        match self {
            Self::Discovery(discovery) => discovery.next().await,
            Self::Group { known, used } => {
                let is_news = |api: &Option<CandidateApi>| api.is_some() && api != used;
                let news = known.wait_for(is_news).await.map(|api| *api);
                match news {
                    Ok(Some(api)) => *used.insert(api),
                    _ => pending().await,
                }
            }
        }
    }

    /// A request for LeaseCandidates failed, perhaps because they are served by another API. A group learns that from its
    /// own watch of them.
    pub(crate) fn suspect(&mut self, error: &RequestError) {
        if let Self::Discovery(discovery) = self {
            discovery.suspect(error);
        }
    }

    /// LeaseCandidates were listed: the API is there.
    pub(crate) fn trust(&mut self) {
        if let Self::Discovery(discovery) = self {
            discovery.trust();
        }
    }
}
