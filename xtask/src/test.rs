//! `cargo xtask test`: every test there is, and a plain word about those that had to be left out.
//!
//! ```text
//!   without a cluster       the simulation, then the model check   ║   everything else
//!   on a kube-apiserver     scenarios                              ║   fidelity, the cluster itself, kubectl, faults
//! ```
//!
//! Programs beside each other run at the same time, those after each other in turn. A program that fails hides none of
//! the others, and neither does one that hangs: it is killed after `--timeout`.

mod count;
mod lanes;
mod program;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::binaries::{self, Binary, Toolbox};
use crate::build_profile::BuildProfile;
use crate::commands::{cargo, elector, show_and_run};
use crate::earlier_version;
use crate::release::Release;
use crate::test::count::TestCount;
use crate::test::lanes::{ProgramResult, ProgramRun};
use crate::test::program::TestProgram;

/// The extent of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// It is a failure if there is no kube-apiserver.
    pub(crate) require_real: bool,
    /// Scenarios that start a cluster of their own run on every kind of cluster.
    pub(crate) all_modes: bool,
    /// Scenarios that take minutes run too.
    pub(crate) long: bool,
    /// Scenarios that need another build of elector run too, with this one.
    pub(crate) beside: Option<PathBuf>,
    /// Scenarios that upgrade from an earlier version run too, with this revision.
    pub(crate) upgrade_from: Option<String>,
    /// After this time a test program is killed with its children, and counts as failed.
    pub(crate) timeout: Duration,
}

/// The needs of the real suite beyond a kube-apiserver.
struct Prepared {
    /// The kubectl that the embedded API server is tried with too.
    kubectl: PathBuf,
    /// Why there is no client-go candidate or kube-scheduler, if so.
    without_interop: Option<String>,
    /// There is Helm, which takes a minute to build and is left out otherwise.
    helm: bool,
}

/// The scenarios for every release: the election, the take-over by a better candidate, the take-over after a crash, and
/// the admission policies, those that fence old leaders among them.
const ON_EVERY_RELEASE: [&str; 6] = [
    "cold_start_of_three_versions",
    "better_candidate_arrives",
    "leader_is_killed",
    "policies_bind_accounts_and_no_election",
    "paused_leader_writes_with_its_old_token",
    "tokens_are_compared_with_lease_and_object",
];

/// Programs that compute all the time, on all processors and in virtual time, so that others may go first.
const COMPUTING: [&str; 2] = ["tests/sim sim", "tests/model model"];

/// The scenarios on a real kube-apiserver.
const SCENARIOS: &str = "tests real";

/// Other programs that need one, at least in a part of them, in this order: the processes of all faults start at once, as
/// those of the scenarios do, so their turn comes when these have started.
const REAL: [&str; 4] = [
    "tests fidelity",
    CLUSTER.0,
    "crates/cli dev",
    "tests/faults faults",
];

/// One of them; some of its tests need more, programs of others, which their names say: of client-go, and Helm.
const CLUSTER: (&str, &str, &str) = ("xtask real", "client_go", "helm");

/// Runs the tests that need nothing but Rust, then those on a real kube-apiserver if one is to be had. Whether all went
/// well.
///
/// # Errors
/// When they cannot be built, or there is no kube-apiserver where one is wanted.
pub(crate) fn run(wanted: &Wanted) -> Result<bool> {
    let earlier = wanted.upgrade_from.as_deref();
    let earlier = earlier.map(|revision| earlier_version::make(revision, BuildProfile::Dev));
    let earlier = earlier.transpose()?;
    // Said and, if need be, failed before anything takes long.
    let prepared = match prepare(wanted.require_real, wanted.long) {
        Ok(prepared) => Some(prepared),
        Err(error) if wanted.require_real => {
            return Err(error.context("the tests on a real kube-apiserver cannot run"));
        }
        Err(error) => {
            eprintln!("without a real kube-apiserver: {error:#}");
            None
        }
    };
    let programs = program::build()?;
    let mut phases = vec![TestPhase::run(
        "without a cluster",
        without_cluster(&programs, prepared.is_some()),
        wanted.timeout,
    )];
    let mut reasons = Vec::new();
    match &prepared {
        Some(prepared) => {
            let lanes = on_a_cluster(&programs, prepared, wanted, earlier.as_deref())?;
            phases.push(TestPhase::run(
                "on a real kube-apiserver",
                lanes,
                wanted.timeout,
            ));
            if let Some(reason) = &prepared.without_interop {
                reasons.push(format!(
                    "interop with client-go and kube-scheduler, because {reason}"
                ));
            }
            if !prepared.helm {
                reasons.push("the chart as Helm renders it, which takes --long and Go".to_owned());
            }
        }
        None => reasons.push(
            "every test on a real kube-apiserver, for the reason given at the beginning".to_owned(),
        ),
    }
    Ok(sum_up(&phases, &reasons))
}

/// Runs cold start, hand-over, crash and the policies on a real server of that release, whatever else is to be had.
pub(crate) fn run_on(release: Release) -> Result<()> {
    let toolbox = Toolbox::new(Some(release))?;
    for binary in [Binary::Etcd, Binary::KubeApiserver] {
        toolbox.path(binary)?;
    }
    let interop = match client_go(&toolbox) {
        Ok(()) => true,
        Err(error) => {
            eprintln!("left out: interop with client-go, because {error:#}");
            false
        }
    };
    show_and_run(cargo().args(["build", "--workspace", "--all-features", "--bins"]))?;
    let mut real = cargo();
    real.args([
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "real",
        "--",
        "--ignored",
    ])
    .args(ON_EVERY_RELEASE)
    .env("ELECTOR_KUBERNETES", release.to_string())
    .env("ELECTOR_INTEROP", if interop { "1" } else { "0" })
    .env("ELECTOR_BIN", elector()?);
    show_and_run(&mut real)
}

