//! The HTTP stack under the client, with Nagle's algorithm off.
//!
//! kube's own stack leaves it on. The first request on a new TLS connection then waits for the acknowledgement of the
//! handshake's last message, which a server may delay by 40 ms: more than a whole hand-over takes.

use http::Request;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use rustls::crypto::CryptoProvider;
use tower::{BoxError, ServiceBuilder};

use crate::secrets::shown;

/// Makes rustls' process-wide choice where the program has made none: kube asks for it, and where ring and aws-lc-rs are
/// both linked rustls makes none by itself and panics.
fn choose_crypto_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been quicker; its choice is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// A client with the certificates of this moment, and without a bound for the answer of a request, not even for its
/// head. Each call has a bound of its own (`Cluster::call`), and a list may take longer than a write, also before its
/// first byte: API servers queue requests, and read all of a large list before they answer.
pub(super) fn client(config: &Config) -> kube::Result<Client> {
    choose_crypto_provider();
    let exec = config.auth_info.exec.is_some();
    if exec || config.proxy_url.is_some() {
        // The code of kube for proxies and for certificates of a credential plugin is not open to others.
        return Ok(ClientBuilder::try_from(config.clone())?.build());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(tls);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_request(|request: Request<Body>| {
            tracing::trace!(method = %request.method(), url = shown(request.uri()), "requesting");
            request
        })
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}
