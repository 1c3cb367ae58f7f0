//! LeaseCandidates come to be served by another API.

use std::time::Duration;

use elector_api::CandidateApi;
use elector_candidate::{Event, RunOutcome};
use elector_protocol::Identity;
use serde_json::Value;

use crate::server::Server;
use crate::{Running, config, eventually, obedient, start_in};

const NATIVE: &str = "coordination.k8s.io/v1beta1";
const OLDEST: &str = "coordination.k8s.io/v1alpha1";
const CUSTOM: &str = "elector.dev/v1alpha1";

fn spec(server: &Server, api: &str) -> Option<Value> {
    Some(server.candidate_in(api, "me")?["spec"].clone())
}

/// A candidate that leads.
async fn leader(server: &Server, api: CandidateApi) -> Running {
    let running = start_in(api, server, config(), obedient);
    running.registered().await;
    server.grant("me");
    running.leads(1).await;
    running
}

/// Whether a term has ended, or a second one begun.
fn disturbed(running: &Running) -> bool {
    let events = running.events.lock().unwrap();
    let terms = events
        .iter()
        .filter(|event| matches!(event, Event::Leading { .. }));
    let ended = events
        .iter()
        .any(|event| matches!(event, Event::Stopping { .. } | Event::Ended { .. }));
    terms.count() != 1 || ended
}

#[tokio::test(start_paused = true)]
async fn a_leader_registers_in_a_better_api_and_leads_on() {
    let server = Server::start();
    server.offer(&[CUSTOM]);
    let mut running = leader(&server, CandidateApi::Elector).await;
    let term = server.record().term;
    for (served, now, wish) in [
        (&[CUSTOM, OLDEST] as &[_], OLDEST, "preferredStrategies"),
        (&[CUSTOM, OLDEST, NATIVE], NATIVE, "strategy"),
    ] {
        server.offer(served);
        // It asks every 60 to 75 s.
        tokio::time::sleep(Duration::from_secs(20)).await;
        eventually(|| spec(&server, now).is_some()).await;
        assert!(!spec(&server, now).unwrap()[wish].is_null());
        // What it left behind nobody else would collect.
        let gone = |api: &&str| *api != now && server.candidate_in(api, "me").is_some();
        eventually(|| ![CUSTOM, OLDEST, NATIVE].iter().any(gone)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!disturbed(&running));
    assert_eq!(server.record().term, term);
    let registered = |event: &&Event| **event == Event::Registered;
    assert_eq!(
        running
            .events
            .lock()
            .unwrap()
            .iter()
            .filter(registered)
            .count(),
        3
    );
    // It answers in the new place, and a clean end leaves nothing there.
    server.ping("me");
    eventually(|| {
        let spec = spec(&server, NATIVE).unwrap();
        spec["renewTime"].as_str() >= spec["pingTime"].as_str()
    })
    .await;
    running.shut_down();
    assert!(matches!(
        running.outcome().await,
        RunOutcome::ShutDown(Some(_))
    ));
    assert_eq!(spec(&server, NATIVE), None);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_api_goes_registers_in_what_is_left() {
    let server = Server::start();
    let running = leader(&server, CandidateApi::V1Beta1).await;
    // At first nothing is left.
    server.offer(&[]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    server.offer(&[CUSTOM]);
    eventually(|| spec(&server, CUSTOM).is_some()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!disturbed(&running));
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_comes_back_finds_its_candidates_again() {
    let server = Server::start();
    server.offer(&[CUSTOM]);
    let running = leader(&server, CandidateApi::Elector).await;
    server.offer(&[]);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(spec(&server, CUSTOM), None);
    server.offer(&[CUSTOM]);
    eventually(|| spec(&server, CUSTOM).is_some()).await;
    assert!(!disturbed(&running));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_custom_resource_can_have_stays_a_leader_unregistered() {
    let server = Server::start();
    let mut config = config();
    config.identity = Identity::new("Me_1").unwrap();
    let running = start_in(CandidateApi::V1Beta1, &server, config, obedient);
    running.registered().await;
    server.grant("Me_1");
    running.leads(1).await;
    server.offer(&[CUSTOM]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!disturbed(&running));
    assert_eq!(server.candidate_in(CUSTOM, "Me_1"), None);
    // Back home it is heard of again.
    server.offer(&[NATIVE, CUSTOM]);
    server.ping("Me_1");
    eventually(|| {
        let spec = server.candidate_in(NATIVE, "Me_1").unwrap()["spec"].clone();
        spec["renewTime"].as_str() >= spec["pingTime"].as_str()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_leaving_does_not_move() {
    let server = Server::start();
    server.offer(&[CUSTOM]);
    let mut running = start_in(CandidateApi::Elector, &server, config(), obedient);
    running.registered().await;
    server.break_by(crate::server::Fault::Hangs);
    running.shut_down();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.break_by(crate::server::Fault::None);
    server.offer(&[CUSTOM, NATIVE]);
    assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(spec(&server, NATIVE), None);
}
