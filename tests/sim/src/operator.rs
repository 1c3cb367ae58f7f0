//! An operator with kubectl, who freezes a lease, prefers a candidate or has one stand down for a time, and takes that back
//! (R16).

use std::collections::BTreeSet;
use std::time::Duration;

use elector_api::annotation::STAND_DOWN;
use elector_api::{Lease, LeaseCandidate, format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::names::{EPOCH, NAMESPACE, lease_name};
use crate::plan::{FaultKind, PlannedWord, ProcessIndex};
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    /// Annotates a lease for this time.
    pub(crate) async fn say(&mut self, lease: usize, word: PlannedWord, lasts: Duration) -> bool {
        let until = self.wall_after(lasts);
        let value = match word {
            PlannedWord::Freeze => format_freeze(until),
            PlannedWord::Prefer(who) => self.prefer(who, until),
        };
        self.annotate(lease, word, Some(&value)).await
    }

    /// Takes the annotation back: the clocks of electors may be off by any time.
    pub(crate) async fn unsay(&mut self, lease: usize, word: PlannedWord) {
        self.annotate(lease, word, None).await;
    }

    /// Takes back what a restore of the store has brought back.
    pub(crate) async fn unsay_all(&mut self) {
        if self.context.state().history.lost.is_empty() {
            return;
        }
        let faults = self.plan.faults.clone();
        for fault in faults {
            match fault.kind {
                FaultKind::Say(lease, word, _) => self.unsay(lease, word).await,
                FaultKind::StandDown(who, ..) => self.stand_up(who),
                _ => {}
            }
        }
    }

    /// Has the candidate of a process stand down, and says whether it was there.
    pub(crate) async fn stand_down(&self, who: ProcessIndex, until: Option<Duration>) -> bool {
        let Some(process) = self.processes.get(who.0) else {
            return false;
        };
        let until = until.map(|until| format_freeze(self.wall_after(until)));
        let value = until.unwrap_or_else(|| "true".to_owned());
        let (api, name) = (self.candidate_api(), process.identity());
        let candidates = Api::<LeaseCandidate>::default_namespaced_with(self.kubectl(), &api);
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { STAND_DOWN: value } } }));
        let params = PatchParams::default();
        candidates.patch(&name, &params, &patch).await.is_ok()
    }

    /// Takes that back, under each name that the process has had: in etcd, as the server may serve no candidates just then.
    pub(crate) fn stand_up(&self, who: ProcessIndex) {
        let prefix = format!("c{}-", who.0);
        let names: BTreeSet<String> = {
            let state = self.context.state();
            let all = state.history.told().flat_map(|it| &it.candidates);
            let all = all.map(|it| &it.object.metadata);
            let told = all.filter(|it| it.annotations.iter().any(|it| it.contains_key(STAND_DOWN)));
            let names = told.filter_map(|it| it.name.clone());
            names.filter(|name| name.starts_with(&prefix)).collect()
        };
        for name in names {
            let place = (NAMESPACE, &*name);
            self.server.corrupt("leasecandidates", place, |object| {
                let metadata = object.get_mut("metadata");
                let annotations = metadata.and_then(|it| it.get_mut("annotations"));
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.remove(STAND_DOWN);
                }
            });
        }
    }

    /// The time of day in a while, by a clock that is right.
    fn wall_after(&self, time: Duration) -> Timestamp {
        let until = self.context.log().now() + time;
        let micros = i64::try_from(until.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(EPOCH.saturating_add(micros)).unwrap_or(Timestamp::MAX)
    }

    /// The candidate may be one of another lease, or none.
    fn prefer(&self, who: ProcessIndex, until: Timestamp) -> String {
        let process = self.processes.get(who.0);
        let candidate = process.and_then(|process| Identity::new(process.identity()));
        candidate.map_or_else(
            || "no one".to_owned(),
            |candidate| format_prefer(&OperatorPreference { candidate, until }),
        )
    }

    /// Says whether it was there.
    async fn annotate(&self, lease: usize, word: PlannedWord, value: Option<&str>) -> bool {
        let annotation = match word {
            PlannedWord::Freeze => elector_api::annotation::FREEZE,
            PlannedWord::Prefer(_) => elector_api::annotation::PREFER,
        };
        let leases = Api::<Lease>::default_namespaced_with(self.kubectl(), &());
        self.intervene(&lease_name(lease));
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { annotation: value } } }));
        let (name, params) = (lease_name(lease), PatchParams::default());
        leases.patch(&name, &params, &patch).await.is_ok()
    }
}
