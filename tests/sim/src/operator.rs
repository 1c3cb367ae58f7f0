//! An operator with kubectl, who freezes a lease or prefers a candidate for a time, and takes that back (R16).

use std::time::Duration;

use elector_api::{Lease, format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::names::{EPOCH, lease_name};
use crate::plan::{PlannedWord, ProcessIndex};
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    /// Annotates a lease for this time.
    pub(crate) async fn say(&mut self, lease: usize, word: PlannedWord, lasts: Duration) -> bool {
        let until = self.context.log().now() + lasts;
        let micros = i64::try_from(until.as_micros()).unwrap_or(i64::MAX);
        let until = Timestamp::from_micros(EPOCH.saturating_add(micros)).unwrap_or(Timestamp::MAX);
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
