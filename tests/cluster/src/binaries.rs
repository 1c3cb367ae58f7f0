//! The programs of a real control plane, from wherever they are to be had.
//!
//! In this order: the folder that `KUBEBUILDER_ASSETS` names, the cache, and a build from Go modules that the
//! folders under `tests/cluster/go` pin. To move to another release, change the versions in its go.mod (all of
//! `k8s.io/…` together) and run `go mod tidy` there; the fingerprint in the cache follows. kube-controller-manager, which
//! few tests need, has a folder of its own, so that what all need is built without it.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::commands;
use crate::golang::{self, Recipe};
use crate::paths;
use crate::release::Release;

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Binary {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The scheduler, a real component that can stand for election.
    KubeScheduler,
    /// The command-line client.
    Kubectl,
}

/// Where programs come from for one release.
#[derive(Clone, Debug)]
pub struct Toolbox {
    assets: Option<PathBuf>,
    release: Release,
    version: String,
}

/// The program of `tests/interop/client-go`, an unmodified client-go elector; built on demand. For a cluster of
/// Kubernetes 1.31 or 1.32, whose LeaseCandidates later clients do not know, it is the client of that time.
///
/// # Errors
/// When there is no Go toolchain, or the build fails.
pub fn client_go_candidate(release: Release) -> Result<PathBuf> {
    let module = paths::workspace().join("tests/interop/client-go");
    let (modfile, tag) = match release.candidate_api() {
        Some("v1alpha1") => (Some("go-0.31.mod"), Some("client_go_0_31")),
        Some("v1alpha2") => (Some("go-0.32.mod"), None),
        _ => (None, None),
    };
    let requirements = module.join(modfile.unwrap_or("go.mod"));
    let version = golang::required_version(&requirements, "k8s.io/client-go")?;
    let recipe = Recipe {
        modfile,
        tag,
        ..Recipe::new("client-go-candidate", version, module, ".")
    };
    recipe.build()
}

/// The folder of the programs of `tests/interop/rivals`, which elect with crates of other people; built on demand.
///
/// # Errors
/// When the build fails.
pub fn rivals() -> Result<PathBuf> {
    let target = paths::cache()?.join("rivals");
    let mut build = commands::cargo();
    build.args("build --quiet --locked --manifest-path tests/interop/rivals/Cargo.toml".split(' '));
    commands::show_and_run(build.arg("--target-dir").arg(&target))?;
    Ok(target.join("debug"))
}

/// Helm, which renders and installs the chart; built on demand.
///
/// # Errors
/// When there is no Go toolchain, or the build fails.
pub fn helm() -> Result<PathBuf> {
    let version = (
        "helm.sh/helm/v3",
        "helm.sh/helm/v3/internal/version.version",
    );
    single("helm", version, "helm.sh/helm/v3/cmd/helm")
}

/// kube-score, which judges what is installed by the habits of operators; built on demand.
///
/// # Errors
/// When there is no Go toolchain, or the build fails.
pub fn kube_score() -> Result<PathBuf> {
    let version = ("github.com/zegl/kube-score", "main.version");
    single(
        "kube-score",
        version,
        "github.com/zegl/kube-score/cmd/kube-score",
    )
}

/// promtool, which tests the alerts; built on demand, without the discovery of targets, which it has no use for and which takes
/// the modules of every cloud.
///
/// # Errors
/// When there is no Go toolchain, or the build fails.
pub fn promtool() -> Result<PathBuf> {
    let module = paths::workspace().join("tests/cluster/go/promtool");
    let prometheus = "github.com/prometheus/prometheus";
    let version = golang::required_version(&module.join("go.mod"), prometheus)?;
    let package = format!("{prometheus}/cmd/promtool");
    let recipe = Recipe {
        tag: Some("remove_all_sd"),
        ..Recipe::new("promtool", version, module, package)
    };
    recipe.build()
}

