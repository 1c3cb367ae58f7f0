//! The operations of the tests of this workspace on a cluster: its requests, its store, its API server.

use std::sync::Arc;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_apiserver::{ApiServer, Backup, NativeCandidates, Rule};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use kube::Client;

use crate::requests::{RequestLog, SentRequest};
use crate::test_cluster::{CANDIDATES, CUSTOM_CANDIDATES, PROGRAM, TestCluster};

// === impl TestCluster ===

/// None of this is for programs: it changes with the tests of this workspace.
#[doc(hidden)]
impl TestCluster {
    /// A cluster that keeps `spec.strategy` and `spec.preferredHolder` of a Lease.
    #[must_use]
    pub fn with_gate() -> Self {
        Self::of(true)
    }

    /// The time of day at which each cluster starts.
    #[must_use]
    pub fn start_time() -> Timestamp {
        Timestamp::from_micros(crate::test_cluster::START).expect("2027 is a year that exists")
    }

    /// The clock of every process in this cluster.
    #[must_use]
    pub fn clock(&self) -> Arc<TokioClock> {
        Arc::clone(&self.parts().clock)
    }

    /// The time by the clock of holders.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.parts().clock.holder()
    }

    /// A bare connection of the program of that name. Clock, seed and identity are the caller's, and nothing is observed.
    #[must_use]
    pub fn connect(&self, program: &str) -> Cluster {
        Cluster::from(Client::new(self.client(program), "default"))
            .with_url("the embedded API server")
    }

    /// The connection of the one program of a test.
    #[must_use]
    pub fn connected(&self) -> Cluster {
        self.connect(PROGRAM)
    }

    /// From now on requests of the one program fare as this rule says, until [`heal`](Self::heal).
    pub fn inject(&self, rule: Rule) {
        self.faults(PROGRAM).inject(rule);
    }

    /// From now on each way of the one program to the server, and each way back, takes this time, and watches none.
    pub fn slow(&self, request: Duration, answer: Duration) {
        self.faults(PROGRAM).latency(request, answer);
        self.faults(PROGRAM).watch_latency(Duration::ZERO);
    }

    /// From now on every request and every watch of every program fares well.
    pub fn heal(&self) {
        let programs: Vec<_> = self.state().programs.keys().cloned().collect();
        programs
            .iter()
            .for_each(|program| self.heal_program(program));
    }

    /// From now on candidates are served there, and nothing breaks.
    ///
    /// # Panics
    ///
    /// When no release of Kubernetes serves these together.
    pub fn serve(&self, apis: &[CandidateApi]) {
        let serves = |api| apis.contains(&api);
        let native = match (
            serves(CandidateApi::V1Beta1),
            serves(CandidateApi::V1Alpha2),
            serves(CandidateApi::V1Alpha1),
        ) {
            (false, false, false) => NativeCandidates::Absent,
            (true, false, false) => NativeCandidates::V1Beta1,
            (true, true, false) => NativeCandidates::V1Beta1AndV1Alpha2,
            (false, true, false) => NativeCandidates::V1Alpha2,
            (false, false, true) => NativeCandidates::V1Alpha1,
            _ => panic!("no release of Kubernetes serves {apis:?}"),
        };
        self.state().candidates = match apis {
            [CandidateApi::Elector] => CUSTOM_CANDIDATES,
            _ => CANDIDATES,
        };
        let custom = serves(CandidateApi::Elector);
        self.server().serve_candidates(native, custom);
    }

    /// The same by a restart of the API server: every watch breaks.
    pub fn restart_serving(&self, apis: &[CandidateApi]) {
        self.serve(apis);
        for program in self.state().programs.keys() {
            self.faults(program).break_watches();
        }
    }

    /// The resource in which candidates register now: that of the best API.
    #[must_use]
    pub fn candidates(&self) -> &'static str {
        self.state().candidates
    }

    /// The present contents of the store.
    #[must_use]
    pub fn backup(&self) -> Backup {
        self.server().backup()
    }

    /// Puts the store back. Watches stay open, and hear nothing any more.
    pub fn restore(&self, backup: &Backup) {
        self.server().restore(backup);
    }

    /// From now on requests whose method, path and query contain this go to a store of their own, an empty one.
    pub fn reroute(&self, part: &'static str) {
        self.state().rerouted = Some((part, Self::new()));
    }

    /// Forgets all history, so that a watch that breaks off lists anew.
    pub fn compact(&self) {
        self.server().compact();
    }

    /// Has something happen just before each request arrives, until it returns true.
    pub fn before_requests(&self, act: impl FnMut(&Self, &SentRequest) -> bool + Send + 'static) {
        self.state().before_requests = Some(Box::new(act));
    }

    /// Has another actor do something just before the next PUT of this resource arrives.
    pub fn before_next_put(&self, plural: &'static str, act: impl FnOnce(&Self) + Send + 'static) {
        let mut act = Some(act);
        self.before_requests(move |cluster, sent| {
            let of = sent.path().rsplit('/').nth(1);
            let act = act.take_if(|_| sent.what.starts_with("PUT ") && of == Some(plural));
            act.map(|act| act(cluster)).is_some()
        });
    }

    /// True while that is still to come.
    #[must_use]
    pub fn awaits_put(&self) -> bool {
        self.state().before_requests.is_some()
    }

    /// Every request.
    #[must_use]
    pub fn requests(&self) -> Vec<SentRequest> {
        self.state().log.requests.clone()
    }

    /// The requests whose method, path and query contain each of these.
    #[must_use]
    pub fn requests_with(&self, parts: &[&str]) -> Vec<SentRequest> {
        let mut requests = self.requests();
        requests.retain(|request| parts.iter().all(|part| request.what.contains(part)));
        requests
    }

    /// Those that were sent since then.
    #[must_use]
    pub fn requests_since(&self, then: Instant, parts: &[&str]) -> Vec<SentRequest> {
        let mut requests = self.requests_with(parts);
        requests.retain(|request| request.at >= then);
        requests
    }

    /// The requests of that program.
    #[must_use]
    pub fn requests_of(&self, program: &str) -> Vec<SentRequest> {
        let mut requests = self.requests();
        requests.retain(|request| *request.client == *program);
        requests
    }

    /// The number of requests of this method whose path has that end.
    #[must_use]
    pub fn count_requests(&self, method: &str, end: &str) -> usize {
        let requests = self.requests_with(&[method]).into_iter();
        let like = |it: &SentRequest| it.what.starts_with(method) && it.path().ends_with(end);
        requests.filter(like).count()
    }

    /// Every write that was carried out and confirmed: `POST leases/ns/l`.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.state().log.writes.clone()
    }

    /// Forgets the requests and writes so far.
    pub fn forget_requests(&self) {
        self.state().log = RequestLog::default();
    }

    /// Waits until the store satisfies a condition; virtual time runs on meanwhile.
    ///
    /// # Panics
    ///
    /// When it does not within that time.
    pub async fn wait_for(&self, what: &str, within: Duration, done: impl Fn(&Self) -> bool) {
        let reached = async {
            loop {
                let seen = self.server().revision();
                if done(self) {
                    return;
                }
                self.server().changed(seen).await;
            }
        };
        let reached = tokio::time::timeout(within, reached).await;
        let writes = self.writes();
        assert!(
            reached.is_ok(),
            "not within {within:?}: {what}; writes: {writes:?}"
        );
    }

    /// The API server: its objects past every rule, backups and restores, other LeaseCandidates.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.parts().server
    }
}

