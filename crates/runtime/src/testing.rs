//! An API server that answers from a script: request by request, with the time that each takes.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Cluster;

/// The answer of the script to one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status and a body that is not JSON.
    Text(u16, &'static str),
    /// Lines of a watch, each after a pause; then the end.
    Lines(Vec<(Duration, Value)>, WatchEnd),
    /// The connection breaks before an answer.
    Break,
    /// No answer, ever.
    Silence,
}

/// The end of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchEnd {
    /// The server closes it.
    Close,
    /// The connection breaks.
    Break,
    /// The connection breaks by an unexpected end, as that of a killed server does.
    UnexpectedEnd,
    /// Nothing more comes.
    Silence,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) line: String,
    pub(crate) body: Value,
    pub(crate) at: Duration,
}

/// The server. Requests past the end of the script get silence.
#[derive(Clone)]
pub(crate) struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    start: Instant,
}

/// The permit to start processes, or to have an instance lock, which the processes of other tests would inherit.
pub(crate) struct ForkPermit {
    _only: MutexGuard<'static, ()>,
}

static FORKS: Mutex<()> = Mutex::new(());

// === impl ForkPermit ===

impl ForkPermit {
    pub(crate) fn obtain() -> Self {
        let _only = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
        Self { _only }
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
            seen: Arc::default(),
            start: Instant::now(),
        }
    }

    /// A cluster that this script answers for.
    pub(crate) fn cluster(&self) -> Cluster {
        let script = self.clone();
        let service =
            tower::service_fn(move |request: Request<Body>| script.clone().answer(request));
        let client = kube::Client::new(service, "default");
        Cluster::new(client, "https://script", Duration::from_secs(5))
    }

    /// `METHOD path?query` of each request so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }

    /// Each request so far.
    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<ScriptBody>, tower::BoxError> {
        let line = format!("{} {}", request.method(), request.uri());
        let body = request.into_body().collect().await?.to_bytes();
        self.seen.lock().unwrap().push(SeenRequest {
            line,
            body: serde_json::from_slice(&body).unwrap_or_default(),
            at: self.start.elapsed(),
        });
        let reply = self.replies.lock().unwrap().pop_front();
        let (code, body) = match reply {
            Some(Reply::Json(code, value)) => (code, whole(value.to_string())),
            Some(Reply::Text(code, text)) => (code, whole(text.to_owned())),
            Some(Reply::Lines(lines, end)) => (200, watch_body(lines, end)),
            Some(Reply::Break) => return Err("connection reset".into()),
            Some(Reply::Silence) | None => return std::future::pending().await,
        };
        Ok(Response::builder().status(code).body(body)?)
    }
}

type ScriptBody = UnsyncBoxBody<Bytes, tower::BoxError>;

fn whole(text: String) -> ScriptBody {
    Full::from(text).map_err(Into::into).boxed_unsync()
}

fn watch_body(lines: Vec<(Duration, Value)>, end: WatchEnd) -> ScriptBody {
    let frames = stream::iter(lines).then(|(pause, value)| async move {
        tokio::time::sleep(pause).await;
        // The type first, as API servers have it.
        let (kind, object) = (&value["type"], &value["object"]);
        let line = format!("{{\"type\":{kind},\"object\":{object}}}\n");
        Ok(Frame::data(Bytes::from(line)))
    });
    let end = stream::once(async move {
        match end {
            WatchEnd::Close => Ok(Frame::data(Bytes::new())),
            WatchEnd::Break => Err("broken pipe".into()),
            WatchEnd::UnexpectedEnd => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            WatchEnd::Silence => std::future::pending().await,
        }
    });
    StreamBody::new(frames.chain(end)).boxed_unsync()
}

/// A failure as the API server reports it.
pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Reply {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    });
    Reply::Json(code, status)
}
