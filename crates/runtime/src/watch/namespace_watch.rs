//! One list and the watches that follow it.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::ResourceVersion;
use kube::api::{Api, ListParams, Request, WatchEvent as Wire, WatchParams};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::connection::{WatchConnection, WatchWord};
use super::event::WatchEvent;
use super::object::WatchedObject;
use super::options::{Scope, WatchOptions};
use super::pace::Pace;
use super::page::{self, PageSize, PageText};
use crate::cluster::Cluster;
use crate::request::{Cause, RequestError, Target, Verb};
use crate::writer::resource;

/// One list and the watches that follow it.
pub(super) struct NamespaceWatch<K: WatchedObject, L> {
    cluster: Cluster,
    api: Api<K>,
    kind: K::DynamicType,
    namespace: Option<Arc<str>>,
    fields: Option<String>,
    target: Target,
    options: WatchOptions,
    pace: Pace,
    /// The size of the pages of a list, where there may be more than one object.
    size: Option<PageSize>,
    /// Lets so many of them at a time have a page in memory.
    readers: Arc<Semaphore>,
    state: NamespaceState<K, L>,
    /// The highest version that a list, an event or a bookmark showed.
    seen: Option<ResourceVersion>,
}

/// The next step.
enum NamespaceState<K, L> {
    /// Announcing the gap before a list.
    Announce,
    /// Listing.
    List,
    /// Delivering a list, after the news that the store went back.
    Deliver(ResourceVersion, L),
    /// Asking for the version of the store before watching on from `at`: after a failure or an early end, as a restored
    /// store has broken every connection.
    Probe { at: String },
    /// Opening a watch of what happened after `at`.
    Open { at: String },
    /// Reading a watch.
    Read {
        at: String,
        watch: WatchConnection<K>,
    },
}

// === impl NamespaceWatch ===

impl<K: WatchedObject, L: Default + Extend<K>> NamespaceWatch<K, L> {
    pub(super) fn new(
        cluster: &Cluster,
        kind: K::DynamicType,
        scope: &Scope,
        namespace: Option<Arc<str>>,
        options: WatchOptions,
        readers: Arc<Semaphore>,
    ) -> Self {
        let (place, fields) = match scope {
            Scope::Cluster => (None, Some("metadata.namespace!=kube-node-lease".to_owned())),
            Scope::Namespaces(_) => (namespace.clone(), None),
            Scope::Object(key) => {
                let fields = format!("metadata.name={}", key.name);
                (Some(key.namespace.clone()), Some(fields))
            }
        };
        let client = cluster.client().clone();
        let api = match &place {
            Some(place) => Api::namespaced_with(client, place, &kind),
            None => Api::all_with(client, &kind),
        };
        let target = Target {
            verb: Verb::List,
            resource: resource::<K>(&kind).into(),
            namespace: place,
            name: match scope {
                Scope::Object(key) => Some(key.name.clone()),
                _ => None,
            },
        };
        Self {
            cluster: cluster.clone(),
            api,
            kind,
            namespace,
            fields,
            target,
            pace: Pace::new(options.clone()),
            // A list of one object by its name is served as a read of it, and from a cache only without a limit.
            size: match scope {
                Scope::Cluster | Scope::Namespaces(_) => Some(PageSize::default()),
                Scope::Object(_) => None,
            },
            readers,
            options,
            state: NamespaceState::Announce,
            seen: None,
        }
    }

    /// The next event. The caller keeps this future until it is done, or drops the whole watch.
    pub(super) async fn next(&mut self) -> WatchEvent<K, L> {
        loop {
            let state = std::mem::replace(&mut self.state, NamespaceState::Announce);
            let event = match state {
                NamespaceState::Announce => {
                    self.state = NamespaceState::List;
                    Some(WatchEvent::Gap {
                        namespace: self.namespace.clone(),
                    })
                }
                NamespaceState::List => Some(self.list().await),
                NamespaceState::Deliver(version, items) => Some(self.deliver(version, items)),
                NamespaceState::Probe { at } => self.probe(at).await,
                NamespaceState::Open { at } => self.open(at).await,
                NamespaceState::Read { at, watch } => self.read(at, watch).await,
            };
            if let Some(event) = event {
                return event;
            }
        }
    }

