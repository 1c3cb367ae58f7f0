//! Go programs from pinned modules, built once into the cache.
//!
//! A build is named by what went into it: the program, its version, and a fingerprint of the module files and of
//! how it is compiled. It is written beside its final place and renamed, under a lock, so several processes may ask
//! for the same program at once and none sees half of it.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use fnv::FnvHasher;

use crate::paths;

/// The advice when there is no way to build: the same words wherever it matters.
const WITHOUT_GO: &str =
    "set KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver and kubectl";

/// The build of one program.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// The name of the program, as the cache and the messages show it.
    pub(crate) name: &'static str,
    /// The version, with its `v`.
    pub(crate) version: String,
    /// The folder of the pinned go.mod and go.sum.
    pub(crate) module: PathBuf,
    /// The go.mod, where it is not the one of that name; its go.sum lies beside it.
    pub(crate) modfile: Option<&'static str>,
    /// The build tag, if any.
    pub(crate) tag: Option<&'static str>,
    /// The package to compile.
    pub(crate) package: String,
    /// The stamps of the linker in the program (`-X`), after `-s -w`.
    pub(crate) stamps: Vec<String>,
}

// === impl Recipe ===

impl Recipe {
    /// Of a package of the pinned module, without tags and stamps.
    pub(crate) fn new(
        name: &'static str,
        version: String,
        module: PathBuf,
        package: impl Into<String>,
    ) -> Self {
        Self {
            name,
            version,
            module,
            modfile: None,
            tag: None,
            package: package.into(),
            stamps: Vec::new(),
        }
    }

    /// Where the program lies once it is built.
    pub(crate) fn cached(&self) -> Result<PathBuf> {
        let name = format!(
            "{}-{}-{:016x}",
            self.name,
            self.version,
            self.fingerprint()?
        );
        Ok(paths::cache()?.join("bin").join(name))
    }

    /// The program, built if it is not in the cache.
    pub(crate) fn build(&self) -> Result<PathBuf> {
        let target = self.cached()?;
        if target.is_file() {
            return Ok(target);
        }
        check_toolchain(&self.module)?;
        let bin = target
            .parent()
            .expect("a cached program lies in the bin folder");
        fs::create_dir_all(bin).with_context(|| format!("failed to create {}", bin.display()))?;
        let _lock = self.lock(bin)?;
        if target.is_file() {
            return Ok(target); // another process built it while we waited
        }
        let partial = target.with_extension("partial");
        let built = self.compile(&partial);
        if built.is_err() {
            let _ = fs::remove_file(&partial); // may not exist; the error that counts is the build's
        }
        built?;
        fs::rename(&partial, &target)
            .with_context(|| format!("failed to put {} in place", target.display()))?;
        Ok(target)
    }

    /// Waits until no other process builds this program; the lock ends with the returned file.
    fn lock(&self, bin: &Path) -> Result<File> {
        let path = bin.join(format!("{}.lock", self.name));
        let file =
            File::create(&path).with_context(|| format!("failed to open {}", path.display()))?;
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                eprintln!("waiting for another build of {}", self.name);
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        locked.with_context(|| format!("failed to lock {}", path.display()))?;
        Ok(file)
    }

    /// Compiles it; what go says of downloads and of errors is seen as it says it.
    fn compile(&self, output: &Path) -> Result<()> {
        let (name, version) = (self.name, &self.version);
        eprintln!("building {name} {version}, which takes minutes");
        let mut build = self.command(output);
        let status = build.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.context("failed to start go build")?;
        ensure!(
            status.success(),
            "failed to build {name} {version}, for the reason that go gives above. Where a module cannot be downloaded, check \
             the network and GOPROXY (`go env GOPROXY`), or {WITHOUT_GO}; where one is not what go.sum names, empty the \
             module cache with `go clean -modcache`"
        );
        eprintln!("built {name} {version}");
        Ok(())
    }

