//! `cargo xtask release`: the programs as they are shipped, built, looked at, and run where nothing else is.

mod contents;
pub(crate) mod install_files;
mod notices;
pub(crate) mod rebuild;
mod trial;

use std::env;
use std::env::consts::ARCH;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::build_profile::{self, BuildProfile};
use crate::commands::{self, cargo, show_and_run};
use crate::paths;
use crate::release::Release;

/// A program that is shipped, by its name on the command line.
struct ShippedProgram(&'static str);

/// The package that has all of them.
const PACKAGE: &str = "elector-cli";
/// The program that the manifests run.
const ELECTOR: ShippedProgram = ShippedProgram("elector");
/// The plugin of kubectl, which package managers want as an archive too.
const PLUGIN: ShippedProgram = ShippedProgram("kubectl-elector");
const PROGRAMS: [ShippedProgram; 2] = [ELECTOR, PLUGIN];
/// The file of the licence, which goes wherever a program alone would.
const LICENSE: &str = "LICENSE";

/// The profile of their builds.
const PROFILE: BuildProfile = BuildProfile::Dist;
/// Where they are put, from the root of the workspace.
const FOLDER: &str = "target/release-artefacts";
/// The largest that a program may be, in bytes: what a node has to fetch before it can run one.
const MOST_BYTES: u64 = 12_000_000;

/// Makes the programs, each a static one for the architecture of this machine, and tries the elector on a real
/// kube-apiserver of that release.
///
/// # Errors
/// When one cannot be built, or is not what it should be.
pub(crate) fn make(kubernetes: Option<Release>) -> Result<()> {
    let target = build_profile::target();
    add_target(&target)?;
    for program in PROGRAMS {
        program.build(paths::workspace())?;
        program.inspect()?;
    }
    if rustix::process::geteuid().is_root() {
        trial::run(&ELECTOR.built(paths::workspace()), kubernetes)?;
    } else {
        println!(
            "left out: the run in an empty root folder, which only root can make; as root, with --only-trial"
        );
    }
    publish(&target)
}

/// Tries the elector that an earlier run has made, which takes root.
///
/// # Errors
/// When there is none, or it is not what it should be.
pub(crate) fn try_again(kubernetes: Option<Release>) -> Result<()> {
    let program = paths::workspace().join(FOLDER);
    let program = program.join(ELECTOR.artefact(platform(ARCH)?));
    ensure!(
        program.is_file(),
        "there is no {}: `cargo xtask release` makes it",
        program.display()
    );
    trial::run(&program, kubernetes)
}

/// Builds the elector as it is shipped; returns where it is.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn elector() -> Result<PathBuf> {
    add_target(&build_profile::target())?;
    ELECTOR.build(paths::workspace())?;
    Ok(ELECTOR.built(paths::workspace()))
}

/// Installs the standard library for the target, if it is not there.
fn add_target(target: &str) -> Result<()> {
    let sysroot = commands::read(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.stdout.trim())
        .join("lib/rustlib")
        .join(target);
    if library.is_dir() {
        return Ok(());
    }
    show_and_run(Command::new("rustup").args(["target", "add", target]))
        .with_context(|| format!("the standard library for {target} is not installed"))
}

/// Puts the programs where releases are taken from, with the lists of what they are made of, the notices of those who
/// wrote that, and the checksums of all.
fn publish(target: &str) -> Result<()> {
    let workspace = paths::workspace();
    let folder = workspace.join(FOLDER);
    let platform = platform(ARCH)?;
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let notices = notices(platform);
    let mut names = vec![LICENSE.to_owned(), notices.clone()];
    fs::copy(workspace.join(LICENSE), folder.join(LICENSE))
        .context("failed to copy the licence")?;
    fs::write(folder.join(&notices), notices::text(target)?)
        .context("failed to write the notices")?;
    for program in &PROGRAMS {
        let name = program.artefact(platform);
        let (from, to) = (program.built(workspace), folder.join(&name));
        fs::copy(&from, &to).with_context(|| format!("failed to copy {}", from.display()))?;
        let contents = format!("{name}.cdx.json");
        let list = contents::list(program.0, target)?;
        fs::write(folder.join(&contents), list).context("failed to write a list of contents")?;
        names.extend([name, contents]);
    }
    let archive = PLUGIN.archive(platform);
    let plugin = PLUGIN.built(workspace);
    pack(
        &folder.join(&archive),
        &[&plugin, &folder.join(LICENSE), &folder.join(&notices)],
    )?;
    names.push(archive);
    write_sums(&names)
}

