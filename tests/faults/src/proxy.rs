//! The proxy before the API server: a port for each client, and a network condition for each port.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::forward::{Forwarder, Traffic};
use crate::keys::Keys;
use crate::network::NetworkCondition;
use crate::upstream::Upstream;
use crate::wire;

/// Stands before one API server.
pub struct Proxy {
    keys: Keys,
    upstream: Arc<Upstream>,
    token: SecretString,
    folder: PathBuf,
}

/// One client's port. Dropping it resets the client's connections.
#[derive(Debug)]
pub struct ProxyPort {
    kubeconfig: PathBuf,
    network: watch::Sender<NetworkCondition>,
    traffic: watch::Receiver<Traffic>,
    _server: JoinSet<()>,
}

/// The number of a connection's bytes that may be under way.
const WIRE: usize = 64 * 1024;

/// The file of the proxy's authority.
const AUTHORITY: &str = "ca.crt";

// === impl Proxy ===

impl Proxy {
    /// Before the API server of this kubeconfig. Those of its clients go to `folder`.
    ///
    /// # Errors
    /// When the kubeconfig cannot be used.
    pub async fn before(kubeconfig: &Path, folder: &Path) -> Result<Self> {
        let (upstream, token) = Upstream::of(kubeconfig).await?;
        Self::with(upstream, token, folder)
    }

    fn with(upstream: Upstream, token: SecretString, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("failed to create {}", folder.display()))?;
        let keys = Keys::generate()?;
        private(&folder.join(AUTHORITY), &keys.authority)?;
        Ok(Self {
            keys,
            upstream: Arc::new(upstream),
            token,
            folder: folder.to_owned(),
        })
    }

    /// Opens a port for the client of that name.
    ///
    /// # Errors
    /// When there is no port to be had, or its kubeconfig cannot be written.
    pub async fn open(&self, client: &str) -> Result<ProxyPort> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("failed to listen")?;
        let url = format!("https://{}", listener.local_addr()?);
        let kubeconfig = self.folder.join(format!("{client}.kubeconfig"));
        private(&kubeconfig, &self.kubeconfig(&url))?;
        let (set_weather, network) = watch::channel(NetworkCondition::Normal);
        let (note_traffic, traffic) = watch::channel(Traffic::default());
        let forwarder = Arc::new(Forwarder {
            upstream: Arc::clone(&self.upstream),
            network,
            traffic: note_traffic,
            under_way: Mutex::default(),
        });
        let mut server = JoinSet::new();
        server.spawn(listen(listener, self.keys.clone(), forwarder));
        Ok(ProxyPort {
            kubeconfig,
            network: set_weather,
            traffic,
            _server: server,
        })
    }

    /// JSON, which YAML includes.
    fn kubeconfig(&self, url: &str) -> String {
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": "proxy",
                "cluster": { "server": url, "certificate-authority": self.folder.join(AUTHORITY) },
            }],
            "users": [{ "name": "client", "user": { "token": self.token.expose_secret() } }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "client" } }],
            "current-context": "proxy",
        })
        .to_string()
    }
}

// === impl ProxyPort ===

impl ProxyPort {
    /// The file by which its client finds the API server.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Sets the network condition for its client.
    pub fn set(&self, network: NetworkCondition) {
        self.network.send_replace(network);
    }

    /// The Leases that its client writes.
    pub fn traffic(&self) -> watch::Receiver<Traffic> {
        self.traffic.clone()
    }
}

async fn listen(listener: TcpListener, keys: Keys, forwarder: Arc<Forwarder>) {
    let mut connections = JoinSet::new();
    let mut odd = false;
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            // An error is the client's: it was gone before it was there.
            Ok((socket, _)) = listener.accept() => {
                odd = !odd;
                connections.spawn(serve(socket, keys.clone(), Arc::clone(&forwarder), odd));
            }
            else => {}
        }
    }
}

/// One connection, from its first byte to its last.
async fn serve(socket: TcpStream, keys: Keys, forwarder: Arc<Forwarder>, odd: bool) {
    // An answer of two pieces must not wait for the client's acknowledgement of the first.
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let (near, far) = tokio::io::duplex(WIRE);
    let network = forwarder.network.clone();
    let speak = async move {
        let Ok(tls) = keys.acceptor.accept(far).await else {
            return;
        };
        let service = service_fn(move |request| Arc::clone(&forwarder).answer(request));
        // The end of a connection shows in what its client does next.
        let _ = auto::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(tls), service)
            .await;
    };
    tokio::join!(wire::carry(socket, near, &network, odd), speak);
}

/// Writes a file that only its owner can read.
fn private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests;
