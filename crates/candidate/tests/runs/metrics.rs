//! The figures of a candidate after terms of which all is known.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Config, Leadership, Metrics, Mode};
use elector_testing::{
    OneLease, Scrape, assert_described, described_metrics, documented_metrics, eventually,
};

use crate::{RunningCandidate, V1BETA1, config, obedient, pass, start_changed};

const LABELS: [(&str, &str); 2] = [("namespace", "default"), ("lease", "web")];

/// A candidate whose figures are kept there.
fn measured(cluster: &OneLease, config: Config, metrics: &Metrics) -> RunningCandidate {
    let work = |leadership: Leadership| async move {
        leadership.stopped().await;
        // Long enough to be seen in the time of a hand-over.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(0)
    };
    start_changed(cluster, config, work, |candidate| {
        candidate.with_metrics(metrics.clone())
    })
}

/// The same, which leads.
async fn measured_leader(cluster: &OneLease, metrics: &Metrics) -> RunningCandidate {
    let running = measured(cluster, config(), metrics);
    running.is_granted(cluster).await;
    running
}

/// So many writes are answered with 500.
fn failing(times: u32) -> Rule {
    Rule::new(Fault::Refuse(500))
        .verb(RequestVerb::Update)
        .times(times)
}

fn scrape(metrics: &Metrics) -> Scrape {
    Scrape::parse(&metrics.encode())
}

/// One sample of the lease, with a further label.
fn sample(metrics: &Metrics, name: &str, further: &[(&str, &str)]) -> Option<f64> {
    let labels: Vec<_> = LABELS.iter().chain(further).copied().collect();
    scrape(metrics).sample(&format!("elector_candidate_{name}"), &labels)
}

#[tokio::test(start_paused = true)]
async fn a_term_its_hand_over_and_a_loss_are_counted_and_timed() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    assert_eq!(sample(&metrics, "leading", &[]), None);
    let running = measured(&cluster, config(), &metrics);
    running.registered().await;
    assert_eq!(sample(&metrics, "leading", &[]), Some(0.0));
    assert_eq!(sample(&metrics, "remaining_seconds", &[]), Some(0.0));
    let ended = |cause| sample(&metrics, "terms_ended_total", &[("cause", cause)]);
    assert_eq!(ended("taken"), Some(0.0), "the first one is an increase");
    let master = || scrape(&metrics).sample("leader_election_master_status", &[("name", "web")]);
    assert_eq!(master(), Some(0.0));

    cluster.grant("me");
    running.leads(1).await;
    let guard = running.guard();
    assert_eq!(sample(&metrics, "leading", &[]), Some(1.0));
    assert_eq!(master(), Some(1.0));
    let term = f64::from(guard.term());
    assert_eq!(sample(&metrics, "term", &[]), Some(term));
    let token = guard.token() as f64;
    assert_eq!(sample(&metrics, "token", &[]), Some(token));
    let remaining = || sample(&metrics, "remaining_seconds", &[]).unwrap();
    let before = remaining();
    assert!((9.9..=10.0).contains(&before), "{before}");
    // Nothing tells it that time has passed.
    pass(1_000).await;
    let now = remaining();
    assert!((before - now - 1.0).abs() < 0.001, "{before} {now}");

    // Every answer takes so long.
    cluster.inject(Rule::new(Fault::Delay(Duration::from_millis(30))).verb(RequestVerb::Update));
    pass(10_000).await;
    cluster.faults().clear();
    let renewals = sample(&metrics, "renew_duration_seconds_count", &[]).unwrap();
    assert!((3.0..=6.0).contains(&renewals), "{renewals}");
    let done = [("purpose", "renew"), ("outcome", "done")];
    assert_eq!(sample(&metrics, "writes_total", &done), Some(renewals));
    let took = sample(&metrics, "renew_duration_seconds_sum", &[]).unwrap() / renewals;
    assert!((0.02..0.1).contains(&took), "{took}");

    cluster.prefer("better");
    eventually(|| ended("handed_over") == Some(1.0)).await;
    assert_eq!(sample(&metrics, "leading", &[]), Some(0.0));
    let handovers = sample(&metrics, "handover_duration_seconds_count", &[]);
    assert_eq!(handovers, Some(1.0));
    let took = sample(&metrics, "handover_duration_seconds_sum", &[]).unwrap();
    assert!((2.0..2.5).contains(&took), "{took}");
    let handed = [("purpose", "hand_off"), ("outcome", "done")];
    assert_eq!(sample(&metrics, "writes_total", &handed), Some(1.0));

    cluster.grant("me");
    running.leads(2).await;
    // A loss that cuts a hand-over off.
    cluster.prefer("better");
    pass(100).await;
    cluster.grant("other");
    eventually(|| ended("taken") == Some(1.0)).await;
    let begun = |by| sample(&metrics, "terms_begun_total", &[("by", by)]);
    assert_eq!((begun("granted"), begun("acquired")), (Some(2.0), None));
    let handovers = sample(&metrics, "handover_duration_seconds_count", &[]);
    assert_eq!(handovers, Some(1.0), "a loss is none");
    // The term of another one is known too.
    let now = f64::from(cluster.record().term.0);
    assert_eq!(sample(&metrics, "term", &[]), Some(now));
}

