//! An account that may write LeaseCandidates and no Lease: its candidate acks, is preferred, and never accepts (R23).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::LeaseCandidate;
use elector_protocol::{Identity, Timestamp};
use elector_tests::rig::{
    ClusterChoice, EntryContent, EventKind, ExplainOutput, Implementation, Suite, Testbed, between,
    now,
};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::{Instant, sleep};

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, run| {
        let lasts = Duration::from_secs(80);
        suite.add(name, ClusterChoice::Shared, OURS, MODES, lasts, run);
    };
    add("account_changes_its_version_all_the_time", |testbed| {
        Box::pin(restless(testbed, false))
    });
    add("account_changes_its_name_all_the_time", |testbed| {
        Box::pin(restless(testbed, true))
    });
}

/// The duration of the account's changes.
const LASTS: Duration = Duration::from_secs(60);

/// The time between two changes of its candidate.
const CHANGES_EVERY: Duration = Duration::from_secs(3);

/// An accept window, and what it takes to stop the work and to begin it again.
const LONGEST_GAP: Duration = Duration::from_secs(7);

/// The account that writes candidates.
struct CandidateAccount {
    objects: Api<LeaseCandidate>,
    testbed: Arc<Testbed>,
    /// The number of candidates so far.
    changes: u32,
}

/// A leader works; the account changes its better candidate every three seconds. The leader makes room once, and not
/// again within ten minutes.
async fn restless(testbed: Arc<Testbed>, names: bool) -> Result<()> {
    let steady = testbed.candidate("steady").version("2.0.0").start()?;
    steady.leads(PROMPTLY).await?;
    let mut account = CandidateAccount::new(Arc::clone(&testbed)).await?;
    let start = testbed.note("the account begins");
    let end = Instant::now() + LASTS;
    let mut name = account.change(None, names).await?;
    let mut change_at = Instant::now() + CHANGES_EVERY;
    while Instant::now() < end {
        if Instant::now() >= change_at {
            name = account.change(Some(name), names).await?;
            change_at += CHANGES_EVERY;
        }
        account.ack(&name).await?;
        sleep(Duration::from_millis(100)).await;
    }
    testbed.note("the account ends");
    let gaps = testbed.journal().read(|entries| {
        let worked = entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::Event(event) if event.name == "steady" => Some((entry.at, event.kind)),
            _ => None,
        });
        gaps(worked, start, now())
    });
    let without_work: Duration = gaps.iter().sum();
    testbed.figure("without work in a minute", without_work);
    ensure!(
        !gaps.is_empty(),
        "the account's candidate was never preferred"
    );
    ensure!(
        gaps.len() == 1 && without_work <= LONGEST_GAP,
        "no work for {gaps:?} in {LASTS:?}"
    );
    explained(&testbed, &name).await?;
    account.delete(&name).await?;
    testbed.stays("steady", 1).await
}

/// Operators see what is held back, until when and why: on the Lease, and explained from the cluster.
async fn explained(testbed: &Testbed, name: &str) -> Result<()> {
    let cause = "it appeared or changed after a hand-over that was not accepted, and has never led";
    let note = format!(" steady is not asked to make room for {name}: {cause}");
    let parts = [
        "Warning PreferenceHeldBack",
        "elector.dev/elector until 20",
        &note,
    ];
    let line = testbed.describes(&parts, PROMPTLY).await?;
    let is_held_back = |told: &ExplainOutput| told.held_back.is_some();
    let told = testbed
        .explained("what is held back", PROMPTLY, is_held_back)
        .await?;
    let held_back = told.held_back.as_ref().context("it is not held back")?;
    ensure!(
        told.action == "none"
            && told.preferred_holder.is_empty()
            && (held_back.candidate.as_str(), held_back.reason.as_str()) == (name, cause)
            && line.contains(&format!("until {} steady", held_back.until)),
        "{line} is explained otherwise: {told:#?}"
    );
    Ok(())
}

/// For how long a candidate did not work, each time, between two moments.
fn gaps(
    events: impl Iterator<Item = (Timestamp, EventKind)>,
    start: Timestamp,
    end: Timestamp,
) -> Vec<Duration> {
    let (mut gaps, mut stopped) = (Vec::new(), None);
    for (at, kind) in events.filter(|(at, _)| *at >= start) {
        match kind {
            EventKind::WorkStopped => stopped = stopped.or(Some(at)),
            EventKind::Leading => gaps.extend(stopped.take().map(|stopped| between(stopped, at))),
            _ => {}
        }
    }
    gaps.extend(stopped.map(|stopped| between(stopped, end)));
    gaps
}

