//! The server: one request in, one answer out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Method, StatusCode};

use crate::body;
use crate::call::Call;
use crate::config::Config;
use crate::definition::KindDefinition;
use crate::discovery;
use crate::failure::Failure;
use crate::faults::{Broken, Fault, Faults, FaultsByClient, RequestSummary, RequestVerb};
use crate::path::{ResourcePath, Route, segments};
use crate::query::Query;
use crate::reply::{self, HttpReply};
use crate::served::Served;
use crate::store::ObjectStore;
use crate::write::add_namespace;

/// An in-memory coordination API server. Clones are the same server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use elector_apiserver::{ApiServer, Config};
///
/// let server = ApiServer::new(Config::default());
/// let client = kube::Client::new(server.service("me"), "default");
/// assert_eq!(client.apiserver_version().await?.git_version, "v1.36.0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<ServerParts>,
}

/// The parts that all clones share.
pub(crate) struct ServerParts {
    pub(crate) config: Config,
    pub(crate) served: Served,
    pub(crate) store: ObjectStore,
    pub(crate) faults: FaultsByClient,
}

/// Why a client gets no reply.
#[derive(Debug)]
enum NoReply {
    /// The connection breaks.
    Broken,
    /// The client waits until it gives up.
    Hangs,
}

/// The header that tells clients apart.
pub(crate) const CLIENT: &str = "x-elector-client";

/// The user of a request without a token.
const ANONYMOUS: &str = "system:anonymous";

/// The namespaces of every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

// === impl ApiServer ===

impl ApiServer {
    /// A server with an empty store but for the usual namespaces.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let store = ObjectStore::new(config.history, config.watch_queue, config.seed);
        store.with(|state| {
            for name in NAMESPACES {
                add_namespace(state, &config, name);
            }
        });
        let inner = ServerParts {
            served: Served::new(&config),
            config,
            store,
            faults: FaultsByClient::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The faults that befall a client.
    #[must_use]
    pub fn faults(&self, client: &str) -> Faults {
        self.inner.faults.of(client)
    }

    /// Serves one request. It runs in a task of its own: a client that gives up does not undo what it asked for.
    pub(crate) async fn handle(&self, request: Request) -> Result<HttpReply, Broken> {
        let inner = self.inner.clone();
        // The task ends by itself; a panic in it is a broken connection.
        let handled = tokio::spawn(inner.handle(request)).await;
        match handled.unwrap_or(Err(NoReply::Broken)) {
            Ok(reply) => Ok(reply),
            Err(NoReply::Broken) => Err(Broken),
            Err(NoReply::Hangs) => std::future::pending().await,
        }
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiServer")
            .field("config", &self.inner.config)
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

// === impl ServerParts ===

impl ServerParts {
    async fn handle(self: Arc<Self>, request: Request) -> Result<HttpReply, NoReply> {
        let (mut parts, body) = request.into_parts();
        let prefix = take_prefix(&mut parts);
        let client = match self.client(&parts, prefix) {
            Ok(client) => client,
            Err(failure) => return Ok(reply::refusal(&failure)),
        };
        let segments = segments(parts.uri.path());
        let segments: Vec<_> = segments.iter().map(String::as_str).collect();
        self.served.learn_path(&parts.method, &segments);
        let mut route = Route::of(&segments, &self.served.kinds());
        let query = Query::parse(parts.uri.query());
        let asked = asked(&parts, &route, &query);
        let faults = self.faults.of(&client);
        let mut link = faults.line();
        if link.now().partitioned {
            // The request is lost; the connection breaks when it is noticed that it was cut.
            link.healed().await;
            return Err(NoReply::Broken);
        }
        let latency = link.now().latency;
        pause(latency.request).await;
        let (fault, label) = faults.strike(&asked).unzip();
        let label = label.flatten();
        if !matches!(fault, Some(Fault::RefuseAfter(_))) {
            faults.note(label);
        }
        match fault {
            Some(Fault::Delay(delay)) => pause(delay).await,
            Some(Fault::HangBefore) => return Err(NoReply::Hangs),
            Some(Fault::DropBefore) => return Err(NoReply::Broken),
            Some(Fault::Refuse(code)) => return Ok(injected(code)),
            _ => {}
        }
        let body = axum::body::to_bytes(body, body::LIMIT).await;
        let Ok(body) = body else {
            return Ok(reply::refusal(&Failure::too_large(body::LIMIT)));
        };
        if let Route::Resource(target) = &mut route
            && target.kind.guessed
            && let Some(kind) = body::named_kind(&body)
        {
            target.kind = self
                .served
                .learn_object(KindDefinition::named(target.kind, &kind));
        }
        let call = Call {
            method: parts.method,
            headers: parts.headers,
            query,
            body,
            link: link.clone(),
        };
        if let Some(Fault::Late(delay)) = fault {
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                self.serve(&route, &call).await;
            });
            return Err(NoReply::Broken);
        }
        let reply = self.serve(&route, &call).await;
        if let Some(Fault::Repeat(delay)) = fault {
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                self.serve(&route, &call).await;
            });
        }
        match fault {
            Some(Fault::HangAfter) => return Err(NoReply::Hangs),
            Some(Fault::DropAfter) => return Err(NoReply::Broken),
            Some(Fault::RefuseAfter(code)) => {
                faults.note(label.filter(|_| reply.status().is_success()));
                return Ok(injected(code));
            }
            _ => {}
        }
        pause(latency.answer).await;
        if link.now().partitioned {
            link.healed().await;
            return Err(NoReply::Broken);
        }
        Ok(reply)
    }

    async fn serve(self: &Arc<Self>, route: &Route, call: &Call) -> HttpReply {
        let served = match route {
            Route::Resource(target) => self.serve_resource(target, call).await,
            Route::Document(document) => {
                discovery::document(&self.config, &self.served.kinds(), document, call)
            }
            Route::NoResource => Err(Failure::no_resource()),
            Route::NoPath => Ok(reply::text(StatusCode::NOT_FOUND, "404 page not found\n")),
        };
        let mut reply = served.unwrap_or_else(|failure| reply::refusal(&failure));
        if call.method == Method::HEAD {
            *reply.body_mut() = axum::body::Body::empty();
        }
        if let Route::Resource(ResourcePath { kind, .. }) = route
            && reply.status() != StatusCode::METHOD_NOT_ALLOWED
            && let Some(warning) = kind.deprecation(self.config.minor)
        {
            reply::Warnings(vec![warning]).put_on(&mut reply);
        }
        reply
    }

    /// The client that faults go by: from the header, the path or the token.
    fn client(&self, parts: &Parts, prefix: Option<String>) -> Result<String, Failure> {
        let text = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let token = text(AUTHORIZATION.as_str()).and_then(|header| header.strip_prefix("Bearer "));
        let user = match token {
            Some(token) if !self.config.tokens.is_empty() => Some(
                self.config
                    .tokens
                    .get(token)
                    .ok_or_else(Failure::unauthorized)?,
            ),
            None if !self.config.tokens.is_empty() && !self.config.anonymous => {
                return Err(Failure::unauthorized());
            }
            _ => None,
        };
        let named = text(CLIENT).map(str::to_owned).or(prefix);
        Ok(named
            .or(user.cloned())
            .unwrap_or_else(|| ANONYMOUS.to_owned()))
    }
}

