//! The connection of candidates to an API server, with the thread, the clock and the seed that belong to it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use elector_runtime::{Clock, Cluster as ApiServer, InstanceLock, SystemClock, random_seed};
use http::{Request, Response};
use tower::{BoxError, Service};

use crate::error::Error;
use crate::renewal_thread::RenewalThread;
#[cfg(feature = "test-util")]
use crate::test_surroundings::surroundings;

/// A connection to one API server, for any number of candidates. Clones share it.
///
/// | made by | requests and renewals run |
/// |---|---|
/// | `Cluster::connect`, with feature `connect` | on a thread of their own, by a client that this crate makes |
/// | [`Cluster::on_own_thread`] | on a thread of their own, by a client that the program makes |
/// | `Cluster::from(client)`, with feature `kube5` | on the executor of the work |
/// | [`Cluster::over`] | on the executor of the work, by any HTTP service |
///
/// Where they share the executor, work that blocks all its threads for longer than the renew deadline loses the lease.
/// The thread is shared by the candidates of one `Cluster`, and lives as long as a clone or a candidate of it.
#[derive(Clone)]
pub struct Cluster {
    api_server: ApiServer,
    thread: Option<Arc<RenewalThread>>,
    clock: Arc<dyn Clock>,
    /// A number in place of a random one, where a simulation is to repeat.
    seed: Option<u64>,
    /// The instance lock of a simulated process.
    instance: Option<Arc<InstanceLock>>,
}

// === impl Cluster ===

impl Cluster {
    /// The cluster that the kubeconfig names, or the service account of the Pod, as kubectl finds it, by a client of its
    /// own on a thread of its own. The client retries nothing and has no cache: give controllers one of the program's.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] when no kubeconfig and no service account names a cluster, [`Error::Local`] when there is no
    /// room for a thread. A server that is away is no error.
    #[cfg(feature = "connect")]
    pub async fn connect() -> Result<Self, Error> {
        Self::connect_with(&elector_runtime::ClientArgs::default()).await
    }

    /// The same as flags say it.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    #[cfg(feature = "connect")]
    pub async fn connect_with(args: &elector_runtime::ClientArgs) -> Result<Self, Error> {
        let args = args.clone();
        // The tasks of the client belong to the runtime in which it is made.
        Self::on_own_thread(
            move || async move { elector_runtime::connect(&args).await.map(Self::from) },
        )
        .await
    }

    /// The cluster of a client that the program makes, on a thread for requests and renewals: what `make` returns is
    /// awaited there, so that the tasks of the client run there too. Make the clients of controllers elsewhere.
    ///
    /// ```
    /// use elector_candidate::{Cluster, Error};
    ///
    /// # async fn bridge() -> Result<Cluster, std::io::Error> { Ok(Cluster::none()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// // `bridge` makes a client of any version of kube, and gives it to `Cluster::over`.
    /// let cluster = Cluster::on_own_thread(|| async { bridge().await }).await?;
    /// # let _ = cluster;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Connect`] with that of `make`, [`Error::Local`] when there is no room for a thread.
    pub async fn on_own_thread<F, E>(
        make: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output = Result<Self, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let no_thread = |error: io::Error| {
            let text = format!("start a thread for renewals: {error}");
            Error::Local(io::Error::new(error.kind(), text))
        };
        let thread = RenewalThread::start().map_err(no_thread)?;
        let making = async move { make().await.map_err(Into::into) };
        let cluster = thread.run(making).await.map_err(Error::Connect)?;
        Ok(Self {
            thread: Some(Arc::new(thread)),
            ..cluster
        })
    }

    /// A connection by an HTTP service that the program has: a client of another version of kube, a bare one of hyper,
    /// one in process.
    ///
    /// It is asked for paths such as `/apis/coordination.k8s.io/v1/namespaces/ns/leases/web`, and adds to them what
    /// leads to the API server: scheme, host, credentials. Each request has its own clone of it. The answer comes back
    /// whatever its status is; bodies may come in parts, as those of watches do. The namespace is `default` unless
    /// [`in_namespace`](Self::in_namespace) names another, and requests take 5 s at most.
    ///
    /// A service that retries hides failures for as long, and does no other harm: each write names the revision that it
    /// replaces, and no request outlives its timeout.
    ///
    /// With kube 4, say, the two crates `kube` and `tower` of the program, and a client that they made:
    ///
    /// ```
    /// # use kube as kube4;
    /// use elector_candidate::Cluster;
    /// use kube4::client::Body;
    ///
    /// fn bridge(client: kube4::Client) -> Cluster {
    ///     let namespace = client.default_namespace().to_owned();
    ///     let service = tower::service_fn(move |request: http::Request<Body>| {
    ///         let client = client.clone();
    ///         async move { client.send(request).await }
    ///     });
    ///     Cluster::over(service).in_namespace(namespace)
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn over<S, B, R>(service: S) -> Self
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: From<Bytes> + Send + 'static,
        R: http_body::Body<Data = Bytes> + Send + 'static,
        R::Error: Into<BoxError>,
    {
        Self::from(ApiServer::over(service))
    }

    /// No API server: each request fails at once. For a program whose election is disabled
    /// ([`Mode::Disabled`](crate::Mode::Disabled)), and which may run where there is no cluster.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn none() -> Self {
        Self::from(ApiServer::absent())
    }

    /// The namespace of the kubeconfig's context, or that of the service account; `default` where neither says.
    pub fn namespace(&self) -> &str {
        self.api_server.namespace()
    }

    /// The same with another namespace as the one that [`namespace`](Self::namespace) tells.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.api_server = self.api_server.in_namespace(namespace.into());
        self
    }

    /// The same with an address of the API server, for messages only.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<String>) -> Self {
        self.api_server = self.api_server.with_url(url.into());
        self
    }

    /// The same by another clock, for tests and simulations. It must not depend on a runtime where there is a thread.
    #[doc(hidden)]
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The same with this number in place of a random one, for simulations that repeat.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The same with an instance lock that has been obtained already, for simulations of many processes in one.
    #[doc(hidden)]
    #[must_use]
    pub fn with_instance_lock(mut self, lock: Arc<InstanceLock>) -> Self {
        self.instance = Some(lock);
        self
    }

    pub(crate) fn instance_lock(&self) -> Option<Arc<InstanceLock>> {
        self.instance.clone()
    }

    pub(crate) fn url(&self) -> &str {
        self.api_server.url()
    }

    pub(crate) const fn request_timeout(&self) -> Duration {
        self.api_server.request_timeout()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(random_seed)
    }

    /// Where requests and renewals run, if not on the caller's executor.
    pub(crate) fn thread(&self) -> Option<Arc<RenewalThread>> {
        self.thread.clone()
    }

    #[cfg(feature = "test-util")]
    pub(crate) const fn api_server(&self) -> &ApiServer {
        &self.api_server
    }

    pub(crate) fn into_api_server(self) -> ApiServer {
        self.api_server
    }
}

#[doc(hidden)]
impl From<ApiServer> for Cluster {
    fn from(api_server: ApiServer) -> Self {
        #[cfg(feature = "test-util")]
        if let Some(by) = surroundings(&api_server) {
            return Self {
                api_server,
                thread: None,
                clock: by.clock(),
                seed: Some(by.seed()),
                instance: None,
            };
        }
        Self {
            api_server,
            thread: None,
            clock: Arc::new(SystemClock::start()),
            seed: None,
            instance: None,
        }
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("url", &self.url())
            .field("namespace", &self.namespace())
            .field("has_thread", &self.thread.is_some())
            .finish_non_exhaustive()
    }
}
