//! The work for each event of a watch, done some number of times, so that its instructions can be counted:
//! `cargo xtask bench instructions` does, and holds them against a budget.

#![expect(clippy::unwrap_used, reason = "the objects are those below")]

use std::env;
use std::hint::black_box;
use std::time::Duration;

use elector_api::{Lease, LeaseCandidate};
use elector_protocol::elector::{Election, NewsSource, Settings};
use elector_protocol::{Instant, ResourceVersion, Timestamp};
use serde_json::{Value, json};

const USAGE: &str = "instructions OPERATION TIMES: read-candidate, read-lease, step-3 or step-64";

fn main() {
    let mut words = env::args().skip(1);
    let (operation, times) = (words.next(), words.next());
    let times = times.and_then(|times| times.parse().ok());
    // cargo itself runs this with a flag of its own.
    match (operation.as_deref(), times) {
        (Some("read-candidate"), Some(times)) => read(times, &candidate(1), |bytes| {
            let candidate: LeaseCandidate = serde_json::from_slice(bytes).unwrap();
            drop(black_box(candidate.candidate().unwrap()));
        }),
        (Some("read-lease"), Some(times)) => read(times, &lease(), |bytes| {
            let lease: Lease = serde_json::from_slice(bytes).unwrap();
            drop(black_box(lease.snapshot().unwrap()));
        }),
        (Some("step-3"), Some(times)) => step(times, 3),
        (Some("step-64"), Some(times)) => step(times, 64),
        _ => println!("{USAGE}"),
    }
}

/// Reads an object as often as this.
fn read(times: u32, object: &Value, read: impl Fn(&[u8])) {
    let bytes = serde_json::to_vec(object).unwrap();
    for _ in 0..times {
        read(black_box(&bytes));
    }
}

/// Decides as often after a renewal, on a lease with so many candidates.
fn step(times: u32, candidates: usize) {
    let settings = Settings::default();
    let mut now = Instant::from_epoch(Duration::from_secs(3600));
    let mut election = Election::absent(Instant::default());
    for number in 0..candidates {
        let candidate: LeaseCandidate = serde_json::from_value(candidate(number)).unwrap();
        election.handle_candidate(now, candidate.candidate().unwrap(), NewsSource::List);
    }
    let lease: Lease = serde_json::from_value(lease()).unwrap();
    let mut snapshot = lease.snapshot().unwrap();
    for _ in 0..times {
        now = now.after(Duration::from_secs(3));
        let wall = 1_767_225_600_000_000 + i64::try_from(now.since_epoch().as_micros()).unwrap();
        let wall = Timestamp::from_micros(wall).unwrap();
        snapshot.version = ResourceVersion(snapshot.version.0 + 1);
        snapshot.record.renew_time = Some(wall);
        election.handle_lease(now, snapshot.clone(), NewsSource::Watch);
        drop(black_box(election.step(now, wall, &settings)));
    }
}

fn candidate(number: usize) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1beta1",
        "kind": "LeaseCandidate",
        "metadata": {
            "name": format!("web-{number}-0123456789abcdef"), "namespace": "default", "uid": format!("6a2a58f8-{number}"),
            "resourceVersion": (100 + number).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"elector.dev/protocol": "1", "elector.dev/lease-duration": "15s"},
            "managedFields": [{
                "manager": "elector", "operation": "Update", "apiVersion": "coordination.k8s.io/v1beta1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:binaryVersion": {}, "f:leaseName": {}, "f:renewTime": {}}},
            }],
        },
        "spec": {
            "leaseName": "web", "binaryVersion": "1.32.0", "emulationVersion": format!("1.{}.0", 20 + number % 10),
            "strategy": "OldestEmulationVersion", "pingTime": "2026-01-01T00:00:05.000000Z",
            "renewTime": "2026-01-01T00:00:05.123456Z",
        },
    })
}

fn lease() -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "web", "namespace": "default", "uid": "6a2a58f8", "resourceVersion": "1000",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {
                "elector.dev/protocol": "1", "elector.dev/token": "900", "elector.dev/token-term": "7",
                "elector.dev/token-holder": "web-0-0123456789abcdef",
            },
        },
        "spec": {
            "holderIdentity": "web-0-0123456789abcdef", "leaseDurationSeconds": 15, "leaseTransitions": 7,
            "strategy": "OldestEmulationVersion", "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:05.123456Z",
        },
    })
}
