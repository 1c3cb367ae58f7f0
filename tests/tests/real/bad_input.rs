//! What goes wrong outside: servers, tokens, permissions, objects. One clear line each, and no other lease is affected.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_api::{Lease, LeaseCandidate, parse_time};
use elector_protocol::{Identity, LeaseKey};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, LONGEST_LEASE, Suite, TestProcess, Testbed, command, now,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, ObjectMeta, PostParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use xtask::lock_role;

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let off = &[ClusterMode::GateOff];
    let mut add = |name, cluster_choice, modes: &[ClusterMode], seconds, run| {
        suite.add(
            name,
            cluster_choice,
            OURS,
            modes,
            Duration::from_secs(seconds),
            run,
        );
    };
    add(
        "server_is_unreachable",
        ClusterChoice::Shared,
        off,
        10,
        |testbed| Box::pin(unreachable(testbed)),
    );
    add(
        "token_is_refused",
        ClusterChoice::Shared,
        off,
        10,
        |testbed| Box::pin(refused_token(testbed)),
    );
    add(
        "permission_is_missing",
        ClusterChoice::Own,
        off,
        60,
        |testbed| Box::pin(missing_permission(testbed)),
    );
    add(
        "objects_are_malformed",
        ClusterChoice::Shared,
        MODES,
        45,
        |testbed| Box::pin(malformed(testbed)),
    );
    add(
        "version_is_malformed",
        ClusterChoice::Shared,
        off,
        5,
        |testbed| Box::pin(malformed_version(testbed)),
    );
    add(
        "work_dies_with_a_killed_candidate",
        ClusterChoice::Shared,
        off,
        10,
        |testbed| Box::pin(work_dies(testbed)),
    );
}

/// The administrator's kubeconfig with something changed.
fn kubeconfig(
    testbed: &Testbed,
    name: &str,
    change: impl FnOnce(String) -> String,
) -> Result<PathBuf> {
    let original = fs::read_to_string(testbed.site().kubeconfig())?;
    let path = testbed.folder().join(name);
    fs::write(&path, change(original))?;
    Ok(path)
}

/// Starts the binary under test with these arguments and this kubeconfig.
fn start(
    testbed: &Testbed,
    name: &str,
    kubeconfig: &Path,
    arguments: &[&str],
) -> Result<TestProcess> {
    let mut command = command(&testbed.site().programs().elector, kubeconfig);
    command.args(arguments);
    TestProcess::spawn(name, command, testbed.folder(), |_| {})
}

/// The line that complains; it may be repeated while the trouble lasts, but must not be a stream of them.
async fn complaint(process: &mut TestProcess, parts: &[&str]) -> Result<String> {
    let what = format!("a line with {parts:?}");
    let find = |output: &str| {
        output
            .lines()
            .find(|line| parts.iter().all(|part| line.contains(part)))
            .map(str::to_owned)
    };
    let line = process.output_until(&what, PROMPTLY, find).await?;
    let output = process.output()?;
    for bad in ["panicked", "stack backtrace"] {
        ensure!(!output.contains(bad), "{bad}:\n{output}");
    }
    Ok(line)
}

/// Lets a process that still tries do so for a while, in which a stream of lines would show, and then ends it within
/// the 2 s that it has for that.
async fn end(mut process: TestProcess, most_lines: usize) -> Result<()> {
    if process.ended()?.is_none() {
        sleep(TRYING).await;
    }
    if process.ended()?.is_none() {
        let (_, took) = process.terminate(PROMPTLY).await?;
        ensure!(
            took <= Duration::from_secs(2),
            "it ended {took:?} after SIGTERM"
        );
    }
    let lines = process.output()?.lines().count();
    ensure!(
        lines <= most_lines,
        "{lines} lines are a stream:\n{}",
        process.output()?
    );
    Ok(())
}

async fn unreachable(testbed: Arc<Testbed>) -> Result<()> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let url = format!("https://127.0.0.1:{port}");
    let real = testbed.site().url().to_owned();
    let path = kubeconfig(&testbed, "unreachable", |text| text.replace(&real, &url))?;
    let mut elector = start(&testbed, "elector", &path, &["run"])?;
    let mut candidate = start(&testbed, "candidate", &path, CANDIDATE)?;
    let mut explain = start(&testbed, "explain", &path, &["explain"])?;
    for process in [&mut elector, &mut candidate, &mut explain] {
        complaint(process, &[&url]).await?;
    }
    ensure!(
        !explain.exit(PROMPTLY).await?.success(),
        "explain calls that a success"
    );
    for process in [elector, candidate, explain] {
        end(process, 20).await?;
    }
    Ok(())
}