/// The clock alone ends what is shown: nothing of the session turns here.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_is_shown_to_lead_until_its_deadline_and_no_longer() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let _running = measured_leader(&cluster, &metrics).await;
    cluster.faults().partition(true);
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(sample(&metrics, "leading", &[]), Some(1.0));
    tokio::time::advance(Duration::from_millis(1_001)).await;
    assert_eq!(sample(&metrics, "leading", &[]), Some(0.0));
    assert_eq!(sample(&metrics, "remaining_seconds", &[]), Some(0.0));
    let ended = |cause| sample(&metrics, "terms_ended_total", &[("cause", cause)]);
    eventually(|| ended("deadline_passed") == Some(1.0)).await;
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_counted_by_its_cause_and_a_conflict_is_the_slow_path() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let running = measured_leader(&cluster, &metrics).await;
    let slow = || scrape(&metrics).sample("leader_election_slowpath_total", &[("name", "web")]);
    let failed = |verb, cause| {
        let of = [("resource", "leases"), ("verb", verb), ("cause", cause)];
        sample(&metrics, "request_failures_total", &of)
    };
    pass(7_000).await;
    assert_eq!((slow(), failed("update", "timed_out")), (Some(0.0), None));

    cluster.inject(failing(2));
    eventually(|| failed("update", "server_error") == Some(2.0)).await;
    let refused = [("purpose", "renew"), ("outcome", "unknown")];
    assert_eq!(sample(&metrics, "writes_total", &refused), Some(2.0));

    // The label is not seen before the renewal is sent.
    cluster.faults().freeze_watches(true);
    cluster.label();
    eventually(|| slow() >= Some(1.0)).await;
    let conflict = [("purpose", "renew"), ("outcome", "conflict")];
    assert_eq!(sample(&metrics, "writes_total", &conflict), Some(1.0));
    cluster.heal();

    cluster.inject(Rule::new(Fault::HangBefore).verb(RequestVerb::Update));
    eventually(|| failed("update", "timed_out") >= Some(1.0)).await;
    assert!(!running.is_disturbed());
}

