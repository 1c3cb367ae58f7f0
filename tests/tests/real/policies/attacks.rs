//! What an account can do to the elections of others, once without the policies and once with them.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use elector_api::{CandidateApi, LeaseCandidate};
use elector_tests::rig::{Testbed, now};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::accounts::{Accounts, ActingAccount, HOLDER};
use super::candidate_changes::candidate;
use super::lease_changes::{lease, led};
use super::requests::{Collection, ObjectWrite, PolicyAnswer};
use crate::PROMPTLY;

/// A write that harms others.
struct Attack {
    name: &'static str,
    /// The account, by its column of the tables.
    by: &'static str,
    /// The policies of which one refuses it.
    policies: &'static [&'static str],
    kind: AttackedKind,
    /// What is there.
    before: fn() -> Option<Value>,
    write: fn(Option<Value>) -> ObjectWrite,
    /// What it does to the choice, where `elector explain` tells.
    effect: Option<AttackEffect>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AttackedKind {
    Candidate,
    Lease,
}

/// What an attack does to an election.
#[derive(Clone, Copy)]
enum AttackEffect {
    /// No elector elects: the strategy belongs to another one.
    Frozen,
    /// The lease stays without a leader for an hour.
    Delayed,
}

/// Every attack; the first and the third are those of an account that may write LeaseCandidates only.
const ATTACKS: &[Attack] = &[
    Attack {
        name: "a strategy of its own, in the highest version",
        by: "outsider",
        policies: &["elector-candidate-lease"],
        kind: AttackedKind::Candidate,
        before: || None,
        write: |_| {
            post("outsider-0", |object| {
                object["spec"]["binaryVersion"] = json!("999.0.0");
                object["spec"]["strategy"] = json!(STRATEGY);
            })
        },
        effect: Some(AttackEffect::Frozen),
    },
    Attack {
        name: "the lowest version",
        by: "outsider",
        policies: &["elector-candidate-lease"],
        kind: AttackedKind::Candidate,
        before: || None,
        write: |_| {
            post("outsider-0", |object| {
                object["spec"]["binaryVersion"] = json!("0.0.1");
                object["spec"]["emulationVersion"] = json!("0.0.1");
            })
        },
        effect: None,
    },
    Attack {
        name: "an announced lease duration of an hour",
        by: "outsider",
        policies: &["elector-candidate-lease", "elector-candidate-duration"],
        kind: AttackedKind::Candidate,
        before: || None,
        write: |_| post("outsider-0", announce_an_hour),
        effect: Some(AttackEffect::Delayed),
    },
    Attack {
        name: "an announced lease duration of an hour, by a candidate for the Lease",
        by: "another Pod",
        policies: &["elector-candidate-duration"],
        kind: AttackedKind::Candidate,
        before: || None,
        write: |_| post("web-2-0123456789abcdef", announce_an_hour),
        effect: Some(AttackEffect::Delayed),
    },
    Attack {
        name: "the strategy of another candidate",
        by: "another Pod",
        policies: &["elector-candidate-author"],
        kind: AttackedKind::Candidate,
        before: || Some(candidate(HOLDER)),
        write: |before| {
            put(before, |object| {
                object["spec"]["binaryVersion"] = json!("999.0.0");
                object["spec"]["strategy"] = json!(STRATEGY);
            })
        },
        effect: Some(AttackEffect::Frozen),
    },
    Attack {
        name: "deletion of another candidate",
        by: "editor",
        policies: &["elector-candidate-author"],
        kind: AttackedKind::Candidate,
        before: || Some(candidate(HOLDER)),
        write: delete,
        effect: None,
    },
    Attack {
        name: "an emptied holder",
        by: "editor",
        policies: &["elector-lease"],
        kind: AttackedKind::Lease,
        before: led,
        write: |before| {
            put(before, |object| {
                object["spec"]["holderIdentity"] = json!("");
            })
        },
        effect: None,
    },
    Attack {
        name: "deletion of a Lease that is led",
        by: "editor",
        policies: &["elector-lease"],
        kind: AttackedKind::Lease,
        before: led,
        write: delete,
        effect: None,
    },
    Attack {
        name: "a Lease that is led for 68 years",
        by: "another Pod",
        policies: &["elector-lease"],
        kind: AttackedKind::Lease,
        before: led,
        write: |before| {
            put(before, |object| {
                object["spec"]["leaseDurationSeconds"] = json!(i32::MAX);
            })
        },
        effect: None,
    },
];

const STRATEGY: &str = "attacker.example/mine";

/// For the policies to come into force.
const IN_FORCE: Duration = Duration::from_secs(30);

/// Without the policies each is accepted, and `elector explain` tells what it has done.
pub(super) async fn succeed(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    for attack in ATTACKS {
        for api in attack.apis(testbed) {
            let (collection, write) = attack.prepare(testbed, api).await?;
            attack.has_effect(testbed, false).await?;
            let actor = attack.actor(accounts)?;
            let answer = collection.send(&actor.client, &write, false).await?;
            ensure!(
                answer.is_accepted(),
                "{} by {api} without policies: {answer:?}",
                attack.name
            );
            // The elector reads the kind of Kubernetes where both are served.
            if api == testbed.site().candidate_api() {
                attack.has_effect(testbed, true).await?;
            }
            collection
                .remove(testbed.site().client(), attack.object(&write))
                .await?;
        }
    }
    Ok(())
}