/// The refusal that a fault asks for.
fn injected(code: u16) -> HttpReply {
    // The rule has checked the number.
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply::refusal(&Failure::injected(code))
}

/// Takes so long. No time at all is not even a turn of the scheduler.
async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

/// Takes `/as/NAME` off a path: for clients such as kubectl, whose server address may have a path, but which send no
/// token without TLS.
fn take_prefix(parts: &mut Parts) -> Option<String> {
    let rest = parts.uri.path().strip_prefix("/as/")?;
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = name.to_owned();
    let query = parts
        .uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    parts.uri = format!("/{path}{query}").parse().ok()?;
    Some(name)
}

/// The summary of a request, as the rules of faults see it.
fn asked<'a>(parts: &Parts, route: &'a Route, query: &Query) -> RequestSummary<'a> {
    let Route::Resource(target) = route else {
        return RequestSummary {
            verb: RequestVerb::Other,
            kind: None,
            namespace: None,
            name: None,
        };
    };
    let name = target.name.as_deref();
    let verb = match parts.method {
        Method::GET if target.watch || name.is_none() && query.switch("watch") => {
            RequestVerb::Watch
        }
        Method::GET if name.is_some() => RequestVerb::Get,
        Method::GET => RequestVerb::List,
        Method::POST => RequestVerb::Create,
        Method::PUT => RequestVerb::Update,
        Method::PATCH => RequestVerb::Patch,
        Method::DELETE => RequestVerb::Delete,
        _ => RequestVerb::Other,
    };
    RequestSummary {
        verb,
        kind: Some(target.kind),
        namespace: target.namespace.as_deref(),
        name,
    }
}