#[tokio::test(start_paused = true)]
async fn candidates_share_their_figures_and_each_lease_has_its_own() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let elsewhere = |namespace: &str| config().namespace(namespace).mode(Mode::Plain);
    let one = measured(&cluster, config(), &metrics);
    let two = measured(&cluster, elsewhere("other"), &metrics);
    one.registered().await;
    cluster.grant("me");
    one.leads(1).await;
    two.leads(1).await;
    let scrape_now = scrape(&metrics);
    let of_lease = |name: &str| scrape_now.by(&format!("elector_candidate_{name}"), "namespace");
    let both = |value| ["default", "other"].map(|name| (name.to_owned(), value));
    assert_eq!(of_lease("leading"), both(1.0));
    let begun = [("namespace", "other"), ("lease", "web"), ("by", "acquired")];
    let name = "elector_candidate_terms_begun_total";
    assert_eq!(scrape_now.sample(name, &begun), Some(1.0));
    // client-go's figures know no namespace.
    let masters = scrape_now.by("leader_election_master_status", "name");
    assert_eq!(masters, [("web".to_owned(), 1.0)]);
    cluster.grant("other");
    one.end().await;
    let masters = scrape(&metrics).by("leader_election_master_status", "name");
    assert_eq!(masters, [("web".to_owned(), 1.0)], "the other one leads");
    drop(two);
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_for_one_lease_the_one_that_leads_is_shown() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let one = measured(&cluster, config(), &metrics);
    one.registered().await;
    let two = config().identity("two");
    let two = measured(&cluster, two, &metrics);
    two.registered().await;
    for (name, running) in [("me", &one), ("two", &two)] {
        cluster.grant(name);
        running.leads(1).await;
        eventually(|| sample(&metrics, "remaining_seconds", &[]) > Some(9.0)).await;
        assert_eq!(sample(&metrics, "leading", &[]), Some(1.0), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_leads_no_more_and_the_next_one_goes_on_with_the_figures() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    for round in 1..=3 {
        let running = measured_leader(&cluster, &metrics).await;
        assert_eq!(sample(&metrics, "leading", &[]), Some(1.0));
        running.releases().await;
        assert_eq!(sample(&metrics, "leading", &[]), Some(0.0));
        let released = [("cause", "released")];
        let ended = sample(&metrics, "terms_ended_total", &released);
        assert_eq!(ended, Some(f64::from(round)));
    }
}

#[cfg(feature = "prometheus-client-0-25")]
#[tokio::test(start_paused = true)]
async fn figures_are_served_by_the_registry_of_the_program_under_its_prefix() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::with_prefix("shop");
    metrics.register(&mut registry);
    let _running = measured_leader(&cluster, &metrics).await;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let served = Scrape::parse(&text);
    assert_eq!(
        served.sample("shop_elector_candidate_leading", &LABELS),
        Some(1.0)
    );
    let without_prefix = text.replace("shop_", "");
    let [of_program, own] = [&without_prefix, &metrics.encode()].map(|text| names(text));
    assert_eq!(of_program, own);
}

/// The document tells what is served, and nothing else.
#[tokio::test(start_paused = true)]
async fn the_document_names_what_is_served() {
    let document = include_str!("../../../../docs/metrics.md");
    let (_, of_candidates) = document.split_once("\n## Candidates\n").unwrap();
    let metrics = Metrics::default();
    let registered = described_metrics(metrics.descriptions());
    assert_eq!(documented_metrics(of_candidates), registered);

    // The registered metrics are the served ones: every sample has a description, and every description a sample.
    let cluster = OneLease::new(&[V1BETA1]);
    let running = measured_leader(&cluster, &metrics).await;
    cluster.inject(failing(1));
    pass(8_000).await;
    let while_leading = names(&metrics.encode());
    cluster.prefer("better");
    running.end().await;
    let served = names(&metrics.encode())
        .union(&while_leading)
        .cloned()
        .collect();
    assert_described(&served, metrics.descriptions());
}

fn names(text: &str) -> BTreeSet<(String, BTreeSet<String>)> {
    Scrape::parse(text).names()
}

/// The answer of the probe, and not the expected one, is shown: a process without a probe is well.
#[tokio::test(start_paused = true)]
async fn a_process_that_is_unwell_is_shown_to_be() {
    let cluster = OneLease::new(&[V1BETA1]);
    let metrics = Metrics::default();
    let fails = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&fails);
    // Each virtual millisecond of waiting costs a scrape.
    let config = config().health_period(Duration::from_secs(1));
    let running = start_changed(&cluster, config, obedient, |candidate| {
        let candidate = candidate.with_metrics(metrics.clone());
        candidate.with_health(move || {
            let fails = asked.load(Ordering::SeqCst);
            async move { if fails { Err("no disk") } else { Ok(()) } }
        })
    });
    running.registered().await;
    let well = || sample(&metrics, "well", &[]);
    assert_eq!(well(), Some(1.0));
    fails.store(true, Ordering::SeqCst);
    eventually(|| well() == Some(0.0)).await;
    fails.store(false, Ordering::SeqCst);
    eventually(|| well() == Some(1.0)).await;
}
