//! The manifests, tried on a real API server.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::binaries::{Binary, Toolbox};
use crate::cluster::{Options, TestCluster};
use crate::commands;
use crate::paths;

/// The service account of the elector, as the API server names it.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:elector-system:elector";

/// All that the elector may do with resources, as `kubectl auth can-i --list` shows it: no more, no less.
const RIGHTS: [&str; 5] = [
    "events.events.k8s.io [create patch]",
    "leasecandidates.coordination.k8s.io [list watch patch delete]",
    "leasecandidates.elector.dev [list watch patch delete]",
    "leases.coordination.k8s.io [get list watch create update]",
    // No server serves these; the admission policies ask for the right.
    "leases.elector.dev [elect]",
];

/// Starts a cluster and tries everything in `manifests/` on it.
pub(crate) fn try_on_a_cluster(options: &Options) -> Result<()> {
    let toolbox = Toolbox::new(options.kubernetes)?;
    let kubectl = toolbox.path(Binary::Kubectl)?;
    let cluster = TestCluster::start(options)?;
    print!("{}", apply(&kubectl, &cluster.kubeconfig())?);
    check_rights(&kubectl, &cluster.kubeconfig())?;
    check_flow(&kubectl, &cluster.kubeconfig())?;
    println!("rights of {SERVICE_ACCOUNT}:");
    RIGHTS.iter().for_each(|right| println!("  {right}"));
    cluster.stop()
}

/// `kubectl apply -k manifests/overlays/native`, twice, then `manifests/base`, of which it is made, and the single file
/// `manifests/install.yaml`: the first must be accepted without a warning, and none of the others may change a thing.
/// Then the same twice for `manifests/overlays/crd`, and for the Roles of `manifests/components/builtin-lock` and
/// `manifests/candidate`. `manifests/overlays/replace-builtin` may change the Deployment alone, and
/// `manifests/overlays/monitoring` is built. Returns what the first of each said.
///
/// # Errors
/// When the API server refuses an object or warns about one, or a repetition changes something.
pub fn apply(kubectl: &Path, kubeconfig: &Path) -> Result<String> {
    let native = paths::workspace().join("manifests/overlays/native");
    let base = paths::workspace().join("manifests/base");
    let install = paths::workspace().join("manifests/install.yaml");
    let run = |flag: &str, path: &Path| {
        let mut command = Command::new(kubectl);
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("apply")
            .arg(flag)
            .arg(path);
        commands::read(&mut command)
    };
    let accepted = |flag: &str, path: &Path| {
        let first = run(flag, path)?;
        if !first.stderr.trim().is_empty() {
            bail!(
                "the API server warns about {}: {}",
                path.display(),
                first.stderr.trim()
            );
        }
        Ok(first.stdout)
    };
    let overlay = paths::workspace().join("manifests/overlays/crd");
    let role = paths::workspace().join("manifests/components/builtin-lock/role.yaml");
    let candidate = paths::workspace().join("manifests/candidate/role.yaml");
    let flow = paths::workspace().join("manifests/candidate/flow-schema.yaml");
    let mut said = accepted("-k", &native)?;
    for (flag, path) in [
        ("-k", &native),
        ("-k", &base),
        ("-f", &install),
        ("-k", &overlay),
        ("-f", &role),
        ("-f", &candidate),
        ("-f", &flow),
    ] {
        if [&overlay, &role, &candidate, &flow].contains(&path) {
            said.push_str(&accepted(flag, path)?);
        }
        let again = run(flag, path)?;
        if let Some(line) = again.stdout.lines().find(|line| !is_unchanged(line)) {
            bail!(
                "applying {} again changes something: {line}",
                path.display()
            );
        }
    }
    let replacing = paths::workspace().join("manifests/overlays/replace-builtin");
    let said_of_it = accepted("-k", &replacing)?;
    let mut changes = said_of_it.lines().filter(|line| !is_unchanged(line));
    let (change, more) = (changes.next(), changes.next());
    if (change, more) != (Some("deployment.apps/elector configured"), None) {
        bail!("applying {} says: {said_of_it}", replacing.display());
    }
    // Its kinds are those of an operator that is not here, so it is only built.
    let monitoring = paths::workspace().join("manifests/overlays/monitoring");
    let built = commands::read(Command::new(kubectl).arg("kustomize").arg(&monitoring))?;
    if !built.stdout.contains("kind: PrometheusRule") {
        bail!("{} has no PrometheusRule", monitoring.display());
    }
    Ok(said)
}

/// Compares what the elector's service account may do with what it needs.
///
/// # Errors
/// Names every right that is missing or too much.
pub fn check_rights(kubectl: &Path, kubeconfig: &Path) -> Result<()> {
    // A namespace of no importance: the elector's rights are the same everywhere.
    let output = commands::read(
        Command::new(kubectl)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args([
                "auth",
                "can-i",
                "--list",
                "--namespace=default",
                "--as",
                SERVICE_ACCOUNT,
            ]),
    )?;
    let found = resource_rights(&output.stdout);
    let expected: BTreeSet<String> = RIGHTS.iter().map(ToString::to_string).collect();
    if found != expected {
        let list = |rights: Vec<&String>| {
            rights
                .into_iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        };
        bail!(
            "{SERVICE_ACCOUNT} lacks: {}; may but should not: {}",
            list(expected.difference(&found).collect()),
            list(found.difference(&expected).collect())
        );
    }
    Ok(())
}