    async fn list(&mut self) -> WatchEvent<K, L> {
        self.pace.wait().await;
        let (version, items) = match self.pages().await {
            Ok(listed) => listed,
            Err(error) => {
                self.pace.failed();
                self.state = NamespaceState::List;
                return WatchEvent::Failed(error);
            }
        };
        match self.seen.replace(version) {
            Some(seen) if seen > version => {
                self.state = NamespaceState::Deliver(version, items);
                WatchEvent::Rewound {
                    namespace: self.namespace.clone(),
                    seen,
                    now: version,
                }
            }
            _ => self.deliver(version, items),
        }
    }

    /// Everything that exists, page by page, at the version of the first page.
    ///
    /// Where one page fails there is no list, also when the server has forgotten the version of the first one (410): what
    /// a list lacks counts as gone, and pages of two versions would prove nothing.
    async fn pages(&mut self) -> Result<(ResourceVersion, L), RequestError> {
        let readers = self.readers.clone();
        let (mut list, mut first, mut resume) = (L::default(), None, None);
        loop {
            let Some(page) = self.fetch(&readers, resume.clone()).await? else {
                continue;
            };
            let metadata = page::read_into(&page.bytes, &self.kind, &mut list)
                .map_err(|error| self.unreadable(Cause::of(kube::Error::SerdeError(error))))?;
            let version = self.version(metadata.resource_version.as_deref())?;
            let first = *first.get_or_insert(version);
            if version != first {
                let why = format!("a page is of version {version}, the first one of {first}");
                return Err(self.unreadable(Cause::Unreadable(why)));
            }
            resume = metadata.continue_.filter(|token| !token.is_empty());
            if resume.is_none() {
                return Ok((first, list));
            }
            if let Some(size) = &mut self.size {
                size.adapt(page.bytes.len());
            }
        }
    }

