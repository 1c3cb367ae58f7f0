//! The way of one request through the proxy.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body, Frame};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::network::NetworkCondition;
use crate::upstream::{ResponseBody, Upstream, UpstreamResult};

/// One client's way through the proxy.
pub(crate) struct Forwarder {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) network: watch::Receiver<NetworkCondition>,
    pub(crate) traffic: watch::Sender<Traffic>,
    /// A request on its way arrives, even if its sender dies.
    pub(crate) under_way: Mutex<JoinSet<()>>,
}

/// The writes of Leases that one client has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// True once it has sent any request.
    pub begun: bool,
    /// The number sent.
    pub sent: u64,
    /// The number that the server has taken.
    pub taken: u64,
    /// The time between the last two that were taken.
    pub interval: Option<Duration>,
    /// When the last one was taken.
    pub last: Option<std::time::Instant>,
}

/// The number of events of a watch that may wait.
const EVENTS: usize = 1024;

// === impl Forwarder ===

impl Forwarder {
    /// Answers as the API server does, under the present condition. An error breaks the stream that the request came
    /// on.
    ///
    /// The request is on its way when this returns: what becomes of the future does not matter to it.
    pub(crate) fn answer<B>(
        self: Arc<Self>,
        request: Request<B>,
    ) -> impl Future<Output = UpstreamResult> + Send + 'static
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let now = *self.network.borrow();
        let (watches, renews) = (is_watch(&request), renews(&request));
        let sent = match now.refusal(watches) {
            Some(refusal) => Err(refusal),
            None => Ok(self.send(request, now.request_delay())),
        };
        async move {
            let answer = match sent {
                Ok(received) => received.await.map_err(io::Error::other)??,
                Err(refusal) => return Ok(refusal),
            };
            if !now.reply_delay().is_zero() {
                sleep(now.reply_delay()).await;
            }
            match now {
                NetworkCondition::LostReplies => std::future::pending().await,
                NetworkCondition::HeldRenewals if renews => {
                    let mut network = self.network.clone();
                    // Without the proxy there is no client to be answered.
                    let _ = network.wait_for(|network| *network != now).await;
                }
                _ => {}
            }
            Ok(if watches {
                answer.map(|events| self.follow(events))
            } else {
                answer
            })
        }
    }

    /// Has a task of its own bring the request to the server.
    fn send<B>(
        self: &Arc<Self>,
        request: Request<B>,
        delay: Duration,
    ) -> oneshot::Receiver<UpstreamResult>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut tell, received) = oneshot::channel();
        let forwarder = Arc::clone(self);
        let forgets = matches!(
            *self.network.borrow(),
            NetworkCondition::ForgottenRequests(_)
        );
        self.spawn(async move {
            if forgets {
                tokio::select! {
                    () = tell.closed() => return,
                    () = sleep(delay) => {}
                }
            }
            let delay = if forgets { Duration::ZERO } else { delay };
            let answer = forwarder.deliver(request, delay).await;
            // The client may have given up.
            let _ = tell.send(answer);
        });
        received
    }

    async fn deliver<B>(&self, request: Request<B>, delay: Duration) -> UpstreamResult
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let renews = renews(&request);
        let (head, body) = request.into_parts();
        let body = body.collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        self.traffic.send_modify(|traffic| {
            traffic.begun = true;
            traffic.sent += u64::from(renews);
        });
        if !delay.is_zero() {
            sleep(delay).await;
        }
        let request = Request::from_parts(head, Full::new(body));
        let answer = self.upstream.send(request).await?;
        if renews && answer.status().is_success() {
            self.traffic.send_modify(Traffic::note);
        }
        Ok(answer)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut under_way = self.under_way.lock();
        while under_way.try_join_next().is_some() {}
        under_way.spawn(task);
    }

    /// Hands the events of a watch on, when the condition lets them through.
    fn follow(self: &Arc<Self>, mut events: ResponseBody) -> ResponseBody {
        let (sender, receiver) = mpsc::channel(EVENTS);
        self.spawn(async move {
            loop {
                let event = tokio::select! {
                    biased;
                    // Its client is gone.
                    () = sender.closed() => return,
                    event = events.frame() => event,
                };
                let Some(event) = event else { return };
                if sender.send((Instant::now(), event)).await.is_err() {
                    return;
                }
            }
        });
        let state = Some((receiver, self.network.clone()));
        let events = stream::unfold(state, |state| async {
            let (mut events, mut network) = state?;
            let event = next_event(&mut events, &mut network).await?;
            let state = event.is_ok().then_some((events, network));
            Some((event, state))
        });
        StreamBody::new(events.boxed()).boxed_unsync()
    }
}

/// The next event, when the condition lets it through. An error breaks the watch, `None` ends it.
async fn next_event(
    events: &mut mpsc::Receiver<(Instant, io::Result<Frame<Bytes>>)>,
    network: &mut watch::Receiver<NetworkCondition>,
) -> Option<io::Result<Frame<Bytes>>> {
    let broken = |network: &NetworkCondition| *network == NetworkCondition::BrokenWatches;
    let (arrived, event) = tokio::select! {
        biased;
        _ = network.wait_for(broken) => return Some(Err(io::ErrorKind::ConnectionReset.into())),
        event = events.recv() => event?,
    };
    let thawed = network.wait_for(|network| *network != NetworkCondition::FrozenWatches);
    let delay = thawed.await.ok()?.reply_delay();
    sleep_until(arrived + delay).await;
    Some(event)
}

// === impl NetworkCondition ===

impl NetworkCondition {
    /// The answer of a server that does not even look at the request.
    fn refusal(self, watches: bool) -> Option<Response<ResponseBody>> {
        match self {
            Self::TooManyRequests(seconds) => {
                let mut answer = refusal(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
                answer
                    .headers_mut()
                    .insert(header::RETRY_AFTER, seconds.into());
                Some(answer)
            }
            Self::ServerErrors => Some(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")),
            Self::BrokenWatches if watches => {
                Some(refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"))
            }
            _ => None,
        }
    }
}

// === impl Traffic ===

impl Traffic {
    fn note(&mut self) {
        let now = std::time::Instant::now();
        self.taken += 1;
        self.interval = self.last.map(|last| now - last);
        self.last = Some(now);
    }
}

fn renews<B>(request: &Request<B>) -> bool {
    [Method::PUT, Method::PATCH].contains(request.method())
        && request.uri().path().contains("/leases/")
}

fn is_watch<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query
        .split('&')
        .any(|part| matches!(part, "watch=true" | "watch=1"))
}

fn refusal(status: StatusCode, reason: &str) -> Response<ResponseBody> {
    let body = serde_json::json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "a fault of the test",
        "reason": reason,
        "code": status.as_u16(),
    });
    let body = Full::new(Bytes::from(body.to_string()));
    let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    response
}
