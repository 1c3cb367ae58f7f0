//! Least rights: all that the elector and candidates ever ask of the API server is granted by the manifests, and nothing
//! is granted that they do not ask for.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::{CandidateApi, LeaseCandidate};
use elector_tests::rig::{AuditLog, ResourceVerb, Suite, Testbed, eventually, warm_up};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, MODES);
    own.add_long("every_right_is_used", 300, used);
}

/// The silence after which a candidate is deleted here.
const SHORT_LIVED: [&str; 4] = [
    "--absent-lease-grace=0s",
    "--re-ping-after=5s",
    "--ping-interval=5s",
    "--candidate-validity=5s",
];

/// The time until each right has been used: those after a conflict when there is one.
const PATIENCE: Duration = Duration::from_secs(300);

/// A lease whose candidates wish for different strategies and never answer.
const CONTESTED: &str = "contested";

/// The time until a candidate leads whose writes conflict with those of strangers.
const AMONG_STRANGERS: Duration = Duration::from_secs(40);

/// The sleep of a candidate that waits for a lease of 4 s.
const ASLEEP: Duration = Duration::from_secs(6);

/// The wait of strangers between their writes of an object: without that nobody else gets a write through.
const BETWEEN_WRITES: Duration = Duration::from_millis(20);

/// The time until those are deleted.
const FORGOTTEN: Duration = Duration::from_secs(40);

/// A lease whose candidate has nothing to do.
const QUIET: &str = "quiet";

/// The number of leader changes before the contested lease has its turn: Events have a budget.
const CHANGES: u32 = 3;

/// A lease that is there once its candidate has created it.
const PLAIN: &str = "plain";

/// An account and what it may do.
struct GrantedRights {
    user: String,
    verbs: BTreeSet<ResourceVerb>,
}

/// Ends its task when it is dropped.
struct Strangers(AbortHandle);

/// Elections among strangers who write all objects all the time, so that writes conflict, until each right was used.
async fn used(outer: Arc<Testbed>) -> Result<()> {
    let site = outer.site();
    let audit = site.audit().await?;
    let flags = site.mode().elector_flags().iter().copied();
    let _elector = site.elector("elector", flags.chain(SHORT_LIVED)).await?;
    warm_up(site).await?;
    // The writes of strangers are not judged.
    let testbed = outer.open_beside("strangers").await?;
    let rights = [
        GrantedRights::of_elector(&testbed).await?,
        GrantedRights::of_candidates(&testbed).await?,
    ];
    // It is pinged once it has been quiet, and acks.
    testbed.admit(&[QUIET]).await?;
    let _quiet = testbed.candidate(QUIET).lease(QUIET).start()?;
    acquire(&testbed).await?;
    let _strangers = [
        Strangers::write_lease(&testbed),
        Strangers::write_candidates(&testbed),
    ];
    let deadline = Instant::now() + PATIENCE;
    for round in 1.. {
        for turn in 1..=CHANGES {
            change_leaders(&testbed, &format!("elected-{round}-{turn}")).await?;
        }
        contest(&testbed).await?;
        let unused: Vec<String> = rights.iter().flat_map(|each| each.unused(&audit)).collect();
        if unused.is_empty() {
            break;
        }
        ensure!(Instant::now() < deadline, "never used: {unused:?}");
    }
    for each in &rights {
        let more: Vec<_> = audit
            .verbs_of(&each.user)?
            .difference(&each.verbs)
            .cloned()
            .collect();
        ensure!(more.is_empty(), "{} asks for {more:?} too", each.user);
        let refused = audit.refused_to(&each.user)?;
        ensure!(refused.is_empty(), "{} was refused {refused:?}", each.user);
    }
    Ok(())
}

