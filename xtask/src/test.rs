//! `cargo xtask test`: every test there is, and a plain word about those that had to be left out.
//!
//! ```text
//!   first   the simulation, then the model check   ║   all that needs no cluster, then fidelity, the cluster itself, faults
//!   then    scenarios on a kube-apiserver          ║   shards, kubectl
//! ```
//!
//! Programs beside each other run at the same time, those after each other in turn. A program that fails hides none of
//! the others, and neither does one that hangs: it is killed after `--timeout`.

mod lanes;
mod program;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::binaries::{self, Binary, Toolbox};
use crate::build_profile::BuildProfile;
use crate::commands::{cargo, elector, show_and_run};
use crate::earlier_version;
use crate::release::Release;
use crate::test::lanes::{Lane, ProgramResult, ProgramRun, TestCount};
use crate::test::program::TestBinary;

/// The extent of a test run.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct Wanted {
    /// Fail if a real kube-apiserver is not to be had
    #[arg(long)]
    require_real: bool,

    /// Run scenarios that start a cluster of their own on every kind of cluster, not on one of them
    #[arg(long)]
    all_modes: bool,

    /// Run the scenarios that take minutes too
    #[arg(long)]
    long: bool,

    /// Run the scenarios too in which electors and candidates of this revision, such as HEAD~1, are beside those of this
    /// version, and its overlays are upgraded to those of this version and taken back; it is built in target/upgrade-from
    #[arg(long, value_name = "REVISION")]
    upgrade_from: Option<String>,

    /// Kill a test program that runs longer than this, and its children; it counts as failed
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_timeout)]
    timeout: Duration,

    /// Only cold start, hand-over, crash, policies and fences, on a kube-apiserver of this release, from 1.31 to 1.37
    #[arg(long, value_name = "1.N", conflicts_with_all = ["require_real", "all_modes", "long", "upgrade_from", "timeout"])]
    kubernetes: Option<Release>,
}

