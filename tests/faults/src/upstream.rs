//! The way to the API server behind the proxy.

use std::io;
use std::path::Path;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// The body of an answer.
pub(crate) type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

/// Sends requests to the API server, with the credentials that they carry and none of its own.
pub(crate) struct Upstream {
    send: Box<dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, UpstreamResult> + Send + Sync>,
}

/// The response to a request.
pub(crate) type UpstreamResult = io::Result<Response<ResponseBody>>;

/// The headers of one connection only, and the name of the server on it.
const HOP_BY_HOP: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

// === impl Upstream ===

impl Upstream {
    /// The API server of this kubeconfig, and the bearer token that is found there.
    pub(crate) async fn of(kubeconfig: &Path) -> Result<(Self, secrecy::SecretString)> {
        let kubeconfig =
            Kubeconfig::read_from(kubeconfig).context("failed to read the kubeconfig")?;
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let token = config.auth_info.token.clone();
        let token = token.context("the kubeconfig has no token")?;
        let base = config.cluster_url.clone().into_parts();
        let authority = base.authority.context("the API server has no address")?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = config.rustls_https_connector_with_connector(tcp)?;
        let http: HttpClient<_, Full<Bytes>> = HttpClient::builder(TokioExecutor::new()).build(tls);
        let send = move |mut request: Request<Full<Bytes>>| {
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = address(&authority, path);
            let http = http.clone();
            async move {
                let answer = http.request(request).await.map_err(io::Error::other)?;
                Ok(answer.map(|body| body.map_err(io::Error::other).boxed_unsync()))
            }
            .boxed()
        };
        Ok((Self::new(send), token))
    }

    /// Any function that answers.
    pub(crate) fn new(
        send: impl Fn(Request<Full<Bytes>>) -> BoxFuture<'static, UpstreamResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            send: Box::new(send),
        }
    }

    /// Sends it and waits for the head of the answer.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> UpstreamResult {
        *request.version_mut() = http::Version::HTTP_11;
        strip(request.headers_mut());
        let mut answer = (self.send)(request).await?;
        strip(answer.headers_mut());
        Ok(answer)
    }
}

fn address(authority: &Authority, path: Option<PathAndQuery>) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTPS);
    parts.authority = Some(authority.clone());
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    // All three parts are there, and each is valid by itself.
    Uri::from_parts(parts).unwrap_or_default()
}

fn strip(headers: &mut http::HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}
