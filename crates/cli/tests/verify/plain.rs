//! A recording of a plain lease: its holders acquire it themselves, and no candidate is recorded (R18).

use serde_json::{Value, json};

use crate::recording::{lines, run, text};

/// A revision at a time; `token` is the version that the term began on, and its number.
#[expect(
    clippy::needless_pass_by_value,
    reason = "reads better with json! literals"
)]
fn revision(at: f64, version: u64, spec: Value, token: Option<(u64, i32)>) -> Value {
    let mut annotations = json!({"example.com/team": "shop"});
    if let Some((token, term)) = token {
        annotations["elector.dev/token"] = token.to_string().into();
        annotations["elector.dev/token-term"] = term.to_string().into();
        // A token that client-go leaves in place belongs to the holder before.
        let holder = spec["holderIdentity"].as_str().unwrap();
        let of = if holder.starts_with("web") {
            holder
        } else {
            "web-0"
        };
        annotations["elector.dev/token-holder"] = of.into();
    }
    json!({"at": at, "type": if version == 10 { "ADDED" } else { "MODIFIED" }, "object": {
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": version.to_string(),
                     "creationTimestamp": time(0), "annotations": annotations},
        "spec": spec,
    }})
}

fn time(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}Z")
}

fn held(holder: &str, term: i32, acquired: u32, renewed: u32) -> Value {
    let micros = |second| time(second).replace('Z', ".000000Z");
    json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": term,
           "acquireTime": micros(acquired), "renewTime": micros(renewed)})
}

/// Two processes of ours and one of client-go: `web-0` dies, `go-0` follows, and lets go.
fn recording(first_takeover: u32) -> Vec<Value> {
    let start = 1_767_225_600.0;
    let mut let_go = held("", 2, 25, 25);
    let_go["leaseDurationSeconds"] = 1.into();
    let next = first_takeover;
    vec![
        revision(start, 10, json!({"holderIdentity": ""}), None),
        revision(start + 1.0, 11, held("web-0", 1, 1, 1), Some((10, 1))),
        revision(start + 4.0, 12, held("web-0", 1, 1, 4), Some((10, 1))),
        revision(
            start + f64::from(next),
            13,
            held("go-0", 2, next, next),
            Some((10, 1)),
        ),
        revision(start + 25.0, 14, let_go, Some((10, 1))),
        // The token of web-0 is still there, so this is no release to one of ours, and it waits for W_max.
        revision(start + 41.0, 15, held("web-1", 3, 41, 41), Some((14, 3))),
        revision(start + 44.0, 16, held("web-1", 3, 41, 44), Some((14, 3))),
    ]
}

#[test]
fn a_plain_lease_is_judged_without_candidates() {
    let output = run(&["-f", "-"], &lines(&recording(20)));
    assert_eq!(text(&output.stderr), "");
    let text = text(&output.stdout);
    for line in [
        "held: S3 S4 S5 S6 S7 S10 S11\n",
        "  1     10     web-0   00:00:01.000000Z  00:00:04.000000Z  1         expired\n",
        "  2     -      go-0    00:00:20.000000Z  00:00:25.000000Z  0         released\n",
        "  3     14     web-1   00:00:41.000000Z  00:00:44.000000Z  1         leads on\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_plain_holder_that_is_followed_too_early_refutes_it() {
    let mut early = recording(20);
    early[5] = revision(1_767_225_626.5, 15, held("web-1", 3, 26, 26), Some((14, 3)));
    let output = run(&["-f", "-"], &lines(&early));
    let said = text(&output.stdout);
    let breach = "S3 @15 at 2026-01-01T00:00:26.500000Z: acquired 6.500 s after go-0 renewed, which is before its 15 s \
                  are over (R4, R6, R18)";
    assert!(said.contains(breach), "{said}");
    assert_eq!(output.status.code(), Some(1));
    // Were it the lock of electors, they need not have waited.
    let output = run(&["-f", "-", "--elector-lock", "shop/web"], &lines(&early));
    assert!(!text(&output.stdout).contains("REFUTED: S3"));
    let output = run(&["-f", "-", "--elector-lock", "web"], "");
    assert!(text(&output.stderr).contains("not of the form namespace/name"));
}
