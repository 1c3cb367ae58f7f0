//! A client that writes only while this process leads.

use std::error::Error;
use std::fmt;
use std::task::{Context, Poll};

use elector_protocol::{Identity, LeaseKey, Token};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http::header::UPGRADE;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Layer, Service, service_fn};

use crate::handle::CandidateHandle;

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
/// refused although no timer has fired ([`CandidateHandle::is_leader`]). What is sent then may still arrive later: give
/// writes a timeout of no more than the effect grace, lease duration minus renew deadline (5 s by default), or send the
/// fencing token along and have the resource check it.
///
/// The candidate itself needs a client without this layer: it writes before it leads.
///
/// ```no_run
/// use elector_candidate::{CandidateHandle, NotLeading};
///
/// # async fn example(handle: CandidateHandle, client: kube::Client) -> Result<(), kube::Error> {
/// // Over a client that is there,
/// let guarded = handle.write_guard().client(&client);
/// // or as one of the layers of a client that is being built:
/// let config = kube::Config::infer().await.map_err(kube::Error::InferConfig)?;
/// let guarded_too = kube::client::ClientBuilder::try_from(config)?
///     .with_layer(&handle.write_guard())
///     .build();
/// # let _ = (guarded, guarded_too);
/// # Ok(())
/// # }
///
/// fn explain(error: &kube::Error) {
///     match NotLeading::find(error) {
///         Some(refusal) => println!("left to {:?}", refusal.holder),
///         None => println!("failed: {error}"),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct WriteGuard {
    handle: CandidateHandle,
    /// The token of the one term in which writes pass, or any.
    term: Option<Token>,
}

/// A client of the API server under a [`WriteGuard`].
#[derive(Clone, Debug)]
pub struct GuardedService<S> {
    inner: S,
    guard: WriteGuard,
}

/// A write was not sent, because this process does not lead.
///
/// [`kube::Error`] carries it as its source: [`NotLeading::find`] finds it there, and in errors that hold such an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotLeading {
    /// The lease.
    pub lease: LeaseKey,
    /// The holder that is known, which is this process where only an earlier term of it is over, or where its belief has
    /// ended and no other holder is known yet.
    pub holder: Option<Identity>,
    /// The token of the term that the client was for, if it was for one ([`WriteGuard::under`]).
    pub token: Option<Token>,
    /// The method of the request.
    pub method: Method,
    /// The path of the request.
    pub path: String,
}

// === impl CandidateHandle ===

impl CandidateHandle {
    /// A layer that refuses writes while this process does not lead.
    #[must_use]
    pub fn write_guard(&self) -> WriteGuard {
        WriteGuard {
            handle: self.clone(),
            term: None,
        }
    }
}

// === impl WriteGuard ===

impl WriteGuard {
    /// The same for the term of that token alone: a later term of this process does not let pass what is left of an earlier
    /// one.
    #[must_use]
    pub fn under(self, token: Token) -> Self {
        Self {
            term: Some(token),
            ..self
        }
    }

    /// A client that is guarded by this, over one that is not, whose connections it shares.
    ///
    /// # Panics
    ///
    /// When it is called outside of a Tokio runtime, as those of kube do.
    #[must_use]
    pub fn client(&self, client: &Client) -> Client {
        let (namespace, valid_until) = (client.default_namespace(), client.valid_until());
        let inner = client.clone();
        let send = service_fn(move |request: Request<Body>| {
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Client::new(self.layer(send), namespace).with_valid_until(*valid_until)
    }

    fn check(&self, method: &Method, path: &str) -> Result<(), NotLeading> {
        let leads = match self.term {
            Some(token) => self.handle.is_leader_under(token),
            None => self.handle.is_leader(),
        };
        if leads {
            return Ok(());
        }
        Err(NotLeading {
            lease: self.handle.lease().clone(),
            holder: self.handle.status().holder,
            token: self.term,
            method: method.clone(),
            path: path.to_owned(),
        })
    }
}

impl<S> Layer<S> for WriteGuard {
    type Service = GuardedService<S>;

    fn layer(&self, inner: S) -> GuardedService<S> {
        GuardedService {
            inner,
            guard: self.clone(),
        }
    }
}

// === impl GuardedService ===

impl<S, B> Service<Request<B>> for GuardedService<S>
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
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if let Err(refusal) = self.guard.check(&method, &path) {
            return async { Err(refusal.into()) }.boxed();
        }
        let (guard, sending) = (self.guard.clone(), self.inner.call(request));
        async move {
            // Time may have passed before the caller came to wait for the response, which is when it is sent.
            guard.check(&method, &path)?;
            sending.await.map_err(Into::into)
        }
        .boxed()
    }
}

// === impl NotLeading ===

impl NotLeading {
    /// The refusal in an error, or in what caused it.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
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
        let Self { method, path, .. } = self;
        write!(
            f,
            "{method} {path}: this process does not lead {}",
            self.lease
        )?;
        if let Some(token) = self.token {
            write!(f, " under token {token}")?;
        }
        match &self.holder {
            Some(holder) => write!(f, ", whose holder is {holder}"),
            None => f.write_str(", which has no known holder"),
        }
    }
}

impl Error for NotLeading {}

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