/// Writes the checksums of these files of a release, beside those that are there already.
fn write_sums(names: &[String]) -> Result<()> {
    let folder = paths::workspace().join(FOLDER);
    let mut sums = Command::new("sha256sum");
    let sums = commands::read(sums.current_dir(&folder).args(names))?.stdout;
    let path = folder.join("SHA256SUMS");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let is_kept = |line: &&str| {
        let name = line.split_once("  ").map(|(_, name)| name);
        name.is_some_and(|name| folder.join(name).is_file() && names.iter().all(|new| new != name))
    };
    let mut lines: Vec<&str> = before.lines().filter(is_kept).collect();
    lines.extend(sums.lines());
    lines.sort_by_key(|line| line.split_once("  ").map(|(_, name)| name));
    fs::write(&path, lines.join("\n") + "\n")
        .with_context(|| format!("failed to write {}", path.display()))?;
    for name in names {
        println!("{}", folder.join(name).display());
    }
    Ok(())
}

/// The name of that architecture for images and Kubernetes.
fn platform(arch: &str) -> Result<&'static str> {
    match arch {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no image is made for {other}"),
    }
}

// === impl ShippedProgram ===

impl ShippedProgram {
    /// Builds it from the sources in that folder, wherever that is: no path of this machine gets into the program.
    fn build(&self, sources: &Path) -> Result<()> {
        let (flags, c_flags) = without_paths(sources)?;
        let c_variable = format!("CFLAGS_{}", build_profile::target().replace('-', "_"));
        show_and_run(
            cargo()
                .current_dir(sources)
                .args(["build", "--locked", "--package", PACKAGE, "--bin", self.0])
                .args(PROFILE.arguments())
                .arg("--target-dir")
                .arg(sources.join("target"))
                .env("CARGO_ENCODED_RUSTFLAGS", flags)
                .env(c_variable, c_flags),
        )
        .context("a C compiler for musl is needed too: `musl-gcc`, of the package musl-tools")
    }

    /// Where a build of these sources leaves it.
    fn built(&self, sources: &Path) -> PathBuf {
        sources.join("target").join(PROFILE.folder()).join(self.0)
    }

    /// Checks that it needs nothing but the kernel, and that it is no larger than allowed.
    fn inspect(&self) -> Result<()> {
        let (name, built) = (self.0, self.built(paths::workspace()));
        ensure!(is_static(&built)?, "{name} is not static");
        let bytes = fs::metadata(built)?.len();
        println!("{name}: static, {bytes} bytes");
        ensure!(
            bytes <= MOST_BYTES,
            "{name} has {bytes} bytes, and {MOST_BYTES} are allowed"
        );
        Ok(())
    }

    /// The name under which it is shipped.
    fn artefact(&self, platform: &str) -> String {
        format!("{}-linux-{platform}", self.0)
    }

    /// The name of its archive.
    fn archive(&self, platform: &str) -> String {
        format!("{}.tar.gz", self.artefact(platform))
    }
}

/// The name of the file of notices.
fn notices(platform: &str) -> String {
    format!("THIRD-PARTY-NOTICES-linux-{platform}")
}

/// The flags for the compilers of Rust and C that put other paths into the programs than those of this machine.
fn without_paths(sources: &Path) -> Result<(String, String)> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let mut paths = vec![
        (sources.to_owned(), "/elector".to_owned()),
        (home.clone(), "/cargo".to_owned()),
    ];
    // The folder below has its name from the place that crates are downloaded from.
    let registries = fs::read_dir(home.join("registry/src"));
    for registry in registries.into_iter().flatten() {
        paths.push((registry?.path(), "/cargo/registry".to_owned()));
    }
    let flags = |flag: &str, separator: &str| {
        let flags = paths
            .iter()
            .map(|(from, to)| format!("{flag}={}={to}", from.display()));
        flags.collect::<Vec<_>>().join(separator)
    };
    Ok((
        flags("--remap-path-prefix", "\x1f"),
        flags("-ffile-prefix-map", " "),
    ))
}

/// Writes an archive of these files and folders, each under its own name: the same bytes for the same contents, wherever
/// and whenever it is made.
fn pack(archive: &Path, contents: &[&Path]) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--format=ustar",
        "--sort=name",
        "--use-compress-program=gzip -9 --no-name",
    ])
    .args([
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
    ])
    .arg("--file")
    .arg(archive);
    for path in contents {
        let (folder, name) = path.parent().zip(path.file_name()).context("no file")?;
        tar.args([OsStr::new("--directory"), folder.as_os_str(), name]);
    }
    commands::read(&mut tar).map(drop)
}