#[cfg(test)]
mod tests {
    use elector_api::Lease;
    use elector_apiserver::Fault;
    use elector_protocol::LeaseKey;
    use kube::api::{Api, PostParams};

    use super::*;
    use crate::test_cluster::{LEASES, REQUEST_LATENCY};
    use crate::time::millis;

    fn leases(cluster: &TestCluster) -> Api<Lease> {
        Api::namespaced_with(cluster.connected().client().clone(), "ns", &())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_confirmed_writes_are_recorded() {
        let cluster = TestCluster::new();
        let (start, leases) = (cluster.now(), leases(&cluster));
        let lease = |name: &str| Lease::named(&LeaseKey::new("ns", name));
        let parameters = PostParams::default();
        leases.create(&parameters, &lease("l")).await.unwrap();
        assert!(cluster.now().since(start) >= REQUEST_LATENCY);
        assert_eq!(cluster.writes(), ["POST leases/ns/l"]);
        assert_eq!(cluster.requests_since(start, &["POST", "/leases"]).len(), 1);
        cluster.inject(Rule::new(Fault::HangAfter).verb("create"));
        let other = lease("other");
        let hangs = leases.create(&parameters, &other);
        assert!(tokio::time::timeout(millis(100), hangs).await.is_err());
        assert!(cluster.lease("ns", "other").object().is_some());
        assert_eq!(cluster.writes(), ["POST leases/ns/l"], "not confirmed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_act_before_a_put_comes_first() {
        let cluster = TestCluster::new();
        cluster.renew("ns", "l", "plain");
        let stored = cluster.lease("ns", "l").object().unwrap();
        cluster.before_next_put(LEASES, |cluster| cluster.renew("ns", "l", "other"));
        let parameters = PostParams::default();
        let outcome = leases(&cluster).replace("l", &parameters, &stored).await;
        let Err(kube::Error::Api(status)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(status.code, 409);
        assert!(!cluster.awaits_put());
        assert_eq!(cluster.holder("ns", "l").as_deref(), Some("other"));
    }
}
