//! A measurement of a few leases: what is counted is what happened.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use clap::Parser as _;
use elector_bench::scale::{BenchPrograms, Phase, ScaleArgs, ScaleFigures, measure, table};
use elector_tests::rig::TestedPrograms;

fn programs(elector: PathBuf) -> BenchPrograms {
    BenchPrograms {
        elector,
        client: env!("CARGO_BIN_EXE_elector-bench").into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_is_what_happened() {
    let line = "scale --leases=20 --namespaces=2 --electors=2 --lease-duration=15s --hold=4s --rounds=2 --profile=dev";
    let args = ScaleArgs::parse_from(line.split_whitespace());
    let mut figures = Vec::new();
    let programs = programs(TestedPrograms::elector("dev").unwrap());
    measure(&args, &programs, &mut figures).await.unwrap();
    assert_eq!(figures.len(), 2, "by one elector, and by two");
    for measured in &figures {
        is_what_happened(measured);
    }
    let table = table(&figures);
    assert!(table.contains("| electors | – | 2 |"), "{table}");
}

fn is_what_happened(measured: &ScaleFigures) {
    assert!(measured.is_complete(), "{measured:?}");
    let client = measured.client.as_ref().expect("it has run");
    assert_eq!((client.per_event.len(), client.watch_restarts), (2, 0));
    let (election, hold) = (&measured.election, &measured.hold);
    // Each Lease is created and granted, and accepted by its candidate.
    assert_eq!(election.fleet.registrations, 60);
    assert_eq!(election.fleet.accepts, 20);
    assert_eq!(election.fleet.lease_events, 60);
    let of_kind = |phase: &Phase, kind| {
        let counted = phase.by_kind.iter().find(|(name, _)| name == kind);
        counted.map_or(0, |(_, count)| *count)
    };
    for kind in ["creates of Leases", "updates of Leases"] {
        assert_eq!(
            (of_kind(election, kind), of_kind(hold, kind)),
            (20, 0),
            "{kind}"
        );
    }
    // They are written when there is time.
    assert_eq!(of_kind(election, "Events") + of_kind(hold, "Events"), 20);
    assert!(hold.fleet.renewals > 0);
    assert_eq!(hold.fleet.renewals, hold.fleet.lease_events);
    let resident = &measured.resident;
    let holds = resident.idle > 0 && resident.idle <= resident.most;
    assert!(holds, "{resident:?}");
    assert!(measured.to_grant.max <= measured.to_lead.max);
    assert!(measured.led >= measured.to_lead.max, "{measured:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rounds_before_one_that_fails_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let elector = TestedPrograms::elector("dev").unwrap();
    let runs_once = folder.path().join("runs-once");
    let elector = elector.display();
    let script =
        format!("#!/bin/sh\n[ -e \"$0.ran\" ] && exit 1\n: >\"$0.ran\"\nexec {elector} \"$@\"\n");
    fs::write(&runs_once, script).unwrap();
    fs::set_permissions(&runs_once, Permissions::from_mode(0o755)).unwrap();
    let programs = programs(runs_once);
    let line = "scale --leases=20 --lease-duration=15s --hold=1s --rounds=2 --profile=dev";
    let args = ScaleArgs::parse_from(line.split_whitespace());
    let mut figures = Vec::new();
    let ended = measure(&args, &programs, &mut figures).await;
    let client = figures.remove(0).client.unwrap();
    assert_eq!((client.of_elector.len(), client.per_event.len()), (1, 1));
    let error = ended.unwrap_err().to_string();
    assert_eq!(error, "round 2 of 2 with 20 leases failed");
}
