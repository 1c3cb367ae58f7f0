//! `cargo xtask release`: the programs as they are shipped, built, looked at, and run where nothing else is.

mod contents;
mod trial;

use std::env::consts::ARCH;
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
        program.build()?;
        program.inspect()?;
    }
    trial::run(&ELECTOR.built(), kubernetes)?;
    publish(&target)
}

/// Builds the elector as it is shipped; returns where it is.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn elector() -> Result<PathBuf> {
    add_target(&build_profile::target())?;
    ELECTOR.build()?;
    Ok(ELECTOR.built())
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

/// Puts the programs where releases are taken from, with the lists of what they are made of and the checksums of both.
fn publish(target: &str) -> Result<()> {
    let folder = paths::workspace().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let mut sums = Command::new("sha256sum");
    sums.current_dir(&folder);
    for program in &PROGRAMS {
        let name = program.artefact(platform(ARCH)?);
        let (from, to) = (program.built(), folder.join(&name));
        fs::copy(&from, &to).with_context(|| format!("failed to copy {}", from.display()))?;
        println!("{}", to.display());
        let contents = format!("{name}.cdx.json");
        let list = contents::list(program.0, target)?;
        fs::write(folder.join(&contents), list).context("failed to write a list of contents")?;
        println!("{}", folder.join(&contents).display());
        sums.args([name, contents]);
    }
    let archive = PLUGIN.archive(platform(ARCH)?);
    pack(&PLUGIN.built(), &folder.join(&archive))?;
    println!("{}", folder.join(&archive).display());
    sums.arg(archive);
    let path = folder.join("SHA256SUMS");
    fs::write(&path, commands::read(&mut sums)?.stdout)
        .with_context(|| format!("failed to write {}", path.display()))?;
    println!("{}", path.display());
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
    fn build(&self) -> Result<()> {
        show_and_run(
            cargo()
                .args(["build", "--locked", "--package", PACKAGE, "--bin", self.0])
                .args(PROFILE.arguments()),
        )
        .context("a C compiler for musl is needed too: `musl-gcc`, of the package musl-tools")
    }

    /// Where a build leaves it.
    fn built(&self) -> PathBuf {
        let folder = paths::workspace().join("target").join(PROFILE.folder());
        folder.join(self.0)
    }

    /// Checks that it needs nothing but the kernel, and that it is no larger than allowed.
    fn inspect(&self) -> Result<()> {
        let (name, built) = (self.0, self.built());
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

/// Writes an archive of that program and of the licence: the same bytes for the same program, wherever and whenever it is
/// made.
fn pack(program: &Path, archive: &Path) -> Result<()> {
    let (folder, name) = program
        .parent()
        .zip(program.file_name())
        .context("no file")?;
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--format=ustar",
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
    .arg(archive)
    .arg("--directory")
    .args([folder.as_os_str(), name])
    .arg("--directory")
    .args([paths::workspace().as_os_str(), LICENSE.as_ref()]);
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
        pack(&program, &archive).unwrap();
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
        let license = fs::metadata(paths::workspace().join(LICENSE))
            .unwrap()
            .len();
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
            "USER 65532:65532".to_owned(),
            "ENTRYPOINT [\"/usr/local/bin/elector\"]".to_owned(),
        ] {
            assert!(image.lines().any(|found| found == line), "{line}\n{image}");
        }
        // Files that are not sent to the engine cannot be copied.
        let ignored = fs::read_to_string(workspace.join(".dockerignore")).unwrap();
        assert_eq!(ignored, format!("*\n!{FOLDER}\n"));
        let deployment =
            fs::read_to_string(workspace.join("manifests/base/deployment.yaml")).unwrap();
        assert!(deployment.contains("runAsUser: 65532\n"), "{deployment}");
    }

    #[test]
    fn only_architectures_with_an_image_have_a_platform() {
        assert_eq!(platform("x86_64").unwrap(), "amd64");
        assert_eq!(platform("aarch64").unwrap(), "arm64");
        assert!(platform("riscv64").is_err());
    }
}