async fn refused_token(testbed: Arc<Testbed>) -> Result<()> {
    let path = kubeconfig(&testbed, "token", |text| {
        let replaced = |line: &str| match line.split_once("token:") {
            Some((before, _)) => format!("{before}token: \"expired\"\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(replaced).collect()
    })?;
    let mut elector = start(&testbed, "elector", &path, &["run"])?;
    let mut candidate = start(&testbed, "candidate", &path, CANDIDATE)?;
    let mut explain = start(&testbed, "explain", &path, &["explain"])?;
    for process in [&mut elector, &mut candidate, &mut explain] {
        complaint(process, &["401"]).await?;
    }
    ensure!(
        !explain.exit(PROMPTLY).await?.success(),
        "explain calls that a success"
    );
    for process in [elector, candidate, explain] {
        end(process, 20).await?;
    }
    Ok(())
}

/// How long a process with trouble is watched.
const TRYING: Duration = Duration::from_secs(5);

/// A candidate without a name of its own.
const CANDIDATE: &[&str] = &[
    "candidate",
    "--lease=work",
    "--binary-version=1.0.0",
    "--emulation-version=1.0.0",
    "--",
    "sleep",
    "1000",
];

/// In one namespace the elector may do everything, in the other it must not update Leases. The lock of the built-in
/// controller it may read only once the Role that its complaint names is there.
async fn missing_permission(testbed: Arc<Testbed>) -> Result<()> {
    let client = testbed.site().client().clone();
    let (free, bound) = ("permission-free", "permission-bound");
    let free = Testbed::open(Arc::clone(testbed.site()), free, testbed.implementation()).await?;
    let bound = Testbed::open(Arc::clone(testbed.site()), bound, testbed.implementation()).await?;
    let user = "limited";
    let rule = |resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let write = ["get", "list", "watch", "create", "update", "delete"];
    for (namespace, leases, candidates) in [
        (free.namespace(), &write[..], &write[..]),
        (
            bound.namespace(),
            &["get", "list", "watch", "create"],
            &write[..],
        ),
    ] {
        let name = ObjectMeta {
            name: Some(user.to_owned()),
            ..ObjectMeta::default()
        };
        let role = Role {
            metadata: name.clone(),
            rules: Some(vec![
                rule("leases", leases),
                rule("leasecandidates", candidates),
            ]),
        };
        let api: Api<Role> = Api::namespaced(client.clone(), namespace);
        api.create(&PostParams::default(), &role).await?;
        let binding = RoleBinding {
            metadata: name,
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Role".to_owned(),
                name: user.to_owned(),
            },
            subjects: Some(vec![subject(user)]),
        };
        let api: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
        api.create(&PostParams::default(), &binding).await?;
    }
    let role: Role = serde_json::from_value(lock_role::role())?;
    let mut binding: RoleBinding = serde_json::from_value(lock_role::binding())?;
    binding.subjects = Some(vec![subject(user)]);
    let path = kubeconfig(&testbed, "limited", |text| {
        // The administrator may speak for any user.
        let impersonate =
            format!("    as: \"{user}\"\n    as-groups: [\"system:authenticated\"]\n    token:");
        text.replacen("    token:", &impersonate, 1)
    })?;
    let flags = [
        "run",
        "--namespace",
        free.namespace(),
        "--namespace",
        bound.namespace(),
    ];
    let mut elector = start(&testbed, "elector", &path, &flags)?;
    let lock = [
        "leader-election-controller",
        "a Role in the namespace kube-system",
        "list and watch",
    ];
    complaint(&mut elector, &lock).await?;
    let api: Api<Role> = Api::namespaced(client.clone(), "kube-system");
    api.create(&PostParams::default(), &role).await?;
    let api: Api<RoleBinding> = Api::namespaced(client.clone(), "kube-system");
    api.create(&PostParams::default(), &binding).await?;
    let affected = bound.candidate("affected").start()?;
    let unaffected = free.candidate("unaffected").start()?;
    // A new elector waits W_max for names it never saw.
    unaffected.leads(LONGEST_LEASE + PROMPTLY).await?;
    complaint(&mut elector, &["update", "leases", bound.namespace()]).await?;
    let holder = bound.lease()?.spec.holder_identity.clone();
    ensure!(
        holder.as_deref() == Some(""),
        "the forbidden lease is held by {holder:?}"
    );
    drop(affected);
    free.stays("unaffected", 2).await?;
    free.verdict().await?;
    bound.verdict().await?;
    end(elector, 40).await
}

/// A user to whom a Role is bound.
fn subject(user: &str) -> Subject {
    Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "User".to_owned(),
        name: user.to_owned(),
        namespace: None,
    }
}

