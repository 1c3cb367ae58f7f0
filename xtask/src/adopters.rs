//! `cargo xtask adopters`: programs as others write them, each built from the packages of the crates, and each leading
//! a lease on a real kube-apiserver.

mod first_start;
mod packages;
mod rehearsal;
pub(crate) mod size;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use self::packages::{BUILT, CratePackages};
pub(crate) use self::rehearsal::rehearse;
use crate::binaries::{Binary, Toolbox};
use crate::child_guard::ChildGuard;
use crate::cluster::{Options, RealCluster};
use crate::commands::{self, cargo, show_and_run};
use crate::paths;

/// A program in a workspace of its own. Its name is that of its folder, its package, its executable and its lease.
struct AdoptingProgram {
    name: String,
    folder: PathBuf,
}

/// Where they are, from the root of the workspace.
const PROGRAMS: &str = "adopters";
/// The time that one may take to lead, and to give up.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval of polls of the server.
const POLL: Duration = Duration::from_millis(200);

/// Builds those programs, or all of them, runs their own tests, and has each lead and give up; with `record` the first
/// start in each mode too, into the document.
///
/// # Errors
/// When there is no such program, one cannot be built, fails its tests, or does not lead.
pub(crate) fn run(names: &[String], record: bool) -> Result<()> {
    let programs = AdoptingProgram::all()?;
    if let Some(strange) = (names.iter()).find(|name| programs.iter().all(|one| one.name != **name))
    {
        let known: Vec<_> = programs.iter().map(|one| one.name.as_str()).collect();
        bail!("there is no adopter {strange:?}: {}", known.join(", "));
    }
    let wanted = programs
        .into_iter()
        .filter(|program| names.is_empty() || names.contains(&program.name));
    let wanted: Vec<_> = wanted.collect();
    ensure!(
        !record || wanted.iter().any(|one| one.name == first_start::ADOPTER),
        "--record is for {}",
        first_start::ADOPTER
    );
    let packages = CratePackages::make()?;
    for program in &wanted {
        let start = Instant::now();
        program.build(&packages)?;
        let took = start.elapsed();
        println!("{}: built and tested in {took:.0?}", program.name);
    }
    let kubectl = Toolbox::new(None)?.path(Binary::Kubectl)?;
    let cluster = RealCluster::start(&Options::default())?;
    for program in &wanted {
        let took = (program.lead(&cluster, &kubectl))
            .with_context(|| format!("{} does not do what it should", program.name))?;
        println!("{}: led after {took:.1?}, and gave up", program.name);
    }
    if record {
        first_start::record(&cluster)?;
    }
    cluster.stop()
}

// === impl AdoptingProgram ===

impl AdoptingProgram {
    fn all() -> Result<Vec<Self>> {
        let folder = paths::workspace().join(PROGRAMS);
        let mut programs = Vec::new();
        for entry in fs::read_dir(&folder).context("failed to read the adopters")? {
            let folder = entry?.path();
            if let (true, Some(name)) = (folder.join("Cargo.toml").is_file(), folder.file_name()) {
                let name = name.to_string_lossy().into_owned();
                programs.push(Self { name, folder });
            }
        }
        programs.sort_by(|one, other| one.name.cmp(&other.name));
        ensure!(!programs.is_empty(), "there are no adopters");
        Ok(programs)
    }

    /// Builds it, and runs its own tests, if it has any.
    fn build(&self, packages: &CratePackages) -> Result<()> {
        let patches = packages.patches_for(&self.folder)?;
        self.cargo("build", &patches)?;
        let manifest = fs::read_to_string(self.folder.join("Cargo.toml"));
        let manifest = manifest.context("failed to read the manifest of an adopter")?;
        if manifest.contains("[dev-dependencies]") {
            self.cargo("test", &patches)?;
        }
        Ok(())
    }

    fn cargo(&self, command: &str, patches: &[String]) -> Result<()> {
        let mut build = cargo();
        build
            // Not `--locked`: a crate that comes to depend on another adds that to the lock file, and changes nothing else.
            .args([command, "--target-dir"])
            .arg(paths::workspace().join(BUILT))
            .args(patches)
            .current_dir(&self.folder)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        show_and_run(&mut build)
    }

    /// Sees through kubectl that it becomes a candidate and leads, and that it leaves nothing when it is asked to end.
    /// The result is its time to lead.
    fn lead(&self, cluster: &RealCluster, kubectl: &Path) -> Result<Duration> {
        let lease = format!("lease/{}", self.name);
        let get = |arguments: &[&str]| -> Result<String> {
            let mut get = Command::new(kubectl);
            get.args(["get", "--ignore-not-found"]).args(arguments);
            get.env("KUBECONFIG", cluster.kubeconfig());
            Ok(commands::read(&mut get)?.stdout)
        };
        let holder = || get(&[&lease, "--output=jsonpath={.spec.holderIdentity}"]);
        let candidates = || -> Result<usize> {
            let leases = get(&[
                "leasecandidates",
                "--output=jsonpath={.items[*].spec.leaseName}",
            ])?;
            Ok(leases.split(' ').filter(|name| *name == self.name).count())
        };
        let log = paths::workspace()
            .join(BUILT)
            .join(format!("{}.log", self.name));
        let said = File::create(&log).context("failed to make a file for its output")?;
        let start = Instant::now();
        let program = paths::workspace()
            .join(BUILT)
            .join("debug")
            .join(&self.name);
        let mut run = Command::new(program);
        run.env("KUBECONFIG", cluster.kubeconfig())
            // A program that serves takes a port that is free.
            .env("LISTEN", "127.0.0.1:0")
            .stdout(said.try_clone()?)
            .stderr(said);
        let mut process = ChildGuard::spawn(&mut run).context("failed to start it")?;
        let seen = |what: &str| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            format!("{what} after {PATIENCE:?}; it said: {}", said.trim())
        };
        while holder()?.is_empty() || candidates()? == 0 {
            let ended = process.try_wait()?;
            ensure!(
                ended.is_none() && start.elapsed() < PATIENCE,
                "{}",
                seen("it does not lead")
            );
            thread::sleep(POLL);
        }
        let took = start.elapsed();
        let status = process.terminate(PATIENCE)?;
        ensure!(status.success(), "{}: {status}", seen("it failed"));
        ensure!(holder()?.is_empty(), "{}", seen("it holds the lease still"));
        ensure!(
            candidates()? == 0,
            "{}",
            seen("its LeaseCandidate is still there")
        );
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program on the front page of the crate is one that is built and leads.
    #[test]
    fn the_ten_lines_are_those_of_the_front_page() {
        let read = |path: &str| fs::read_to_string(paths::workspace().join(path)).unwrap();
        let page: String = read("crates/candidate/src/lib.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("//!"))
            .flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"])
            .collect();
        let program = read("adopters/ten-lines/src/main.rs").replace("ten-lines", "web");
        let (_, program) = program.split_once("\n\n").unwrap();
        assert!(page.contains(program), "{page}");
        let readme = read("crates/candidate/README.md");
        assert!(readme.contains(program), "{readme}");
        // Its dependencies are those of the block there.
        let (_, block) = readme.split_once("```toml\n").unwrap();
        let (block, _) = block.split_once("```").unwrap();
        let manifest = read("adopters/ten-lines/Cargo.toml");
        assert!(manifest.contains(block), "{manifest}");
    }
}
