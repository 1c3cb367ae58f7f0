//! Certificates that are replaced on disk while the process runs.
//!
//! The client reads them once. A server that judges a client certificate at every request (kube-apiserver does) refuses
//! an expired one on a connection of old too, and that connection lives for as long as it is used. So the whole client
//! is made anew when a file has changed: later requests go over new connections, with the new certificates; those under
//! way, watches among them, end where they began.

use std::path::PathBuf;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tokio::time::Instant;
use tower::Service;

use super::stack;
use crate::secrets::setup_failure;

/// Sends requests by a client that is made anew when the files behind it change.
struct Rotating {
    config: Config,
    files: Files,
    look_every: Duration,
    looked_at: Instant,
    client: Client,
}

/// Files, and what they held when they were last looked at. One that cannot be read holds nothing.
struct Files {
    paths: Vec<PathBuf>,
    held: Vec<Option<Vec<u8>>>,
}

/// The least time between two looks at the files: a request that finds them changed is the first with new certificates.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A client whose certificates are those on disk, looked at so often at most.
pub(super) fn client(config: Config, look_every: Duration) -> kube::Result<Client> {
    // Before they are used, so that no change is missed.
    let files = Files::of(&config);
    let client = stack::client(&config)?;
    if files.are_none() {
        return Ok(client);
    }
    let namespace = config.default_namespace.clone();
    let rotating = Rotating::new(config, files, look_every, client);
    Ok(Client::new(rotating, namespace))
}

// === impl Rotating ===

impl Rotating {
    /// `files` are what `client` was made of, or older.
    fn new(config: Config, files: Files, look_every: Duration, client: Client) -> Self {
        Self {
            config,
            files,
            look_every,
            looked_at: Instant::now(),
            client,
        }
    }

    fn look(&mut self) {
        if self.looked_at.elapsed() < self.look_every {
            return;
        }
        self.looked_at = Instant::now();
        if !self.files.have_changed() {
            return;
        }
        let files = &self.files.paths;
        match stack::client(&self.config) {
            Ok(client) => {
                self.client = client;
                tracing::info!(?files, "certificates have changed, connecting anew");
            }
            // Perhaps half of them is written; the rest is a change as well.
            Err(error) => tracing::warn!(
                ?files,
                "failed to use changed certificates, keeping the old ones: {}",
                setup_failure(&error)
            ),
        }
    }
}

impl Service<Request<Body>> for Rotating {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, kube::Result<Response<Body>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        // Each request waits for the client by itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.look();
        let client = self.client.clone();
        async move { client.send(request).await }.boxed()
    }
}

// === impl Files ===

impl Files {
    /// The files that a configuration names, as they are now. Data in the configuration itself wins over a file, and
    /// the client does not change by itself. With a credential plugin, which may take its time and ask its user, there
    /// are none: the plugin is asked anew when its credentials expire.
    fn of(config: &Config) -> Self {
        let user = &config.auth_info;
        let certificate = (user.client_certificate.as_ref())
            .filter(|_| user.client_certificate_data.is_none())
            .map(PathBuf::from);
        let key = (user.client_key.as_ref())
            .filter(|_| user.client_key_data.is_none())
            .map(PathBuf::from);
        let named = [certificate, key, config.root_cert_file.clone()];
        let named = named.into_iter().flatten();
        let paths: Vec<_> = named.filter(|_| user.exec.is_none()).collect();
        let mut files = Self {
            held: Vec::new(),
            paths,
        };
        files.have_changed();
        files
    }

    fn are_none(&self) -> bool {
        self.paths.is_empty()
    }

    /// True if a file holds something else than at the last look.
    fn have_changed(&mut self) -> bool {
        let held = self.paths.iter().map(|path| std::fs::read(path).ok());
        let held: Vec<_> = held.collect();
        let changed = held != self.held;
        self.held = held;
        changed
    }
}

#[cfg(test)]
mod tests;