/// Everything that the server lets in and that makes no sense.
async fn malformed(testbed: Arc<Testbed>) -> Result<()> {
    let end_of_time = parse_time("9999-12-31T23:59:59.999999Z")?;
    for (name, lease, renewed) in [
        ("no-such-name", "Not A Name!", now()),
        ("end-of-time", testbed.lease_name(), end_of_time),
    ] {
        let identity = Identity::new(name).context("an empty name")?;
        let key = LeaseKey::new(testbed.namespace(), lease);
        let mut candidate = LeaseCandidate::named(testbed.site().candidate_api(), &key, &identity);
        candidate.spec.binary_version = "0.0.1".to_owned();
        candidate.spec.emulation_version = "0.0.1".to_owned();
        candidate.spec.renew_time = Some(renewed);
        let candidate = candidate.wishing_for("OldestEmulationVersion");
        let created = testbed
            .candidates()
            .create(&PostParams::default(), &candidate)
            .await;
        if name == "no-such-name" && testbed.site().mode() == ClusterMode::Custom {
            ensure!(
                created.is_err(),
                "the definition takes a lease name that no Lease can have"
            );
        } else {
            created?;
        }
    }
    let odd: Value = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "odd", "namespace": testbed.namespace(),
            "annotations": {"elector.dev/token": "none", "elector.dev/token-term": "-", "elector.dev/strategy": "/"},
        },
        "spec": {
            "holderIdentity": "\u{1f451} \n", "leaseDurationSeconds": 1, "leaseTransitions": i32::MAX,
            "renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "0001-01-01T00:00:01.000000Z",
        },
    });
    let odd: Lease = serde_json::from_value(odd)?;
    testbed.write(&odd).await?;

    let sane = testbed.candidate("sane").start()?;
    let heir = testbed.candidate("heir").lease("odd").start()?;
    sane.leads(PROMPTLY).await?;
    heir.leads(LONGEST_LEASE + PROMPTLY).await?;
    testbed.stays("sane", 3).await?;

    let log = fs::read_to_string(testbed.site().folder().join("elector.log"))?;
    let about = |word: &str| {
        log.lines()
            .filter(|line| line.contains(testbed.namespace()) && line.contains(word))
            .count()
    };
    let lines = about("Not A Name!");
    // The server takes it into its own kind, and the elector refuses it once; the custom resource keeps it out.
    let expected = usize::from(testbed.site().mode() != ClusterMode::Custom);
    ensure!(
        lines == expected,
        "{lines} lines about a lease that cannot exist, not {expected}"
    );
    ensure!(!log.contains("panicked"), "the elector panicked");
    Ok(())
}

/// A version that no server takes is refused before anything is asked of one.
async fn malformed_version(testbed: Arc<Testbed>) -> Result<()> {
    let path = testbed.site().kubeconfig();
    let arguments = [
        "candidate",
        "--lease=work",
        "--binary-version=1.2",
        "--emulation-version=1.0.0",
        "--",
        "true",
    ];
    let mut process = start(&testbed, "candidate", &path, &arguments)?;
    let status = process.exit(PROMPTLY).await?;
    ensure!(
        status.code().is_some_and(|code| code != 0),
        "it ended with {status}"
    );
    complaint(&mut process, &["1.2"]).await?;
    end(process, 6).await?;
    ensure!(
        testbed.journal().len() == 1,
        "something was written all the same"
    );
    Ok(())
}

/// SIGKILL leaves a wrapper no time to clean up; the work must be gone all the same.
async fn work_dies(testbed: Arc<Testbed>) -> Result<()> {
    let file = testbed.folder().join("work.pid");
    let script = format!(
        "trap '' TERM HUP; echo $$ > {}; while :; do sleep 1; done",
        file.display()
    );
    let mut candidate = testbed
        .candidate("candidate")
        .work(&["sh", "-c", &script])
        .start()?;
    candidate.leads(PROMPTLY).await?;
    let work = written(&file).await?;
    ensure!(runs(&work), "the work does not run");
    candidate.kill()?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while runs(&work) {
        if Instant::now() >= deadline {
            bail!("the work outlived its candidate");
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Whether there is such a process; one that only waits for its parent to take note of its end does not count.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which may hold anything but ends with the last parenthesis.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The process id in a file that is about to be written.
async fn written(file: &Path) -> Result<String> {
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return Ok(pid.to_owned());
        }
        if Instant::now() >= deadline {
            bail!("the work wrote no process id");
        }
        sleep(Duration::from_millis(10)).await;
    }
}
