//! A cluster in memory: its server, its clock, and the ways of programs to it.

use std::sync::Arc;
use std::time::Duration;

use elector_apiserver::{ApiServer, Config, Latency, Switches, WallClock};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use k8s_openapi::jiff;
use kube::Client;

/// A cluster in memory: an API server that is embedded in the test, and a clock that follows tokio's timers. Clones are
/// the same cluster.
///
/// It has no elector: candidates take the lease themselves, once it has been free for as long as their configuration says,
/// which on a paused clock takes no time. A candidate in [`Mode::Elected`](elector_candidate::Mode::Elected) leads when the
/// test plays the elector ([`StoredLease::grant`](crate::StoredLease::grant)).
///
/// [`Self::run`] runs a program with its work. What has a main function of its own can be given a client instead:
///
/// ```
/// use elector_candidate::{Candidate, Config};
/// use elector_testing::EmbeddedCluster;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = EmbeddedCluster::new();
/// let candidate = Candidate::new(Config::plain("web"), cluster.connect("web-0"))?
///     .with_clock(cluster.clock());
/// # let _ = candidate;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedCluster {
    server: ApiServer,
    clock: Arc<TokioClock>,
}

/// A request's latency: an answer that takes no time would let no time pass.
pub const REQUEST_LATENCY: Duration = Duration::from_millis(1);

/// The latency where no fault is injected.
const USUAL: Latency = Latency {
    request: REQUEST_LATENCY,
    answer: Duration::ZERO,
    watch: Duration::ZERO,
};

/// The time of day at which each such cluster starts, in microseconds.
const START: i64 = 1_800_000_000_000_000;

// === impl EmbeddedCluster ===

impl EmbeddedCluster {
    /// A cluster of Kubernetes 1.36 that serves LeaseCandidates, empty.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Config::default())
    }

    /// A cluster whose API server is of that kind. Its clock is that of the cluster, and a namespace comes into being with
    /// its first object.
    #[must_use]
    pub fn of(config: Config) -> Self {
        let epoch = jiff::Timestamp::from_microsecond(START).expect("2027 is a year that exists");
        Self {
            server: ApiServer::new(Config {
                auto_namespaces: true,
                clock: WallClock::following_timers(epoch),
                ..config
            }),
            clock: Arc::new(TokioClock::start(Self::start())),
        }
    }

    /// The time of day at which each such cluster starts.
    #[must_use]
    pub fn start() -> Timestamp {
        Timestamp::from_micros(START).expect("2027 is a year that exists")
    }

    /// The clock of every process in this cluster, for [`Candidate::with_clock`](elector_candidate::Candidate::with_clock).
    #[must_use]
    pub fn clock(&self) -> Arc<TokioClock> {
        Arc::clone(&self.clock)
    }

    /// The time by the clock of holders, which deadlines are instants of.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.clock.holder()
    }

    /// The cluster as a program of that name is connected to it, with faults of its own ([`Self::faults_of`]). Each request
    /// takes [`REQUEST_LATENCY`], and is given up after 5 s.
    ///
    /// # Panics
    ///
    /// When the name is not visible ASCII, or there is no Tokio runtime.
    #[must_use]
    pub fn connect(&self, program: &str) -> Cluster {
        self.faults_of(program).latency(USUAL);
        let client = Client::new(self.server.service(program), "default");
        Cluster::from(client).with_url("the embedded API server")
    }

    /// The faults that befall the requests and the watches of that program.
    #[must_use]
    pub fn faults_of(&self, program: &str) -> Switches {
        self.server.switches(program)
    }

    /// From now on every request and every watch of that program fares well.
    pub fn heal(&self, program: &str) {
        let faults = self.faults_of(program);
        faults.clear();
        faults.latency(USUAL);
    }

    /// The API server: its objects past every rule, backups and restores, other LeaseCandidates.
    #[must_use]
    pub const fn server(&self) -> &ApiServer {
        &self.server
    }
}

impl Default for EmbeddedCluster {
    fn default() -> Self {
        Self::new()
    }
}
