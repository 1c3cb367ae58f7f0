//! Clients that do not follow the rules of this repository: a plain client, an elector as it is built into Kubernetes,
//! and a candidate that accepts nothing.

use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, Term};
use elector_runtime::Clock as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use tokio::time::{Instant, sleep};

use crate::clock::SimClock;
use crate::context::RunContext;
use crate::history::Role;
use crate::names::{BUILTIN_LOCK, NAMESPACE, lease_name};
use crate::plan::PlannedStrategy;
use crate::random::Random;
use crate::simulation::Simulation;
use crate::tamper::{edit, useless_candidate};

/// A client that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignClient {
    /// A client that knows nothing of candidates.
    Plain,
    /// A candidate as client-go's coordinated leader election is one, the best under a strategy.
    ClientGo(PlannedStrategy),
    /// An elector as it is built into Kubernetes.
    Builtin,
    /// A built-in controller that takes its lock and leaves all leases alone.
    LockHolder,
    /// A candidate that accepts nothing, keeps each of its names for a set time, and is the best under a strategy.
    Idle(Duration, PlannedStrategy),
}

/// A client that follows other rules, and its ways to the objects of one lease.
pub(crate) struct ForeignProcess {
    pub(crate) leases: Api<Lease>,
    pub(crate) candidates: Api<LeaseCandidate>,
    pub(crate) api: CandidateApi,
    pub(crate) key: LeaseKey,
    pub(crate) clock: SimClock,
    pub(crate) context: RunContext,
    /// The place of its fault in the plan, which takes effect when it writes.
    fault: usize,
}

/// The lease duration that plain clients write.
pub(crate) const DURATION: i32 = 15;

/// The interval at which client-go looks, and the built-in elector.
pub(crate) const PERIOD: Duration = Duration::from_secs(2);

/// The interval at which an idle candidate looks for pings.
const PING_PERIOD: Duration = Duration::from_millis(500);

/// The time before its end at which an idle candidate deletes its object.
const IDLE_END: Duration = Duration::from_secs(2);

// === impl Simulation ===

impl Simulation {
    /// Lets a foreign client take part in the election of a lease for a while. That alone is no effect: its writes are.
    pub(crate) fn start_foreign_client(
        &mut self,
        which: ForeignClient,
        lease: usize,
        lasts: Duration,
        fault: usize,
    ) -> bool {
        let (name, role) = match which {
            ForeignClient::Plain => (format!("plain{lease}"), Role::Plain),
            ForeignClient::ClientGo(_) => (format!("clientgo{lease}"), Role::ClientGo),
            ForeignClient::Builtin => (format!("builtin{lease}"), Role::Builtin),
            ForeignClient::LockHolder => ("apiserver-sim".to_owned(), Role::Builtin),
            ForeignClient::Idle(..) => (format!("idle{lease}"), Role::Kubectl),
        };
        let number = u64::try_from(self.foreign_clients.len()).unwrap_or(0);
        let mut random = Random::stream(self.plan.seed, 6000 + number);
        let rate = random.between(900_000, 1_100_000);
        let transport = self.foreign_transport(&name, role, rate);
        let offset = i64::try_from(random.between(0, 40_000)).unwrap_or(0) - 20_000;
        transport.clock.step(offset * 1000);
        let (faults, way) = (self.server.faults(&name), Duration::from_millis(2));
        faults.latency(way, way);
        faults.watch_latency(way);
        let (client, api) = (transport.client(), self.candidate_api());
        let key = match which {
            ForeignClient::LockHolder => LeaseKey::new("kube-system", BUILTIN_LOCK),
            _ => LeaseKey::new(NAMESPACE, lease_name(lease)),
        };
        let process = ForeignProcess {
            leases: Api::namespaced_with(client.clone(), &key.namespace, &()),
            candidates: Api::default_namespaced_with(client, &api),
            api,
            key,
            clock: transport.clock,
            context: transport.context,
            fault,
        };
        match which {
            ForeignClient::Plain | ForeignClient::LockHolder => {
                let identity = Identity::new(name).expect("a name that is not empty");
                self.foreign_clients
                    .spawn(process.run_plain(identity, lasts))
            }
            ForeignClient::ClientGo(strategy) => {
                let releases = random.percent(50);
                let run = process.run_client_go(strategy, lasts, releases);
                self.foreign_clients.spawn(run)
            }
            ForeignClient::Builtin => self.foreign_clients.spawn(process.run_builtin(lasts)),
            ForeignClient::Idle(keeps, strategy) => self
                .foreign_clients
                .spawn(process.run_idle(keeps, lasts, strategy)),
        };
        false
    }
}

// === impl ForeignProcess ===

impl ForeignProcess {
    /// Creates a Lease, or replaces the one that was found; the Lease then. A conflict is found out at the next turn.
    pub(crate) async fn write(&self, lease: &Lease) -> Option<Lease> {
        let (params, sent) = (PostParams::default(), self.context.log().now());
        let written = match lease.metadata.resource_version {
            Some(_) => self.leases.replace(&lease.key().name, &params, lease).await,
            None => self.leases.create(&params, lease).await,
        };
        self.context.strike_if(written.is_ok(), self.fault, sent);
        written.ok()
    }

