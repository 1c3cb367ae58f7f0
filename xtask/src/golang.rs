//! Go programs from pinned modules, built once into the cache.
//!
//! A build is named by what went into it: the program, its version, and a fingerprint of the module files and of
//! how it is compiled. It is written beside its final place and renamed, under a lock, so several processes may ask
//! for the same program at once and none sees half of it.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::fnv::Fnv;
use crate::paths;
use crate::progress::ProgressLine;

/// The advice when there is no way to build: the same words wherever it matters.
pub(crate) const WITHOUT_GO: &str =
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
        let mut progress = ProgressLine::new(format!("waiting for another build of {}", self.name));
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => progress.tick("still running"),
                Err(TryLockError::Error(error)) => {
                    return Err(error)
                        .with_context(|| format!("failed to lock {}", path.display()));
                }
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn compile(&self, output: &Path) -> Result<()> {
        let mut child = self
            .command(output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to start go build")?;
        let stderr = child.stderr.take().expect("stderr was asked for as a pipe");
        let (lines, received) = mpsc::sync_channel(64);
        let reader = thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(io::Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });

        let mut progress = ProgressLine::new(format!("building {} {}", self.name, self.version));
        let (mut messages, mut modules) = (Vec::new(), 0_u32);
        loop {
            match received.recv_timeout(Duration::from_millis(500)) {
                Ok(line) if line.starts_with("go: downloading ") => modules += 1,
                Ok(line) => messages.push(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            progress.tick(&match modules {
                0 => "compiling".to_owned(),
                count => format!("compiling, modules downloaded: {count}"),
            });
        }
        let status = child.wait().context("failed to wait for go build")?;
        // The reader ended with the pipe, which is why the loop ended.
        let _ = reader.join();
        if !status.success() {
            progress.finish("failed");
            bail!(
                "failed to build {} {}: {}",
                self.name,
                self.version,
                explain(&messages)
            );
        }
        progress.finish("built");
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
            .args([
                "build",
                "-mod=readonly",
                "-trimpath",
                "-buildvcs=false",
                "-ldflags",
                &ldflags,
            ]);
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
        let mut hash = Fnv::default();
        for file in sources(&self.module)? {
            let text =
                fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
            hash.write(file.file_name().unwrap_or_default().as_encoded_bytes());
            hash.write(&text);
        }
        let command = self.command(Path::new("out"));
        for argument in command.get_args() {
            hash.write(argument.as_encoded_bytes());
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
pub(crate) fn check_toolchain(module: &Path) -> Result<()> {
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
            let messages: Vec<_> = String::from_utf8_lossy(&output.stderr)
                .lines()
                .map(str::to_owned)
                .collect();
            bail!("{}", explain(&messages));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "there is no Go toolchain: install Go 1.26 or later so that `go` is on the PATH, or {WITHOUT_GO}"
        ),
        Err(error) => Err(error).context("failed to run go"),
    }
}

/// Turns what go said into one message that names the cause and what to do about it.
fn explain(messages: &[String]) -> String {
    let find = |needles: &[&str]| {
        messages
            .iter()
            .find(|line| needles.iter().any(|needle| line.contains(needle)))
    };
    if let Some(line) = find(&["requires go >="]) {
        return format!(
            "the Go toolchain is too old ({}): install a newer one, or {WITHOUT_GO}",
            line.trim()
        );
    }
    if let Some(line) = find(&["SECURITY ERROR", "checksum mismatch"]) {
        return format!(
            "a downloaded module is not the one that go.sum names ({}): empty the module cache with \
             `go clean -modcache`, and find out who hands out another one if it happens again",
            line.trim()
        );
    }
    let download = find(&[
        "dial tcp",
        "reading http",
        "Get \"http",
        "i/o timeout",
        "no such host",
        "403 Forbidden",
        "404 Not Found",
        "410 Gone",
        "module lookup disabled",
        "proxyconnect",
        "tls: ",
    ]);
    if let Some(line) = download {
        let module = line
            .split([' ', ':'])
            .find(|word| word.contains('@') && word.contains('/'))
            .unwrap_or("a module");
        return format!(
            "failed to download {module} ({}): check the network and GOPROXY (`go env GOPROXY`), or {WITHOUT_GO}",
            line.trim()
        );
    }
    let tail = messages.len().saturating_sub(15);
    format!("go said:\n{}", messages[tail..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn recipe(module: &Path) -> Recipe {
        Recipe {
            name: "thing",
            version: "v1.2.3".to_owned(),
            module: module.to_owned(),
            modfile: None,
            tag: None,
            package: "example.com/thing".to_owned(),
            stamps: vec!["a.b=c".to_owned()],
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

    #[test]
    fn a_refused_download_names_the_module_and_a_remedy() {
        let said = explain(&lines(
            "go: k8s.io/api@v0.36.9: reading https://modules.invalid/k8s.io/api/@v/v0.36.9.mod: 403 Forbidden",
        ));
        assert!(
            said.starts_with("failed to download k8s.io/api@v0.36.9 ("),
            "{said}"
        );
        assert!(
            said.contains("KUBEBUILDER_ASSETS") && said.contains("GOPROXY"),
            "{said}"
        );
    }

    #[test]
    fn an_old_toolchain_and_a_wrong_checksum_are_told_apart_from_compile_errors() {
        let old = explain(&lines(
            "go: go.mod requires go >= 1.26.0 (running go 1.22.2; GOTOOLCHAIN=local)",
        ));
        assert!(
            old.starts_with("the Go toolchain is too old (go: go.mod requires"),
            "{old}"
        );
        let sum = explain(&lines(
            "verifying k8s.io/api@v0.36.3: checksum mismatch\n\tdownloaded: h1:x",
        ));
        assert!(sum.contains("go clean -modcache"), "{sum}");
        assert_eq!(
            explain(&lines("# x\n./main.go:1: undefined: y")),
            "go said:\n# x\n./main.go:1: undefined: y"
        );
    }
}
