//! Tampering with Leases and LeaseCandidates by a person with kubectl, or in etcd.

use std::fmt::Debug;
use std::sync::Arc;

use elector_api::annotation::PRIORITY;
use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, Resource};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::clock::{SimClock, TRUE_RATE};
use crate::history::{Author, Role};
use crate::names::{EPOCH, FOREIGN, NAMESPACE, SYSTEM};
use crate::plan::{CandidateTampering, LeaseTampering, PlannedStrategy, ProcessIndex};
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
        self.context.state().api
    }

    /// A way to the server for a client that is no process of ours.
    pub(crate) fn foreign_transport(&self, name: &str, role: Role, rate: u64) -> Transport {
        let seed = Random::stream(self.plan.seed, 5000).bits();
        Transport {
            priority: 0,
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

    /// Does this to a Lease, and says whether it was there.
    pub(crate) async fn tamper_with_lease(&mut self, name: &str, how: LeaseTampering) -> bool {
        if how == LeaseTampering::Unreadable {
            self.intervene(name);
            return self.server.corrupt("leases", (NAMESPACE, name), |lease| {
                lease["spec"]["leaseDurationSeconds"] = json!("soon");
            });
        }
        let leases = Api::<Lease>::default_namespaced_with(self.kubectl(), &());
        if how == LeaseTampering::Delete {
            return delete(&leases, name).await;
        }
        edit(&leases, name, |object| {
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
                    spec.renew_time = Some(Timestamp::MAX);
                    spec.lease_transitions = Some(i32::MAX - 1);
                    let annotations = object.metadata.annotations.get_or_insert_default();
                    for name in ANNOTATIONS {
                        annotations.insert(name.to_owned(), "\u{1f451} /-".to_owned());
                    }
                }
            }
            true
        })
        .await
    }

    /// Does this to the LeaseCandidate of a process, and says whether it was there.
    pub(crate) async fn tamper_with_candidate(
        &mut self,
        who: ProcessIndex,
        how: CandidateTampering,
    ) -> bool {
        let process = self.processes.get(who.0);
        let Some(process) = process.filter(|_| !self.plan.setup.unserved) else {
            return false;
        };
        let name = process.identity();
        if how == CandidateTampering::Unreadable {
            let place = (NAMESPACE, &*name);
            return self.server.corrupt("leasecandidates", place, |object| {
                object["spec"]["binaryVersion"] = json!("the best");
                object["spec"]["renewTime"] = json!("now");
            });
        }
        let api = self.candidate_api();
        let candidates = Api::<LeaseCandidate>::default_namespaced_with(self.kubectl(), &api);
        if how == CandidateTampering::Delete {
            return delete(&candidates, &name).await;
        }
        edit(&candidates, &name, |object| {
            let spec = &mut object.spec;
            if how == CandidateTampering::Version {
                spec.binary_version = "0.0.1".to_owned();
                spec.emulation_version = "0.0.1".to_owned();
            } else {
                (spec.renew_time, spec.ping_time) = (Some(Timestamp::MAX), Some(Timestamp::MAX));
            }
            true
        })
        .await
    }

    /// Creates objects beside the leases that are of no use, for the whole run: they must not stop the others (L8).
    pub(crate) async fn create_unusable_objects(&mut self) {
        if !self.plan.setup.unserved {
            let late = Timestamp::MAX.as_micros();
            for (namespace, name, lease, renewed) in [
                (NAMESPACE, "litter-name", "Not A Name!", Some(EPOCH)),
                (NAMESPACE, "litter-time", "litter", Some(late)),
                (NAMESPACE, "litter-none", "litter", None),
                (NAMESPACE, "litter-broken", "litter", Some(EPOCH)),
                ("kube-system", "litter-system", SYSTEM, Some(EPOCH)),
            ] {
                let key = LeaseKey::new(namespace, lease);
                let (api, renewed) = (
                    self.candidate_api(),
                    renewed.and_then(Timestamp::from_micros),
                );
                let object = useless_candidate(api, &key, name, renewed, PlannedStrategy::Oldest);
                let candidates = Api::namespaced_with(self.kubectl(), namespace, &api);
                self.create(&candidates, &object).await;
            }
            let broken = (NAMESPACE, "litter-broken");
            self.server.corrupt("leasecandidates", broken, |object| {
                object["spec"] = json!("leaseName");
            });
        }
        let leases = Api::<Lease>::default_namespaced_with(self.kubectl(), &());
        let mut foreign = Lease::named(&LeaseKey::new(NAMESPACE, FOREIGN));
        foreign.spec.holder_identity = Some(STRANGER.to_owned());
        foreign.spec.lease_duration_seconds = Some(15);
        self.create(&leases, &foreign).await;
    }

    async fn create<T: ApiObject>(&self, api: &Api<T>, object: &T) {
        if let Err(error) = api.create(&PostParams::default(), object).await {
            let name = object.meta().name.clone().unwrap_or_default();
            let log = self.context.log();
            log.note("kubectl", format_args!("{name} was refused: {error}"));
        }
    }

    /// Repairs every Lease that cannot be read or belongs to another elector, as an operator will at last.
    pub(crate) fn repair_leases(&self) {
        for name in self.plan.setup.lease_names() {
            let (unreadable, duration, others) = {
                let state = self.context.state();
                let current = state.history.current(&name);
                let record = current.map(|revision| revision.record.as_ref());
                let revisions = state
                    .history
                    .stored
                    .leases
                    .get(&name)
                    .into_iter()
                    .flatten()
                    .rev();
                let mut records = revisions.filter_map(|revision| revision.record.as_ref());
                let strategy = record.flatten().and_then(|it| it.strategy.as_ref());
                (
                    record == Some(None),
                    records.find_map(|it| it.duration_seconds).unwrap_or(15),
                    strategy.is_some_and(|it| it.as_str() == OTHERS),
                )
            };
            let place = (NAMESPACE, name.as_str());
            if unreadable {
                self.intervene(&name);
                self.server.corrupt("leases", place, |lease| {
                    lease["spec"]["leaseDurationSeconds"] = json!(duration);
                });
            }
            if others || unreadable {
                self.intervene(&name);
                self.server.corrupt("leases", place, |lease| {
                    if let Some(spec) = lease["spec"].as_object_mut() {
                        spec.retain(|_, value| value != OTHERS);
                    }
                    if let Some(annotations) = lease["metadata"]["annotations"].as_object_mut() {
                        annotations.retain(|_, value| value != OTHERS);
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

/// The best candidate under a strategy, which a client registers that does nothing of what candidates do.
pub(crate) fn useless_candidate(
    api: CandidateApi,
    key: &LeaseKey,
    name: &str,
    renewed: Option<Timestamp>,
    strategy: PlannedStrategy,
) -> LeaseCandidate {
    let identity = Identity::new(name).expect("a name that is not empty");
    let mut object = LeaseCandidate::named(api, key, &identity);
    let version = match strategy {
        PlannedStrategy::Newest => "9.0.0",
        _ => "0.0.1",
    };
    version.clone_into(&mut object.spec.binary_version);
    version.clone_into(&mut object.spec.emulation_version);
    object.spec.renew_time = renewed;
    if strategy == PlannedStrategy::Priority {
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(PRIORITY.to_owned(), i32::MAX.to_string());
    }
    object.with_strategy(strategy.name())
}

/// An object of the API.
pub(crate) trait ApiObject: Resource + Clone + Debug + DeserializeOwned + Serialize {}

impl<T: Resource + Clone + Debug + DeserializeOwned + Serialize> ApiObject for T {}

/// Deletes an object, and says whether it was there.
async fn delete<T: ApiObject>(api: &Api<T>, name: &str) -> bool {
    let there = matches!(api.get_opt(name).await, Ok(Some(_)));
    there && api.delete(name, &DeleteParams::default()).await.is_ok()
}

/// Changes an object that is there, unless `change` finds nothing to change, and says whether it did. A conflict leaves it
/// as another client wrote it.
pub(crate) async fn edit<T: ApiObject>(
    api: &Api<T>,
    name: &str,
    change: impl FnOnce(&mut T) -> bool,
) -> bool {
    let Ok(Some(mut object)) = api.get_opt(name).await else {
        return false;
    };
    let params = PostParams::default();
    change(&mut object) && api.replace(name, &params, &object).await.is_ok()
}
