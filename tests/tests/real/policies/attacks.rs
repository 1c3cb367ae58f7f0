//! Attacks of an account on the elections of others, once without the policies and once with them.

use anyhow::{Result, bail, ensure};
use elector_api::{CandidateApi, LeaseCandidate};
use elector_tests::rig::{Testbed, eventually, now};
use http::Method;
use serde_json::{Value, json};

use super::accounts::{Accounts, ActingAccount};
use super::attack_list::{ATTACKS, Attack, AttackEffect, AttackedKind, VICTIM};
use super::candidate_changes::candidate;
use super::lease_changes::lease;
use super::requests::{Collection, IN_FORCE, ObjectWrite, PolicyAnswer};
use crate::PROMPTLY;

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
            let admin = testbed.site().client();
            collection.remove(admin, write.name()).await?;
        }
    }
    Ok(())
}

/// With the policies each is refused by the right one, and no object changes.
pub(super) async fn fail(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let admin = testbed.site().client();
    for attack in ATTACKS {
        for api in attack.apis(testbed) {
            let (collection, write) = attack.prepare(testbed, api).await?;
            let actor = attack.actor(accounts)?;
            // The policies come into force after a moment.
            let refused = || async {
                let answer = collection.send(&actor.client, &write, true).await?;
                ensure!(!answer.is_accepted(), "{} is not refused", attack.name);
                Ok(())
            };
            eventually(IN_FORCE, refused).await?;
            let name = write.name();
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
        let write = (self.write)(before);
        if write.method == Method::POST {
            collection.remove(admin, write.name()).await?;
        }
        Ok((collection, write))
    }

    /// Checks the election for the effect of the attack.
    async fn has_effect(&self, testbed: &Testbed, expected: bool) -> Result<()> {
        let Some(effect) = self.effect else {
            return Ok(());
        };
        let what = format!("{}: effect {expected}", self.name);
        let explained = testbed.explained(&what, PROMPTLY, |explained| {
            let reason = |each: &Value| each["reason"].as_str().unwrap_or_default().to_owned();
            let found = match effect {
                // A list of strategies, as Kubernetes 1.31 has it, makes a conflict of the two.
                AttackEffect::Frozen => explained["strategy"] != "OldestEmulationVersion",
                AttackEffect::Delayed => {
                    wait(&reason(explained)).is_some_and(|seconds| seconds > 3000.0)
                }
                AttackEffect::Obeyed => {
                    let word = &explained["operator"];
                    let mut candidates = explained["candidates"].as_array().into_iter().flatten();
                    !word["freeze"].is_null()
                        || !word["prefer"].is_null()
                        || candidates
                            .any(|each| reason(each).contains("elector.dev/stand-down excludes it"))
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
