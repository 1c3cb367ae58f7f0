//! Scenarios on a real kube-apiserver with etcd: real processes, candidates ours and client-go's, each scenario with
//! the feature gate on (and the built-in controller replaced), with it off, and with candidates as custom resources.
//!
//! Run by `cargo xtask test`, or alone with `cargo test --package elector-tests --test real -- --ignored`, followed by a
//! word of the scenarios' names if not all are wanted. Scenarios that start a cluster of their own run on one
//! kind of cluster, unless they are named or `--all-modes` is given: where the built-in lock matters, with the gate on, and
//! on none where the embedded server decides as much. Those that take minutes run only with `--long`, and those that need
//! an earlier version of Elector with `--upgrade-from FOLDER`.

mod annotated;
mod auto;
mod bad_input;
mod controllers;
mod drained;
mod elections;
mod electors;
mod events;
mod fence;
mod first_start;
mod flooded_namespace;
mod groups;
mod hand_overs;
mod hosted_candidates;
mod installed;
mod kubectl_plugin;
mod large_candidates;
mod migration;
mod outage;
mod overwritten;
mod owner_references;
mod plain;
mod plain_faults;
mod playbook;
mod policies;
mod policy_mutants;
mod programs;
mod readme;
mod rejoined;
mod restored;
mod rights;
mod rolling_update;
mod rules;
mod schedulers;
mod soak;
mod standby;
mod strangers;
mod transcript;
mod two_api_servers;
mod two_builds;
mod upgrade;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use elector_tests::rig::ClusterMode::{self, Custom, Embedded, GateOff, GateOn};
use elector_tests::rig::{Implementation, PROMPTLY, Suite};

const OURS: Implementation = Implementation::Elector;
const CLIENT_GO: Implementation = Implementation::ClientGo;
const GATE_ON: &[ClusterMode] = &[GateOn];
const GATE_OFF: &[ClusterMode] = &[GateOff];
const CUSTOM: &[ClusterMode] = &[Custom];
const WITHOUT_GATE: &[ClusterMode] = &[GateOff, Custom];
/// Every kind of cluster that our candidates can be elected on.
const MODES: &[ClusterMode] = &[GateOn, GateOff, Custom];
/// The same, and the API server that is built into `elector dev`.
const EVERYWHERE: &[ClusterMode] = &[GateOn, GateOff, Custom, Embedded];
/// Those with LeaseCandidates of Kubernetes' own, which client-go needs.
const NATIVE: &[ClusterMode] = &[GateOn, GateOff];
/// Where unmodified client-go stands as a candidate.
const CLIENT_GO_MODES: &[ClusterMode] = &[GateOn, GateOff, Embedded];

/// W: the lease duration of all candidates here.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// W of candidates with a [short](elector_tests::rig::CandidateBuilder::short) lease, and H.
const SHORT_LEASE: Duration = Duration::from_secs(4);
const SHORT_DEADLINE: Duration = Duration::from_secs(3);

/// The time that an elector has for its grant, in auto mode.
const FALLBACK: Duration = Duration::from_secs(5);

/// The longest cold start where the elector has been up for `W_max`.
const COLD_START: Duration = Duration::from_secs(5);

/// The longest gap between a crash and the next leader.
fn crash_limit(implementation: Implementation) -> Duration {
    LEASE_DURATION
        + match implementation {
            Implementation::Elector => Duration::from_secs(2),
            Implementation::ClientGo => Duration::from_secs(5), // it polls every 2 to 4.4 s
        }
}

/// Adds the scenarios of these modules.
macro_rules! add_all {
    ($suite:ident: $($module:ident)*) => { $($module::add(&mut $suite);)* };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if arguments
        .get(1)
        .is_some_and(|word| word == controllers::IS_REPLICA)
    {
        return controllers::run_replica(&arguments);
    }
    let mut suite = Suite::default().with_table(installed::STEPS);
    add_all!(suite:
        annotated auto bad_input controllers drained elections electors events fence first_start
        flooded_namespace groups hand_overs installed kubectl_plugin large_candidates migration
        outage overwritten owner_references plain plain_faults playbook policies programs readme rejoined
        restored rights rolling_update rules schedulers soak standby strangers two_api_servers two_builds
        upgrade
    );
    match suite.run(env::args()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
