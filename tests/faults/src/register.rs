//! The register: it takes operations and notes when each of them came, by its own clock.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Takes the operations of every group of clients, on one port.
#[derive(Debug)]
pub struct Register {
    address: SocketAddr,
    logs: Arc<OperationLogs>,
    _server: JoinSet<()>,
}

/// The operations of one group of clients, at most one of which should be at work. An operation is
/// `POST /GROUP/CLIENT/PERIOD/TOKEN`: a period is one unbroken time for which its client was informed that it leads.
#[derive(Debug)]
pub struct OperationLog {
    start: Instant,
    operations: Mutex<Vec<GuardedOperation>>,
    count: watch::Sender<usize>,
    cut_off: watch::Sender<Option<String>>,
}

/// An operation that came.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct GuardedOperation {
    /// When, since the log was set up, by the register's clock.
    #[serde(serialize_with = "milliseconds")]
    pub at: Duration,
    /// The client that sent it.
    pub client: String,
    /// In which of its periods; any number that is new for each.
    pub period: u64,
    /// Under which fencing token, 0 if it has none.
    pub token: u64,
    /// True if the fence refused it: a higher token had been here. It does nothing else but count.
    pub refused: bool,
}

#[derive(Debug)]
struct OperationLogs {
    by_group: Mutex<HashMap<String, Arc<OperationLog>>>,
}

// === impl Register ===

impl Register {
    /// Opens a register on a free port of loopback.
    ///
    /// # Errors
    /// When there is none.
    pub async fn open() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("failed to listen")?;
        let address = listener.local_addr()?;
        let logs = Arc::new(OperationLogs {
            by_group: Mutex::default(),
        });
        let mut server = JoinSet::new();
        server.spawn(listen(listener, Arc::clone(&logs)));
        Ok(Self {
            address,
            logs,
            _server: server,
        })
    }

    /// Sets up the log of a group; its clock starts now.
    pub fn log(&self, group: &str) -> Arc<OperationLog> {
        let log = Arc::new(OperationLog {
            start: Instant::now(),
            operations: Mutex::default(),
            count: watch::Sender::new(0),
            cut_off: watch::Sender::new(None),
        });
        self.logs
            .by_group
            .lock()
            .insert(group.to_owned(), Arc::clone(&log));
        log
    }

    /// The address to which a client of that group appends its period and its token.
    pub fn url(&self, group: &str, client: &str) -> String {
        format!("http://{}/{group}/{client}", self.address)
    }
}

// === impl OperationLog ===

impl OperationLog {
    /// The time on its clock.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Every operation so far, in the order in which they came.
    pub fn operations(&self) -> Vec<GuardedOperation> {
        self.operations.lock().clone()
    }

    /// The newest operation.
    pub fn newest(&self) -> Option<GuardedOperation> {
        self.operations.lock().last().cloned()
    }

    /// Waits for an operation that comes after this one returns, and was not refused.
    ///
    /// # Errors
    /// When none comes within `patience`.
    pub async fn next(&self, patience: Duration) -> Result<GuardedOperation> {
        let mut count = self.count.subscribe();
        let from = *count.borrow_and_update();
        let accepted = || {
            self.operations.lock()[from..]
                .iter()
                .find(|one| !one.refused)
                .cloned()
        };
        let wait = async {
            loop {
                if let Some(operation) = accepted() {
                    return operation;
                }
                // The sender is this log's own.
                let _ = count.changed().await;
            }
        };
        tokio::time::timeout(patience, wait)
            .await
            .with_context(|| format!("no client was at work for {patience:?}"))
    }

    /// Lets no operation of this client arrive from now on; `None` lets all arrive.
    pub fn cut_off(&self, client: Option<&str>) {
        self.cut_off.send_replace(client.map(str::to_owned));
    }

    /// Notes an operation, and whether the fence lets it through.
    fn take(&self, client: &str, period: u64, token: u64) -> bool {
        let mut operations = self.operations.lock();
        // Read under the lock, so that times and order agree.
        let at = self.now();
        let highest = operations
            .iter()
            .rev()
            .find(|operation| !operation.refused)
            .map_or(0, |operation| operation.token);
        let refused = token < highest;
        operations.push(GuardedOperation {
            at,
            client: client.to_owned(),
            period,
            token,
            refused,
        });
        self.count.send_replace(operations.len());
        !refused
    }
}

impl fmt::Display for GuardedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, period, .. } = self;
        let refused = if self.refused { ", refused" } else { "" };
        write!(
            f,
            "{:.3} s: {client}, period {period}, token {}{refused}",
            self.at.as_secs_f64(),
            self.token
        )
    }
}

async fn listen(listener: TcpListener, logs: Arc<OperationLogs>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // An error is the client's: it was gone before it was there.
                if let Ok((socket, _)) = accepted {
                    connections.spawn(serve(socket, Arc::clone(&logs)));
                }
            }
        }
    }
}

async fn serve(socket: TcpStream, logs: Arc<OperationLogs>) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| {
        let logs = Arc::clone(&logs);
        async move { Ok::<_, Infallible>(logs.answer(&request).await) }
    });
    // A client that is killed breaks its connection, which is nothing to talk about.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

// === impl OperationLogs ===

impl OperationLogs {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Empty<Bytes>> {
        let status = match self.take(request.uri().path()).await {
            Some(true) => StatusCode::OK,
            Some(false) => StatusCode::CONFLICT,
            None => StatusCode::NOT_FOUND,
        };
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        response
    }

    async fn take(&self, path: &str) -> Option<bool> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let (group, client) = (parts.next()?, parts.next()?);
        let (period, token) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let log = self.by_group.lock().get(group).cloned()?;
        if log.cut_off.borrow().as_deref() == Some(client) {
            // It never arrives; its client gives up waiting.
            return std::future::pending().await;
        }
        Some(log.take(client, period, token))
    }
}

fn milliseconds<S: serde::Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((at.as_secs_f64() * 1e6).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_fence_refuses_a_lower_token_and_the_log_keeps_it() {
        let register = Register::open().await.unwrap();
        let log = register.log("g");
        assert!(log.take("a", 1, 5) && log.take("b", 1, 7) && !log.take("a", 1, 5));
        assert!(log.take("b", 1, 7));
        let refused: Vec<bool> = log.operations().iter().map(|one| one.refused).collect();
        assert_eq!(refused, [false, false, true, false]);
    }

    #[tokio::test]
    async fn operations_come_by_http_and_nonsense_does_not() {
        let register = Register::open().await.unwrap();
        let log = register.log("g");
        let logs = &register.logs;
        assert_eq!(logs.take("/g/a/1/5").await, Some(true));
        assert_eq!(logs.take("/g/b/1/4").await, Some(false));
        for path in ["/h/a/1/5", "/g/a/1", "/g/a/one/5", ""] {
            assert_eq!(logs.take(path).await, None, "{path}");
        }
        assert_eq!(log.operations().len(), 2);
        log.cut_off(Some("a"));
        let cut_off = tokio::time::timeout(Duration::from_millis(20), logs.take("/g/a/1/6"));
        cut_off.await.unwrap_err();
        assert_eq!(logs.take("/g/b/2/6").await, Some(true));
    }
}
