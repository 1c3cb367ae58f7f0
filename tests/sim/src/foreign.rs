//! Clients that do not follow the rules of this repository: a plain client, an elector as it is built into Kubernetes,
//! and a candidate that accepts nothing.

use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, LeaseRecord, Term};
use elector_runtime::Clock as _;
use kube::api::{Api, ListParams, PostParams};
use tokio::time::{Instant, sleep};

use crate::clock::SimClock;
use crate::history::Role;
use crate::idle_candidate::IdleCandidate;
use crate::names::{NAMESPACE, lease_name};
use crate::random::Random;
use crate::simulation::Simulation;
use crate::tamper::edit;

/// A client that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForeignClient {
    /// A client that knows nothing of candidates.
    Plain,
    /// An elector as it is built into Kubernetes.
    Builtin,
    /// A candidate that accepts nothing, and keeps each of its names for so long.
    Idle(Duration),
}

/// A client as client-go's leader election is one, in a few lines: it takes a lease that is free or has not changed for
/// its duration, renews it, and lets it go.
struct PlainClient {
    leases: Api<Lease>,
    key: LeaseKey,
    identity: Identity,
    clock: SimClock,
    /// The record that was seen last, and since when.
    seen: Option<(LeaseRecord, Instant)>,
}

/// An elector as it is built into Kubernetes, as far as it can do harm: it measures by the time of day, grants a
/// missing lease at once, and counts no terms.
struct BuiltinElector {
    leases: Api<Lease>,
    candidates: Api<LeaseCandidate>,
    key: LeaseKey,
    clock: SimClock,
}

/// The lease duration that both of them write.
const DURATION: i32 = 15;

/// The interval at which client-go looks, and the built-in elector.
const PERIOD: Duration = Duration::from_secs(2);

// === impl Simulation ===

impl Simulation {
    /// Lets a foreign client take part in the election of a lease for a while.
    pub(crate) fn start_foreign_client(
        &mut self,
        which: ForeignClient,
        lease: usize,
        lasts: Duration,
    ) {
        let (name, role) = match which {
            ForeignClient::Plain => (format!("plain{lease}"), Role::Plain),
            ForeignClient::Builtin => (format!("builtin{lease}"), Role::Builtin),
            ForeignClient::Idle(_) => (format!("idle{lease}"), Role::Kubectl),
        };
        let number = u64::try_from(self.foreign_clients.len()).unwrap_or(0);
        let mut random = Random::stream(self.plan.seed, 6000 + number);
        let rate = random.between(900_000, 1_100_000);
        let transport = self.foreign_transport(&name, role, rate);
        let offset = i64::try_from(random.between(0, 40_000)).unwrap_or(0) - 20_000;
        transport.clock.step(offset * 1000);
        let switches = self.server.switches(&name);
        switches.latency(elector_apiserver::Latency {
            request: Duration::from_millis(2),
            answer: Duration::from_millis(2),
            watch: Duration::from_millis(2),
        });
        let (client, clock) = (transport.client(), transport.clock.clone());
        let key = LeaseKey::new(NAMESPACE, lease_name(lease));
        let api = self.candidate_api();
        let leases = Api::<Lease>::default_namespaced_with(client.clone(), &());
        let candidates = Api::<LeaseCandidate>::default_namespaced_with(client, &api);
        match which {
            ForeignClient::Plain => {
                let plain = PlainClient {
                    leases,
                    key,
                    identity: Identity::new(name).expect("a name that is not empty"),
                    clock,
                    seen: None,
                };
                self.foreign_clients.spawn(plain.run(lasts));
            }
            ForeignClient::Builtin => {
                let builtin = BuiltinElector {
                    leases,
                    candidates,
                    key,
                    clock,
                };
                self.foreign_clients.spawn(builtin.run(lasts));
            }
            ForeignClient::Idle(keeps) => {
                let idle = IdleCandidate {
                    candidates,
                    api,
                    key,
                    clock,
                    keeps,
                };
                self.foreign_clients.spawn(idle.run(lasts));
            }
        }
    }
}

/// Creates a Lease, or replaces the one that was found. A conflict is found out at the next turn.
async fn write(leases: &Api<Lease>, lease: &Lease) {
    let params = PostParams::default();
    let _ = match lease.metadata.resource_version {
        Some(_) => leases.replace(&lease.key().name, &params, lease).await,
        None => leases.create(&params, lease).await,
    };
}

// === impl PlainClient ===

impl PlainClient {
    async fn run(mut self, lasts: Duration) {
        let end = Instant::now() + lasts;
        while Instant::now() < end {
            self.step().await;
            sleep(PERIOD).await;
        }
        // As ReleaseOnCancel has it: the annotations stay.
        edit(&self.leases, &self.key.name, |lease| {
            let spec = &mut lease.spec;
            let mine = spec.holder_identity.as_deref() == Some(self.identity.as_str());
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(self.clock.wall());
            mine
        })
        .await;
    }

    async fn step(&mut self) {
        let Ok(found) = self.leases.get_opt(&self.key.name).await else {
            return;
        };
        let now = self.clock.wall();
        let is_new = found.is_none();
        let mut lease = found.unwrap_or_else(|| Lease::named(&self.key));
        let Ok(record) = lease.record() else {
            return;
        };
        if !matches!(&self.seen, Some((seen, _)) if seen.same_record(&record)) {
            self.seen = Some((record.clone(), Instant::now()));
        }
        let since = self.seen.as_ref().map(|(_, since)| *since);
        let age = since.map_or(Duration::ZERO, |since| since.elapsed());
        let mine = record.holder.as_ref() == Some(&self.identity);
        let over = self.clock.local(age) >= record.duration().unwrap_or(Duration::ZERO);
        if !mine && record.holder.is_some() && !over {
            return;
        }
        if !mine {
            let Term(term) = record.term;
            let next = if is_new { 0 } else { term.saturating_add(1) };
            lease.spec.lease_transitions = Some(next);
            lease.spec.acquire_time = Some(now);
        }
        lease.spec.holder_identity = Some(self.identity.to_string());
        lease.spec.lease_duration_seconds = Some(DURATION);
        lease.spec.renew_time = Some(now);
        write(&self.leases, &lease).await;
    }
}

// === impl BuiltinElector ===

impl BuiltinElector {
    async fn run(self, lasts: Duration) {
        let end = Instant::now() + lasts;
        while Instant::now() < end {
            self.step().await;
            sleep(PERIOD).await;
        }
    }

    async fn step(&self) {
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
        write(&self.leases, &lease).await;
    }
}
