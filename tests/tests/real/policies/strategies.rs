//! The strategies that a Namespace permits to its candidates, and to the Leases that are made for them.

use anyhow::{Context as _, Result, ensure};
use elector_api::CandidateApi;
use elector_protocol::StrategyName;
use elector_tests::rig::Testbed;
use serde_json::json;

use super::accounts::{Accounts, HOLDER};
use super::candidate_changes::candidate;
use super::durations::annotate_namespace;
use super::lease_changes::{note, post};
use super::requests::{Collection, ObjectWrite, put, until};

const ANNOTATION: &str = "elector.dev/strategies";
const OWN: &str = "example.com/mine";
const FOREIGN: &str = "attacker.example/mine";

/// Plays a Namespace that says nothing, and one with a list of its own; how many wishes that are.
pub(super) async fn play(
    testbed: &Testbed,
    accounts: &Accounts,
    api: CandidateApi,
) -> Result<usize> {
    let (admin, namespace) = (testbed.site().client(), testbed.namespace());
    let (candidates, leases) = (
        Collection::candidates(api, namespace),
        Collection::leases(namespace),
    );
    let author = &accounts.of("its holder")?.client;
    leases.remove(admin, "work").await?;
    let known: Vec<&str> = StrategyName::KNOWN.to_vec();
    let own = format!("{OWN}, {}", StrategyName::STICKY);
    let mut wishes = 0;
    for (list, accepted, refused) in [
        (None, known, vec![OWN, FOREIGN]),
        // The first of each kind shows that the API server has seen the annotation.
        (
            Some(&*own),
            vec![OWN, StrategyName::STICKY],
            vec!["OldestEmulationVersion", FOREIGN],
        ),
    ] {
        annotate_namespace(admin, namespace, ANNOTATION, list).await?;
        let rows = accepted.iter().map(|wish| (*wish, true));
        for (wish, expected) in rows.chain(refused.iter().map(|wish| (*wish, false))) {
            let said = || format!("{wish:?} in {api} where the Namespace says {list:?}");
            let wished = until(author, &candidates, &wishing(wish), expected).await;
            wished.with_context(said)?;
            let mut created = post("");
            note(&mut created.object, "strategy", wish);
            let created = until(author, &leases, &created, expected).await;
            created.with_context(said)?;
            wishes += 1;
        }
    }
    // A candidate that wished for it before goes on.
    let object = candidates.reset(admin, &candidate(HOLDER)).await?;
    let ack = put(Some(object), |object| {
        object["spec"]["renewTime"] = json!("2026-01-01T00:00:09.123456Z");
    });
    let answer = candidates.send(author, &ack, true).await?;
    ensure!(answer.is_accepted(), "an ack of an older wish: {answer:?}");
    candidates.remove(admin, HOLDER).await?;
    annotate_namespace(admin, namespace, ANNOTATION, None).await?;
    until(author, &candidates, &wishing(FOREIGN), false).await?;
    let answer = candidates
        .send(author, &wishing("OldestEmulationVersion"), true)
        .await?;
    ensure!(answer.is_accepted(), "without the list: {answer:?}");
    Ok(wishes)
}

fn wishing(strategy: &str) -> ObjectWrite {
    let mut object = candidate(HOLDER);
    object["spec"]["strategy"] = json!(strategy);
    ObjectWrite::post(object)
}
