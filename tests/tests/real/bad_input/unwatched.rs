//! Candidates that may not watch Leases.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{EventKind, Testbed, between};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{Api, PostParams};

use crate::PROMPTLY;

/// They list Leases instead, so that one follows the other all the same, and each says so in one line.
pub(super) async fn lists(testbed: Arc<Testbed>) -> Result<()> {
    let roles: Api<Role> = Api::namespaced(testbed.site().client().clone(), testbed.namespace());
    let name = format!("candidate-{}", testbed.lease_name());
    let mut role = roles.get(&name).await?;
    for rule in role.rules.iter_mut().flatten() {
        let has =
            |names: &Option<Vec<String>>, name: &str| names.iter().flatten().any(|it| it == name);
        if has(&rule.resources, "leases") {
            rule.verbs.retain(|verb| verb != "watch");
        }
    }
    roles.replace(&name, &PostParams::default(), &role).await?;

    // A Lease known to be released is taken at once.
    testbed.write_released(("example.com/note", "kept")).await?;
    let start = |name: &str| testbed.candidate(name).plain().start();
    let mut first = start("first")?;
    first.leads(PROMPTLY).await?;
    let second = start("second")?;
    second.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("first", 2).await?;
    first.terminate()?;
    let stopped = first.says(EventKind::WorkStopped, 0, PROMPTLY).await?;
    let led = second.leads(PROMPTLY).await?;
    testbed.figure("from the release to the next", between(stopped, led));
    testbed.stays("second", 2).await?;
    let line = format!(
        "failed to watch leases.coordination.k8s.io {}/{}: RBAC does not grant the verb watch",
        testbed.namespace(),
        testbed.lease_name()
    );
    for candidate in [&first, &second] {
        let said = candidate.process.output()?;
        let warnings: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
        ensure!(
            warnings.len() == 1
                && warnings[0].contains(&line)
                && warnings[0].contains("it is listed every few seconds instead"),
            "{}: {warnings:#?}",
            candidate.name()
        );
    }
    first.ends_well(PROMPTLY).await.context("the first one")?;
    Ok(())
}