/// Kubernetes' own kube-controller-manager of the usual release, which ends namespaces; built on demand.
///
/// # Errors
/// When there is no Go toolchain, or the build fails.
pub fn kube_controller_manager() -> Result<PathBuf> {
    let version = (
        "k8s.io/kubernetes",
        "k8s.io/component-base/version.gitVersion",
    );
    let package = "k8s.io/kubernetes/cmd/kube-controller-manager";
    single("kube-controller-manager", version, package)
}

/// A program with a folder of its own in `tests/cluster/go`: the module that it has its version from, and the variable that is
/// reported.
fn single(
    name: &'static str,
    (versioned, variable): (&str, &str),
    package: &str,
) -> Result<PathBuf> {
    let module = paths::workspace().join("tests/cluster/go").join(name);
    let version = golang::required_version(&module.join("go.mod"), versioned)?;
    let recipe = Recipe {
        stamps: vec![format!("{variable}={version}")],
        ..Recipe::new(name, version, module, package)
    };
    recipe.build()
}

/// The releases that `tests/cluster/go` pins, oldest first.
///
/// # Errors
/// When the folder cannot be read.
pub fn pinned() -> Result<Vec<Release>> {
    let folder = paths::workspace().join("tests/cluster/go");
    let entries = folder
        .read_dir()
        .with_context(|| format!("failed to read {}", folder.display()))?;
    let mut releases: Vec<Release> = entries
        .flatten()
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("kubernetes-")?
                .parse()
                .ok()
        })
        .collect();
    releases.sort_unstable();
    Ok(releases)
}

// === impl Binary ===

impl Binary {
    fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
        }
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.file_name())
    }
}

// === impl Toolbox ===

impl Toolbox {
    /// The programs of the wanted release. For `None` the assets decide, where there are some, and
    /// [`Release::DEFAULT`] otherwise.
    ///
    /// # Errors
    /// When the assets cannot be run, or nothing pins the release.
    pub fn new(wanted: Option<Release>) -> Result<Self> {
        let assets = env::var_os("KUBEBUILDER_ASSETS")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        Self::with_assets(wanted, assets)
    }

    fn with_assets(wanted: Option<Release>, assets: Option<PathBuf>) -> Result<Self> {
        if let Some(folder) = &assets {
            let version = version_of(&folder.join("kube-apiserver"))
                .context("KUBEBUILDER_ASSETS must name a folder with a kube-apiserver")?;
            let release = version.parse()?;
            if wanted.is_none_or(|wanted| wanted == release) {
                return Ok(Self {
                    assets,
                    release,
                    version,
                });
            }
        }
        // Assets of another release than the one asked for are of no use for anything but etcd.
        let release = wanted.unwrap_or(Release::DEFAULT);
        let module = module_of(release);
        if !module.is_dir() {
            let pinned: Vec<String> = pinned()?.iter().map(ToString::to_string).collect();
            bail!(
                "Kubernetes {release} is not pinned: choose one of {}",
                pinned.join(", ")
            );
        }
        let version = golang::required_version(&module.join("go.mod"), "k8s.io/kubernetes")?;
        Ok(Self {
            assets: None,
            release,
            version,
        })
    }

    /// The release that is used.
    #[must_use]
    pub fn release(&self) -> Release {
        self.release
    }

    /// The exact version of Kubernetes, such as `v1.36.3`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The path of the program; it is built first if need be, which takes minutes for kube-apiserver.
    ///
    /// # Errors
    /// When it is nowhere to be had.
    pub fn path(&self, binary: Binary) -> Result<PathBuf> {
        match self.asset(binary) {
            Some(path) => Ok(path),
            None => self.recipe(binary)?.build(),
        }
    }

    fn asset(&self, binary: Binary) -> Option<PathBuf> {
        let path = self.assets.as_ref()?.join(binary.file_name());
        path.is_file().then_some(path)
    }

