//! Scenarios on a real kube-apiserver with etcd: real processes, candidates ours and client-go's, each scenario with
//! the feature gate on (and the built-in controller replaced), with it off, and with candidates as custom resources.
//!
//! Run by `cargo xtask test`, or alone with `ELECTOR_REAL=1 cargo test --package elector-tests --test real`, followed
//! by a word of the scenarios' names if not all are wanted.

mod bad_input;
mod choice;
mod elections;
mod electors;
mod hosted;
mod many;
mod moves;
mod outage;
mod overwritten;
mod reserve;
mod rules;
mod schedulers;
mod strangers;
mod upgrade;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use elector_tests::rig::{Maker, Mode, Suite};

const OURS: &[Maker] = &[Maker::Ours];
const CLIENT_GO: &[Maker] = &[Maker::ClientGo];
/// Every kind of cluster that our candidates can be elected on.
const MODES: &[Mode] = &[Mode::GateOn, Mode::GateOff, Mode::Custom];
/// The same, and the API server that is built into `elector dev`.
const EVERYWHERE: &[Mode] = &[Mode::GateOn, Mode::GateOff, Mode::Custom, Mode::Embedded];
/// Those with LeaseCandidates of Kubernetes' own, which client-go needs.
const NATIVE: &[Mode] = &[Mode::GateOn, Mode::GateOff];
/// Where unmodified client-go stands as a candidate.
const STAGES: &[Mode] = &[Mode::GateOn, Mode::GateOff, Mode::Embedded];

/// W: the lease duration of all candidates here.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How soon a cold start must have a leader where the elector has been up for `W_max`.
const COLD_START: Duration = Duration::from_secs(5);

/// For what should come at once, on a machine that is busy with all the other scenarios.
const PROMPTLY: Duration = Duration::from_secs(10);

/// How long after a crash the next one may begin to lead.
fn crash_limit(maker: Maker) -> Duration {
    LEASE_DURATION
        + match maker {
            Maker::Ours => Duration::from_secs(2),
            Maker::ClientGo => Duration::from_secs(5), // it polls every 2 to 4.4 s
        }
}

fn main() -> ExitCode {
    let mut suite = Suite::default();
    bad_input::add(&mut suite);
    choice::add(&mut suite);
    elections::add(&mut suite);
    electors::add(&mut suite);
    many::add(&mut suite);
    moves::add(&mut suite);
    reserve::add(&mut suite);
    outage::add(&mut suite);
    overwritten::add(&mut suite);
    rules::add(&mut suite);
    schedulers::add(&mut suite);
    strangers::add(&mut suite);
    upgrade::add(&mut suite);
    if env::var_os("ELECTOR_REAL").is_none_or(|value| value != "1") {
        println!(
            "left out: the scenarios on a real kube-apiserver, which `cargo xtask test` runs (ELECTOR_REAL=1)"
        );
        return ExitCode::SUCCESS;
    }
    match suite.run(env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
