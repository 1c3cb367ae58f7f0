//! `cargo xtask release`: the programs as they are shipped, built, looked at, and run where nothing else is.

mod contents;
mod empty_root;
mod identity;
mod trial;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::{Compression, GzBuilder};
use object::Endianness;
use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, ProgramHeader as _};
use tar::{Builder, Header};

use crate::build_profile::{self, BuildProfile};
use crate::commands::{self, cargo, show_and_run};
use crate::paths;
use crate::release::Release;

/// A program that is shipped, of the command line's package.
struct ShippedProgram {
    /// Its name on the command line.
    name: &'static str,
    /// The package that has it.
    package: &'static str,
}

/// The program that the manifests run, and everything else that is shipped beside it.
const ELECTOR: ShippedProgram = ShippedProgram {
    name: "elector",
    package: "elector-cli",
};
/// The plugin of kubectl, which package managers want as an archive too.
const PLUGIN: ShippedProgram = ShippedProgram {
    name: "kubectl-elector",
    package: "elector-cli",
};
const PROGRAMS: &[ShippedProgram] = &[ELECTOR, PLUGIN];
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
    for program in PROGRAMS {
        let name = program.artefact(platform(ARCH)?);
        let (from, to) = (program.built(), folder.join(&name));
        fs::copy(&from, &to).with_context(|| format!("failed to copy {}", from.display()))?;
        println!("{}", to.display());
        let contents = format!("{name}.cdx.json");
        let list = contents::list(program.name, target)?;
        fs::write(folder.join(&contents), list).context("failed to write a list of contents")?;
        println!("{}", folder.join(&contents).display());
        sums.args([name, contents]);
    }
    let archive = PLUGIN.archive(platform(ARCH)?);
    let program = fs::read(PLUGIN.built()).context("failed to read the plugin")?;
    fs::write(folder.join(&archive), PLUGIN.pack(&program)?)
        .with_context(|| format!("failed to write {archive}"))?;
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
                .args(["build", "--locked", "--package", self.package])
                .args(["--bin", self.name])
                .args(PROFILE.arguments()),
        )
        .context("a C compiler for musl is needed too: `musl-gcc`, of the package musl-tools")
    }

    /// Where a build leaves it.
    fn built(&self) -> PathBuf {
        let folder = paths::workspace().join("target").join(PROFILE.folder());
        folder.join(self.name)
    }

    /// Checks that it needs nothing but the kernel, and that it is no larger than allowed.
    fn inspect(&self) -> Result<()> {
        let bytes = fs::read(self.built()).context("failed to read the program")?;
        ensure!(is_static(&bytes)?, "{} is not static", self.name);
        println!("{}: static, {} bytes", self.name, bytes.len());
        ensure!(
            u64::try_from(bytes.len())? <= MOST_BYTES,
            "{} has {} bytes, and {MOST_BYTES} are allowed",
            self.name,
            bytes.len()
        );
        Ok(())
    }

    /// The name under which it is shipped.
    fn artefact(&self, platform: &str) -> String {
        format!("{}-linux-{platform}", self.name)
    }

    /// The name of its archive.
    fn archive(&self, platform: &str) -> String {
        format!("{}.tar.gz", self.artefact(platform))
    }

    /// The archive of that program, under the name by which it is called, and of the licence: the same bytes for the same
    /// program, wherever and whenever it is made.
    fn pack(&self, program: &[u8]) -> Result<Vec<u8>> {
        let license =
            fs::read(paths::workspace().join(LICENSE)).context("failed to read LICENSE")?;
        // No name, no time and no system of the machine that makes it: 255 stands for an unknown one.
        let gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(255)
            .write(Vec::new(), Compression::best());
        let mut archive = Builder::new(gzip);
        for (name, mode, content) in [(self.name, 0o755, program), (LICENSE, 0o644, &license)] {
            let mut header = Header::new_ustar();
            header.set_size(u64::try_from(content.len())?);
            header.set_mode(mode);
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            archive.append_data(&mut header, name, content)?;
        }
        Ok(archive.into_inner()?.finish()?)
    }
}

/// True if a program asks for no dynamic loader.
fn is_static(program: &[u8]) -> Result<bool> {
    let program = ElfFile64::<Endianness>::parse(program)?;
    let mut headers = program.elf_program_headers().iter();
    Ok(headers.all(|header| header.p_type(program.endian()) != PT_INTERP))
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    #[test]
    fn the_archive_holds_the_files_with_their_rights_and_nothing_of_the_machine() {
        let packed = PLUGIN.pack(b"\x7fELF").unwrap();
        // The fields of gzip: no name, no time, an unknown system.
        assert_eq!((&packed[3..8], packed[9]), (&[0; 5][..], 255));
        let mut archive = Archive::new(GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            let mode = header.mode().unwrap();
            let name = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((name, mode, content.len()));
        }
        let license = fs::read(paths::workspace().join(LICENSE)).unwrap();
        let program = (PLUGIN.name.to_owned(), 0o755, 4);
        assert_eq!(found, [program, (LICENSE.to_owned(), 0o644, license.len())]);
    }

    #[test]
    fn a_program_with_a_loader_is_not_static() {
        let mut program = fs::read(env::current_exe().unwrap()).unwrap();
        assert!(!is_static(&program).unwrap());
        // Its program headers, one of which is no longer that of a loader.
        let mut headers = (64..).step_by(56);
        let loader = headers.find(|at| program[*at] == 3).unwrap();
        program[loader] = 0;
        assert!(is_static(&program).unwrap());
        assert!(is_static(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn the_image_holds_what_the_task_makes_and_runs_it_as_the_manifests_do() {
        let workspace = paths::workspace();
        let image = fs::read_to_string(workspace.join("Dockerfile")).unwrap();
        let artefact = ELECTOR.artefact("${TARGETARCH}");
        for line in [
            "FROM scratch".to_owned(),
            format!(
                "COPY --chmod=0555 {FOLDER}/{artefact} {}",
                empty_root::PROGRAM
            ),
            format!("USER {0}:{0}", empty_root::USER),
            format!("ENTRYPOINT [\"{}\"]", empty_root::PROGRAM),
        ] {
            assert!(image.lines().any(|found| found == line), "{line}\n{image}");
        }
        // Files that are not sent to the engine cannot be copied.
        let ignored = fs::read_to_string(workspace.join(".dockerignore")).unwrap();
        assert_eq!(ignored, format!("*\n!{FOLDER}\n"));
        let deployment =
            fs::read_to_string(workspace.join("manifests/base/deployment.yaml")).unwrap();
        let user = format!("runAsUser: {}\n", empty_root::USER);
        assert!(deployment.contains(&user), "{user}");
    }

    #[test]
    fn every_program_is_one_of_the_workspace() {
        for program in PROGRAMS {
            let manifest = paths::workspace().join("crates/cli/Cargo.toml");
            let manifest = fs::read_to_string(manifest).unwrap();
            assert!(manifest.contains(&format!("name = \"{}\"\n", program.package)));
            assert!(manifest.contains(&format!("name = \"{}\"\n", program.name)));
        }
    }

    #[test]
    fn only_architectures_with_an_image_have_a_platform() {
        assert_eq!(platform("x86_64").unwrap(), "amd64");
        assert_eq!(platform("aarch64").unwrap(), "arm64");
        assert!(platform("riscv64").is_err());
    }
}
