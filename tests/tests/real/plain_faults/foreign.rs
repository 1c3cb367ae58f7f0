//! A stranger that writes beside the holders: what it leaves on the Lease is there afterwards, whoever has written since.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use elector_api::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

/// A write of a stranger to the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForeignWrite {
    Annotate,
    RemoveAnnotation,
    Label,
    RemoveLabel,
    /// Of a controller that has something to do before the Lease goes.
    Finalizers,
    /// Of what the Lease belongs to.
    OwnerReferences,
    /// Beside the fields that this version of the API has: the server drops it, and nothing else.
    UnknownField,
}

/// The stranger, and what must be on the Lease.
#[derive(Debug)]
pub(super) struct ForeignWriter {
    leases: Api<Lease>,
    name: String,
    writes: u32,
    annotations: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    /// Names that were removed, of annotations and of labels, and must not come back.
    removed: Vec<String>,
    finalizers: Option<Vec<String>>,
    owners: Option<Value>,
}

// === impl ForeignWrite ===

impl ForeignWrite {
    pub(super) const ALL: [Self; 7] = [
        Self::Annotate,
        Self::RemoveAnnotation,
        Self::Label,
        Self::RemoveLabel,
        Self::Finalizers,
        Self::OwnerReferences,
        Self::UnknownField,
    ];
}

// === impl ForeignWriter ===

impl ForeignWriter {
    pub(super) fn new(leases: Api<Lease>, name: &str) -> Self {
        Self {
            leases,
            name: name.to_owned(),
            writes: 0,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            removed: Vec::new(),
            finalizers: None,
            owners: None,
        }
    }

    pub(super) fn writes(&self) -> u32 {
        self.writes
    }

    /// Writes, and checks that all earlier writes are still there.
    pub(super) async fn write(&mut self, what: ForeignWrite) -> Result<()> {
        let patch = self.patch(what);
        let written = self
            .leases
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("failed to write as a stranger ({what:?})"))?;
        self.check(&written)
    }

    /// Checks that what was written is there.
    pub(super) async fn kept(&self) -> Result<()> {
        self.check(&self.leases.get(&self.name).await?)
    }

    /// Its next write; it remembers what must be there from then on.
    fn patch(&mut self, what: ForeignWrite) -> Value {
        self.writes += 1;
        let (name, value) = (
            format!("example.com/write-{}", self.writes),
            self.writes.to_string(),
        );
        match what {
            ForeignWrite::Annotate => {
                let patch = json!({"metadata": {"annotations": {&name: &value}}});
                self.annotations.insert(name, value);
                patch
            }
            ForeignWrite::Label => {
                let patch = json!({"metadata": {"labels": {&name: &value}}});
                self.labels.insert(name, value);
                patch
            }
            ForeignWrite::RemoveAnnotation => {
                let oldest = self.annotations.pop_first().map(|(name, _)| name);
                self.removed.extend(oldest.clone());
                json!({"metadata": {"annotations": {oldest.unwrap_or(name): null}}})
            }
            ForeignWrite::RemoveLabel => {
                let oldest = self.labels.pop_first().map(|(name, _)| name);
                self.removed.extend(oldest.clone());
                json!({"metadata": {"labels": {oldest.unwrap_or(name): null}}})
            }
            ForeignWrite::Finalizers => {
                let patch = json!({"metadata": {"finalizers": [&name]}});
                self.finalizers = Some(vec![name]);
                patch
            }
            ForeignWrite::OwnerReferences => {
                let owners = json!([{
                    "apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{value}"), "uid": value,
                }]);
                self.owners = Some(owners.clone());
                json!({"metadata": {"ownerReferences": owners}})
            }
            ForeignWrite::UnknownField => {
                json!({"spec": {"fieldOfTheFuture": &value}, "status": {"phase": value}})
            }
        }
    }

    fn check(&self, lease: &Lease) -> Result<()> {
        let metadata = &lease.metadata;
        for (what, found, wanted) in [
            ("annotation", &metadata.annotations, &self.annotations),
            ("label", &metadata.labels, &self.labels),
        ] {
            let found = found.clone().unwrap_or_default();
            let lost = wanted
                .iter()
                .find(|(name, value)| found.get(*name) != Some(value));
            ensure!(lost.is_none(), "the {what} {lost:?} is lost");
            let back = self.removed.iter().find(|name| found.contains_key(*name));
            ensure!(back.is_none(), "the {what} {back:?} is back");
        }
        let finalizers = &metadata.finalizers;
        let holds = self.finalizers.is_none() || self.finalizers == *finalizers;
        ensure!(holds, "the finalizers are {finalizers:?}");
        let owners = serde_json::to_value(&metadata.owner_references)?;
        let holds = self.owners.as_ref().is_none_or(|wanted| *wanted == owners);
        ensure!(holds, "the owner references are {owners}");
        Ok(())
    }
}
