//! Requests as a small server sees them, and its answers.

use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{BoxStream, Stream};
use http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};

/// A request, without its body, which is not read.
#[derive(Clone, Copy, Debug)]
pub struct ServerRequest<'a> {
    method: &'a Method,
    path: &'a str,
    query: Option<&'a str>,
    authorization: Option<&'a HeaderValue>,
}

/// The answer to a request, all at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReply {
    status: StatusCode,
    content_type: &'static str,
    /// The methods that are allowed, where that of the request is not.
    allow: Option<&'static str>,
    body: String,
}

/// The answer to a request.
pub enum ServerAnswer {
    /// All at once.
    Reply(ServerReply),
    /// Piece by piece, as events come: `text/event-stream`, with each text as it is.
    Events(BoxStream<'static, String>),
}

const TEXT: &str = "text/plain; charset=utf-8";

const EVENT_STREAM: &str = "text/event-stream";

// === impl ServerRequest ===

impl<'a> ServerRequest<'a> {
    /// The part of a request that answers look at, whatever its body is.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            path: request.uri().path(),
            query: request.uri().query(),
            authorization: request.headers().get(AUTHORIZATION),
        }
    }

    /// True for GET and HEAD.
    pub fn is_read(&self) -> bool {
        matches!(*self.method, Method::GET | Method::HEAD)
    }

    /// True for POST.
    pub fn is_post(&self) -> bool {
        *self.method == Method::POST
    }

    /// The path, with its escapes.
    pub const fn path(&self) -> &'a str {
        self.path
    }

    /// The query after the question mark, with its escapes.
    pub const fn query(&self) -> Option<&'a str> {
        self.query
    }

    /// The token of `Authorization: Bearer TOKEN`.
    pub fn bearer_token(&self) -> Option<&'a str> {
        let (scheme, token) = self.authorization?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
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
            allow: None,
            body: body.into(),
        }
    }

    /// 500, plain text.
    pub fn failed(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::INTERNAL_SERVER_ERROR, body)
    }

    /// 400, plain text.
    pub fn bad_request(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::BAD_REQUEST, body)
    }

    /// 401, plain text: a bearer token is missing, or is another one.
    pub fn unauthorized(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::UNAUTHORIZED, body)
    }

    /// 403, plain text.
    pub fn forbidden(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::FORBIDDEN, body)
    }

    /// 404. What was asked for is not repeated.
    pub fn not_found() -> Self {
        Self::with_status(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    /// 405, with the methods that are allowed.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self {
            allow: Some(allow),
            ..Self::with_status(StatusCode::METHOD_NOT_ALLOWED, "405 method not allowed\n")
        }
    }

    /// 409, plain text.
    pub fn conflict(body: impl Into<String>) -> Self {
        Self::with_status(StatusCode::CONFLICT, body)
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
}

// === impl ServerAnswer ===

impl ServerAnswer {
    /// A stream of events in the format of Server-Sent Events.
    pub fn events(events: impl Stream<Item = String> + Send + 'static) -> Self {
        Self::Events(events.boxed())
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self, Self::Events(_))
    }

    pub(super) fn into_response(self) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (status, content_type, allow, body) = match self {
            Self::Reply(reply) => {
                let body = Full::new(Bytes::from(reply.body)).boxed_unsync();
                (reply.status, reply.content_type, reply.allow, body)
            }
            Self::Events(events) => {
                let frames = events.map(|text| Ok(Frame::data(Bytes::from(text))));
                let body = StreamBody::new(frames).boxed_unsync();
                (StatusCode::OK, EVENT_STREAM, None, body)
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(allow) = allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<ServerReply> for ServerAnswer {
    fn from(reply: ServerReply) -> Self {
        Self::Reply(reply)
    }
}

impl fmt::Debug for ServerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(reply) => f.debug_tuple("Reply").field(reply).finish(),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}
