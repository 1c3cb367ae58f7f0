//! A hostile tenant, which fills a namespace of its own with candidates and Leases under the names of ours, and goes on to
//! change them. Nothing of that may be felt in ours (L7).

use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate, annotation};
use elector_protocol::{LeaseKey, Timestamp};
use kube::api::{Api, DeleteParams, PostParams};
use tokio::time::{Instant, sleep};

use crate::clock::TRUE_RATE;
use crate::context::RunContext;
use crate::history::Role;
use crate::names::{ELECTOR_LOCK, EPOCH, TENANT};
use crate::plan::PlannedStrategy;
use crate::random::Random;
use crate::simulation::Simulation;
use crate::tamper::{edit, useless_candidate};

/// The tenant as a client, in a namespace in which electors serve it as any other.
struct HostileTenant {
    leases: Api<Lease>,
    candidates: Api<LeaseCandidate>,
    api: CandidateApi,
    /// The names of our leases and of the lock of the electors.
    names: Vec<String>,
    /// The names of our candidates in their first lives.
    ours: Vec<String>,
    random: Random,
    context: RunContext,
    fault: usize,
}

/// Candidates of the tenant, of which an elector considers 64 for each lease.
const FLOOD: usize = 100;

/// The pause between two changes.
const CHANGE: Duration = Duration::from_millis(300);

// === impl Simulation ===

impl Simulation {
    /// Lets the tenant do harm for a while. That alone is no effect: its writes are.
    pub(crate) fn start_tenant(&mut self, lasts: Duration, fault: usize) -> bool {
        let transport = self.foreign_transport(TENANT, Role::Kubectl, TRUE_RATE);
        let way = Duration::from_millis(1);
        self.server.faults(TENANT).latency(way, way);
        let (client, api) = (transport.client(), self.candidate_api());
        let number = u64::try_from(fault).unwrap_or(u64::MAX);
        let tenant = HostileTenant {
            leases: Api::namespaced_with(client.clone(), TENANT, &()),
            candidates: Api::namespaced_with(client, TENANT, &api),
            api,
            names: self
                .plan
                .setup
                .lease_names()
                .chain([ELECTOR_LOCK.to_owned()])
                .collect(),
            ours: self
                .processes
                .iter()
                .map(|it| format!("{}-1", it.name))
                .collect(),
            random: Random::stream(self.plan.seed, 7000 + number),
            context: self.context.clone(),
            fault,
        };
        self.foreign_clients.spawn(tenant.run(lasts));
        false
    }
}

// === impl HostileTenant ===

impl HostileTenant {
    async fn run(mut self, lasts: Duration) {
        let end = Instant::now() + lasts;
        // Most stand for one lease, and some have the names of ours.
        for number in 0..FLOOD {
            let name = self.ours.get(number).cloned();
            let lease = match number % 10 {
                0 => self.random.index(self.names.len()),
                _ => 0,
            };
            self.register(&name.unwrap_or(format!("flood-{number}")), lease)
                .await;
        }
        while Instant::now() < end {
            self.change().await;
            sleep(CHANGE).await;
        }
    }

    /// Registers the best of all candidates.
    async fn register(&self, name: &str, lease: usize) {
        let key = LeaseKey::new(TENANT, &*self.names[lease]);
        let renewed = Timestamp::from_micros(EPOCH);
        let mut object = useless_candidate(self.api, &key, name, renewed, PlannedStrategy::Oldest);
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation::PROTOCOL.to_owned(), "1".to_owned());
        let sent = self.context.log().now();
        let created = self
            .candidates
            .create(&PostParams::default(), &object)
            .await;
        self.context.strike_if(created.is_ok(), self.fault, sent);
    }

    async fn change(&mut self) {
        let name = self
            .random
            .pick(&self.names.iter().map(String::as_str).collect::<Vec<_>>());
        let candidate = format!("flood-{}", self.random.index(FLOOD));
        let (sent, bits) = (self.context.log().now(), self.random.bits());
        let changed = match bits % 4 {
            0 => self
                .leases
                .delete(name, &DeleteParams::default())
                .await
                .is_ok(),
            1 => {
                edit(&self.candidates, &candidate, |object| {
                    object.spec.emulation_version = format!("0.0.{}", bits % 9 + 1);
                    object.spec.renew_time = object.spec.ping_time;
                    true
                })
                .await
            }
            _ => self.spoil(name, bits).await,
        };
        self.context.strike_if(changed, self.fault, sent);
    }

    /// Writes nonsense into a Lease, which it creates if there is none.
    async fn spoil(&self, name: &str, bits: u64) -> bool {
        let nonsense = |lease: &mut Lease| {
            lease.spec.holder_identity = Some(self.ours[self.ours.len() - 1].clone());
            lease.spec.lease_duration_seconds = Some(if bits % 8 < 4 { 1 } else { i32::MAX });
            lease.spec.renew_time = Some(Timestamp::MAX);
            lease.spec.lease_transitions = Some(i32::MAX - 1);
            lease.spec.preferred_holder = Some("no one".to_owned());
            let annotations = lease.metadata.annotations.get_or_insert_default();
            for name in [annotation::FREEZE, annotation::PREFER, annotation::TOKEN] {
                annotations.insert(name.to_owned(), format!("{bits}"));
            }
            true
        };
        let mut lease = Lease::named(&LeaseKey::new(TENANT, name));
        nonsense(&mut lease);
        let created = self.leases.create(&PostParams::default(), &lease).await;
        created.is_ok() || edit(&self.leases, name, nonsense).await
    }
}
