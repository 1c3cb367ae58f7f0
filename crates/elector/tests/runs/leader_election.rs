//! Electors that elect one of themselves: the one acts, the others stand by.

mod ending;
mod standing_by;

use std::sync::Arc;

use elector::{Config, Event, LeaderElection};
use elector_protocol::{Instant, LeaseKey};
use elector_runtime::Clock;
use elector_testing::{SentRequest, TestCluster, pass, seconds};

use crate::{RunningElector, replacing, seed_of};

/// A configuration with leader election among electors, of a pod of that name.
pub(crate) fn electing(host: &str) -> Config {
    Config {
        leader_election: Some(LeaderElection::new(host)),
        ..Config::default()
    }
}

/// One that also takes the lock of the built-in controller.
pub(crate) fn replacing_and_electing() -> Config {
    Config {
        leader_election: electing("active").leader_election,
        ..replacing()
    }
}

/// One of several electors, which is a client of the server by its name.
struct Replica {
    name: &'static str,
    cluster: TestCluster,
    elector: RunningElector,
}

// === impl Replica ===

impl Replica {
    fn start(cluster: &TestCluster, name: &'static str) -> Self {
        Self::start_with(cluster, name, electing(name))
    }

    fn start_with(cluster: &TestCluster, name: &'static str, config: Config) -> Self {
        Self::start_by(cluster.clock(), cluster, name, config)
    }

    fn start_by(
        clock: Arc<dyn Clock>,
        cluster: &TestCluster,
        name: &'static str,
        config: Config,
    ) -> Self {
        Self {
            name,
            cluster: cluster.clone(),
            elector: RunningElector::start_by(clock, cluster.connect(name), config, seed_of(name)),
        }
    }

    /// One that has come to act, and this one, which has watched for long enough to follow it at once.
    async fn pair(cluster: &TestCluster, standby: &'static str) -> (Self, Self) {
        let active = Self::start(cluster, "active");
        pass(seconds(3)).await;
        let standby = Self::start(cluster, standby);
        pass(seconds(20)).await;
        (active, standby)
    }

    /// True if it holds the lock.
    fn leads(&self) -> bool {
        lock_holder(&self.cluster).starts_with(&format!("elector_{}_", self.name))
    }

    /// Its requests since then that are no reads.
    fn writes_since(&self, then: Instant) -> Vec<SentRequest> {
        let mut requests = self.cluster.requests_of(self.name);
        requests.retain(|request| request.at >= then && !request.is_read());
        requests
    }

    /// Those that are no writes of the lock.
    fn acts_since(&self, then: Instant) -> Vec<SentRequest> {
        let mut writes = self.writes_since(then);
        writes.retain(|request| !request.path().contains("/namespaces/elector-system/"));
        writes
    }

    /// Its newest report of its own role.
    fn last_role(&self) -> Option<Event> {
        let mut events = self.elector.events();
        events.retain(|it| matches!(it, Event::Leading { .. } | Event::StandingBy { .. }));
        events.pop()
    }

    fn says_that_it_leads(&self) -> bool {
        matches!(self.last_role(), Some(Event::Leading { .. }))
    }

    fn says_that_it_stands_by(&self) -> bool {
        matches!(self.last_role(), Some(Event::StandingBy { .. }))
    }
}

/// The lock of the electors.
fn lock() -> LeaseKey {
    LeaderElection::new("").lease
}

/// Its holder, empty where there is none.
fn lock_holder(cluster: &TestCluster) -> String {
    let lock = lock();
    let (namespace, name) = (&lock.namespace, &lock.name);
    cluster.holder(namespace, name).unwrap_or_default()
}