/// A lease is granted, and released.
async fn change_leaders(testbed: &Testbed, name: &str) -> Result<()> {
    let mut elected = testbed.candidate(name).start()?;
    elected.leads(AMONG_STRANGERS).await?;
    elected.terminate()?;
    let status = elected.process.exit(AMONG_STRANGERS).await?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

/// A lease is created by its candidate, and taken from it by one that slept while it expired, which reads it before.
async fn acquire(outer: &Testbed) -> Result<()> {
    let (site, implementation) = (Arc::clone(outer.site()), outer.implementation());
    let testbed = Testbed::open_for(site, outer.namespace(), PLAIN, implementation).await?;
    let start = |name| {
        let candidate = testbed.candidate(name).plain().short();
        candidate.flag("--absent-lease-grace=0s").start()
    };
    let mut creator = start("creator")?;
    creator.leads(PROMPTLY).await?;
    let mut sleeper = start("sleeper")?;
    sleeper.begins().await?;
    testbed.stays("creator", 2).await?;
    creator.kill()?;
    sleeper.process.signal(Signal::STOP)?;
    sleep(ASLEEP).await;
    sleeper.process.signal(Signal::CONT)?;
    sleeper.leads(PROMPTLY).await?;
    sleeper.ends().await.map(drop)
}

/// Registers the candidates of the contested lease, and waits until they are deleted. The reports on them are repeated when they
/// come again.
async fn contest(testbed: &Testbed) -> Result<()> {
    let candidates = testbed.candidates();
    for (name, strategy) in [
        ("this", "OldestEmulationVersion"),
        ("that", "example.com/other"),
    ] {
        let object = json!({
            "apiVersion": testbed.site().candidate_api().api_version(), "kind": "LeaseCandidate",
            "metadata": {"name": name},
            "spec": {
                "leaseName": CONTESTED, "binaryVersion": "1.0.0", "emulationVersion": "1.0.0",
                "strategy": strategy, "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        });
        let object: LeaseCandidate = serde_json::from_value(object)?;
        candidates.create(&PostParams::default(), &object).await?;
    }
    let ask = || async {
        for name in ["this", "that"] {
            let left = candidates.get_opt(name).await?;
            ensure!(left.is_none(), "{name} is not deleted");
        }
        Ok(())
    };
    eventually(FORGOTTEN, ask).await
}

// === impl GrantedRights ===

impl GrantedRights {
    async fn of_elector(testbed: &Testbed) -> Result<Self> {
        let roles: Api<ClusterRole> = Api::all(testbed.site().client().clone());
        let role = roles.get("elector").await?;
        let user = "system:serviceaccount:elector-system:elector".to_owned();
        Ok(Self::new(user, testbed, &role.rules.unwrap_or_default()))
    }

    async fn of_candidates(testbed: &Testbed) -> Result<Self> {
        let namespace = testbed.namespace();
        let roles: Api<Role> = Api::namespaced(testbed.site().client().clone(), namespace);
        let role = roles
            .get(&format!("candidate-{}", testbed.lease_name()))
            .await?;
        let user = format!("system:serviceaccount:{namespace}:web");
        Ok(Self::new(user, testbed, &role.rules.unwrap_or_default()))
    }

    /// Those that mean something on this cluster, which has LeaseCandidates of one kind.
    fn new(user: String, testbed: &Testbed, rules: &[PolicyRule]) -> Self {
        let api = testbed.site().candidate_api();
        let other = match api {
            CandidateApi::Elector => CandidateApi::V1Beta1,
            _ => CandidateApi::Elector,
        };
        let mut verbs = BTreeSet::new();
        for rule in rules {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    if resource == "leasecandidates" && group == other.group() {
                        continue;
                    }
                    verbs.extend(
                        rule.verbs
                            .iter()
                            .map(|verb| ResourceVerb::new(group, resource, verb)),
                    );
                }
            }
        }
        Self { user, verbs }
    }

    fn unused(&self, audit: &AuditLog) -> Vec<String> {
        let used = audit.verbs_of(&self.user).unwrap_or_default();
        let unused = self.verbs.difference(&used);
        unused
            .map(|verb| format!("{} may {verb}", self.user))
            .collect()
    }
}

// === impl Strangers ===

impl Strangers {
    /// Annotates the Lease of a testbed again and again.
    fn write_lease(testbed: &Testbed) -> Self {
        let (leases, name) = (testbed.leases(), testbed.lease_name().to_owned());
        let task = tokio::spawn(async move {
            for turn in 0.. {
                annotate(&leases, &name, turn).await;
            }
        });
        Self(task.abort_handle())
    }

    /// Annotates its candidates again and again, but those of the contested lease.
    fn write_candidates(testbed: &Testbed) -> Self {
        let candidates = testbed.candidates();
        let task = tokio::spawn(async move {
            for turn in 0.. {
                let standing = candidates.list(&ListParams::default()).await;
                for candidate in standing.map(|list| list.items).unwrap_or_default() {
                    // Its deletion would conflict for ever.
                    if candidate.spec.lease_name == CONTESTED {
                        continue;
                    }
                    annotate(&candidates, &candidate.name_any(), turn).await;
                }
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Strangers {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Annotates an object, if it is there.
async fn annotate<K>(objects: &Api<K>, name: &str, turn: u64)
where
    K: Clone + fmt::Debug + DeserializeOwned,
{
    let note = json!({"metadata": {"annotations": {"example.com/turn": turn.to_string()}}});
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(&note));
    drop(objects.patch(name, &parameters, &patch).await);
    sleep(BETWEEN_WRITES).await;
}
