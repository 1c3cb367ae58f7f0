//! A webhook that every replica answers, leader or not, from the start on, whether or not the API server can be reached:
//! `cargo run -p elector-candidate --features connect --example webhook -- 127.0.0.1:8080`.
//!
//! | path | |
//! |---|---|
//! | `POST /validate` | an AdmissionReview: allowed, unless the object has the label `forbidden` |
//! | `GET /livez` | alive, unless work goes on that should have stopped; a standby is |
//! | `GET /readyz` | ready, on a standby too |
//! | `GET /leader` | who leads, and whether that is known |
//!
//! A ValidatingWebhookConfiguration also needs TLS, which is left out here.

use std::convert::Infallible;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use elector_candidate::{
    Candidate, CandidateHandle, Config, Error, Identity, Leadership, Outcome, Unhealthy,
    shutdown_signal,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

async fn validate(review: String) -> Result<String, StatusCode> {
    let review: Value = serde_json::from_str(&review).map_err(|_| StatusCode::BAD_REQUEST)?;
    let request = &review["request"];
    let allowed = request["object"]["metadata"]["labels"]["forbidden"].is_null();
    let answer = json!({
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": {"uid": request["uid"], "allowed": allowed},
    });
    Ok(answer.to_string())
}

async fn livez(
    State(handle): State<CandidateHandle>,
) -> Result<&'static str, (StatusCode, String)> {
    let overdue = |overdue: Unhealthy| (StatusCode::INTERNAL_SERVER_ERROR, overdue.to_string());
    handle.check_live().map(|()| "ok").map_err(overdue)
}

async fn leader(State(handle): State<CandidateHandle>) -> String {
    let status = handle.status();
    let holder = status.holder().map(Identity::as_str);
    json!({"holder": holder, "here": status.is_leader(), "stale": status.is_stale()}).to_string()
}

async fn work(leadership: Leadership) -> Result<(), Infallible> {
    println!("leading under token {}", leadership.token());
    leadership.stopped().await;
    Ok(())
}

/// Answers on that listener for as long as the candidate runs.
pub(crate) async fn serve(
    listener: TcpListener,
    candidate: Candidate,
    shutdown: impl Future,
) -> Result<Outcome<()>, Error> {
    let routes = Router::new()
        .route("/validate", post(validate))
        .route("/livez", get(livez))
        .route("/readyz", get(|| async { "ok" }))
        .route("/leader", get(leader))
        .with_state(candidate.handle());
    // It answers before the first term, between terms and while the work of one is stopped; its end is that of the run.
    let candidate = candidate.alongside("webhook", |stop| {
        axum::serve(listener, routes).with_graceful_shutdown(stop)
    });
    candidate.run(work, shutdown).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let shutdown = shutdown_signal()?;
    let address = std::env::args()
        .nth(1)
        .context("name an address to listen on")?;
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    let candidate = Candidate::connect(Config::new("example", env!("CARGO_PKG_VERSION"))).await?;
    println!("{:?}", serve(listener, candidate, shutdown).await?);
    Ok(())
}
