//! A process's way to the API server: writes down what it sends, and lets it take its time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body as ServerBody, Bytes};
use elector_api::Lease;
use elector_api::annotation::PRIORITY;
use elector_apiserver::ApiServer;
use elector_protocol::Instant;
use elector_runtime::{Clock as _, Cluster};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tower::ServiceExt as _;

use crate::clock::SimClock;
use crate::context::{RunContext, RunState};
use crate::delivery::{CandidateDelivery, DeliveryReader};
use crate::history::{Author, RequestAttempt, Role, version};
use crate::names::{ELECTOR_LOCK, TENANT};
use crate::random::Random;

/// A process's way to the API server, in one life.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) server: ApiServer,
    pub(crate) context: RunContext,
    pub(crate) author: Author,
    pub(crate) clock: SimClock,
    /// The longest delay of a request or its answer beyond the usual, in milliseconds.
    pub(crate) jitter: u64,
    pub(crate) random: Arc<Mutex<Random>>,
    /// The priority that an administrator's webhook gives to the candidates that it registers; 0 for none.
    pub(crate) priority: u64,
}

/// A watch of a process that has not ended.
struct OpenWatch {
    context: RunContext,
    process: String,
}

/// The timeout of a request that names none of its own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Transport ===

impl Transport {
    /// A connection for the process.
    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::new(self.client(), "sim", REQUEST_TIMEOUT)
    }

    /// A client for the process.
    pub(crate) fn client(&self) -> Client {
        let transport = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let transport = transport.clone();
            // A request that was sent is on its way, even if its sender dies.
            let sent = tokio::spawn(async move { transport.send(request).await });
            async move { sent.await.map_err(tower::BoxError::from)? }
        });
        Client::new(service, "default")
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<ServerBody>, tower::BoxError> {
        let clock = self.clock.holder();
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let path = parts.uri.path();
        let body = self.admit(&parts.method, path, body.to_vec());
        // A list of one object asks for the version of the store alone.
        let query = parts.uri.query().unwrap_or_default();
        let probes = query.split('&').any(|it| it == "limit=1");
        let tells = path.contains("/leasecandidates") && parts.method != Method::DELETE && !probes;
        let lists = tells && path.ends_with("/leasecandidates");
        let lists = lists.then(|| path.to_owned());
        let watches = query.split('&').any(|it| it == "watch=true");
        let summary = format!("{} {}", parts.method, short(path, parts.uri.query()));
        let base = self.record_write(&parts.method, path, &body, clock);
        self.check_belief(&parts.method, path, clock);
        let log = self.context.log();
        match base {
            Some(base) => log.note(&self.author.name, format_args!("-> {summary} @{base}")),
            None => log.note(&self.author.name, format_args!("-> {summary}")),
        }
        let sent = log.now();
        let write = base.map(|base| (self.author.name.clone(), path.to_owned(), base));
        {
            let state = &mut *self.context.state();
            state.effects.count_request(&self.author.name);
            let beside = write
                .as_ref()
                .is_some_and(|it| state.effects.send_write(it));
            state.guards.leadership.hedged += u64::from(beside && path.contains("/leases/"));
        }
        self.delay().await;
        let request = Request::from_parts(parts, Body::from(body));
        let answer = self
            .server
            .service(&self.author.name)
            .oneshot(request)
            .await;
        let answer = answer.map(|it| it.map(|body| self.follow(watches, body)));
        let (now, status) = (log.now(), answer.as_ref().ok().map(Response::status));
        {
            let (faults, mut state) = (self.server.faults(&self.author.name), self.context.state());
            let strikes = faults.take_strikes();
            if let Some(write) = &write {
                state.effects.answer_write(write);
            }
            // An answer of a fault tells nothing of the server.
            match status.filter(|_| strikes.is_empty()) {
                Some(StatusCode::NOT_FOUND) if tells => state.effects.strike_hidden(now),
                Some(StatusCode::OK) if let Some(api) = &lists => {
                    state.history.deliveries.list(&self.author, now, api);
                }
                _ => {}
            }
            for fault in strikes {
                let fault = usize::try_from(fault).unwrap_or(usize::MAX);
                state.effects.strike(fault, sent, now);
            }
        }
        self.delay().await;
        match &answer {
            Ok(answer) => log.note(
                &self.author.name,
                format_args!("<- {summary}: {}", answer.status().as_u16()),
            ),
            Err(error) => log.note(&self.author.name, format_args!("<- {summary}: {error}")),
        }
        let reports = matches!(self.author.role, Role::Elector { .. }) && tells;
        answer.map(|answer| match reports && answer.status().is_success() {
            true => self.note_delivery(answer),
            false => answer,
        })
    }

    /// A body with the priority in it, where it registers a candidate: no candidate may give itself one.
    fn admit(&self, method: &Method, path: &str, body: Vec<u8>) -> Vec<u8> {
        let registers = *method == Method::POST && path.ends_with("/leasecandidates");
        if !registers || self.priority == 0 {
            return body;
        }
        let object = serde_json::from_slice::<serde_json::Value>(&body);
        object.map_or(body, |mut object| {
            object["metadata"]["annotations"][PRIORITY] = self.priority.to_string().into();
            object.to_string().into_bytes()
        })
    }

    /// Counts a watch as open until its body is dropped, and looks for an answer that what it asks for is forgotten.
    fn follow(&self, watches: bool, body: ServerBody) -> ServerBody {
        if !watches {
            return body;
        }
        let open = OpenWatch::new(&self.context, &self.author.name);
        ServerBody::new(body.map_frame(move |frame| {
            let error = |data: &Bytes| data.starts_with(br#"{"type":"ERROR""#);
            if frame.data_ref().is_some_and(error) {
                let now = open.context.log().now();
                open.context.state().effects.strike_compacted(now);
            }
            frame
        }))
    }

    /// Notes the candidates in an answer when they are read.
    fn note_delivery(&self, answer: Response<ServerBody>) -> Response<ServerBody> {
        let (transport, mut reader) = (self.clone(), DeliveryReader::default());
        answer.map(|body| {
            ServerBody::new(body.map_frame(move |frame| {
                for (source, versions) in frame
                    .data_ref()
                    .map(|piece| reader.read(piece))
                    .unwrap_or_default()
                {
                    let delivery = CandidateDelivery {
                        at: transport.context.log().now(),
                        clock: transport.clock.monotonic(),
                        source,
                        versions,
                    };
                    let mut state = transport.context.state();
                    state.history.deliveries.add(&transport.author, delivery);
                }
                frame
            }))
        })
    }

    /// Notes a write of a Lease. Returns the version that a write names.
    fn record_write(
        &self,
        method: &Method,
        path: &str,
        body: &[u8],
        clock: Instant,
    ) -> Option<u64> {
        if *method == Method::DELETE && path.contains("/leases/") && self.author.is_ours() {
            self.context
                .report("S3", format!("{} deletes a Lease", self.author.name));
        }
        if !matches!(*method, Method::PUT | Method::POST | Method::PATCH) {
            return None;
        }
        let value = serde_json::from_slice::<serde_json::Value>(body).ok()?;
        let base = version(value["metadata"]["resourceVersion"].as_str());
        if is_of_tenant(path) {
            if matches!(self.author.role, Role::Candidate { .. }) {
                let text = format!("{} writes to another namespace", self.author.name);
                self.context.report("S11", text);
            }
        } else if path.contains("/leases") {
            let lease = Lease::from_value(value);
            let name = lease.key().name.to_string();
            self.context.state().history.attempts.push(RequestAttempt {
                author: self.author.as_writer_of(&name),
                at: self.context.log().now(),
                clock,
                monotonic: self.clock.monotonic(),
                lease: name,
                base: (*method == Method::PUT).then_some(base),
                record: lease.record().ok(),
                applied: None,
            });
        }
        Some(base)
    }

    /// Holds a write of an elector against its belief that it leads the others.
    fn check_belief(&self, method: &Method, path: &str, clock: Instant) {
        if *method == Method::GET || !matches!(self.author.role, Role::Elector { .. }) {
            return;
        }
        let wrong = {
            let state = self.context.state();
            let RunState {
                history, electors, ..
            } = &*state;
            let newest = history.attempts.last();
            let of_lease = path.contains("/leases") && !is_of_tenant(path);
            let lock = newest.filter(|it| of_lease && it.lease == ELECTOR_LOCK);
            electors.check_write(history, &self.author, clock, lock)
        };
        if let Some((rule, text)) = wrong {
            let path = short(path, None);
            self.context
                .report(rule, format!("{text}: {method} {path}"));
        }
    }

    async fn delay(&self) {
        let time = {
            // A stream of random numbers is whole at every moment.
            let mut random = self.random.lock();
            random.millis(0, self.jitter)
        };
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
    }
}

// === impl OpenWatch ===

impl OpenWatch {
    fn new(context: &RunContext, process: &str) -> Self {
        let watches = &mut context.state().effects.watches;
        *watches.entry(process.to_owned()).or_default() += 1;
        Self {
            context: context.clone(),
            process: process.to_owned(),
        }
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        let watches = &mut self.context.state().effects.watches;
        if let Some(open) = watches.get_mut(&self.process) {
            *open = open.saturating_sub(1);
        }
    }
}

/// True for an object of the tenant, which no rule of ours is about.
fn is_of_tenant(path: &str) -> bool {
    path.split('/').any(|part| part == TENANT)
}

/// The end of a path, from the namespace on.
fn short(path: &str, query: Option<&str>) -> String {
    let tail = path
        .rsplit_once("/namespaces/")
        .map_or(path, |(_, tail)| tail);
    match query.filter(|query| query.contains("watch=true")) {
        Some(_) => format!("{tail} (watch)"),
        None => tail.to_owned(),
    }
}