/// Whether kubectl says that an object is as before.
fn is_unchanged(line: &str) -> bool {
    // It replaces the selector of a budget by the same one each time.
    line.ends_with(" unchanged") || line == "poddisruptionbudget.policy/elector configured"
}

/// Asks as the elector does, and looks which FlowSchema the API server found for it (T15).
///
/// # Errors
/// When it is not that of the manifests.
pub fn check_flow(kubectl: &Path, kubeconfig: &Path) -> Result<()> {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        commands::read(&mut command)
    };
    let uid = [
        "get",
        "flowschema",
        "elector",
        "--output=jsonpath={.metadata.uid}",
    ];
    let uid = run(&uid)?.stdout;
    for resource in ["leases", "leasecandidates.elector.dev"] {
        // Told with the headers of each answer; before the last one kubectl asks what the server serves.
        let said = run(&[
            "get",
            resource,
            "--all-namespaces",
            "--as",
            SERVICE_ACCOUNT,
            "--v=8",
        ])?;
        let header = said.stderr.lines().rev().find_map(|line| {
            let line = line.to_ascii_lowercase();
            let (_, value) = line.split_once("x-kubernetes-pf-flowschema-uid")?;
            Some(value.to_owned())
        });
        let found = header.context("the API server names no FlowSchema")?;
        if !found.contains(uid.trim()) {
            bail!("requests for {resource} are in FlowSchema {found}, and not in {uid}");
        }
    }
    Ok(())
}

/// The rows of `kubectl auth can-i --list` about resources, as `RESOURCE [VERBS]`, without what every
/// authenticated user may do: ask about itself.
fn resource_rights(table: &str) -> BTreeSet<String> {
    table
        .lines()
        .skip(1)
        // A row about a URL begins with blanks where the resource would be.
        .filter(|row| !row.starts_with(' ') && !row.starts_with("selfsubject"))
        .filter_map(|row| {
            let resource = row.split_whitespace().next()?;
            let verbs = &row[row.rfind('[')?..];
            Some(format!("{resource} {verbs}"))
        })
        .collect()
}

/// `manifests/overlays/native` as one file, for `kubectl apply -f`: the resources in the order in which the
/// kustomizations list them. There is nothing else in them that would have to be rendered.
pub(crate) fn install(workspace: &Path) -> Result<String> {
    let mut text =
        "# Elector in one file. Generated by `cargo xtask codegen` from manifests/overlays/native.\n"
            .to_owned();
    for path in files(&workspace.join("manifests/overlays/native"))? {
        text.push_str("---\n");
        text.push_str(&read(&path)?);
    }
    Ok(text)
}

/// The files of a kustomization, and of the folders that it is made of.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let path = folder.join("kustomization.yaml");
    let entries = read(&path)?;
    let entries = entries_of(&entries).with_context(|| format!("in {}", path.display()))?;
    for entry in entries {
        let path = folder.join(entry);
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

/// The files and folders that a kustomization lists; anything but such lists is refused, since it would be lost.
fn entries_of(kustomization: &str) -> Result<Vec<&str>> {
    let mut entries = Vec::new();
    let mut listing = false;
    for line in kustomization
        .lines()
        .filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty())
    {
        if let Some(entry) = line.trim_start().strip_prefix("- ").filter(|_| listing) {
            entries.push(entry);
        } else if line == "resources:" || line == "components:" {
            listing = true;
        } else if line.starts_with("apiVersion: ") || line.starts_with("kind: ") {
            listing = false;
        } else {
            bail!("{line:?} is nothing that this generator knows");
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_from_the_table() {
        let table = "\
Resources                                  Non-Resource URLs   Resource Names   Verbs
leases.coordination.k8s.io                 []                  []               [get list]
selfsubjectreviews.authentication.k8s.io   []                  []               [create]
                                           [/api/*]            []               [get]
*.*                                        []                  []               [*]
secrets                                    []                  [one]            [get]
";
        let rights: Vec<_> = resource_rights(table).into_iter().collect();
        assert_eq!(
            rights,
            [
                "*.* [*]",
                "leases.coordination.k8s.io [get list]",
                "secrets [get]"
            ]
        );
    }

    #[test]
    fn only_plain_lists_of_files_are_understood() {
        let plain = "# c\napiVersion: x/v1\nkind: K\nresources:\n  - a.yaml\n  # why\n  - b.yaml\ncomponents:\n  - ../c\n";
        assert_eq!(entries_of(plain).unwrap(), ["a.yaml", "b.yaml", "../c"]);
        assert!(entries_of("resources:\n- a.yaml\nnamePrefix: x-\n").is_err());
        assert!(entries_of("patches:\n- a.yaml\n").is_err());
    }

    #[test]
    fn the_policies_are_a_part_of_every_overlay_and_of_the_single_file() {
        let overlays = paths::workspace().join("manifests/overlays");
        let mut found = 0;
        for overlay in overlays.read_dir().unwrap() {
            let path = overlay.unwrap().path().join("kustomization.yaml");
            let text = read(&path).unwrap();
            let entries = entries_of(&text).unwrap();
            assert!(
                entries.contains(&"../../components/policies"),
                "{}",
                path.display()
            );
            found += 1;
        }
        assert!(found >= 2);
        let install = install(paths::workspace()).unwrap();
        assert!(install.contains("kind: ValidatingAdmissionPolicyBinding\n"));
    }
}
