//! Tampering with Leases and LeaseCandidates by a person with kubectl, or in etcd.

use std::sync::{Arc, Mutex};

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

use crate::clock::{SimClock, TRUE_RATE};
use crate::history::{Author, Role};
use crate::names::{EPOCH, FOREIGN, NAMESPACE, SYSTEM};
use crate::plan::{CandidateTampering, LeaseTampering, ProcessIndex};
use crate::random::Random;
use crate::simulation::Simulation;
use crate::transport::Transport;

/// The holder that tampering names.
const STRANGER: &str = "stranger";

/// A strategy that another elector decides.
const OTHERS: &str = "example.com/newest";

/// Everything that an annotation of ours may be.
const ANNOTATIONS: [&str; 5] = [
    "elector.dev/token",
    "elector.dev/token-term",
    "elector.dev/token-holder",
    "elector.dev/preferred-holder",
    "elector.dev/strategy",
];

// === impl Simulation ===

impl Simulation {
    /// Which LeaseCandidates there are.
    pub(crate) fn candidate_api(&self) -> CandidateApi {
        if self.plan.setup.custom {
            CandidateApi::Elector
        } else {
            CandidateApi::V1Beta1
        }
    }

    /// A way to the server for a client that is no process of ours.
    pub(crate) fn foreign_transport(&self, name: &str, role: Role, rate: u64) -> Transport {
        let seed = Random::stream(self.plan.seed, 5000).bits();
        Transport {
            server: self.server.clone(),
            context: self.context.clone(),
            author: Author {
                name: name.to_owned(),
                role,
                identity: None,
                incarnation: 1,
                born: self.context.log().now(),
            },
            clock: SimClock::start(rate, EPOCH),
            jitter: 0,
            random: Arc::new(Mutex::new(Random::new(seed))),
        }
    }

    /// Does this to a Lease, if it is there.
    pub(crate) async fn tamper_with_lease(&mut self, name: &str, how: LeaseTampering) {
        if how == LeaseTampering::Unreadable {
            self.intervene(name);
            self.server.corrupt("leases", (NAMESPACE, name), |lease| {
                lease["spec"]["leaseDurationSeconds"] = json!("soon");
            });
            return;
        }
        let client = self.kubectl();
        let leases = Api::<Lease>::default_namespaced_with(client, &());
        let Ok(Some(mut object)) = leases.get_opt(name).await else {
            return;
        };
        if how == LeaseTampering::Delete {
            // It may be gone.
            let _ = leases.delete(name, &DeleteParams::default()).await;
            return;
        }
        let end_of_time = Some(Timestamp::MAX);
        let spec = &mut object.spec;
        match how {
            LeaseTampering::Delete | LeaseTampering::Unreadable => {}
            LeaseTampering::Blank => spec.holder_identity = Some(String::new()),
            LeaseTampering::Bare | LeaseTampering::Restore => {
                spec.holder_identity = Some(String::new());
                spec.lease_duration_seconds = None;
                spec.acquire_time = None;
                spec.renew_time = None;
                object.metadata.annotations = None;
                if how == LeaseTampering::Restore {
                    spec.lease_transitions = None;
                }
            }
            LeaseTampering::Seize => {
                spec.holder_identity = Some(STRANGER.to_owned());
                spec.lease_duration_seconds = Some(15);
            }
            LeaseTampering::Shorten => spec.lease_duration_seconds = Some(1),
            LeaseTampering::Strategy => {
                spec.strategy = Some(OTHERS.to_owned());
                let annotations = object.metadata.annotations.get_or_insert_default();
                annotations.insert("elector.dev/strategy".to_owned(), OTHERS.to_owned());
            }
            LeaseTampering::Nonsense => {
                spec.renew_time = end_of_time;
                spec.lease_transitions = Some(i32::MAX - 1);
                let annotations = object.metadata.annotations.get_or_insert_default();
                for name in ANNOTATIONS {
                    annotations.insert(name.to_owned(), "\u{1f451} /-".to_owned());
                }
            }
        }
        // A conflict leaves the object as another client wrote it.
        let _ = leases.replace(name, &PostParams::default(), &object).await;
    }

    /// Does this to the LeaseCandidate of a process, if it is there.
    pub(crate) async fn tamper_with_candidate(
        &mut self,
        who: ProcessIndex,
        how: CandidateTampering,
    ) {
        let Some(process) = self.processes.get(who.0) else {
            return;
        };
        if self.plan.setup.unserved {
            return;
        }
        let name = process.identity();
        if how == CandidateTampering::Unreadable {
            self.server
                .corrupt("leasecandidates", (NAMESPACE, &name), |object| {
                    object["spec"]["binaryVersion"] = json!("the best");
                    object["spec"]["renewTime"] = json!("now");
                });
            return;
        }
        let api = self.candidate_api();
        let candidates = Api::<LeaseCandidate>::default_namespaced_with(self.kubectl(), &api);
        let Ok(Some(mut object)) = candidates.get_opt(&name).await else {
            return;
        };
        match how {
            CandidateTampering::Delete | CandidateTampering::Unreadable => {
                let _ = candidates.delete(&name, &DeleteParams::default()).await;
                return;
            }
            CandidateTampering::Version => {
                object.spec.binary_version = "0.0.1".to_owned();
                object.spec.emulation_version = "0.0.1".to_owned();
            }
            CandidateTampering::Times => {
                object.spec.renew_time = Some(Timestamp::MAX);
                object.spec.ping_time = Some(Timestamp::MAX);
            }
        }
        // A conflict leaves the object as another client wrote it.
        let _ = candidates
            .replace(&name, &PostParams::default(), &object)
            .await;
    }

