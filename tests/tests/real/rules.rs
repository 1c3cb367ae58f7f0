//! The rules of the custom resource, object by object: those of the built-in kind beside it on the same server, and
//! those of our own validation.

mod objects;
mod validators;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use elector_tests::rig::{Suite, Testbed};
use serde_json::{Value, json};

use self::objects::{ABSENT, VERSIONS, changes};
use self::validators::Validators;
use crate::{GATE_OFF, OURS};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("custom_resource_has_the_built_in_rules", 15, same_rules);
}

async fn same_rules(testbed: Arc<Testbed>) -> Result<()> {
    let validators = Validators::new(&testbed).await?;
    for binary in VERSIONS.split('|') {
        for emulation in VERSIONS.split('|') {
            // To the built-in kind an emulation version that is none counts as 0.0.0, so that it blames this binary
            // version as well; refused it is either way.
            if binary == "0.0.0-x" && !emulation.starts_with("0.0.0") {
                continue;
            }
            for strategy in ["OldestEmulationVersion", "example.com/x"] {
                let spec = json!({
                    "leaseName": "l", "binaryVersion": binary, "emulationVersion": emulation, "strategy": strategy,
                });
                validators.agree(&spec).await?;
            }
        }
    }
    for change in changes() {
        let mut spec = json!({
            "leaseName": "l", "binaryVersion": "1.2.0", "emulationVersion": "1.1.0",
            "strategy": "OldestEmulationVersion",
        });
        for (name, value) in change.as_object().context("a change is a map")? {
            match value {
                Value::String(text) if text == ABSENT => {
                    spec.as_object_mut()
                        .context("a spec is a map")?
                        .remove(name);
                }
                value => spec[name] = value.clone(),
            }
        }
        validators.agree(&spec).await?;
    }
    validators.bounded().await?;
    validators.lease_that_can_exist().await?;
    validators.only_the_lease_name_stays().await
}
