//! Drains of the leader under a thousand requests a second, which go where the EndpointSlice says: who answers them leads.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::Lease;
use elector_protocol::Timestamp;
use elector_tests::rig::{StartedCandidate, Suite, Testbed, between, http, now, revisions};
use futures::{StreamExt as _, future};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::{GATE_OFF, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("leader_is_drained_under_load", 30, drained);
}

/// The number of drains.
const DRAINS: usize = 5;

/// Until when a server answers, and in which term: by what its sidecar has said.
type Leave = Arc<Mutex<Option<(Instant, i32)>>>;

/// The servers, and the answers of them.
#[derive(Default)]
struct Load {
    servers: BTreeMap<String, Leave>,
    /// The address to which requests go, and since when there is none.
    route: Option<String>,
    unrouted: Option<Instant>,
    gaps: Vec<Duration>,
    /// The number of answers of each term, and its last one.
    answers: BTreeMap<i32, (u32, Timestamp)>,
}

/// A sidecar for each server, and both asked to end at the same time, as those of a Pod.
async fn drained(testbed: Arc<Testbed>) -> Result<()> {
    testbed.admit_routing().await?;
    let (load, mut tasks) = (Arc::<Mutex<Load>>::default(), JoinSet::new());
    tasks.spawn(follow_route(&testbed, Arc::clone(&load)));
    tasks.spawn(send(Arc::clone(&load)));
    let mut leader = start(&testbed, 0, &load, &mut tasks)?;
    leader.leads(PROMPTLY).await?;
    for pod in 1..=DRAINS {
        let next = start(&testbed, pod, &load, &mut tasks)?;
        next.begins().await?;
        testbed.stays(leader.name(), 1).await?;
        let mark = leader.terminate()?;
        next.leads_since(mark, PROMPTLY).await?;
        leader.ends_well().await?;
        leader = next;
    }
    testbed.stays(leader.name(), 1).await?;
    tasks.shutdown().await;

    let Load { gaps, answers, .. } = &mut *load.lock();
    gaps.sort();
    // Proxies may see two changes as one, as this follower does on a busy machine.
    let median = gaps.get(gaps.len() / 2).context("no gap")?;
    testbed.figure("without an endpoint: p50", *median);
    let total: u32 = answers.values().map(|(number, _)| number).sum();
    ensure!(answers.len() > 1 && total > 1_000, "{answers:?}");
    testbed.journal().read(|entries| {
        for (term, (_, last)) in answers {
            let is_later = |lease: &Lease| lease.spec.lease_transitions > Some(*term);
            let mut later = revisions(entries, testbed.lease_name());
            if let Some((_, granted)) = later.find(|(lease, _)| is_later(lease)) {
                let late = between(granted, *last);
                let holds = late.is_zero();
                ensure!(holds, "term {term} answered {late:?} after its end");
            }
        }
        Ok(())
    })
}

/// A Pod: a sidecar and its server.
fn start(
    testbed: &Testbed,
    pod: usize,
    load: &Arc<Mutex<Load>>,
    tasks: &mut JoinSet<()>,
) -> Result<StartedCandidate> {
    let candidate = testbed.candidate(&format!("web-{pod}"));
    let (candidate, sidecar, token) = candidate.sidecar()?;
    let address = format!("10.1.0.{}", pod + 1);
    let leave = Leave::default();
    let servers = &mut load.lock().servers;
    servers.insert(address.clone(), Arc::clone(&leave));
    tasks.spawn(follow_sidecar(sidecar, token, leave));
    let candidate = candidate.flag("--endpoint-slice=web");
    candidate.flag(&format!("--pod-ips={address}")).start()
}

/// Asks as a program does that only polls: it answers no longer than what was left when it asked, and says when it has stopped.
async fn follow_sidecar(sidecar: SocketAddr, token: PathBuf, leave: Leave) {
    loop {
        let asked = Instant::now();
        if let Ok((_, answer)) = http(sidecar, "GET /leader", "").await {
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            let left = Duration::from_millis(answer["remaining_ms"].as_u64().unwrap_or_default());
            let term = serde_json::from_value(answer["term"].clone()).ok();
            let leads = answer["is_leader"] == true;
            *leave.lock() = term.filter(|_| leads).map(|term| (asked + left, term));
            if answer["stopping"] == true {
                let _ = release(sidecar, &token).await;
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
}

async fn release(sidecar: SocketAddr, token: &Path) -> Result<()> {
    let token = std::fs::read_to_string(token).context("read the token")?;
    let header = format!("authorization: Bearer {}\r\n", token.trim());
    http(sidecar, "POST /release", &header).await?;
    Ok(())
}

/// Takes the route from the slice, as proxies do.
fn follow_route(testbed: &Testbed, load: Arc<Mutex<Load>>) -> impl Future<Output = ()> + use<> {
    let client = testbed.site().client().clone();
    let slices: Api<EndpointSlice> = Api::namespaced(client, testbed.namespace());
    let slices = watcher(slices, watcher::Config::default()).default_backoff();
    slices
        .applied_objects()
        .filter_map(|slice| future::ready(slice.ok()))
        .for_each(move |slice| {
            let endpoints = slice.endpoints.into_iter().flatten();
            let load = &mut *load.lock();
            load.route = endpoints.flat_map(|endpoint| endpoint.addresses).next();
            if load.route.is_none() {
                load.unrouted.get_or_insert_with(Instant::now);
            } else if let Some(since) = load.unrouted.take() {
                load.gaps.push(since.elapsed());
            }
            future::ready(())
        })
}

/// A request each millisecond.
async fn send(load: Arc<Mutex<Load>>) {
    let mut turns = interval(Duration::from_millis(1));
    loop {
        turns.tick().await;
        let load = &mut *load.lock();
        let Some(route) = &load.route else { continue };
        let leave = load.servers.get(route).and_then(|leave| *leave.lock());
        if let Some((_, term)) = leave.filter(|(until, _)| Instant::now() < *until) {
            let (number, last) = load.answers.entry(term).or_insert((0, Timestamp::MIN));
            (*number, *last) = (*number + 1, now());
        }
    }
}
