//! Lists and watches of chosen resources by the ranges that this process leads, as Kubernetes 1.36 offers them.
//!
//! ```text
//!  ranges led ──> list: one selector for all pages ──> watch from the list's version: the same selector
//!      │                    │ an object outside of the ranges: the server does not heed them
//!      │ change             └──> the next page and the watch bring everything, and the gate filters
//!      └──> an event of status 410 into open watches ──> the client lists anew
//! ```
//!
//! A watch must be of the ranges of the list that it goes on from, or objects are missing from what the client holds. So
//! the versions from which a watch may go on are remembered with the ranges that were listed or watched up to them, and a
//! watch from any other version begins with that event.

mod pages;
mod positions;
mod request;
mod span;
mod watch_body;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elector_protocol::shard::ShardSelector;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use kube::{Client, Error};
use tokio::sync::watch;

use self::pages::ReadPage;
use self::positions::{Positions, ReadPosition};
pub(crate) use self::request::ShardedResource;
use self::request::{ReadKind, ShardedRead};
use self::span::ReadSpan;
use self::watch_body::{FrameBody, WatchBody};

/// The reads of one client of [`crate::kube5::sharded`].
pub(crate) struct ShardedReads {
    inner: Client,
    resources: Vec<ShardedResource>,
    /// The ranges that this process leads.
    led: watch::Receiver<ShardSelector>,
    positions: Positions,
    /// True once the server was found not to select by ranges: from then on everything is read.
    reads_all: AtomicBool,
    /// Counts the watches that go on from a list: what the client holds is complete then.
    listed: watch::Sender<u64>,
}

// === impl ShardedReads ===

impl ShardedReads {
    pub(crate) fn new(
        inner: Client,
        resources: Vec<ShardedResource>,
        led: watch::Receiver<ShardSelector>,
        listed: watch::Sender<u64>,
    ) -> Self {
        Self {
            inner,
            resources,
            led,
            positions: Positions::default(),
            reads_all: AtomicBool::new(false),
            listed,
        }
    }

    /// Sends a request. One that is no list or watch of these resources is sent as it is.
    pub(crate) async fn send(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<FrameBody>, Error> {
        match ShardedRead::of(&request, &self.resources) {
            Some(read) if read.kind == ReadKind::List => self.list(request, read).await,
            Some(read) => self.watch(request, read).await,
            None => Ok(self.inner.send(request).await?.map(FrameBody::from)),
        }
    }

    async fn list(
        self: Arc<Self>,
        request: Request<Body>,
        read: ShardedRead,
    ) -> Result<Response<FrameBody>, Error> {
        let span = match &read.page {
            None => self.first_span(),
            Some(token) => match self
                .positions
                .take_page(&ReadPosition::Page(read.key(token)))
            {
                Some(span) => span,
                // Its earlier pages were of ranges that are not known any more.
                None => return Ok(watch_body::expired_list()),
            },
        };
        let (response, span) = self.ask(request, &read, span).await?;
        if !response.status().is_success() {
            return Ok(response.map(FrameBody::from));
        }
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await?;
        // A body that cannot be read is for the client to refuse.
        if let Ok(page) = serde_json::from_slice::<ReadPage<'_>>(&body) {
            let span = self.judge(span, &page, &read);
            let position = match (page.next(), page.version()) {
                (Some(token), _) => Some(ReadPosition::Page(read.key(token))),
                (None, Some(version)) => Some(ReadPosition::Version(read.key(version))),
                (None, None) => None,
            };
            if let Some(position) = position {
                self.positions.note_list(position, span);
            }
        }
        Ok(Response::from_parts(head, FrameBody::from(body)))
    }

    async fn watch(
        self: Arc<Self>,
        request: Request<Body>,
        read: ShardedRead,
    ) -> Result<Response<FrameBody>, Error> {
        let position = read.version.as_deref();
        let position = position.map(|version| ReadPosition::Version(read.key(version)));
        let (span, follows_list) = match &position {
            None => (self.first_span(), false),
            Some(position) => {
                let led = self.led.borrow().clone();
                match self.positions.resume(position, &led) {
                    Some(resumed) => resumed,
                    None => return Ok(watch_body::expired_watch()),
                }
            }
        };
        let (response, span) = self.ask(request, &read, span).await?;
        if !response.status().is_success() {
            return Ok(response.map(FrameBody::from));
        }
        if let Some(position) = &position {
            self.positions.note_resumed(position);
        }
        if follows_list {
            self.listed.send_modify(|count| *count += 1);
        }
        let (head, body) = response.into_parts();
        let body = WatchBody::new(self.led.clone(), self.positions.clone(), read, span, body);
        Ok(Response::from_parts(head, body.into_frames()))
    }

    /// The answer to a request for that span, and the span that it is of: all, where the server refuses the selector.
    async fn ask(
        &self,
        request: Request<Body>,
        read: &ShardedRead,
        span: ReadSpan,
    ) -> Result<(Response<Body>, ReadSpan), Error> {
        let ReadSpan::Ranges(selector) = &span else {
            return Ok((self.inner.send(request).await?, span));
        };
        let (parts, _) = request.into_parts();
        let request = |uri| {
            let mut parts = parts.clone();
            parts.uri = uri;
            Request::from_parts(parts, Body::empty())
        };
        let selecting = request(read.selecting(selector));
        let response = self.inner.send(selecting).await?;
        let may_refuse = [
            StatusCode::BAD_REQUEST,
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        if !may_refuse.contains(&response.status()) {
            return Ok((response, span));
        }
        let (head, body) = response.into_parts();
        let body = body.collect_bytes().await?;
        let text = String::from_utf8_lossy(&body);
        let is_start = read.page.is_none() && read.version.is_none();
        if !is_start || !text.to_ascii_lowercase().contains("shard") {
            return Ok((Response::from_parts(head, Body::from(body)), span));
        }
        self.read_all(read, "it refuses the selector");
        let response = self.inner.send(request(parts.uri.clone())).await?;
        Ok((response, ReadSpan::Whole))
    }

    /// The span of a list or a watch that goes on from nothing.
    fn first_span(&self) -> ReadSpan {
        if self.reads_all.load(Ordering::Relaxed) {
            return ReadSpan::Whole;
        }
        ReadSpan::Ranges(self.led.borrow().clone())
    }

    /// The span of a page, from what is in it.
    ///
    /// Kubernetes 1.36 reports the selector with most lists that heed it, and with those of custom resources it does not.
    /// So the objects decide. A page that has none outside of the ranges counts as selected: at worst the client lists
    /// again for nothing when the ranges change.
    fn judge(&self, span: ReadSpan, page: &ReadPage<'_>, read: &ShardedRead) -> ReadSpan {
        let ReadSpan::Ranges(selector) = &span else {
            return span;
        };
        if page.reports(selector) || page.is_within(selector) {
            return span;
        }
        self.read_all(read, "it lists objects outside of the ranges");
        if read.page.is_some() {
            // Earlier pages were selected, and a watch of everything would hide what they lack.
            return span;
        }
        ReadSpan::Whole
    }

    fn read_all(&self, read: &ShardedRead, why: &str) {
        if !self.reads_all.swap(true, Ordering::Relaxed) {
            let resource = read.resource();
            tracing::warn!(
                resource,
                "the API server does not select by ranges ({why}; Kubernetes 1.36 does with its feature gate \
                 ShardedListAndWatch): each process of the group reads all objects, and reconciles its own"
            );
        }
    }
}

#[cfg(test)]
#[cfg(feature = "test-util")]
mod tests;
