//! The environment variables of `elector candidate`.

use std::process::Command;

/// A variable is a flag that is not typed, and is refused as that is.
#[test]
fn flags_of_a_candidate_are_taken_from_the_environment_too() {
    let refusal = |variables: &[(&str, &str)], flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_elector"))
            .arg("candidate")
            .args(flags)
            .env_clear()
            .envs(variables.iter().copied())
            .output()
            .expect("run elector");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).expect("text")
    };
    let lease = ("ELECTOR_LEASE_NAME", "web");
    let plain = ("ELECTOR_MODE", "plain");
    let version = ("ELECTOR_BINARY_VERSION", "1.0.0");
    let text = refusal(&[lease, plain, version], &[]);
    assert!(
        text.contains("--binary-version does not go with --mode plain"),
        "{text}"
    );
    let text = refusal(&[plain], &["--lease", "Web"]);
    assert!(text.contains("the lease \"Web\" cannot exist"), "{text}");
    let text = refusal(&[("ELECTOR_LEASE_NAME", "Web"), plain], &[]);
    assert!(text.contains("the lease \"Web\" cannot exist"), "{text}");
    let text = refusal(&[lease, ("ELECTOR_BINARY_VERSION", "v1")], &[]);
    assert!(text.contains("is not a semantic version"), "{text}");
}