/// Waits until the user may create candidates: the server's authorizer learns of a RoleBinding by a watch, later than
/// the one who wrote it.
async fn may_create(testbed: &Testbed, user: &str) -> Result<()> {
    let attributes = ResourceAttributes {
        group: Some(testbed.site().candidate_api().group().to_owned()),
        namespace: Some(testbed.namespace().to_owned()),
        resource: Some("leasecandidates".to_owned()),
        verb: Some("create".to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            user: Some(user.to_owned()),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api: Api<SubjectAccessReview> = Api::all(testbed.site().client().clone());
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let answer = api.create(&PostParams::default(), &review).await?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{user} may not create candidates {PROMPTLY:?} after its RoleBinding"
        );
        sleep(Duration::from_millis(20)).await;
    }
}

// === impl CandidateAccount ===

impl CandidateAccount {
    /// The account, with leave to write the candidates of the namespace, and nothing else.
    async fn new(testbed: Arc<Testbed>) -> Result<Self> {
        let (user, client) = ("restless", testbed.site().client().clone());
        let metadata = ObjectMeta {
            name: Some(user.to_owned()),
            ..ObjectMeta::default()
        };
        let verbs = ["get", "create", "update", "delete"];
        let role = Role {
            metadata: metadata.clone(),
            rules: Some(vec![PolicyRule {
                api_groups: Some(vec![testbed.site().candidate_api().group().to_owned()]),
                resources: Some(vec!["leasecandidates".to_owned()]),
                verbs: verbs.map(str::to_owned).into(),
                ..PolicyRule::default()
            }]),
        };
        let api: Api<Role> = Api::namespaced(client.clone(), testbed.namespace());
        api.create(&PostParams::default(), &role).await?;
        let group = "rbac.authorization.k8s.io".to_owned();
        let binding = RoleBinding {
            metadata,
            role_ref: RoleRef {
                api_group: Some(group.clone()),
                kind: "Role".to_owned(),
                name: user.to_owned(),
            },
            subjects: Some(vec![Subject {
                api_group: Some(group),
                kind: "User".to_owned(),
                name: user.to_owned(),
                namespace: None,
            }]),
        };
        let api: Api<RoleBinding> = Api::namespaced(client, testbed.namespace());
        api.create(&PostParams::default(), &binding).await?;
        may_create(&testbed, user).await?;
        let kubeconfig = Kubeconfig::read_from(testbed.site().kubeconfig())?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        // The administrator may speak for any user.
        config.auth_info.impersonate = Some(user.to_owned());
        let client = Client::try_from(config)?;
        let (namespace, api) = (testbed.namespace(), testbed.site().candidate_api());
        Ok(Self {
            objects: Api::namespaced_with(client, namespace, &api),
            testbed,
            changes: 0,
        })
    }

    /// Makes another candidate of the last one: of another name, or of another version. Returns its name.
    async fn change(&mut self, last: Option<String>, names: bool) -> Result<String> {
        self.changes += 1;
        let version = format!("1.{}.0", 1000 - self.changes);
        let post = PostParams::default();
        match last {
            Some(last) if names => self.delete(&last).await?,
            Some(name) => {
                self.update(&name, |object| {
                    object.spec.binary_version.clone_from(&version);
                    object.spec.emulation_version.clone_from(&version);
                    true
                })
                .await?;
                return Ok(name);
            }
            None => {}
        }
        let name = format!("restless-{}", self.changes);
        let testbed = &self.testbed;
        testbed.add_participant(&name, Implementation::Elector, testbed.lease_name());
        let identity = Identity::new(name.as_str()).context("name a candidate")?;
        let api = testbed.site().candidate_api();
        let mut object = LeaseCandidate::named(api, &testbed.key(), &identity)
            .with_strategy("OldestEmulationVersion")
            .with_renewal(now())
            .marked(Duration::from_secs(15));
        object.spec.binary_version.clone_from(&version);
        object.spec.emulation_version = version;
        self.objects.create(&post, &object).await?;
        Ok(name)
    }

    /// Acks a ping, if there is one.
    async fn ack(&self, name: &str) -> Result<()> {
        self.update(name, |object| {
            let (ping, renewed) = (object.spec.ping_time, object.spec.renew_time);
            let pinged = ping.filter(|_| ping > renewed);
            if let Some(ping) = pinged {
                *object = object.with_renewal(ping.max(now()));
            }
            pinged.is_some()
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.objects.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Changes its candidate, until no ping comes between.
    async fn update(
        &self,
        name: &str,
        mut change: impl FnMut(&mut LeaseCandidate) -> bool,
    ) -> Result<()> {
        loop {
            let mut object = self.objects.get(name).await?;
            if !change(&mut object) {
                return Ok(());
            }
            match self
                .objects
                .replace(name, &PostParams::default(), &object)
                .await
            {
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                done => return done.map(drop).context("update the candidate"),
            }
        }
    }
}