    fn command(&self, output: &Path) -> Command {
        let mut ldflags = "-s -w".to_owned();
        for stamp in &self.stamps {
            ldflags.push_str(" -X ");
            ldflags.push_str(stamp);
        }
        let mut command = Command::new("go");
        command
            .current_dir(&self.module)
            .env("CGO_ENABLED", "0")
            // A go.work somewhere above must not change what is built.
            .env("GOWORK", "off")
            .args("build -mod=readonly -trimpath -buildvcs=false".split(' '))
            .args(["-ldflags", &ldflags]);
        if let Some(modfile) = self.modfile {
            command.arg(format!("-modfile={modfile}"));
        }
        if let Some(tag) = self.tag {
            command.args(["-tags", tag]);
        }
        command.arg("-o").arg(output).arg(&self.package);
        command
    }

    /// A hash over everything of ours that decides what the program is.
    fn fingerprint(&self) -> Result<u64> {
        let mut hash = FnvHasher::default();
        for file in sources(&self.module)? {
            let text =
                fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
            file.file_name()
                .unwrap_or_default()
                .as_encoded_bytes()
                .hash(&mut hash);
            text.hash(&mut hash);
        }
        let command = self.command(Path::new("out"));
        for argument in command.get_args() {
            argument.as_encoded_bytes().hash(&mut hash);
        }
        Ok(hash.finish())
    }
}

/// The files of a module folder that decide what is built, in a fixed order.
fn sources(module: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in
        fs::read_dir(module).with_context(|| format!("failed to read {}", module.display()))?
    {
        let path = entry?.path();
        let is = |extension| path.extension() == Some(OsStr::new(extension));
        if is("go") || is("mod") || is("sum") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The version that this go.mod requires of `dependency`, with its `v`.
pub(crate) fn required_version(path: &Path, dependency: &str) -> Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    version_in(&text, dependency)
        .map(str::to_owned)
        .with_context(|| format!("{} does not require {dependency}", path.display()))
}

fn version_in<'a>(go_mod: &'a str, dependency: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line
            .split_whitespace()
            .skip_while(|word| *word == "require");
        (words.next()? == dependency)
            .then(|| words.next())?
            .filter(|word| word.starts_with('v'))
    })
}

/// Checks that Go can build the module: it is there, and new enough.
fn check_toolchain(module: &Path) -> Result<()> {
    let install = format!("install Go 1.26 or later so that `go` is on the PATH, or {WITHOUT_GO}");
    // Naming the module makes Go compare itself with what go.mod asks for, without any download of modules.
    let output = Command::new("go")
        .current_dir(module)
        .env("GOWORK", "off")
        .args(["list", "-m", "-mod=readonly"])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the Go toolchain will not do ({}): {install}", said.trim())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no Go toolchain: {install}")
        }
        Err(error) => Err(error).context("failed to run go"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(module: &Path) -> Recipe {
        Recipe {
            stamps: vec!["a.b=c".to_owned()],
            ..Recipe::new(
                "thing",
                "v1.2.3".to_owned(),
                module.to_owned(),
                "example.com/thing",
            )
        }
    }

    #[test]
    fn the_fingerprint_follows_the_module_files_and_the_flags() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("go.mod"), "module x").unwrap();
        let recipe = recipe(folder.path());
        let first = recipe.fingerprint().unwrap();
        assert_eq!(recipe.fingerprint().unwrap(), first);

        fs::write(folder.path().join("README"), "not a source").unwrap();
        assert_eq!(recipe.fingerprint().unwrap(), first);

        let stamped = Recipe {
            stamps: vec!["a.b=d".to_owned()],
            ..recipe.clone()
        };
        assert_ne!(stamped.fingerprint().unwrap(), first);

        fs::write(folder.path().join("go.sum"), "a sum").unwrap();
        assert_ne!(recipe.fingerprint().unwrap(), first);
    }

    #[test]
    fn versions_are_read_from_both_forms_of_require() {
        let text = "module x\n\nrequire k8s.io/kubernetes v1.36.3\n\nrequire (\n\tgo.etcd.io/etcd v3.6.16 // indirect\n)\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n";
        assert_eq!(version_in(text, "k8s.io/kubernetes"), Some("v1.36.3"));
        assert_eq!(version_in(text, "go.etcd.io/etcd"), Some("v3.6.16"));
        assert_eq!(version_in(text, "k8s.io/api"), None);
        assert_eq!(version_in(text, "k8s.io"), None);
    }
}
