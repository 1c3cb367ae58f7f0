//! A layer by which an HTTP client writes only while this process leads.

use std::error::Error as StdError;
use std::fmt;
use std::task::{Context, Poll};

use elector_protocol::{Identity, LeaseKey};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http::header::UPGRADE;
use http::{Method, Request};
use tower::{BoxError, Layer, Service};

use crate::status::StatusReader;

/// A layer over an HTTP client of the API server that lets reads pass, and refuses writes while this process does not
/// lead, with [`NotLeading`].
///
/// | request | |
/// |---|---|
/// | GET, HEAD, OPTIONS: get, list, watch, logs | passes |
/// | POST, PUT, PATCH, DELETE and all other methods, of objects and of their subresources | while leading |
/// | GET that asks for another protocol: exec, attach, port-forward | while leading |
/// | POST to `authorization.k8s.io` and `authentication.k8s.io` | passes |
///
/// The last are questions: SelfSubjectAccessReview, TokenReview and their like store nothing, and a webhook of a standby
/// asks them. Nothing else is exempt: a dry run is not, since admission webhooks may act on it, nor are Events, which
/// tell of what one does.
///
/// Leadership is computed from the clock at the moment at which a request is sent, so a write past the deadline is
/// refused although no timer has fired ([`CandidateHandle::is_leader`](crate::CandidateHandle::is_leader)). What is sent
/// then may still arrive later: give writes a timeout of no more than
/// [`Timing::effect_grace`](crate::Timing::effect_grace) (5 s by default), or send the fencing token along and have the
/// resource check it.
///
/// [`CandidateHandle::leader_only`](crate::CandidateHandle::leader_only) is for all terms of this process,
/// [`Leadership::leader_only`](crate::Leadership::leader_only) for one. The candidate itself needs a client without this
/// layer: it writes before it leads.
///
#[cfg_attr(feature = "kube5", doc = "```no_run")]
#[cfg_attr(not(feature = "kube5"), doc = "```ignore")]
/// use elector_candidate::{CandidateHandle, NotLeading, kube5};
///
/// # async fn example(handle: CandidateHandle, client: kube::Client) -> Result<(), kube::Error> {
/// // Over a client that is there,
/// let guarded = kube5::guarded(&client, &handle.leader_only());
/// // or as one of the layers of a client that is being built:
/// let config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
/// let guarded_too = kube::client::ClientBuilder::try_from(config)?
///     .with_layer(&handle.leader_only())
///     .build();
/// # let _ = (guarded, guarded_too);
/// # Ok(())
/// # }
///
/// fn explain(error: &kube::Error) {
///     match NotLeading::find(error) {
///         Some(refusal) => println!("left to {:?}", refusal.holder()),
///         None => println!("failed: {error}"),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderOnlyLayer {
    reader: StatusReader,
    /// The number and the token of the one term in which writes pass, or any.
    term: Option<(u64, u64)>,
}

/// An HTTP client under a [`LeaderOnlyLayer`].
#[derive(Clone, Debug)]
pub struct LeaderOnly<S> {
    inner: S,
    layer: LeaderOnlyLayer,
}

/// A write was not sent, because this process does not lead.
///
/// An error of kube carries it as its source: [`NotLeading::find`] finds it there, and in errors that hold such an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLeading {
    lease: LeaseKey,
    holder: Option<Identity>,
    token: Option<u64>,
    request: String,
}

// === impl LeaderOnlyLayer ===

impl LeaderOnlyLayer {
    pub(crate) const fn new(reader: StatusReader, term: Option<(u64, u64)>) -> Self {
        Self { reader, term }
    }

    fn check(&self, request: &str) -> Result<(), NotLeading> {
        let belief = &self.reader.belief;
        if belief.led(self.term.map(|(number, _)| number)).is_some() {
            return Ok(());
        }
        Err(NotLeading {
            lease: belief.lease().clone(),
            holder: self.reader.status().holder().cloned(),
            token: self.term.map(|(_, token)| token),
            request: request.to_owned(),
        })
    }
}

impl<S> Layer<S> for LeaderOnlyLayer {
    type Service = LeaderOnly<S>;

    fn layer(&self, inner: S) -> LeaderOnly<S> {
        LeaderOnly {
            inner,
            layer: self.clone(),
        }
    }
}

// === impl LeaderOnly ===

impl<S, B> Service<Request<B>> for LeaderOnly<S>
where
    S: Service<Request<B>>,
    S::Response: 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if is_read(&request) {
            return self.inner.call(request).map_err(Into::into).boxed();
        }
        let line = format!("{} {}", request.method(), request.uri().path());
        if let Err(refusal) = self.layer.check(&line) {
            return async { Err(refusal.into()) }.boxed();
        }
        let (layer, sending) = (self.layer.clone(), self.inner.call(request));
        async move {
            // Time may have passed before the caller came to wait for the response, which is when it is sent.
            layer.check(&line)?;
            sending.await.map_err(Into::into)
        }
        .boxed()
    }
}

// === impl NotLeading ===

impl NotLeading {
    /// The lease.
    pub const fn lease(&self) -> &LeaseKey {
        &self.lease
    }

    /// The holder that is known, which is this process where only an earlier term of it is over, or where its belief has
    /// ended and no other holder is known yet.
    pub const fn holder(&self) -> Option<&Identity> {
        self.holder.as_ref()
    }

    /// The method and the path of the request: `PUT /api/v1/namespaces/ns/configmaps/web`.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The refusal in an error, or in what caused it.
    pub fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(refusal) = error.downcast_ref() {
                return Some(refusal);
            }
            cause = error.source();
        }
        None
    }
}

impl fmt::Display for NotLeading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, lease, .. } = self;
        write!(f, "{request}: this process does not lead {lease}")?;
        if let Some(token) = self.token {
            write!(f, " under token {token}")?;
        }
        match &self.holder {
            Some(holder) => write!(f, ", whose holder is {holder}"),
            None => f.write_str(", which has no known holder"),
        }
    }
}

impl StdError for NotLeading {}

/// The API groups whose objects are questions: they are answered, and not stored.
const QUESTIONS: [&str; 2] = [
    "/apis/authorization.k8s.io/",
    "/apis/authentication.k8s.io/",
];

/// True if a request changes nothing.
fn is_read<B>(request: &Request<B>) -> bool {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS => !request.headers().contains_key(UPGRADE),
        Method::POST => {
            let path = request.uri().path();
            QUESTIONS.iter().any(|group| path.starts_with(group))
        }
        _ => false,
    }
}
