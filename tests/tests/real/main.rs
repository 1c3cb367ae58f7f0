//! Scenarios on a real kube-apiserver with etcd: real processes, candidates ours and client-go's, each scenario with
//! the feature gate on (and the built-in controller replaced), with it off, and with candidates as custom resources.
//!
//! Run by `cargo xtask test`, or alone with `cargo test --package elector-tests --test real -- --ignored`, followed by a
//! word of the scenarios' names if not all are wanted. Scenarios that start a cluster of their own run on one
//! kind of cluster, unless they are named or `--all-modes` is given; those that take minutes run only with `--long`, and
//! those that need another build of elector with `--beside PATH`, and those that upgrade from an earlier version with
//! `--upgrade-from FOLDER`.

mod annotated;
mod auto;
mod bad_input;
mod beside;
mod blocked;
mod choice;
mod controllers;
mod elections;
mod electors;
mod events;
mod fence;
mod figures;
mod first_start;
mod guarded;
mod hand_overs;
mod hosted;
mod installed;
mod killed_work;
mod kubectl_plugin;
mod large;
mod many;
mod migration;
mod noisy;
mod operators;
mod outage;
mod overwritten;
mod owned;
mod plain;
mod plain_faults;
mod policies;
mod readme;
mod restless;
mod restored;
mod rights;
mod rolling_update;
mod rules;
mod schedulers;
mod scraped;
mod standby;
mod strangers;
mod taken;
mod unwell;
mod upgrade;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use elector_tests::rig::{ClusterMode, EveryChange, Implementation, Suite};

const OURS: &[Implementation] = &[Implementation::Elector];
const CLIENT_GO: &[Implementation] = &[Implementation::ClientGo];
/// Every kind of cluster that our candidates can be elected on.
const MODES: &[ClusterMode] = &[
    ClusterMode::GateOn,
    ClusterMode::GateOff,
    ClusterMode::Custom,
];
/// The same, and the API server that is built into `elector dev`.
const EVERYWHERE: &[ClusterMode] = &[
    ClusterMode::GateOn,
    ClusterMode::GateOff,
    ClusterMode::Custom,
    ClusterMode::Embedded,
];
/// Those with LeaseCandidates of Kubernetes' own, which client-go needs.
const NATIVE: &[ClusterMode] = &[ClusterMode::GateOn, ClusterMode::GateOff];
/// Where unmodified client-go stands as a candidate.
const CLIENT_GO_MODES: &[ClusterMode] = &[
    ClusterMode::GateOn,
    ClusterMode::GateOff,
    ClusterMode::Embedded,
];

/// Scenarios that start clusters of their own in several modes, and those that run for every change: where the
/// built-in lock matters, with the gate on; none where the embedded server decides as much. Two electors are kept apart by
/// that lock there and elect at once elsewhere.
const EVERY_CHANGE: &[EveryChange] = &[
    every_change("elector_is_killed_and_restarted", &[]),
    every_change("elector_is_away_and_comes_back", &[]),
    every_change("elector_may_not_write_any_more", &[ClusterMode::GateOff]),
    every_change(
        "two_electors_at_once",
        &[ClusterMode::GateOn, ClusterMode::Custom],
    ),
    every_change("api_server_is_briefly_gone", &[ClusterMode::GateOff]),
    every_change("api_server_is_gone_for_long", &[]),
    every_change("two_hundred_leases_at_once", &[]),
    every_change("two_kube_schedulers", &[ClusterMode::GateOn]),
    every_change(
        "active_elector_and_leader_are_killed",
        &[ClusterMode::GateOn],
    ),
    every_change(
        "active_elector_is_stopped_and_woken",
        &[ClusterMode::GateOff],
    ),
    every_change(
        "policies_bind_accounts_and_no_election",
        &[ClusterMode::GateOff],
    ),
    every_change("electors_are_restarted_one_by_one", &[ClusterMode::Custom]),
];

/// W: the lease duration of all candidates here.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The longest cold start where the elector has been up for `W_max`.
const COLD_START: Duration = Duration::from_secs(5);

/// For what should come at once, on a machine that is busy with all the other scenarios.
const PROMPTLY: Duration = Duration::from_secs(10);

const fn every_change(name: &'static str, modes: &'static [ClusterMode]) -> EveryChange {
    EveryChange { name, modes }
}

/// The longest gap between a crash and the next leader.
fn crash_limit(implementation: Implementation) -> Duration {
    LEASE_DURATION
        + match implementation {
            Implementation::Elector => Duration::from_secs(2),
            Implementation::ClientGo => Duration::from_secs(5), // it polls every 2 to 4.4 s
        }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if arguments
        .get(1)
        .is_some_and(|word| word == controllers::IS_REPLICA)
    {
        return controllers::run_replica(&arguments);
    }
    let mut suite = Suite::new(EVERY_CHANGE).with_table(installed::STEPS);
    annotated::add(&mut suite);
    auto::add(&mut suite);
    bad_input::add(&mut suite);
    beside::add(&mut suite);
    blocked::add(&mut suite);
    choice::add(&mut suite);
    controllers::add(&mut suite);
    elections::add(&mut suite);
    electors::add(&mut suite);
    events::add(&mut suite);
    fence::add(&mut suite);
    figures::add(&mut suite);
    first_start::add(&mut suite);
    guarded::add(&mut suite);
    hand_overs::add(&mut suite);
    installed::add(&mut suite);
    killed_work::add(&mut suite);
    large::add(&mut suite);
    many::add(&mut suite);
    migration::add(&mut suite);
    noisy::add(&mut suite);
    operators::add(&mut suite);
    readme::add(&mut suite);
    kubectl_plugin::add(&mut suite);
    outage::add(&mut suite);
    overwritten::add(&mut suite);
    owned::add(&mut suite);
    plain::add(&mut suite);
    plain_faults::add(&mut suite);
    policies::add(&mut suite);
    restless::add(&mut suite);
    restored::add(&mut suite);
    rights::add(&mut suite);
    rolling_update::add(&mut suite);
    rules::add(&mut suite);
    schedulers::add(&mut suite);
    standby::add(&mut suite);
    strangers::add(&mut suite);
    unwell::add(&mut suite);
    upgrade::add(&mut suite);
    match suite.run(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