/// The lanes of what needs no cluster, and nothing that is run on one later.
fn without_cluster(programs: &[TestProgram], rest_comes_later: bool) -> Vec<Vec<ProgramRun>> {
    let computing = COMPUTING
        .iter()
        .filter_map(|name| programs.iter().find(|program| program.name == *name))
        .map(|program| ProgramRun {
            name: program.name.clone(),
            command: program.nice_command(),
        });
    let later = |name: &str| rest_comes_later && (name == SCENARIOS || REAL.contains(&name));
    let mut others: Vec<_> = programs
        .iter()
        .filter(|program| !COMPUTING.contains(&program.name.as_str()) && !later(&program.name))
        .map(|program| ProgramRun {
            name: program.name.clone(),
            command: program.command(),
        })
        .collect();
    let mut documented = cargo();
    documented.args(["test", "--workspace", "--all-features", "--doc"]);
    documented.args(["--no-fail-fast", "--quiet"]);
    others.push(ProgramRun {
        name: "documentation".to_owned(),
        command: documented,
    });
    vec![computing.collect(), others]
}

/// The lanes of what needs a cluster.
fn on_a_cluster(
    programs: &[TestProgram],
    prepared: &Prepared,
    wanted: &Wanted,
    earlier_version: Option<&Path>,
) -> Result<Vec<Vec<ProgramRun>>> {
    let elector = elector()?;
    let run_of = |program: &TestProgram| {
        let mut command = program.command();
        command
            .arg("--include-ignored")
            .env("ELECTOR_BIN", &elector)
            .env("ELECTOR_KUBECTL", &prepared.kubectl);
        if prepared.without_interop.is_some() {
            command.env("ELECTOR_INTEROP", "0");
            if program.name == CLUSTER.0 {
                command.args(["--skip", CLUSTER.1]);
            }
        }
        if program.name == CLUSTER.0 && !prepared.helm {
            command.args(["--skip", CLUSTER.2]);
        }
        if program.name == SCENARIOS {
            command.args(wanted.all_modes.then_some("--all-modes"));
            command.args(wanted.long.then_some("--long"));
            if let Some(other_build) = &wanted.beside {
                command.arg("--beside").arg(other_build);
            }
            if let Some(earlier) = earlier_version {
                command.arg("--upgrade-from").arg(earlier);
            }
        }
        ProgramRun {
            name: program.name.clone(),
            command,
        }
    };
    let named = |name: &str| {
        let program = programs.iter().find(|program| program.name == name);
        let program = program.with_context(|| format!("there is no test program {name}"))?;
        Ok(run_of(program))
    };
    let rest = REAL.iter().map(|name| named(name));
    Ok(vec![vec![named(SCENARIOS)?], rest.collect::<Result<_>>()?])
}

/// Programs that have been run.
struct TestPhase {
    name: &'static str,
    ended: Vec<ProgramResult>,
    took: Duration,
}

/// Says what came of everything, and whether it was good; what failed is said again, since it may stand far above.
fn sum_up(phases: &[TestPhase], reasons: &[String]) -> bool {
    let mut all = TestCount::default();
    println!("\n== result");
    for phase in phases {
        let tally = phase.tally();
        println!("{}: {tally} in {} s", phase.name, phase.took.as_secs());
        all += tally;
    }
    for reason in reasons {
        println!("left out: {reason}");
    }
    let failed: Vec<_> = phases
        .iter()
        .flat_map(|phase| &phase.ended)
        .filter(|ended| ended.failure.is_some())
        .collect();
    for ended in &failed {
        println!("{}", ended.line());
    }
    println!("{all}");
    failed.is_empty()
}

/// Has the client-go candidate of that release ready, and what comes with it.
fn client_go(toolbox: &Toolbox) -> Result<()> {
    binaries::client_go_candidate(toolbox.release())?;
    Toolbox::new(None)?.path(Binary::KubeScheduler)?;
    Ok(())
}

/// Has every program ready before the tests start, so that none of them waits minutes for a build.
fn prepare(require_interop: bool, long: bool) -> Result<Prepared> {
    let toolbox = Toolbox::new(None)?;
    for binary in [Binary::Etcd, Binary::KubeApiserver] {
        toolbox.path(binary)?;
    }
    let kubectl = toolbox.path(Binary::Kubectl)?;
    let interop = toolbox
        .path(Binary::KubeScheduler)
        .and_then(|_| binaries::client_go_candidate(toolbox.release()));
    let without_interop = match interop {
        Ok(_) => None,
        Err(error) if require_interop => return Err(error),
        Err(error) => Some(format!("{error:#}")),
    };
    // Go builds all of these.
    let helm = long && without_interop.is_none();
    if helm {
        binaries::helm()?;
        binaries::kube_controller_manager()?;
    }
    Ok(Prepared {
        kubectl,
        without_interop,
        helm,
    })
}

// === impl TestPhase ===

impl TestPhase {
    fn run(name: &'static str, lanes: Vec<Vec<ProgramRun>>, timeout: Duration) -> Self {
        let start = Instant::now();
        let ended = lanes::run(lanes, timeout);
        Self {
            name,
            ended,
            took: start.elapsed(),
        }
    }

    fn tally(&self) -> TestCount {
        let mut sum = TestCount::default();
        for ended in &self.ended {
            sum += ended.tally;
        }
        sum
    }
}