    /// The text of one page, `None` if it is too large; the next one is smaller.
    async fn fetch<'a>(
        &mut self,
        readers: &'a Semaphore,
        resume: Option<String>,
    ) -> Result<Option<PageText<'a>>, RequestError> {
        let parameters = ListParams {
            limit: self.size.as_ref().map(PageSize::limit),
            continue_token: resume,
            ..self.list_parameters()
        };
        let most = self.size.as_ref().map_or(usize::MAX, PageSize::bytes);
        let request = async {
            let request = Request::new(self.api.resource_url()).list(&parameters);
            let request = request.map_err(kube::Error::BuildRequest)?;
            page::fetch(self.cluster.client(), request, most, readers).await
        };
        let target = self.target(Verb::List);
        let page = self
            .cluster
            .call(target, self.options.list_timeout, request)
            .await?;
        if page.is_none()
            && let Some(size) = &mut self.size
        {
            size.shrink();
        }
        Ok(page)
    }

    fn deliver(&mut self, version: ResourceVersion, items: L) -> WatchEvent<K, L> {
        self.state = NamespaceState::Open {
            at: version.to_string(),
        };
        WatchEvent::Listed {
            namespace: self.namespace.clone(),
            version,
            items,
        }
    }

    async fn probe(&mut self, at: String) -> Option<WatchEvent<K, L>> {
        self.pace.wait().await;
        let parameters = self.list_parameters().limit(1);
        let request = self.api.list(&parameters);
        let answer = self
            .cluster
            .call(
                self.target(Verb::List),
                self.cluster.request_timeout(),
                request,
            )
            .await;
        match answer.and_then(|list| self.version(list.metadata.resource_version.as_deref())) {
            // A list finds the same again, and says so.
            Ok(now) if self.seen.is_some_and(|seen| now < seen) => None,
            Ok(_) => {
                self.state = NamespaceState::Open { at };
                None
            }
            Err(error) => {
                self.pace.failed();
                self.state = NamespaceState::Probe { at };
                Some(WatchEvent::Failed(error))
            }
        }
    }

    async fn open(&mut self, at: String) -> Option<WatchEvent<K, L>> {
        self.pace.wait().await;
        let mut parameters = WatchParams::default().timeout(whole_seconds(self.options.timeout));
        parameters.field_selector.clone_from(&self.fields);
        parameters.label_selector.clone_from(&self.options.labels);
        let timeout = self.cluster.request_timeout();
        let request = self.api.watch(&parameters, &at);
        let asked = Instant::now();
        let answer = self
            .cluster
            .call(self.target(Verb::Watch), timeout, request)
            .await;
        // Even if it failed, this was an opening: one that fails at once is no reason to try at once.
        self.pace.opened();
        match answer {
            Ok(events) => {
                let watch = WatchConnection::new(events, asked, self.options.timeout);
                self.state = NamespaceState::Read { at, watch };
                None
            }
            Err(error) => self.fail(at, error),
        }
    }

    async fn read(
        &mut self,
        at: String,
        mut watch: WatchConnection<K>,
    ) -> Option<WatchEvent<K, L>> {
        let word = watch.next().await;
        let stay = |this: &mut Self, at| this.state = NamespaceState::Read { at, watch };
        let event = match word {
            WatchWord::Event(event) => event,
            WatchWord::Ended => {
                self.pace.closed();
                self.state = NamespaceState::Open { at };
                return None;
            }
            WatchWord::EndedEarly => {
                self.pace.closed();
                self.state = NamespaceState::Probe { at };
                return None;
            }
            WatchWord::Failed(cause) => {
                return self.fail(at, self.cluster.error(self.target(Verb::Watch), cause));
            }
        };
        match event {
            Wire::Added(mut object) | Wire::Modified(mut object) => {
                object.complete(&self.kind);
                let at = self.advance(at, object.meta().resource_version.as_deref());
                stay(self, at);
                Some(WatchEvent::Applied(object))
            }
            Wire::Deleted(mut object) => {
                object.complete(&self.kind);
                let at = self.advance(at, object.meta().resource_version.as_deref());
                stay(self, at);
                Some(WatchEvent::Deleted(object))
            }
            Wire::Bookmark(mark) => {
                let now = mark.metadata.resource_version;
                let at = self.advance(at, Some(&now));
                stay(self, at);
                None
            }
            Wire::Error(status) => {
                let cause = Cause::of_status(*status);
                self.fail(at, self.cluster.error(self.target(Verb::Watch), cause))
            }
        }
    }

    /// Goes on after a failed watch: from where it was, unless the server has forgotten that, cannot be understood, or
    /// lets this process list alone.
    fn fail(&mut self, at: String, error: RequestError) -> Option<WatchEvent<K, L>> {
        self.pace.failed();
        let from_scratch = match &error.cause {
            Cause::Unreadable(_) => true,
            Cause::Status { code, .. } => (400..500).contains(code) && *code != 429,
            Cause::Forbidden(_) => self.options.lists_unwatched && error.is_refusal_of_rights(),
            _ => false,
        };
        self.state = if from_scratch {
            NamespaceState::Announce
        } else {
            NamespaceState::Probe { at }
        };
        // History that was compacted away is no fault.
        (error.code() != Some(410)).then_some(WatchEvent::Failed(error))
    }

    /// Where a watch continues after this event.
    fn advance(&mut self, mut at: String, version: Option<&str>) -> String {
        if let Some((text, number)) = version.and_then(|text| Some((text, text.parse().ok()?))) {
            self.seen = self.seen.max(Some(ResourceVersion(number)));
            text.clone_into(&mut at);
        }
        at
    }

    fn version(&self, text: Option<&str>) -> Result<ResourceVersion, RequestError> {
        let text = text.unwrap_or_default();
        text.parse().map(ResourceVersion).map_err(|_| {
            let why = format!("the list's resourceVersion {text:?} is no integer");
            self.unreadable(Cause::Unreadable(why))
        })
    }

    /// The error in the answer to a list.
    fn unreadable(&self, cause: Cause) -> RequestError {
        self.cluster.error(self.target(Verb::List), cause)
    }

    fn list_parameters(&self) -> ListParams {
        ListParams {
            field_selector: self.fields.clone(),
            label_selector: self.options.labels.clone(),
            ..ListParams::default()
        }
    }

    fn target(&self, verb: Verb) -> Target {
        Target {
            verb,
            ..self.target.clone()
        }
    }
}

/// At least one: zero would mean the server's own choice.
fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)
}
