//! A small HTTP server for probes, scrapes and questions: whatever its clients do, it costs a bounded amount of memory
//! and time.
//!
//! One request for each connection, at most [`CONNECTIONS`] of them, at most [`HEADER_BYTES`] of header, [`LIFETIME`]
//! from the accept to the last byte. A request body is not read. Where all connections are taken the oldest is closed,
//! so that slow clients cannot keep a probe out. A stream of events lasts as long as its client likes, and there are at
//! most [`STREAMS`]: where there is one more, the oldest is closed, and a client of Server-Sent Events comes back.

mod message;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

pub use self::message::{ServerAnswer, ServerReply, ServerRequest};
use crate::bind_address::BindAddress;

/// A server that listens already. Each request is answered by one function, which must not block.
pub struct HttpServer {
    listener: TcpListener,
    answer: Answer,
}

/// The function of a server.
type Answer = Arc<dyn Fn(&ServerRequest<'_>) -> ServerAnswer + Send + Sync>;

/// A connection that may be closed where there are too many.
struct OpenConnection {
    task: AbortHandle,
    /// True once it is answered by a stream of events.
    is_stream: Arc<AtomicBool>,
}

/// The number of connections that may be open at the same time, streams of events not counted.
const CONNECTIONS: usize = 32;

/// The number of streams of events that may be open at the same time.
const STREAMS: usize = 32;

/// The longest header of a request. No request that is answered needs more than a line and a few headers.
const HEADER_BYTES: usize = 8 * 1024;

/// The time that a connection may be open.
const LIFETIME: Duration = Duration::from_secs(10);

/// The time that the header may take to come.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted: the process has too many files open, for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

// === impl HttpServer ===

impl HttpServer {
    /// Listens there; `None` where that is off. Nothing is accepted before [`serve`](Self::serve). Requests other than GET
    /// and HEAD are refused; `answer` is given the path, and the query where there is one.
    ///
    /// # Errors
    ///
    /// When nothing can listen there: the port is in use or reserved, or the address is not one of this machine.
    pub async fn bind(
        address: BindAddress,
        answer: impl Fn(&str, Option<&str>) -> ServerReply + Send + Sync + 'static,
    ) -> io::Result<Option<Self>> {
        let reads = move |request: &ServerRequest<'_>| match request.is_read() {
            true => answer(request.path(), request.query()).into(),
            false => ServerReply::method_not_allowed("GET, HEAD").into(),
        };
        Self::bind_for_all_methods(address, reads).await
    }

    /// The same for requests of any method. What answers the request of HEAD is cut after its header.
    ///
    /// # Errors
    ///
    /// As for [`Self::bind`].
    pub async fn bind_for_all_methods(
        address: BindAddress,
        answer: impl Fn(&ServerRequest<'_>) -> ServerAnswer + Send + Sync + 'static,
    ) -> io::Result<Option<Self>> {
        let candidates = address.candidates();
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
        for candidate in candidates {
            bound = TcpListener::bind(candidate).await;
            let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
            // A port that is taken is not to be shared with another program, half of it for each.
            if bound.as_ref().map_or_else(in_use, |_| true) {
                break;
            }
        }
        Ok(Some(Self {
            listener: bound?,
            answer: Arc::new(answer),
        }))
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// When the system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until it is dropped, which closes all that is open.
    pub async fn serve(self) -> Infallible {
        let mut connections = JoinSet::new();
        let mut open = VecDeque::<OpenConnection>::new();
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            open.retain(|connection| !connection.task.is_finished());
            make_room(&mut open, false, CONNECTIONS);
            make_room(&mut open, true, STREAMS);
            let is_stream = Arc::default();
            let serving =
                serve_connection(stream, Arc::clone(&self.answer), Arc::clone(&is_stream));
            open.push_back(OpenConnection {
                task: connections.spawn(serving),
                is_stream,
            });
        }
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer")
            .field("listener", &self.listener)
            .finish_non_exhaustive()
    }
}

/// Closes the oldest of the connections that are streams, or are not, where no other one would have a place.
fn make_room(open: &mut VecDeque<OpenConnection>, streams: bool, most: usize) {
    let is_meant =
        |connection: &OpenConnection| connection.is_stream.load(Ordering::Relaxed) == streams;
    if open.iter().filter(|it| is_meant(it)).count() >= most
        && let Some(oldest) = open
            .iter()
            .position(is_meant)
            .and_then(|at| open.remove(at))
    {
        oldest.task.abort();
    }
}

async fn serve_connection(stream: TcpStream, answer: Answer, is_stream: Arc<AtomicBool>) {
    let streams = Arc::clone(&is_stream);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&ServerRequest::of(&request));
        streams.store(answer.is_stream(), Ordering::Relaxed);
        async move { Ok::<_, Infallible>(answer.into_response()) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(2 * HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let end = async {
        tokio::time::sleep(LIFETIME).await;
        if is_stream.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        biased;
        // A client that goes away, is too slow or sends no HTTP is its own affair.
        _ = connection => {}
        () = end => {}
    }
}

#[cfg(test)]
mod tests;
