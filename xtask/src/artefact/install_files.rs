//! The manifests and the chart of a release: those of this workspace, with the image that they are to run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail, ensure};

use super::{FOLDER, LICENSE, pack, write_sums};
use crate::commands;
use crate::manifests::overlays;
use crate::paths;

/// The version of all that is shipped.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An image that no push can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageDigest {
    repository: String,
    digest: String,
}

/// Writes them to where releases are taken from: a file of each overlay for `kubectl apply -f`, an archive of the manifests
/// for `kubectl apply -k`, and the chart as Helm packs it.
///
/// # Errors
/// When a file does not name the image as expected, or cannot be written.
pub(crate) fn write(image: &ImageDigest) -> Result<()> {
    let folder = paths::workspace().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let names = write_into(&folder, image)?;
    write_sums(&names)
}

/// Writes them into that folder; returns their names.
fn write_into(folder: &Path, image: &ImageDigest) -> Result<Vec<String>> {
    let scratch = tempfile::tempdir().context("failed to make a folder")?;
    let archive = format!("elector-manifests-{VERSION}");
    let manifests = scratch.path().join(&archive);
    commands::read(
        Command::new("cp")
            .arg("--recursive")
            .arg(paths::workspace().join("manifests"))
            .arg(&manifests),
    )?;
    stamp(&manifests, image)?;
    let mut names = Vec::new();
    for overlay in overlays::INSTALLABLE {
        let name = format!("install-{overlay}.yaml");
        let from = manifests.join("overlays").join(overlay);
        copy(&from.join("install.yaml"), &folder.join(&name))?;
        names.push(name);
    }
    let pod = "static-pod.yaml";
    copy(
        &manifests.join("overlays/control-plane").join(pod),
        &folder.join(pod),
    )?;
    names.push(pod.to_owned());
    let chart = scratch.path().join("elector");
    fs::rename(manifests.join("chart"), &chart).context("failed to move the chart")?;
    for (name, contents) in [
        (format!("{archive}.tar.gz"), manifests),
        (format!("elector-{VERSION}.tgz"), chart),
    ] {
        copy(&paths::workspace().join(LICENSE), &contents.join(LICENSE))?;
        pack(&folder.join(&name), &[&contents])?;
        names.push(name);
    }
    Ok(names)
}

/// Puts the image into a copy of the manifests.
fn stamp(manifests: &Path, image: &ImageDigest) -> Result<()> {
    let ImageDigest { repository, digest } = image;
    let old = format!("image: elector:{VERSION}\n");
    let new = format!("image: {repository}@{digest}\n");
    for overlay in overlays::INSTALLABLE {
        // One of them runs nothing, and the Pods of control-plane are in a file of their own.
        if ["cluster-wide", "control-plane"].contains(&overlay) {
            continue;
        }
        let file = format!("overlays/{overlay}/install.yaml");
        replace(&manifests.join(file), &old, &new)?;
    }
    let pod = manifests.join("overlays/control-plane/static-pod.yaml");
    replace(&pod, &old, &new)?;
    let base = manifests.join("base/kustomization.yaml");
    let old = format!("    newName: elector\n    newTag: {VERSION}\n");
    let new = format!("    newName: {repository}\n    digest: {digest}\n");
    replace(&base, &old, &new)?;
    let values = manifests.join("chart/values.yaml");
    let new = format!("  repository: {repository}\n");
    replace(&values, "  repository: elector\n", &new)?;
    replace(
        &values,
        "  digest: \"\"\n",
        &format!("  digest: {digest}\n"),
    )
}

/// Replaces a text that a file has once.
fn replace(file: &Path, old: &str, new: &str) -> Result<()> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("failed to read {}", file.display()))?;
    ensure!(
        text.matches(old).count() == 1,
        "{} has not once {old:?}",
        file.display()
    );
    fs::write(file, text.replace(old, new))
        .with_context(|| format!("failed to write {}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .with_context(|| format!("failed to copy {}", from.display()))
}

// === impl ImageDigest ===

impl FromStr for ImageDigest {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((repository, digest)) = text.split_once('@') else {
            bail!(
                "it has no digest: name the image as REPOSITORY@sha256:…, since a tag can be moved"
            );
        };
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        ensure!(
            hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
            "its digest is {digest}: it must be sha256: and 64 hexadecimal digits"
        );
        let name = repository.rsplit('/').next().unwrap_or_default();
        ensure!(
            !name.is_empty() && !name.contains(':') && !repository.contains(char::is_whitespace),
            "its repository is {repository:?}: it must be a name without a tag"
        );
        Ok(Self {
            repository: repository.to_owned(),
            digest: digest.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn everything_that_runs_an_image_runs_that_one() {
        let folder = tempfile::tempdir().unwrap();
        let image = format!("registry.example:5000/elector@{DIGEST}");
        let names = write_into(folder.path(), &image.parse().unwrap()).unwrap();
        let unpacked = folder.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let mut images = 0;
        for name in &names {
            let path = folder.path().join(name);
            if name.ends_with("gz") {
                let mut unpack = Command::new("tar");
                unpack.args(["--extract", "--file"]).arg(&path);
                commands::read(unpack.arg("--directory").arg(&unpacked)).unwrap();
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| line.contains("image: "));
            images += lines
                .inspect(|line| assert!(line.ends_with(&image), "{name}: {line}"))
                .count();
        }
        // Each overlay but the one without Pods, and the static Pod.
        assert_eq!(images, overlays::INSTALLABLE.len() - 1);
        let read = |path: &str| fs::read_to_string(unpacked.join(path)).unwrap();
        let values = read("elector/values.yaml");
        for line in [
            "  repository: registry.example:5000/elector\n",
            &format!("  digest: {DIGEST}\n"),
        ] {
            assert!(values.contains(line), "{line}\n{values}");
        }
        let manifests = format!("elector-manifests-{VERSION}");
        let base = read(&format!("{manifests}/base/kustomization.yaml"));
        assert!(base.contains(&format!("    digest: {DIGEST}\n")), "{base}");
        assert!(!unpacked.join(&manifests).join("chart").exists());
        read("elector/Chart.yaml");
        read(&format!("{manifests}/LICENSE"));
    }

    #[test]
    fn an_image_is_named_by_its_digest_alone() {
        for (text, why) in [
            ("registry.example/elector:0.1.0", "it has no digest"),
            ("elector@sha256:00", "64 hexadecimal digits"),
            (&format!("elector:0.1.0@{DIGEST}"), "without a tag"),
            (&format!("@{DIGEST}"), "without a tag"),
        ] {
            let error = text.parse::<ImageDigest>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
