//! Ways to reach the server: in process, and over TCP.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use http::HeaderValue;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::Service;

use crate::faults::Broken;
use crate::reply::HttpReply;
use crate::server::{ApiServer, CLIENT};

/// The server as a tower service for one client, to make a `kube::Client` of; no sockets, no IO driver.
#[derive(Clone, Debug)]
pub struct InProcess {
    server: ApiServer,
    client: HeaderValue,
}

/// The time for connections to end after the listener has ended.
const GRACE: Duration = Duration::from_millis(500);

/// The pause when no more connections can be accepted, for want of file descriptors for one.
const PAUSE: Duration = Duration::from_millis(50);

// === impl ApiServer ===

impl ApiServer {
    /// The server as seen by this client.
    ///
    /// # Panics
    ///
    /// When the name is not visible ASCII.
    #[must_use]
    pub fn service(&self, client: &str) -> InProcess {
        InProcess {
            server: self.clone(),
            client: HeaderValue::from_str(client).expect("the name of a client is visible ASCII"),
        }
    }

    /// Serves HTTP on a listener until `shutdown` completes, then ends all connections.
    ///
    /// # Errors
    ///
    /// None at present; a listener that fails to accept is tried again.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => {
                        // Small frames of watches must not wait for each other.
                        let _ = socket.set_nodelay(true);
                        let mut stopped = stopped.clone();
                        let service = TowerToHyperService::new(Remote(self.clone()));
                        connections.spawn(async move {
                            let mut http = http1::Builder::new();
                            let connection = http.timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service);
                            let mut connection = std::pin::pin!(connection);
                            tokio::select! {
                                biased;
                                _ = stopped.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
                                _ = &mut connection => return,
                            }
                            // Watches have no end of their own.
                            let _ = tokio::time::timeout(GRACE, connection).await;
                        });
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
        drop(listener);
        // The receivers may all be gone, which is what this is for.
        let _ = stop.send(true);
        while connections.join_next().await.is_some() {}
        Ok(())
    }
}

// === impl InProcess ===

impl<B> Service<http::Request<B>> for InProcess
where
    B: hyper::body::Body<Data = axum::body::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = HttpReply;
    type Error = tower::BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpReply, tower::BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let server = self.server.clone();
        let mut request = request.map(Body::new);
        if !request.headers().contains_key(CLIENT) {
            request.headers_mut().insert(CLIENT, self.client.clone());
        }
        Box::pin(async move { server.handle(request).await.map_err(tower::BoxError::from) })
    }
}

/// The server as seen through a socket. An error breaks the connection.
#[derive(Clone)]
struct Remote(ApiServer);

// === impl Remote ===

impl Service<http::Request<hyper::body::Incoming>> for Remote {
    type Response = HttpReply;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<HttpReply, Broken>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<hyper::body::Incoming>) -> Self::Future {
        let server = self.0.clone();
        let request: Request = request.map(Body::new);
        Box::pin(async move { server.handle(request).await })
    }
}
