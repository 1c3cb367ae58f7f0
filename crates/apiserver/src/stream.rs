//! Watches: what is there, what happens, and an end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;
use crate::faults::{Broken, Link, LinkObserver};
use crate::kind::Bucket;
use crate::options::{self, ListOptions};
use crate::render::ObjectRenderer;
use crate::selector::Selector;
use crate::server::ServerParts;
use crate::store::{ChangeKind, Event, Scope, StoreState, Stored};

/// A watch that is being served.
pub(crate) struct WatchStream {
    following: Following,
    events: mpsc::Receiver<Arc<Event>>,
    pending: VecDeque<Pending>,
    view: ObjectRenderer,
    selector: Selector,
    /// Nothing up to this revision is reported.
    since: u64,
    deadline: Instant,
    bookmark: Option<Instant>,
    /// True once the stream's first table has been sent.
    explained: bool,
    link: LinkObserver,
    /// The number of closures of watches when this one began.
    closed: u64,
    ended: bool,
}

/// An item to be sent before those in the channel.
enum Pending {
    Object(Arc<Stored>),
    Event(Arc<Event>),
    /// The end of the initial events.
    InitialEnd(u64),
}

/// A subscription that ends with its owner.
struct Following {
    server: Arc<ServerParts>,
    bucket: Bucket,
    scope: Scope,
    id: u64,
    /// The number of restores of the store when it began.
    restores: u64,
}

/// The duration of a watch that asks for none; the API server takes 30 to 60 minutes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);

/// The interval of bookmarks, and the time of the last one before the end.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

// === impl WatchStream ===

impl WatchStream {
    /// Begins a watch. What is there and what follows are taken in one transaction, so that nothing falls between.
    pub(crate) fn begin(
        server: &Arc<ServerParts>,
        view: ObjectRenderer,
        namespace: Option<&str>,
        options: &ListOptions,
        link: LinkObserver,
    ) -> Result<Body, Failure> {
        let asked = options.resource_version.as_deref().map(options::revision);
        let asked = asked.transpose().map_err(Failure::internal)?;
        let bucket = view.kind.bucket;
        let scope = options.selector.scope(namespace);
        let Link { cache, closed, .. } = link.now();
        let begun = server.store.with(|state| {
            let pending = backlog(state, bucket, namespace, options, asked, cache)?;
            let subscription = state.table_mut(bucket).subscribe(scope.clone());
            Ok((pending, subscription, state.restores()))
        });
        let (pending, subscription, restores) = match begun {
            Ok(begun) => begun,
            Err(failure) => return Ok(Body::from(ObjectRenderer::error(&failure))),
        };
        let now = Instant::now();
        let timeout = options.timeout_seconds.filter(|seconds| *seconds > 0);
        let timeout = timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let deadline = now + timeout.min(DEFAULT_TIMEOUT * 100);
        let watch = Self {
            following: Following {
                server: server.clone(),
                bucket,
                scope,
                id: subscription.id,
                restores,
            },
            events: subscription.events,
            pending,
            view,
            selector: options.selector.clone(),
            since: asked.unwrap_or_default(),
            deadline,
            bookmark: options.bookmarks.then(|| bookmark_after(now, deadline)),
            explained: false,
            link,
            closed,
            ended: false,
        };
        Ok(Body::from_stream(stream::unfold(
            watch,
            |mut watch| async move {
                let frame = watch.next().await?;
                Some((frame, watch))
            },
        )))
    }

