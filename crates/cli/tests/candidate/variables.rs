//! The environment variables of `elector candidate`.

use crate::elector;

/// A variable is a flag that is not typed, and is refused as that is.
#[test]
fn flags_of_a_candidate_are_taken_from_the_environment_too() {
    let refusal = |variables: &[(&str, &str)], flags: &[&str]| failure(2, variables, flags);
    let lease = ("ELECTOR_LEASE_NAME", "web");
    let plain = ("ELECTOR_MODE", "plain");
    let version = ("ELECTOR_BINARY_VERSION", "1.0.0");
    let text = refusal(&[lease, plain, version], &[]);
    let holds = text.contains("--binary-version does not go with --mode plain");
    assert!(holds, "{text}");
    let text = refusal(&[plain], &["--lease", "Web"]);
    let holds = text.contains("--lease is refused: no Lease can have this name");
    assert!(holds, "{text}");
    let text = refusal(&[("ELECTOR_LEASE_NAME", "Web"), plain], &[]);
    let holds = text.contains("--lease is refused: no Lease can have this name");
    assert!(holds, "{text}");
    let text = refusal(&[lease, ("ELECTOR_BINARY_VERSION", "v1")], &[]);
    assert!(text.contains("is not a semantic version"), "{text}");
}

/// The flags of the connection have theirs, and a flag that is typed wins.
#[test]
fn flags_of_the_connection_are_taken_from_the_environment_too() {
    let lease = ("ELECTOR_LEASE_NAME", "web");
    let version = ("ELECTOR_BINARY_VERSION", "1.0.0");
    let group = ("ELECTOR_AS_GROUP", "ops");
    let text = failure(2, &[lease, version, group], &[]);
    assert!(text.contains("--as <USER>"), "{text}");
    let timeout = ("ELECTOR_REQUEST_TIMEOUT", "1ms");
    let text = failure(2, &[lease, version, timeout], &[]);
    assert!(text.contains("at least 100ms"), "{text}");
    let file = ("ELECTOR_KUBECONFIG", "/nowhere/a");
    let text = failure(1, &[lease, version, file], &[]);
    assert!(text.contains("read kubeconfig /nowhere/a"), "{text}");
    let text = failure(1, &[lease, version, file], &["--kubeconfig", "/nowhere/b"]);
    assert!(text.contains("read kubeconfig /nowhere/b"), "{text}");
}

/// An election that is switched off is switched off by a variable, and needs no cluster.
#[test]
fn a_disabled_election_runs_its_command_where_there_is_no_cluster() {
    let output = elector()
        .args(["candidate", "--lease", "web", "--"])
        .args(["sh", "-c", "echo term $ELECTOR_TERM, then 7; exit 7"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("ELECTOR_MODE", "disabled")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert_eq!(output.stdout, b"term 0, then 7\n");
    assert!(said.contains("leader election is disabled"), "{said}");
}

/// The message of `elector candidate` when it ends so.
fn failure(code: i32, variables: &[(&str, &str)], flags: &[&str]) -> String {
    let output = elector()
        .arg("candidate")
        .args(flags)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}