/// The needs of the real suite beyond a kube-apiserver.
struct Prepared {
    /// The kubectl that the embedded API server is tried with too.
    kubectl: PathBuf,
    /// Why there is no client-go candidate or kube-scheduler, if so.
    without_interop: Option<String>,
    /// There are Helm and promtool, which take minutes to build and are left out otherwise.
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

/// The programs that need one, at least in a part of them: those that wait for it while others compute, the scenarios, and
/// those beside them. Faults are judged by seconds, and the clusters and processes of the scenarios take those from each other,
/// which what computes does not: it lets others go first.
const REAL: [&[&str]; 3] = [
    &["tests fidelity", CLUSTER.0, "tests/faults faults"],
    &[SCENARIOS],
    &["tests sharding", "crates/cli dev"],
];

/// One of them; some of its tests need more, programs of others, which their names say: of client-go, and with `--long` Helm
/// and promtool.
const CLUSTER: (&str, &str, [&str; 2]) = ("xtask real", "client_go", ["helm", "promtool"]);

/// Runs the tests that need nothing but Rust, then those on a real kube-apiserver if one is to be had. True if all went
/// well.
///
/// # Errors
/// When they cannot be built, or there is no kube-apiserver where one is wanted.
pub(crate) fn run(wanted: &Wanted) -> Result<bool> {
    if let Some(release) = wanted.kubernetes {
        return run_on(release).map(|()| true);
    }
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
    let [computing, mut others] = without_cluster(&programs, prepared.is_some());
    let mut beside_scenarios = Vec::new();
    if let Some(prepared) = &prepared {
        let [waiting, scenarios, rest] =
            on_a_cluster(&programs, prepared, wanted, earlier.as_deref())?;
        others.extend(waiting);
        beside_scenarios.extend([scenarios, rest]);
    }
    let mut ended = run_phase("first", vec![computing, others], wanted.timeout);
    match &prepared {
        Some(prepared) => {
            ended.extend(run_phase("then", beside_scenarios, wanted.timeout));
            if let Some(reason) = &prepared.without_interop {
                println!("left out: interop with client-go and kube-scheduler, because {reason}");
            }
            if !prepared.helm {
                println!(
                    "left out: the chart as Helm renders it, and the alerts as promtool tests them, which take --long and Go"
                );
            }
        }
        None => println!(
            "left out: every test on a real kube-apiserver, for the reason given at the beginning"
        ),
    }
    // Said again, since it may stand far above.
    let failed = ended.iter().filter(|one| one.failure.is_some());
    failed.clone().for_each(|one| println!("{}", one.line()));
    println!("{}", count(&ended));
    Ok(failed.count() == 0)
}

/// Runs the lanes, and says what came of them.
fn run_phase(name: &str, lanes: Vec<Lane>, timeout: Duration) -> Vec<ProgramResult> {
    let start = Instant::now();
    let ended = lanes::run(lanes, timeout);
    println!(
        "\n== {name}: {} in {} s",
        count(&ended),
        start.elapsed().as_secs()
    );
    ended
}

fn count(ended: &[ProgramResult]) -> TestCount {
    ended.iter().map(|one| one.count).sum()
}

/// Runs cold start, hand-over, crash and the policies on a real server of that release, whatever else is to be had.
fn run_on(release: Release) -> Result<()> {
    let toolbox = Toolbox::new(Some(release))?;
    for binary in [Binary::Etcd, Binary::KubeApiserver] {
        toolbox.path(binary)?;
    }
    let interop = interop(&toolbox);
    if let Err(error) = &interop {
        eprintln!("left out: interop with client-go, because {error:#}");
    }
    show_and_run(cargo().args(["build", "--workspace", "--all-features", "--bins"]))?;
    let mut real = cargo();
    real.args(["test", "--workspace", "--all-features", "--test", "real"])
        .args(["--", "--ignored"])
        .args(ON_EVERY_RELEASE)
        .env("ELECTOR_KUBERNETES", release.to_string())
        .env("ELECTOR_INTEROP", if interop.is_ok() { "1" } else { "0" })
        .env("ELECTOR_BIN", elector()?);
    show_and_run(&mut real)
}

/// The lanes of what needs no cluster, and nothing that is run on one: programs that compute, and others.
fn without_cluster(programs: &[TestBinary], rest_has_a_cluster: bool) -> [Lane; 2] {
    let (mut computing, mut others) = (Lane::new(), Lane::new());
    for program in programs {
        let name = program.name.as_str();
        if COMPUTING.contains(&name) {
            computing.push(program.run(&["nice", "-n", "10"]));
        } else if !rest_has_a_cluster || !REAL.concat().contains(&name) {
            others.push(program.run(&[]));
        }
    }
    computing.sort_by_key(|run| COMPUTING.iter().position(|name| *name == run.name));
    let mut documented = cargo();
    documented.args(["test", "--workspace", "--all-features", "--doc"]);
    documented.args(["--no-fail-fast", "--quiet"]);
    others.push(ProgramRun {
        name: "documentation".to_owned(),
        command: documented,
    });
    [computing, others]
}

/// The lanes of what needs a cluster, as [`REAL`] names them.
fn on_a_cluster(
    programs: &[TestBinary],
    prepared: &Prepared,
    wanted: &Wanted,
    earlier_version: Option<&Path>,
) -> Result<[Lane; 3]> {
    let elector = elector()?;
    let run_of = |program: &TestBinary| {
        let mut run = program.run(&[]);
        let command = &mut run.command;
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
            for of_others in CLUSTER.2 {
                command.args(["--skip", of_others]);
            }
        }
        if program.name == SCENARIOS {
            command.args(wanted.all_modes.then_some("--all-modes"));
            command.args(wanted.long.then_some("--long"));
            if let Some(earlier) = earlier_version {
                command.arg("--upgrade-from").arg(earlier);
            }
        }
        run
    };
    let named = |name: &str| {
        let program = programs.iter().find(|program| program.name == name);
        let program = program.with_context(|| format!("there is no test program {name}"))?;
        Ok(run_of(program))
    };
    let [waiting, scenarios, rest] = REAL.map(|names| {
        names
            .iter()
            .map(|name| named(name))
            .collect::<Result<Lane>>()
    });
    Ok([waiting?, scenarios?, rest?])
}

/// Has the programs in Go ready that take part beside ours.
fn interop(toolbox: &Toolbox) -> Result<()> {
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
    let without_interop = match interop(&toolbox) {
        Ok(()) => None,
        Err(error) if require_interop => return Err(error),
        Err(error) => Some(format!("{error:#}")),
    };
    // Go builds all of these.
    let helm = long && without_interop.is_none();
    if helm {
        binaries::helm()?;
        binaries::kube_score()?;
        binaries::promtool()?;
        binaries::kube_controller_manager()?;
        Toolbox::new(Some(Release::NEXT))?.path(Binary::KubeApiserver)?;
    }
    Ok(Prepared {
        kubectl,
        without_interop,
        helm,
    })
}

/// A span of time such as `30m` or `90s`, more than nothing.
fn parse_timeout(text: &str) -> Result<Duration> {
    let span: jiff::SignedDuration = text.parse()?;
    let timeout = Duration::try_from(span)?;
    ensure!(!timeout.is_zero(), "it must be longer than nothing");
    Ok(timeout)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        wanted: Wanted,
    }

    fn wanted(line: &[&str]) -> Result<Wanted, String> {
        let line = Line::try_parse_from([&["test"], line].concat());
        line.map(|line| line.wanted)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_test_program_has_half_an_hour_unless_another_time_is_given() {
        for (line, seconds) in [
            (&[][..], 1_800),
            (&["--timeout=90s"], 90),
            (&["--timeout=2h"], 7_200),
        ] {
            assert_eq!(wanted(line).unwrap().timeout.as_secs(), seconds);
        }
        for bad in ["0s", "-5m", "soon", "5"] {
            wanted(&["--timeout", bad]).unwrap_err();
        }
    }
}
