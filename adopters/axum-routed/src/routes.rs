//! The requests of clients and of the kubelet.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::RETRY_AFTER;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use elector_candidate::{CandidateHandle, Identity, Leadership, Unhealthy};
use futures::StreamExt as _;
use tokio::time::timeout;

#[derive(Clone)]
struct Office {
    handle: CandidateHandle,
    given: Arc<AtomicU64>,
}

/// The replica that serves a request.
enum Server {
    ThisOne(Leadership),
    /// With its address.
    Other(String),
}

/// The time that a request waits for a leader. A lease that is released has its next one within 5 s, and at once where an
/// elector acts.
const PATIENCE: Duration = Duration::from_secs(6);

pub fn routes(handle: CandidateHandle) -> Router {
    let given = Arc::default();
    Router::new()
        .route("/tickets", post(give))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(Office { handle, given })
}

async fn give(State(office): State<Office>, uri: Uri) -> Response {
    let changes = office.handle.changes();
    let mut servers = changes.filter_map(|_| ready(office.server()));
    match timeout(PATIENCE, servers.next()).await {
        Ok(Some(Server::ThisOne(leadership))) => {
            // No two leaders give the same number, since each term has a token of its own.
            let count = office.given.fetch_add(1, Ordering::Relaxed);
            format!("{}-{count}", leadership.token()).into_response()
        }
        Ok(Some(Server::Other(address))) => {
            Redirect::temporary(&format!("{address}{uri}")).into_response()
        }
        _ => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "5")]).into_response(),
    }
}

async fn livez(State(office): State<Office>) -> Response {
    answer(office.handle.check_live())
}

/// A standby is ready: it sends clients on.
async fn readyz(State(office): State<Office>) -> Response {
    answer(office.handle.check_ready())
}

fn answer(check: Result<(), Unhealthy>) -> Response {
    match check {
        Ok(()) => "ok".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

// === impl Office ===

impl Office {
    /// The replica that may begin to serve a request now, if one is known.
    fn server(&self) -> Option<Server> {
        if let Some(leadership) = self.handle.leadership() {
            return Some(Server::ThisOne(leadership));
        }
        let (status, this) = (self.handle.status(), self.handle.identity());
        // The Lease names this replica while it stops, and for a time after it was cut off: it is not to send to itself.
        let other = |holder: &&Identity| *holder != this && !status.is_stale();
        let pod = status.holder().filter(other)?.pod()?;
        Some(Server::Other(format!("http://{pod}.tickets:8080")))
    }
}