/// True if a program asks for no dynamic loader.
fn is_static(program: &Path) -> Result<bool> {
    let headers = commands::read(
        Command::new("readelf")
            .arg("--program-headers")
            .arg(program),
    )?;
    Ok(!headers.stdout.contains("INTERP"))
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_archive_holds_the_files_with_their_rights_and_nothing_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let (program, archive) = (folder.path().join("program"), folder.path().join("archive"));
        fs::write(&program, "\x7fELF").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o750)).unwrap();
        let license = paths::workspace().join(LICENSE);
        pack(&archive, &[&program, &license]).unwrap();
        let packed = fs::read(&archive).unwrap();
        // The fields of gzip: no name and no time.
        assert_eq!(&packed[3..8], &[0; 5]);
        let mut list = Command::new("tar");
        list.args([
            "--list",
            "--verbose",
            "--numeric-owner",
            "--utc",
            "--gzip",
            "--file",
        ]);
        let list = commands::read(list.arg(&archive)).unwrap().stdout;
        let license = fs::metadata(license).unwrap().len();
        let words: Vec<_> = list.split_whitespace().collect();
        let expected = format!(
            "-rwxr-xr-x 0/0 4 1970-01-01 00:00 program -rw-r--r-- 0/0 {license} 1970-01-01 00:00 {LICENSE}"
        );
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        assert!(!is_static(&env::current_exe().unwrap()).unwrap());
        assert!(is_static(&paths::workspace().join(LICENSE)).is_err());
    }

    #[test]
    fn the_image_holds_what_the_task_makes_and_runs_it_as_the_manifests_do() {
        let workspace = paths::workspace();
        let image = fs::read_to_string(workspace.join("Dockerfile")).unwrap();
        let artefact = ELECTOR.artefact("${TARGETARCH}");
        for line in [
            "FROM scratch".to_owned(),
            format!("COPY --chmod=0555 {FOLDER}/{artefact} /usr/local/bin/elector"),
            format!("COPY --chmod=0444 {FOLDER}/{LICENSE} /licenses/{LICENSE}"),
            format!(
                "COPY --chmod=0444 {FOLDER}/{} /licenses/THIRD-PARTY-NOTICES",
                notices("${TARGETARCH}")
            ),
            "USER 65532:65532".to_owned(),
            "ENTRYPOINT [\"/usr/local/bin/elector\"]".to_owned(),
        ] {
            assert!(image.lines().any(|found| found == line), "{line}\n{image}");
        }
        for label in ["licenses", "revision", "source", "version"] {
            let label = format!("org.opencontainers.image.{label}=");
            assert!(image.contains(&label), "{label}\n{image}");
        }
        // Files that are not sent to the engine cannot be copied.
        let ignored = fs::read_to_string(workspace.join(".dockerignore")).unwrap();
        assert_eq!(ignored, format!("*\n!{FOLDER}\n"));
        let deployment =
            fs::read_to_string(workspace.join("manifests/base/deployment.yaml")).unwrap();
        // A kubelet starts it by this rule, since the user of the image is a number.
        assert!(deployment.contains("runAsNonRoot: true\n"), "{deployment}");
    }

    #[test]
    fn workflows_name_actions_by_commit_and_the_tools_of_the_checks() {
        let workspace = paths::workspace();
        let mut seen = 0;
        for workflow in fs::read_dir(workspace.join(".github/workflows")).unwrap() {
            let path = workflow.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let actions = text.lines().filter_map(|line| line.split_once("uses: "));
            for (_, action) in actions {
                let (_, commit) = action.split_once('@').unwrap();
                let (commit, version) = commit.split_once(" # v").unwrap_or((commit, ""));
                let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
                assert!(
                    is_commit && !version.is_empty(),
                    "{}: {action}",
                    path.display()
                );
                seen += 1;
            }
        }
        assert!(seen > 5, "{seen} actions");
        // One version of the tool, here and there.
        let read = |path: &str| fs::read_to_string(workspace.join(path)).unwrap();
        let here = read(".ci/run");
        let (_, here) = here.split_once("deny=\"cargo-deny ").unwrap();
        let (version, _) = here.split_once('"').unwrap();
        let nightly = read(".github/workflows/advisories.yaml");
        let holds = nightly.contains(&format!("cargo-deny@{version}\n"));
        assert!(holds, "{nightly}");
    }

    #[test]
    fn only_architectures_with_an_image_have_a_platform() {
        assert_eq!(platform("x86_64").unwrap(), "amd64");
        assert_eq!(platform("aarch64").unwrap(), "arm64");
        assert!(platform("riscv64").is_err());
    }
}