    /// The next frame; `None` at a clean end.
    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        while !self.ended {
            let link = self.link.look();
            let silent = link.is_silent(self.view.kind.plural);
            if link.closed != self.closed {
                self.ended = true;
                return link.broken.then_some(Err(Broken));
            }
            if !silent && let Some(frame) = self.pending_frame(&link) {
                return Some(Ok(frame));
            }
            if !silent
                && self.pending.is_empty()
                && self
                    .following
                    .server
                    .served
                    .present(self.view.kind)
                    .is_none()
            {
                // The changes of the objects when their kind went are sent before the end.
                match self.events.try_recv() {
                    Ok(event) => {
                        self.pending.push_back(Pending::Event(event));
                        continue;
                    }
                    Err(_) => return None,
                }
            }
            // Pending items are sent in the order in which they came, so nothing is taken in meanwhile.
            let held = silent || !self.pending.is_empty();
            let due = self.pending_due(&link).filter(|_| !silent);
            let bookmark = self.bookmark.filter(|_| !held && link.cache.is_none());
            tokio::select! {
                biased;
                () = self.link.changed() => {}
                event = self.events.recv(), if !held => match event {
                    Some(event) => self.pending.push_back(Pending::Event(event)),
                    None => return Some(Ok(self.cut_off())),
                },
                () = sleep_until(self.deadline), if !silent => self.ended = true,
                () = until(due) => {}
                () = until(bookmark) => {
                    if let Some(frame) = self.bookmark_frame() {
                        return Some(Ok(frame));
                    }
                }
            }
        }
        None
    }

    /// The next pending frame that may be sent, if any.
    fn pending_frame(&mut self, link: &Link) -> Option<Bytes> {
        while let Some(pending) = self.pending.pop_front() {
            if let Pending::Event(event) = &pending
                && (link.holds(event.revision()) || event.at + link.latency.watch > Instant::now())
            {
                self.pending.push_front(pending);
                return None;
            }
            let frame = match pending {
                Pending::Object(object) => Some(self.frame("ADDED", &object)),
                Pending::Event(event) => self.event_frame(&event),
                Pending::InitialEnd(revision) => Some(self.view.bookmark(revision, true)),
            };
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// When the first that is pending may be reported, if that is a matter of time.
    fn pending_due(&self, link: &Link) -> Option<Instant> {
        match self.pending.front()? {
            Pending::Event(event) if !link.holds(event.revision()) => {
                Some(event.at + link.latency.watch)
            }
            _ => None,
        }
    }

    /// The frame of an event for this watch: an object may enter and leave the selection.
    fn event_frame(&mut self, event: &Event) -> Option<Bytes> {
        if event.revision() <= self.since {
            return None;
        }
        self.since = event.revision();
        let namespace = self.following.scope.namespace.as_deref();
        let wants = |object: &Arc<Stored>| {
            let here = namespace.is_none_or(|namespace| object.key().namespace == namespace);
            here && self.selector.matches(object.fields())
        };
        let before = event.previous.as_ref().filter(|previous| wants(previous));
        let now = event.happened != ChangeKind::Deleted && wants(&event.object);
        match (before, now) {
            (None, false) => None,
            (None, true) => Some(self.frame("ADDED", &event.object)),
            (Some(_), true) => Some(self.frame("MODIFIED", &event.object)),
            (Some(_), false) if event.happened == ChangeKind::Deleted => {
                Some(self.frame("DELETED", &event.object))
            }
            (Some(before), false) => {
                let last = Stored::new(
                    before.key().clone(),
                    before.fields().clone(),
                    event.revision(),
                );
                Some(self.frame("DELETED", &last))
            }
        }
    }

    fn frame(&mut self, happened: &str, object: &Stored) -> Bytes {
        if self.view.kind.guessed {
            // An object has named it meanwhile.
            let present = self.following.server.served.present(self.view.kind);
            self.view.kind = present.unwrap_or(self.view.kind);
        }
        let first = !std::mem::replace(&mut self.explained, true);
        self.view.frame(happened, object, first)
    }

    /// A bookmark, unless something came in meanwhile.
    fn bookmark_frame(&mut self) -> Option<Bytes> {
        self.bookmark = Some(bookmark_after(Instant::now(), self.deadline));
        if self.following.restored() {
            // The store that it followed is gone.
            return None;
        }
        // The revision first: what happened up to it is in the channel already.
        let revision = self.following.server.store.revision();
        if let Ok(event) = self.events.try_recv() {
            self.pending.push_back(Pending::Event(event));
            return None;
        }
        Some(self.view.bookmark(revision.max(self.since), false))
    }

    /// The end of a watch whose client did not read fast enough.
    fn cut_off(&mut self) -> Bytes {
        self.ended = true;
        ObjectRenderer::error(&Failure::expired_watch(
            self.since,
            self.following.server.store.revision(),
        ))
    }
}

// === impl Following ===

impl Following {
    /// True if the store has been restored since it began.
    fn restored(&self) -> bool {
        self.server.store.with(|state| state.restores()) != self.restores
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let (bucket, id) = (self.bucket, self.id);
        self.server
            .store
            .with(|state| state.table_mut(bucket).unsubscribe(&self.scope, id));
    }
}

/// The first items of a watch.
fn backlog(
    state: &StoreState,
    bucket: Bucket,
    namespace: Option<&str>,
    options: &ListOptions,
    asked: Option<u64>,
    cache: Option<u64>,
) -> Result<VecDeque<Pending>, Failure> {
    let table = state.table(bucket);
    let asked = asked.filter(|revision| *revision > 0);
    let initial = options.initial_events.unwrap_or(asked.is_none());
    let too_old =
        |asked: u64| move |oldest: crate::store::TooOld| Failure::expired_watch(asked, oldest.0);
    if !initial {
        // Without a revision and without initial events it begins now.
        let since = asked.unwrap_or(state.revision());
        let events = table.since(since).map_err(too_old(since))?;
        return Ok(events.cloned().map(Pending::Event).collect());
    }
    let present = state.revision();
    let at = cache.unwrap_or(present).min(present);
    let objects = table.at(at, namespace, None).map_err(too_old(at))?;
    let selected = objects.filter(|object| options.selector.matches(object.fields()));
    let mut pending: VecDeque<_> = selected.cloned().map(Pending::Object).collect();
    if options.initial_events == Some(true) && options.bookmarks {
        pending.push_back(Pending::InitialEnd(at));
    }
    let events = table.since(at).map_err(too_old(at))?;
    pending.extend(events.cloned().map(Pending::Event));
    Ok(pending)
}

/// When the next bookmark is due: in a minute, and once shortly before the end.
fn bookmark_after(now: Instant, deadline: Instant) -> Instant {
    let last = deadline
        .checked_sub(BOOKMARK_BEFORE_END)
        .filter(|last| *last > now);
    (now + BOOKMARK_PERIOD).min(last.unwrap_or(deadline + BOOKMARK_PERIOD))
}

/// Waits until then, or for ever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