    /// A client as client-go's leader election is one, in a few lines: it takes a lease that is free or has not changed for
    /// its duration, renews it, and lets it go.
    async fn run_plain(self, identity: Identity, lasts: Duration) {
        let end = Instant::now() + lasts;
        let mut seen = None;
        while Instant::now() < end {
            self.step_plain(&identity, &mut seen).await;
            sleep(PERIOD).await;
        }
        self.release(&identity).await;
    }

    /// Lets the lease go as ReleaseOnCancel has it: the annotations stay.
    pub(crate) async fn release(&self, identity: &Identity) {
        edit(&self.leases, &self.key.name, |lease| {
            let spec = &mut lease.spec;
            let mine = spec.holder_identity.as_deref() == Some(identity.as_str());
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(self.clock.wall());
            mine
        })
        .await;
    }

    /// `seen` is the record that was seen last, and since when.
    async fn step_plain(&self, identity: &Identity, seen: &mut Option<(LeaseRecord, Instant)>) {
        let Ok(found) = self.leases.get_opt(&self.key.name).await else {
            return;
        };
        let now = self.clock.wall();
        let is_new = found.is_none();
        let mut lease = found.unwrap_or_else(|| Lease::named(&self.key));
        let Ok(record) = lease.record() else {
            return;
        };
        let since = match seen {
            Some((last, since)) if last.same_record(&record) => *since,
            _ => seen.insert((record.clone(), Instant::now())).1,
        };
        let mine = record.holder.as_ref() == Some(identity);
        let over = self.clock.local(since.elapsed()) >= record.duration().unwrap_or(Duration::ZERO);
        if !mine && record.holder.is_some() && !over {
            return;
        }
        if !mine {
            let Term(term) = record.term;
            let next = if is_new { 0 } else { term.saturating_add(1) };
            lease.spec.lease_transitions = Some(next);
            lease.spec.acquire_time = Some(now);
        }
        lease.spec.holder_identity = Some(identity.to_string());
        lease.spec.lease_duration_seconds = Some(DURATION);
        lease.spec.renew_time = Some(now);
        self.write(&lease).await;
    }

    /// An elector as it is built into Kubernetes, as far as it can do harm: it measures by the time of day, grants a
    /// missing lease at once, and counts no terms.
    async fn run_builtin(self, lasts: Duration) {
        let end = Instant::now() + lasts;
        while Instant::now() < end {
            self.step_builtin().await;
            sleep(PERIOD).await;
        }
    }

    async fn step_builtin(&self) {
        let Ok(list) = self.candidates.list(&ListParams::default()).await else {
            return;
        };
        let named = list
            .items
            .into_iter()
            .filter(|it| *it.spec.lease_name == *self.key.name);
        let Some(best) = named.min_by_key(|it| {
            (
                it.spec.emulation_version.clone(),
                it.spec.binary_version.clone(),
                it.metadata.name.clone(),
            )
        }) else {
            return;
        };
        let Ok(found) = self.leases.get_opt(&self.key.name).await else {
            return;
        };
        let now = self.clock.wall();
        let mut lease = found.unwrap_or_else(|| Lease::named(&self.key));
        let spec = &mut lease.spec;
        let holder = spec.holder_identity.clone().unwrap_or_default();
        let micros = i64::from(spec.lease_duration_seconds.unwrap_or(0)) * 1_000_000;
        let expired = spec
            .renew_time
            .is_none_or(|renewed| renewed.as_micros().saturating_add(micros) < now.as_micros());
        if !holder.is_empty() && !expired {
            return;
        }
        spec.holder_identity = best.metadata.name;
        spec.lease_duration_seconds = Some(5);
        spec.renew_time = Some(now);
        spec.strategy = Some("OldestEmulationVersion".to_owned());
        spec.preferred_holder = None;
        self.write(&lease).await;
    }

    /// A client that may only write LeaseCandidates: the best of all under its strategy, it answers every ping, accepts no
    /// grant, and comes back under another name (R23), each of which it keeps for a set time.
    async fn run_idle(self, keeps: Duration, lasts: Duration, strategy: PlannedStrategy) {
        let end = Instant::now() + lasts.saturating_sub(IDLE_END);
        let mut number = 0;
        while Instant::now() < end {
            number += 1;
            let name = format!("idle-{}-{number}", self.key.name);
            let until = end.min(Instant::now() + keeps);
            let renewed = Some(self.clock.wall());
            let object = useless_candidate(self.api, &self.key, &name, renewed, strategy);
            // Where it is refused, it stays away until its next name.
            let (params, sent) = (PostParams::default(), self.context.log().now());
            let created = self.candidates.create(&params, &object).await;
            self.context.strike_if(created.is_ok(), self.fault, sent);
            while Instant::now() < until {
                sleep(PING_PERIOD).await;
                self.answer(&name).await;
            }
            // It may be gone.
            let params = DeleteParams::default();
            let deleted = self.candidates.delete(&name, &params).await;
            self.context.strike_if(deleted.is_ok(), self.fault, sent);
        }
    }

    /// Answers a ping, if there is one.
    pub(crate) async fn answer(&self, name: &str) {
        edit(&self.candidates, name, |object| {
            let (pinged, renewed) = (object.spec.ping_time, object.spec.renew_time);
            object.spec.renew_time = pinged.max(Some(self.clock.wall()));
            pinged > renewed
        })
        .await;
    }
}
