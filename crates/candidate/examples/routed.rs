//! A StatefulSet behind the Service `orders`: the leader accepts, the others send to it.
//! `cargo run -p elector-candidate --features connect --example routed`.

use std::convert::Infallible;
use std::future::ready;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use elector_candidate::{
    Candidate, CandidateHandle, Config, Identity, Leadership, shutdown_signal,
};
use futures::StreamExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;

type App = (CandidateHandle, watch::Receiver<Option<String>>);

async fn order(State((handle, leader)): State<App>, uri: Uri, body: String) -> Response {
    match (handle.leadership(), leader.borrow().as_deref()) {
        (Some(leadership), _) => {
            format!("{} bytes under token {}", body.len(), leadership.token()).into_response()
        }
        (None, Some(leader)) => Redirect::temporary(&format!("{leader}{uri}")).into_response(),
        (None, None) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn work(leadership: Leadership) -> Result<(), Infallible> {
    leadership.stopped().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let candidate = Candidate::connect(Config::new("orders", env!("CARGO_PKG_VERSION"))).await?;
    let (handle, (tell, leader)) = (candidate.handle(), watch::channel(None));
    let (live, mut changes) = (handle.clone(), handle.changes());
    let own = handle.identity().clone();
    let follow = async move {
        while let Some(status) = changes.next().await {
            // A process that ends its term is still in the record, and must not send a client to itself.
            let holder = status
                .holder()
                .filter(|holder| !status.is_stale() && **holder != own);
            let pod = holder.and_then(Identity::pod);
            tell.send_replace(pod.map(|pod| format!("http://{pod}.orders:8080")));
        }
    };
    let livez = move || {
        let checked = live.check_live();
        ready(checked.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
    };
    let routes = Router::new()
        .route("/order", post(order))
        .route("/livez", get(livez))
        .with_state((handle, leader));
    let listener = TcpListener::bind("0.0.0.0:8080").await?;
    let candidate = candidate.alongside("http", |stop| {
        axum::serve(listener, routes).with_graceful_shutdown(stop)
    });
    let candidate = candidate.alongside("follow", |_| follow);
    candidate.run(work, shutdown_signal()?).await?;
    Ok(())
}
