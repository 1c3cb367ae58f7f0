//! An API server for programs that run as processes of their own.

use std::future::pending;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use elector_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::runtime::Builder;

/// Serves the API on a free port of 127.0.0.1, in a thread of its own, until this process ends. Returns the kubeconfig
/// that leads there.
///
/// # Panics
///
/// When there is no port, or no thread.
#[must_use]
pub fn listen(server: &ApiServer) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let server = server.clone();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            server.serve(listener, pending::<()>()).await
        })
    });
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    })
}

/// Waits on the clock of the machine, for a minute at most, until a process has done something, and returns it.
///
/// # Panics
///
/// When it has not been done after a minute. The message says what was waited for.
pub fn wait_until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
