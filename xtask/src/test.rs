//! `cargo xtask test`: every test there is, and a plain word about those that had to be left out.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;

use crate::binaries::{self, Binary, Toolbox};
use crate::commands::{cargo, elector, show_and_run};
use crate::release::Release;

/// What the real suite needs beyond a kube-apiserver.
struct Prepared {
    /// What the embedded API server is tried with too.
    kubectl: PathBuf,
    /// Why there is no client-go candidate or kube-scheduler, if so.
    without_interop: Option<String>,
}

/// What is played on every release: who is elected, how a better one takes over, and how the next one after a crash.
const ON_EVERY_RELEASE: [&str; 3] = [
    "cold_start_of_three_versions",
    "better_candidate_arrives",
    "leader_is_killed",
];

/// Runs the tests that need nothing but Rust, then those on a real kube-apiserver if one is to be had.
pub(crate) fn run(require_real: bool) -> Result<()> {
    let started = Instant::now();
    // Said and, if need be, failed before anything takes long.
    let prepared = match prepare(require_real) {
        Ok(prepared) => Some(prepared),
        Err(error) if require_real => {
            return Err(error.context("the tests on a real kube-apiserver cannot run"));
        }
        Err(error) => {
            eprintln!("without a real kube-apiserver: {error:#}");
            None
        }
    };
    // All commands build the same packages with the same features, so that nothing is compiled twice.
    show_and_run(cargo().args(["build", "--workspace", "--all-features", "--bins"]))?;
    let mut tests = cargo();
    tests
        .args(["test", "--workspace", "--all-features"])
        .env_remove("ELECTOR_REAL");
    if let Some(prepared) = &prepared {
        tests.env("ELECTOR_KUBECTL", &prepared.kubectl);
    }
    show_and_run(&mut tests)?;
    let rust = started.elapsed();
    eprintln!("the tests without a cluster took {} s", rust.as_secs());

    let Some(prepared) = prepared else {
        eprintln!("left out: every test on a real kube-apiserver, for the reason given above");
        return Ok(());
    };
    if let Some(reason) = &prepared.without_interop {
        eprintln!("left out: interop with client-go and kube-scheduler, because {reason}");
    }
    let mut real = cargo();
    real.args([
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "real",
        "--test",
        "fidelity",
        "--test",
        "faults",
    ])
    .env("ELECTOR_REAL", "1")
    .env(
        "ELECTOR_INTEROP",
        if prepared.without_interop.is_none() {
            "1"
        } else {
            "0"
        },
    )
    .env("ELECTOR_BIN", elector()?);
    show_and_run(&mut real)
}

/// Runs cold start, hand-over and crash on a real server of that release, whatever else is to be had.
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
    ])
    .args(ON_EVERY_RELEASE)
    .env("ELECTOR_REAL", "1")
    .env("ELECTOR_KUBERNETES", release.to_string())
    .env("ELECTOR_INTEROP", if interop { "1" } else { "0" })
    .env("ELECTOR_BIN", elector()?);
    show_and_run(&mut real)
}

/// Has the client-go candidate of that release ready, and what comes with it.
fn client_go(toolbox: &Toolbox) -> Result<()> {
    binaries::client_go_candidate(toolbox.release())?;
    Toolbox::new(None)?.path(Binary::KubeScheduler)?;
    Ok(())
}

/// Has every program ready before the tests start, so that none of them waits minutes for a build.
fn prepare(require_interop: bool) -> Result<Prepared> {
    let toolbox = Toolbox::new(None)?;
    for binary in [Binary::Etcd, Binary::KubeApiserver] {
        toolbox.path(binary)?;
    }
    let kubectl = toolbox.path(Binary::Kubectl)?;
    let interop = toolbox
        .path(Binary::KubeScheduler)
        .and_then(|_| binaries::client_go_candidate(toolbox.release()));
    match interop {
        Ok(_) => Ok(Prepared {
            kubectl,
            without_interop: None,
        }),
        Err(error) if require_interop => Err(error),
        Err(error) => Ok(Prepared {
            kubectl,
            without_interop: Some(format!("{error:#}")),
        }),
    }
}