    fn recipe(&self, binary: Binary) -> Result<Recipe> {
        let name = binary.file_name();
        if binary == Binary::Etcd {
            let module = paths::workspace().join("tests/cluster/go/etcd");
            let package = "go.etcd.io/etcd/server/v3";
            let version = golang::required_version(&module.join("go.mod"), package)?;
            return Ok(Recipe::new(name, version, module, package));
        }
        let module = module_of(self.release);
        if !module.is_dir() {
            bail!(
                "the assets hold no {binary}, and Kubernetes {} is not pinned, so it cannot be built",
                self.release
            );
        }
        let version = golang::required_version(&module.join("go.mod"), "k8s.io/kubernetes")?;
        // Without these the programs call themselves v0.0.0, and feature gates and emulation versions misbehave.
        let stamps = [
            ("gitVersion", version.clone()),
            ("gitMajor", "1".to_owned()),
            ("gitMinor", self.release.minor().to_string()),
        ]
        .map(|(variable, value)| format!("k8s.io/component-base/version.{variable}={value}"))
        .to_vec();
        let package = format!("k8s.io/kubernetes/cmd/{name}");
        Ok(Recipe {
            stamps,
            ..Recipe::new(name, version, module, package)
        })
    }
}

fn module_of(release: Release) -> PathBuf {
    paths::workspace().join(format!("tests/cluster/go/kubernetes-{release}"))
}

/// The output of `PROGRAM --version`: `Kubernetes v1.36.3`.
fn version_of(program: &Path) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .find(|word| word.starts_with('v'))
        .map(str::to_owned)
        .with_context(|| format!("{} --version names no version", program.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn assets(version: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("kube-apiserver");
        fs::write(&server, format!("#!/bin/sh\necho Kubernetes {version}\n")).unwrap();
        fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn release(text: &str) -> Release {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_pinned_has_a_version_of_its_own_release() {
        let pinned = pinned().unwrap();
        assert!(pinned.contains(&Release::DEFAULT));
        for release in pinned {
            let toolbox = Toolbox::with_assets(Some(release), None).unwrap();
            assert_eq!(
                toolbox.version().parse(),
                Ok(release),
                "{}",
                toolbox.version()
            );
            let stamps = toolbox
                .recipe(Binary::KubeApiserver)
                .unwrap()
                .stamps
                .join(" ");
            let holds = stamps.contains(&format!("gitVersion={}", toolbox.version()));
            assert!(holds, "{stamps}");
            let holds = stamps.contains(&format!("gitMinor={}", release.minor()));
            assert!(holds, "{stamps}");
        }
    }

    #[test]
    fn assets_decide_the_release_unless_another_is_asked_for() {
        let folder = assets("v1.30.7");
        let with = |wanted| Toolbox::with_assets(wanted, Some(folder.path().to_owned())).unwrap();

        let toolbox = with(None);
        let expected = (release("1.30"), "v1.30.7");
        assert_eq!((toolbox.release(), toolbox.version()), expected);
        let expected = folder.path().join("kube-apiserver");
        assert_eq!(toolbox.path(Binary::KubeApiserver).unwrap(), expected);
        let missing = toolbox.path(Binary::KubeScheduler).unwrap_err().to_string();
        assert!(missing.contains("hold no kube-scheduler"), "{missing}");

        assert_eq!(with(Some(release("1.30"))).version(), "v1.30.7");
        assert_eq!(with(Some(release("1.36"))).release(), release("1.36"));
    }

    #[test]
    fn empty_assets_and_unknown_releases_are_named() {
        let empty = tempfile::tempdir().unwrap();
        let error = Toolbox::with_assets(None, Some(empty.path().to_owned())).unwrap_err();
        let holds = format!("{error:#}").contains("KUBEBUILDER_ASSETS");
        assert!(holds, "{error:#}");
        let error = Toolbox::with_assets(Some(release("1.19")), None)
            .unwrap_err()
            .to_string();
        let holds = error.starts_with("Kubernetes 1.19 is not pinned: choose one of 1.31,");
        assert!(holds, "{error}");
    }
}
