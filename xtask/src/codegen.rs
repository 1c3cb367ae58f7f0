//! Files that are written by code, and the check that they are up to date.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::commands::{cargo, show_and_run};
use crate::crd;
use crate::lock_role;
use crate::manifests::{chart, overlays, static_pod};
use crate::paths;

/// One generated file.
struct Generator {
    /// The file, from the root of the workspace.
    path: &'static str,
    /// Its whole content, made from the workspace at the given root.
    render: fn(&Path) -> Result<String>,
}

/// Every generated file of the repository.
const GENERATORS: &[Generator] = &[
    Generator {
        path: "manifests/components/crd/leasecandidates.yaml",
        render: |_| crd::yaml(),
    },
    Generator {
        path: "manifests/components/builtin-lock/role.yaml",
        render: |_| lock_role::yaml(),
    },
    Generator {
        path: "crates/api/src/crd.json",
        render: |_| crd::json(),
    },
    // Files that are made of those above.
    Generator {
        path: "manifests/overlays/control-plane/install.yaml",
        render: |workspace| overlays::install(workspace, "control-plane"),
    },
    Generator {
        path: "manifests/overlays/crd/install.yaml",
        render: |workspace| overlays::install(workspace, "crd"),
    },
    Generator {
        path: "manifests/overlays/namespaced/install.yaml",
        render: |workspace| overlays::install(workspace, "namespaced"),
    },
    Generator {
        path: "manifests/overlays/native/install.yaml",
        render: |workspace| overlays::install(workspace, "native"),
    },
    Generator {
        path: "manifests/overlays/replace-builtin/install.yaml",
        render: |workspace| overlays::install(workspace, "replace-builtin"),
    },
    Generator {
        path: "manifests/chart/Chart.yaml",
        render: |_| Ok(chart::chart()),
    },
    Generator {
        path: "manifests/chart/templates/elector.yaml",
        render: chart::templates,
    },
    Generator {
        path: "manifests/chart/values.yaml",
        render: chart::values,
    },
    Generator {
        path: "manifests/overlays/control-plane/static-pod.yaml",
        render: static_pod::yaml,
    },
];

/// Writes the generated files, one after the other: some are made of others.
pub(crate) fn write() -> Result<()> {
    let mut changed = 0;
    for generator in GENERATORS {
        for (generator, text) in stale(paths::workspace(), std::slice::from_ref(generator))? {
            let path = paths::workspace().join(generator.path);
            fs::write(&path, text)
                .with_context(|| format!("failed to write {}", path.display()))?;
            println!("wrote {}", generator.path);
            changed += 1;
        }
    }
    println!("{} generated files, {changed} changed", GENERATORS.len());
    Ok(())
}

/// True if all generated files are as they would be written; names those that are not.
pub(crate) fn check() -> Result<bool> {
    let stale = stale(paths::workspace(), GENERATORS)?;
    for (generator, _) in &stale {
        println!(
            "{} is out of date: run `cargo xtask codegen`",
            generator.path
        );
    }
    println!(
        "{} generated files, {} out of date",
        GENERATORS.len(),
        stale.len()
    );
    Ok(stale.is_empty())
}

/// The files that differ from what they should be, with what that is.
fn stale<'a>(
    workspace: &Path,
    generators: &'a [Generator],
) -> Result<Vec<(&'a Generator, String)>> {
    let mut stale = Vec::new();
    for generator in generators {
        let text = (generator.render)(workspace)
            .with_context(|| format!("failed to render {}", generator.path))?;
        // A file that cannot be read is one that has to be written.
        if fs::read_to_string(workspace.join(generator.path))
            .ok()
            .as_deref()
            != Some(text.as_str())
        {
            stale.push((generator, text));
        }
    }
    Ok(stale)
}

/// Runs the transcript of the README on a real kube-apiserver, and has it written anew, with its picture.
///
/// # Errors
/// When a command of it does not end.
pub(crate) fn record_transcript() -> Result<()> {
    show_and_run(
        cargo()
            .args(["test", "--package", "elector-tests", "--test", "real", "--"])
            .args(["--include-ignored", "readme_says_what_kubectl_says"])
            .env("ELECTOR_RECORD", "1"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_differing_files_are_stale() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("right"), "text").unwrap();
        fs::write(folder.path().join("wrong"), "other").unwrap();
        let generators = ["right", "wrong", "missing"].map(|path| Generator {
            path,
            render: |_| Ok("text".to_owned()),
        });
        let stale: Vec<_> = stale(folder.path(), &generators)
            .unwrap()
            .into_iter()
            .map(|(generator, text)| (generator.path, text))
            .collect();
        assert_eq!(
            stale,
            [("wrong", "text".to_owned()), ("missing", "text".to_owned())]
        );
    }
}
