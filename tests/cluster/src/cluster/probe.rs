//! Asking an API server whether it is ready, without a Kubernetes client.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustls::pki_types::{CertificateDer, IpAddr, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::layout::Credentials;

/// For each of connect, read and write.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A server on loopback, and the user that asks it.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    address: SocketAddr,
    token: String,
    config: Arc<ClientConfig>,
}

// === impl Probe ===

impl Probe {
    pub(super) fn new(port: u16, credentials: &Credentials) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(credentials.authority.clone()))
            .context("failed to read the certificate authority")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("failed to set up TLS")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            token: credentials.token.clone(),
            config: Arc::new(config),
        })
    }

    /// The same user asks another server, on that port.
    pub(super) fn of_port(&self, port: u16) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            ..self.clone()
        }
    }

    /// The status code of a GET.
    pub(super) fn get(&self, path: &str) -> Result<u16> {
        let name = ServerName::IpAddress(IpAddr::from(self.address.ip()));
        let connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let socket = TcpStream::connect_timeout(&self.address, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let mut stream = StreamOwned::new(connection, socket);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address, self.token
        )?;
        let mut head = Vec::new();
        // The status line is within the first bytes; the rest is of no interest.
        io::Read::take(&mut stream, 64)
            .read_to_end(&mut head)
            .or_else(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => Ok(0), // closed without the TLS farewell
                _ => Err(error),
            })?;
        status(&head).context("the answer is not HTTP")
    }
}

/// The status code in the first line of an answer.
fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    words.next()?.strip_prefix("HTTP/1.")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_the_second_word_of_an_http_answer() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\nDate: x"), Some(200));
        assert_eq!(status(b"HTTP/1.0 500 Internal Server Error\r\n"), Some(500));
        assert_eq!(status(b"SSH-2.0-OpenSSH\r\n"), None);
        assert_eq!(status(b""), None);
    }
}
