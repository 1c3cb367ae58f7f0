//! Certificates and kubeconfigs that are replaced on disk while the process runs.
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

use super::{certificate, stack};
use crate::secrets::setup_failure;
use crate::server_contact::ServerContact;

/// The sources of a client that is made anew.
pub(super) struct Rotation {
    reread: Reread,
    files: FollowedFiles,
    /// The least time between two looks at the files.
    pub(super) look_every: Duration,
    /// Where the expiry of the client certificate in use is noted.
    contact: ServerContact,
}

/// Reads the kubeconfigs anew, for the server of the configuration before, or says why they cannot be used.
pub(super) type Reread = Box<dyn Fn(&Config) -> Result<Config, String> + Send>;

/// Sends requests by a client that is made anew when the files behind it change.
struct Rotating {
    rotation: Rotation,
    config: Config,
    looked_at: Instant,
    client: Client,
}

/// Files, and what they held when they were last looked at. One that cannot be read holds nothing.
pub(super) struct FollowedFiles {
    kubeconfigs: usize,
    paths: Vec<PathBuf>,
    held: Vec<Option<Vec<u8>>>,
}

/// The usual time between two looks: a request that finds the files changed is the first with new certificates.
const LOOK_EVERY: Duration = Duration::from_secs(5);

// === impl Rotation ===

impl Rotation {
    pub(super) fn new(reread: Reread, files: FollowedFiles, contact: ServerContact) -> Self {
        Self {
            reread,
            files,
            look_every: LOOK_EVERY,
            contact,
        }
    }

    /// A client whose certificates and kubeconfig are those on disk. `self.files` is what `config` was made of, or older.
    pub(super) fn client(mut self, config: Config) -> kube::Result<Client> {
        self.files.follow_certificates(&config);
        let client = stack::client(&config)?;
        self.note_certificate(&config);
        let namespace = config.default_namespace.clone();
        let rotating = Rotating {
            rotation: self,
            config,
            looked_at: Instant::now(),
            client,
        };
        Ok(Client::new(rotating, namespace))
    }

    fn note_certificate(&self, config: &Config) {
        let expires = certificate::expiry(&config.auth_info);
        self.contact.set_certificate_expires(expires);
    }
}

// === impl Rotating ===

impl Rotating {
    fn look(&mut self) {
        if self.looked_at.elapsed() < self.rotation.look_every {
            return;
        }
        self.looked_at = Instant::now();
        if !self.rotation.files.have_changed() {
            return;
        }
        let files = self.rotation.files.paths.clone();
        match self.renew() {
            Ok(()) => tracing::info!(
                ?files,
                "certificates or kubeconfigs have changed, connecting anew"
            ),
            // Perhaps half of them is written; the rest is a change as well.
            Err(error) => tracing::warn!(
                ?files,
                "failed to use changed certificates or kubeconfigs, keeping the old ones: {error}"
            ),
        }
    }

    fn renew(&mut self) -> Result<(), String> {
        let config = match self.rotation.files.kubeconfigs {
            0 => self.config.clone(),
            _ => (self.rotation.reread)(&self.config)?,
        };
        // Another certificate may be named now.
        self.rotation.files.follow_certificates(&config);
        self.client = stack::client(&config).map_err(|error| setup_failure(&error))?;
        self.rotation.note_certificate(&config);
        self.config = config;
        Ok(())
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

// === impl FollowedFiles ===

impl FollowedFiles {
    /// These kubeconfigs, as they are now.
    pub(super) fn new(kubeconfigs: Vec<PathBuf>) -> Self {
        let mut files = Self {
            kubeconfigs: kubeconfigs.len(),
            paths: kubeconfigs,
            held: Vec::new(),
        };
        files.have_changed();
        files
    }

    /// Beside the kubeconfigs the files that a configuration names, as they are now. Data in the configuration itself wins
    /// over a file. With a credential plugin, which may take its time and ask its user, there are none, and no kubeconfig
    /// is read anew: the plugin is asked anew when its credentials expire.
    fn follow_certificates(&mut self, config: &Config) {
        let user = &config.auth_info;
        if user.exec.is_some() {
            *self = Self::new(Vec::new());
            return;
        }
        let certificate = (user.client_certificate.as_ref())
            .filter(|_| user.client_certificate_data.is_none())
            .map(PathBuf::from);
        let key = (user.client_key.as_ref())
            .filter(|_| user.client_key_data.is_none())
            .map(PathBuf::from);
        let named = [certificate, key, config.root_cert_file.clone()];
        let named: Vec<_> = named.into_iter().flatten().collect();
        // The held text of those that go on being named is older than the configuration, so that no change is missed.
        if self.paths[self.kubeconfigs..] != named {
            self.paths.truncate(self.kubeconfigs);
            self.held.truncate(self.kubeconfigs);
            self.held
                .extend(named.iter().map(|path| std::fs::read(path).ok()));
            self.paths.extend(named);
        }
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
