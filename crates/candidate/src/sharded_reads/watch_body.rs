//! The body of a watch, which ends with an event of status 410 when the ranges change.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use elector_protocol::shard::ShardSelector;
use futures::stream::BoxStream;
use futures::{Stream as _, StreamExt as _, stream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body as HttpBody, Frame};
use kube::client::Body;
use serde::Deserialize;
use tokio::sync::watch;
use tower::BoxError;

use super::positions::{Positions, ReadPosition};
use super::request::ShardedRead;
use super::span::ReadSpan;

/// The body of an answer.
pub(crate) struct FrameBody(BoxStream<'static, FrameResult>);

type FrameResult = Result<Frame<Bytes>, BoxError>;

/// The body of a watch of ranges.
pub(super) struct WatchBody {
    read: ShardedRead,
    span: ReadSpan,
    led: watch::Receiver<ShardSelector>,
    positions: Positions,
    body: Body,
    lines: WatchLines,
    has_ended: bool,
    /// True once the client was asked to list anew, so that it does not go on from here.
    has_expired: bool,
}

/// The lines of a watch, each an event, of which the last one says how far the client is.
#[derive(Debug, Default)]
struct WatchLines {
    /// The begun line. An event that came in two pieces must not be torn apart.
    begun: Vec<Bytes>,
    last: Vec<Bytes>,
}

#[derive(Deserialize)]
struct WatchedLine {
    object: WatchedItem,
}

#[derive(Deserialize)]
struct WatchedItem {
    metadata: WatchedItemMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchedItemMeta {
    resource_version: String,
}

/// The refusal of a list or a watch that cannot go on.
macro_rules! expired {
    () => {
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the ranges of objects that this process leads have changed: list again","reason":"Expired","code":410}"#
    };
}

const EXPIRED: &[u8] = expired!().as_bytes();
const EXPIRED_EVENT: &[u8] = concat!(r#"{"type":"ERROR","object":"#, expired!(), "}\n").as_bytes();

/// The answer to a page of a list whose earlier pages are not known.
pub(super) fn expired_list() -> Response<FrameBody> {
    json(StatusCode::GONE, Bytes::from_static(EXPIRED))
}

/// The answer to a watch that cannot go on from its version. Clients list anew on the event alone: a watch that does not
/// begin is one to try again.
pub(super) fn expired_watch() -> Response<FrameBody> {
    json(StatusCode::OK, Bytes::from_static(EXPIRED_EVENT))
}

// === impl WatchBody ===

impl WatchBody {
    pub(super) fn new(
        led: watch::Receiver<ShardSelector>,
        positions: Positions,
        read: ShardedRead,
        span: ReadSpan,
        body: Body,
    ) -> Self {
        Self {
            read,
            span,
            led,
            positions,
            body,
            lines: WatchLines::default(),
            has_ended: false,
            has_expired: false,
        }
    }

    pub(super) fn into_frames(self) -> FrameBody {
        let frames = stream::unfold(self, |mut watch| async move {
            let frame = watch.next().await?;
            Some((frame, watch))
        });
        FrameBody::of(frames.boxed())
    }

    async fn next(&mut self) -> Option<FrameResult> {
        if self.has_ended {
            return None;
        }
        let between_events = self.lines.begun.is_empty();
        let (led, span, body) = (&mut self.led, &self.span, &mut self.body);
        let frame = tokio::select! {
            biased;
            () = changed(led, span), if between_events => None,
            frame = next_frame(body) => Some(frame),
        };
        match frame {
            Some(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.lines.note(data);
                }
                Some(Ok(frame))
            }
            Some(Some(Err(error))) => {
                self.has_ended = true;
                Some(Err(error.into()))
            }
            Some(None) => {
                self.has_ended = true;
                None
            }
            None => {
                self.has_ended = true;
                self.has_expired = true;
                Some(Ok(Frame::data(Bytes::from_static(EXPIRED_EVENT))))
            }
        }
    }
}

impl Drop for WatchBody {
    /// The client goes on from the last event that it was given, by a watch of the same ranges.
    fn drop(&mut self) {
        if self.has_expired {
            return;
        }
        let version = match self.lines.last_version() {
            Some(version) => Some(version),
            None => self.read.version.clone(),
        };
        if let Some(version) = version {
            let position = ReadPosition::Version(self.read.key(&version));
            let span = self.span.clone();
            self.positions.note_watch(position, span);
        }
    }
}

/// Waits until other ranges are led than those of the watch; for ever, where it brings everything.
async fn changed(led: &mut watch::Receiver<ShardSelector>, span: &ReadSpan) {
    let changed = led.wait_for(|led| !span.is_current(led)).await.is_ok();
    if !changed {
        std::future::pending::<()>().await;
    }
}

async fn next_frame(body: &mut Body) -> Option<Result<Frame<Bytes>, kube::Error>> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

// === impl WatchLines ===

impl WatchLines {
    fn note(&mut self, data: &Bytes) {
        let Some(end) = data.iter().rposition(|byte| *byte == b'\n') else {
            self.begun.push(data.clone());
            return;
        };
        let begun = std::mem::take(&mut self.begun);
        self.last = match data[..end].iter().rposition(|byte| *byte == b'\n') {
            Some(before) => vec![data.slice(before + 1..end)],
            None => begun.into_iter().chain([data.slice(..end)]).collect(),
        };
        let rest = data.slice(end + 1..);
        if !rest.is_empty() {
            self.begun.push(rest);
        }
    }

    /// The version of the last event.
    fn last_version(&self) -> Option<String> {
        let line = self.last.concat();
        let event: WatchedLine = serde_json::from_slice(&line).ok()?;
        let version = event.object.metadata.resource_version;
        (!version.is_empty()).then_some(version)
    }
}

// === impl FrameBody ===

impl FrameBody {
    /// A body of these frames.
    pub(super) const fn of(frames: BoxStream<'static, FrameResult>) -> Self {
        Self(frames)
    }
}

impl From<Bytes> for FrameBody {
    fn from(bytes: Bytes) -> Self {
        let frame = (!bytes.is_empty()).then(|| Ok(Frame::data(bytes)));
        Self::of(stream::iter(frame).boxed())
    }
}

impl From<Body> for FrameBody {
    fn from(body: Body) -> Self {
        let frames = stream::unfold(body, |mut body| async move {
            let frame = next_frame(&mut body).await?;
            Some((frame.map_err(Into::into), body))
        });
        Self::of(frames.boxed())
    }
}

impl HttpBody for FrameBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<FrameResult>> {
        Pin::new(&mut self.0).poll_next(context)
    }
}

/// The bytes of an answer of this process.
fn json(status: StatusCode, body: Bytes) -> Response<FrameBody> {
    let mut response = Response::new(FrameBody::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_says_how_far_a_client_is_however_it_came_in_pieces() {
        let event = |version: &str| {
            format!(
                r#"{{"type":"ADDED","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}"#
            )
        };
        let text = format!("{}\n{}\n{}\n", event("1"), event("22"), event("333"));
        for size in 1..text.len() {
            let mut lines = WatchLines::default();
            for piece in text.as_bytes().chunks(size) {
                lines.note(&Bytes::copy_from_slice(piece));
            }
            assert!(lines.begun.is_empty(), "pieces of {size} bytes");
            assert_eq!(lines.last_version().as_deref(), Some("333"));
        }
        let mut lines = WatchLines::default();
        assert_eq!(lines.last_version(), None);
        lines.note(&Bytes::from(format!("{}\n{}", event("1"), event("22"))));
        assert!(!lines.begun.is_empty());
        assert_eq!(lines.last_version().as_deref(), Some("1"));
        lines.note(&Bytes::from_static(EXPIRED_EVENT));
        assert_eq!(lines.last_version(), None);
    }

    #[test]
    fn the_event_that_ends_a_watch_is_one_line_of_json() {
        let (line, end) = EXPIRED_EVENT.split_at(EXPIRED_EVENT.len() - 1);
        assert_eq!(end, b"\n");
        let event: serde_json::Value = serde_json::from_slice(line).unwrap();
        let expected = (&"ERROR".into(), &410.into());
        assert_eq!((&event["type"], &event["object"]["code"]), expected);
        let status: serde_json::Value = serde_json::from_slice(EXPIRED).unwrap();
        assert_eq!(event["object"], status);
    }
}
