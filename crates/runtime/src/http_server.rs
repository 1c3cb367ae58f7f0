//! A small HTTP server for probes and scrapes: whatever its clients do, it costs a bounded amount of memory and time.
//!
//! One request for each connection, at most [`CONNECTIONS`] of them, at most [`HEADER_BYTES`] of header, [`LIFETIME`]
//! from the accept to the last byte. A request body is not read. Where all connections are taken the oldest is closed,
//! so that slow clients cannot keep a probe out.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::bind_address::BindAddress;

/// A server that listens already. Each request is answered by one function of path and query, which must not block.
pub struct HttpServer {
    listener: TcpListener,
    answer: Answer,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReply {
    status: StatusCode,
    content_type: &'static str,
    body: String,
}

/// The function of a server: path, query where there is one, and the reply.
type Answer = Arc<dyn Fn(&str, Option<&str>) -> ServerReply + Send + Sync>;

/// The number of connections that may be open at the same time.
const CONNECTIONS: usize = 32;

/// The longest header of a request. No request that is answered needs more than a line and a few headers.
const HEADER_BYTES: usize = 8 * 1024;

/// The time that a connection may be open.
const LIFETIME: Duration = Duration::from_secs(10);

/// The time that the header may take to come.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted: the process has too many files open, for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";

// === impl HttpServer ===

impl HttpServer {
    /// Listens there; `None` where that is off. Nothing is accepted before [`serve`](Self::serve).
    ///
    /// # Errors
    ///
    /// When nothing can listen there: the port is in use or reserved, or the address is not one of this machine.
    pub async fn bind(
        address: BindAddress,
        answer: impl Fn(&str, Option<&str>) -> ServerReply + Send + Sync + 'static,
    ) -> io::Result<Option<Self>> {
        let candidates = address.candidates();
        let Some(last) = candidates.last().copied() else {
            return Ok(None);
        };
        let mut bound = Err(io::ErrorKind::AddrNotAvailable.into());
        for candidate in candidates {
            bound = TcpListener::bind(candidate).await;
            let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
            // A port that is taken is not to be shared with another program, half of it for each.
            if candidate == last || bound.as_ref().map_or_else(in_use, |_| true) {
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
        let mut open = VecDeque::new();
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            open.retain(|connection: &tokio::task::AbortHandle| !connection.is_finished());
            if open.len() >= CONNECTIONS
                && let Some(oldest) = open.pop_front()
            {
                oldest.abort();
            }
            let answer = Arc::clone(&self.answer);
            open.push_back(connections.spawn(serve_connection(stream, answer)));
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

// === impl ServerReply ===

impl ServerReply {
    /// 200, plain text.
    pub fn ok(body: impl Into<String>) -> Self {
        Self::typed(TEXT, body)
    }

    /// 200, text of another type.
    pub fn typed(content_type: &'static str, body: impl Into<String>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            body: body.into(),
        }
    }

    /// 500, plain text.
    pub fn failed(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::INTERNAL_SERVER_ERROR, body)
    }

    /// 404. What was asked for is not repeated.
    pub fn not_found() -> Self {
        Self::with_status(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    /// The status code.
    pub fn code(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body.
    pub fn body(&self) -> &str {
        &self.body
    }

    fn with_status(status: StatusCode, body: impl Into<String>) -> Self {
        Self {
            status,
            ..Self::ok(body)
        }
    }

    fn into_response(self) -> Response<Full<Bytes>> {
        let refused = self.status == StatusCode::METHOD_NOT_ALLOWED;
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if refused {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

async fn serve_connection(stream: TcpStream, answer: Answer) {
    let service = service_fn(move |request: Request<Incoming>| {
        let reply = match *request.method() {
            Method::GET | Method::HEAD => answer(request.uri().path(), request.uri().query()),
            _ => {
                ServerReply::with_status(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n")
            }
        };
        async move { Ok::<_, Infallible>(reply.into_response()) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(2 * HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A client that goes away, is too slow or sends no HTTP is its own affair.
    let _ = tokio::time::timeout(LIFETIME, connection).await;
}

#[cfg(test)]
mod tests;