/// With the policies each is refused by the right one, and no object changes.
pub(super) async fn fail(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let admin = testbed.site().client();
    let deadline = Instant::now() + IN_FORCE;
    for attack in ATTACKS {
        for api in attack.apis(testbed) {
            let (collection, write) = attack.prepare(testbed, api).await?;
            let actor = attack.actor(accounts)?;
            while collection
                .send(&actor.client, &write, true)
                .await?
                .is_accepted()
            {
                ensure!(Instant::now() < deadline, "{} is not refused", attack.name);
                sleep(Duration::from_millis(50)).await;
            }
            let name = attack.object(&write);
            let before = collection.revision(admin, name).await?;
            match collection.send(&actor.client, &write, false).await? {
                PolicyAnswer::Refused(words) => {
                    let by = |policy: &&str| words.contains(&format!("Policy '{policy}'"));
                    ensure!(attack.policies.iter().any(by), "{}: {words}", attack.name);
                }
                PolicyAnswer::Accepted => bail!("{} by {api} is accepted", attack.name),
            }
            let after = collection.revision(admin, name).await?;
            ensure!(before == after, "{} changes something", attack.name);
            attack.has_effect(testbed, false).await?;
            collection.remove(admin, name).await?;
        }
    }
    for api in [testbed.site().candidate_api(), CandidateApi::Elector] {
        let collection = Collection::candidates(api, testbed.namespace());
        collection.remove(admin, VICTIM).await?;
    }
    Collection::leases(testbed.namespace())
        .remove(admin, "work")
        .await
}

/// A candidate that has just acked, of a Pod that takes no part in the attacks.
const VICTIM: &str = "web-3-fedcba9876543210";

// === impl Attack ===

impl Attack {
    fn apis(&self, testbed: &Testbed) -> Vec<CandidateApi> {
        match self.kind {
            AttackedKind::Candidate => vec![testbed.site().candidate_api(), CandidateApi::Elector],
            AttackedKind::Lease => vec![testbed.site().candidate_api()],
        }
    }

    fn actor<'a>(&self, accounts: &'a Accounts) -> Result<&'a ActingAccount> {
        match self.by {
            "outsider" => Ok(&accounts.outsider),
            column => accounts.of(column),
        }
    }

    fn object<'w>(&self, write: &'w ObjectWrite) -> &'w str {
        write.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
    }

    /// An election with one candidate that acks and a Lease that nobody holds, and what the attack is aimed at.
    async fn prepare(
        &self,
        testbed: &Testbed,
        api: CandidateApi,
    ) -> Result<(Collection, ObjectWrite)> {
        let admin = testbed.site().client();
        let candidates = Collection::candidates(api, testbed.namespace());
        let leases = Collection::leases(testbed.namespace());
        let mut victim = candidate(VICTIM);
        let acked = serde_json::to_value(LeaseCandidate::default().with_renewal(now()))?;
        victim["spec"]["renewTime"] = acked["spec"]["renewTime"].clone();
        candidates.reset(admin, &victim).await?;
        leases
            .reset(admin, &lease(&json!({"holderIdentity": ""})))
            .await?;
        let collection = match self.kind {
            AttackedKind::Candidate => candidates,
            AttackedKind::Lease => leases,
        };
        let before = match (self.before)() {
            Some(object) => Some(collection.reset(admin, &object).await?),
            None => None,
        };
        Ok((collection, (self.write)(before)))
    }

    /// Whether the election is as the attack would have it.
    async fn has_effect(&self, testbed: &Testbed, expected: bool) -> Result<()> {
        let Some(effect) = self.effect else {
            return Ok(());
        };
        let what = format!("{}: effect {expected}", self.name);
        let explained = testbed.explained(&what, PROMPTLY, |explained| {
            let found = match effect {
                // A list of strategies, as Kubernetes 1.31 has it, makes a conflict of the two.
                AttackEffect::Frozen => {
                    explained.strategy.as_deref() != Some("OldestEmulationVersion")
                }
                AttackEffect::Delayed => {
                    wait(&explained.reason).is_some_and(|seconds| seconds > 3000.0)
                }
            };
            found == expected
        });
        explained.await.map(drop)
    }
}

/// For how many seconds more a former holder may lead, as a reason has it.
fn wait(reason: &str) -> Option<f64> {
    let (_, rest) = reason.split_once("may lead for another ")?;
    rest.strip_suffix('s')?.parse().ok()
}

fn announce_an_hour(object: &mut Value) {
    object["metadata"]["annotations"] = json!({"elector.dev/lease-duration": "1h"});
}

fn post(name: &str, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    let mut object = candidate(name);
    change(&mut object);
    ObjectWrite {
        method: Method::POST,
        object,
    }
}

fn put(before: Option<Value>, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    let mut object = before.unwrap_or_default();
    change(&mut object);
    ObjectWrite {
        method: Method::PUT,
        object,
    }
}

fn delete(before: Option<Value>) -> ObjectWrite {
    ObjectWrite {
        method: Method::DELETE,
        object: before.unwrap_or_default(),
    }
}
