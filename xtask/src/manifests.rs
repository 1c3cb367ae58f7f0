//! The manifests, tried on a real API server.

pub mod chart;
pub use elector_cluster::overlays;
pub(crate) mod static_pod;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::binaries::{Binary, Toolbox};
use crate::cluster::{Options, RealCluster};
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
    let cluster = RealCluster::start(options)?;
    print!("{}", apply(&kubectl, &cluster.kubeconfig())?);
    check_rights(&kubectl, &cluster.kubeconfig())?;
    check_flow(&kubectl, &cluster.kubeconfig())?;
    println!("rights of {SERVICE_ACCOUNT}:");
    RIGHTS.iter().for_each(|right| println!("  {right}"));
    cluster.stop()
}

/// Applies everything that can stand beside each other: the overlays `native`, `crd`, which has `cluster-wide` in it, and
/// `replace-builtin`, the Roles of
/// `manifests/components/builtin-lock` and `manifests/candidate`, and the flow schema there. Each must be accepted without a
/// warning, and change nothing when it is applied again, as a folder or as the file `install.yaml`; `replace-builtin` may
/// change the Deployment, and what it takes to serve kube-system. What would take away what these need is applied without effect (`--dry-run=server`):
/// `namespaced` and `control-plane`, with its static Pod; and so are the examples. `monitoring` is built, since its kinds are those of an operator.
/// Returns what the first of each said, without `replace-builtin` and what came after it.
///
/// # Errors
/// When the API server refuses an object or warns about one, or a repetition changes something.
pub fn apply(kubectl: &Path, kubeconfig: &Path) -> Result<String> {
    let run = |arguments: &[&str], path: &Path| {
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig).arg("apply");
        commands::read(command.args(arguments).arg(path))
    };
    let accepted = |arguments: &[&str], path: &Path| {
        let first = run(arguments, path)?;
        if !first.stderr.trim().is_empty() {
            bail!(
                "the API server warns about {}: {}",
                path.display(),
                first.stderr.trim()
            );
        }
        Ok(first.stdout)
    };
    let unchanged = |flag: &str, path: &Path| {
        let again = run(&[flag], path)?;
        match again.stdout.lines().find(|line| !is_unchanged(line)) {
            Some(line) => bail!(
                "applying {} again changes something: {line}",
                path.display()
            ),
            None => Ok(()),
        }
    };
    let manifests = paths::workspace().join("manifests");
    let (native, crd) = (overlays::folder("native"), overlays::folder("crd"));
    let mut said = accepted(&["-k"], &native)?;
    unchanged("-k", &native)?;
    unchanged("-k", &manifests.join("base"))?;
    unchanged("-f", &overlays::install_file("native"))?;
    said.push_str(&accepted(&["-k"], &crd)?);
    unchanged("-k", &crd)?;
    unchanged("-f", &overlays::install_file("crd"))?;
    unchanged("-f", &overlays::install_file("cluster-wide"))?;
    for file in [
        "components/builtin-lock/role.yaml",
        "candidate/role.yaml",
        "candidate/endpoint-slice.yaml",
        "candidate/events.yaml",
        "candidate/group.yaml",
        "candidate/flow-schema.yaml",
        "candidate/pod-label.yaml",
    ] {
        said.push_str(&accepted(&["-f"], &manifests.join(file))?);
        unchanged("-f", &manifests.join(file))?;
    }
    let replacing = overlays::folder("replace-builtin");
    let said_of_it = accepted(&["-k"], &replacing)?;
    // It serves kube-system: its policies judge that namespace too, and Roles there are new.
    let is_expected = |line: &str| {
        let [object, outcome] = [0, 1].map(|part| line.split(' ').nth(part).unwrap_or_default());
        let kind = object.split_once('/').map_or(object, |(kind, _)| kind);
        is_unchanged(line)
            || match kind {
                "deployment.apps"
                | "validatingadmissionpolicybinding.admissionregistration.k8s.io" => {
                    outcome == "configured"
                }
                "role.rbac.authorization.k8s.io" | "rolebinding.rbac.authorization.k8s.io" => {
                    outcome == "created"
                }
                _ => false,
            }
    };
    if let Some(line) = said_of_it.lines().find(|line| !is_expected(line)) {
        bail!("applying {} says: {line}", replacing.display());
    }
    unchanged("-f", &overlays::install_file("replace-builtin"))?;
    for file in [
        overlays::install_file("namespaced"),
        overlays::install_file("control-plane"),
        overlays::folder("control-plane").join("static-pod.yaml"),
        manifests.join("examples/group.yaml"),
        manifests.join("examples/sidecar.yaml"),
        manifests.join("examples/static-pod.yaml"),
        manifests.join("examples/wrapper.yaml"),
    ] {
        accepted(&["--dry-run=server", "-f"], &file)?;
    }
    let monitoring = overlays::folder("monitoring");
    let built = overlays::kustomize(&monitoring)?;
    if !built.contains("kind: PrometheusRule") {
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

/// True if kubectl says that an object is as before.
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
    let (get, delete) = ("get leases none", "delete leasecandidates.elector.dev none");
    // Lists are left to the level of all accounts.
    for (request, is_ours) in [(get, true), (delete, true), ("get leases", false)] {
        // Reported with the headers of each answer; before the last one kubectl asks what the server serves.
        let mut arguments: Vec<&str> = request.split(' ').collect();
        let flags = ["--namespace=default", "--ignore-not-found", "--v=8"];
        arguments.extend(flags.iter().chain(&["--as", SERVICE_ACCOUNT]));
        let said = run(&arguments)?;
        let header = said.stderr.lines().rev().find_map(|line| {
            let line = line.to_ascii_lowercase();
            let (_, value) = line.split_once("x-kubernetes-pf-flowschema-uid")?;
            Some(value.to_owned())
        });
        let found = header.context("the API server names no FlowSchema")?;
        if found.contains(uid.trim()) != is_ours {
            bail!("`kubectl {request}` is in FlowSchema {found}, and that of the elector is {uid}");
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

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

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
    fn every_overlay_has_the_policies_and_all_but_one_can_be_installed_from_a_file() {
        let folder = paths::workspace().join("manifests/overlays");
        let mut installable = Vec::new();
        for overlay in folder.read_dir().unwrap() {
            let overlay = overlay.unwrap().path();
            let kustomization = fs::read_to_string(overlay.join("kustomization.yaml")).unwrap();
            let policies = "\n  - ../../components/policies\n";
            assert!(kustomization.contains(policies), "{}", overlay.display());
            let name = overlay.file_name().unwrap().to_str().unwrap().to_owned();
            if name == "monitoring" {
                continue;
            }
            let install = fs::read_to_string(overlay.join("install.yaml")).unwrap();
            let objects = overlays::objects(&install).unwrap();
            let of_policies =
                |object: &&Value| object["kind"] == "ValidatingAdmissionPolicyBinding";
            let bindings: Vec<_> = objects.iter().filter(of_policies).collect();
            assert_eq!(bindings.len(), 7, "{name}");
            // The namespaces that are judged are those that its electors serve.
            let selector = |operator: &str, names: &[&str]| {
                let key = "kubernetes.io/metadata.name";
                let expression = json!({"key": key, "operator": operator, "values": names});
                json!({"namespaceSelector": {"matchExpressions": [expression]}})
            };
            for binding in bindings {
                let of_electors = binding["metadata"]["name"] == "elector-account";
                let judged = match name.as_str() {
                    "control-plane" | "replace-builtin" => Value::Null,
                    "namespaced" => selector("In", &["default", "elector-system"]),
                    _ if of_electors => Value::Null,
                    _ => selector("NotIn", &["kube-system"]),
                };
                assert_eq!(binding["spec"]["matchResources"], judged, "{name}");
                assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
            }
            installable.push(name);
        }
        installable.sort();
        assert_eq!(installable, overlays::INSTALLABLE);
    }

    /// The rules of OpenShift's SecurityContextConstraints restricted-v2, which the account of any Pod may use: the user and
    /// the groups are those of the namespace.
    #[test]
    fn the_pods_are_as_restricted_v2_admits_them() {
        for overlay in overlays::INSTALLABLE {
            let install = fs::read_to_string(overlays::install_file(overlay)).unwrap();
            let objects = overlays::objects(&install).unwrap();
            let Ok(deployment) = overlays::object(&objects, "Deployment", "elector") else {
                continue;
            };
            let pod = &deployment["spec"]["template"]["spec"];
            let text = pod.to_string();
            for refused in [
                "runAsUser",
                "runAsGroup",
                "fsGroup",
                "supplementalGroups",
                "seLinuxOptions",
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "hostPort",
                "hostPath",
                "\"add\"",
            ] {
                assert!(!text.contains(refused), "{overlay}: {refused}");
            }
            let profile = &pod["securityContext"]["seccompProfile"]["type"];
            assert_eq!(profile, "RuntimeDefault", "{overlay}");
            let container = &pod["containers"][0]["securityContext"];
            assert_eq!(container["allowPrivilegeEscalation"], false, "{overlay}");
            let dropped = &container["capabilities"]["drop"];
            assert_eq!(dropped, &serde_json::json!(["ALL"]), "{overlay}");
        }
    }

    #[test]
    fn the_image_has_the_version_of_the_workspace_and_is_named_once() {
        let manifests = paths::workspace().join("manifests");
        let base = fs::read_to_string(manifests.join("base/kustomization.yaml")).unwrap();
        assert!(base.contains(&format!("\n    newTag: {}\n", env!("CARGO_PKG_VERSION"))));
        for overlay in overlays::INSTALLABLE.iter().chain(&["monitoring"]) {
            let path = overlays::folder(overlay).join("kustomization.yaml");
            let text = fs::read_to_string(path).unwrap();
            assert!(!text.contains("image"), "{overlay}");
        }
    }
}