    /// Creates objects beside the leases that are of no use, for the whole run: they must not stop the others (L8).
    pub(crate) async fn create_unusable_objects(&mut self) {
        if !self.plan.setup.unserved {
            self.create_unusable_candidates().await;
        }
        let leases = Api::<Lease>::default_namespaced_with(self.kubectl(), &());
        let mut foreign = Lease::named(&LeaseKey::new(NAMESPACE, FOREIGN));
        foreign.spec.holder_identity = Some(STRANGER.to_owned());
        foreign.spec.lease_duration_seconds = Some(15);
        if let Err(error) = leases.create(&PostParams::default(), &foreign).await {
            let log = self.context.log();
            log.note("kubectl", format_args!("{FOREIGN} was refused: {error}"));
        }
    }

    async fn create_unusable_candidates(&self) {
        let api = self.candidate_api();
        let client = self.kubectl();
        let candidates = Api::<LeaseCandidate>::default_namespaced_with(client.clone(), &api);
        for (name, lease, renewed) in [
            ("litter-name", "Not A Name!", Some(EPOCH)),
            ("litter-time", "litter", Some(Timestamp::MAX.as_micros())),
            ("litter-none", "litter", None),
            ("litter-broken", "litter", Some(EPOCH)),
        ] {
            let Some(identity) = Identity::new(name) else {
                continue;
            };
            let key = LeaseKey::new(NAMESPACE, lease);
            let mut object = LeaseCandidate::named(api, &key, &identity);
            object.spec.binary_version = "0.0.1".to_owned();
            object.spec.emulation_version = "0.0.1".to_owned();
            object.spec.renew_time = renewed.and_then(Timestamp::from_micros);
            let object = object.with_strategy("OldestEmulationVersion");
            if let Err(error) = candidates.create(&PostParams::default(), &object).await {
                let log = self.context.log();
                log.note("kubectl", format_args!("{name} was refused: {error}"));
            }
        }
        let system = Api::<LeaseCandidate>::namespaced_with(client.clone(), "kube-system", &api);
        if let Some(identity) = Identity::new("litter-system") {
            let key = LeaseKey::new("kube-system", SYSTEM);
            let object = LeaseCandidate::named(api, &key, &identity);
            let mut object = object.with_strategy("OldestEmulationVersion");
            object.spec.binary_version = "0.0.1".to_owned();
            object.spec.emulation_version = "0.0.1".to_owned();
            object.spec.renew_time = Timestamp::from_micros(EPOCH);
            if let Err(error) = system.create(&PostParams::default(), &object).await {
                self.context.log().note(
                    "kubectl",
                    format_args!("litter-system was refused: {error}"),
                );
            }
        }
        self.server
            .corrupt("leasecandidates", (NAMESPACE, "litter-broken"), |object| {
                object["spec"] = json!("leaseName");
            });
    }

    /// Repairs every Lease that cannot be read or belongs to another elector, as an operator will at last.
    pub(crate) fn repair_leases(&self) {
        for name in self.plan.setup.lease_names() {
            let duration = {
                let state = self.context.state();
                let current = state.history.current(&name);
                let unreadable = current.is_some_and(|revision| revision.record.is_none());
                let revisions = state.history.leases.get(&name).into_iter().flatten().rev();
                let mut records = revisions.filter_map(|revision| revision.record.as_ref());
                let before = records.find_map(|record| record.duration_seconds);
                unreadable.then_some(before.unwrap_or(15))
            };
            if let Some(duration) = duration {
                self.intervene(&name);
                self.server.corrupt("leases", (NAMESPACE, &name), |lease| {
                    lease["spec"]["leaseDurationSeconds"] = json!(duration);
                });
            }
            let others = {
                let state = self.context.state();
                let current = state.history.current(&name);
                let record = current.and_then(|revision| revision.record.as_ref());
                record.is_some_and(|it| {
                    let strategy = it.strategy.as_ref();
                    strategy.is_some_and(|it| it.as_str() == OTHERS)
                })
            };
            if others || duration.is_some() {
                self.intervene(&name);
                self.server.corrupt("leases", (NAMESPACE, &name), |lease| {
                    if let Some(spec) = lease["spec"].as_object_mut() {
                        spec.retain(|key, value| key != "strategy" || value != OTHERS);
                    }
                    if let Some(annotations) = lease["metadata"]["annotations"].as_object_mut() {
                        annotations
                            .retain(|key, value| key != "elector.dev/strategy" || value != OTHERS);
                    }
                });
            }
        }
    }

    /// Notes that a person changes a Lease at this moment.
    pub(crate) fn intervene(&self, lease: &str) {
        let now = self.context.log().now();
        self.context.state().history.intervene(now, lease);
    }

    pub(crate) fn kubectl(&self) -> Client {
        self.foreign_transport("kubectl", Role::Kubectl, TRUE_RATE)
            .client()
    }
}
