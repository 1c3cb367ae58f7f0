//! Tests of the rules, one by one.

use serde_json::{Value, json};

use super::*;

const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
     with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn text(errors: &[FieldError]) -> String {
    texts(errors).join("\n")
}

#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
fn lease(spec: Value) -> Lease {
    let metadata = json!({"namespace": "ns", "name": "l", "uid": "u", "resourceVersion": "1"});
    Lease::from_value(json!({"metadata": metadata, "spec": spec}))
}

#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
fn candidate(spec: Value) -> LeaseCandidate {
    let mut wire = json!({
        "metadata": {"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "1"},
        "spec": {
            "leaseName": "l", "binaryVersion": "1.2.0", "emulationVersion": "1.1.0",
            "strategy": "OldestEmulationVersion",
        },
    });
    for (name, value) in spec.as_object().unwrap() {
        wire["spec"][name] = value.clone();
    }
    LeaseCandidate::from_value(wire)
}

#[test]
fn every_rule_of_a_lease() {
    let two_slashes = format!(
        "spec.strategy.strategy: Invalid value: \"a/b/c\": a valid label key {} with an optional DNS subdomain \
         prefix and '/' (e.g. 'example.com/MyName')",
        NAME_PART.trim_start_matches("name part ")
    );
    let name_part = format!("spec.strategy.strategy: Invalid value: \"a/\": {NAME_PART}");
    let cases: [(Value, &str); 14] = [
        (json!({}), ""),
        (
            json!({"holderIdentity": " any\ntext ", "leaseDurationSeconds": 1, "leaseTransitions": 0}),
            "",
        ),
        (json!({"preferredHolder": ""}), ""),
        (
            json!({"preferredHolder": "anything", "strategy": "a.b/C_d"}),
            "",
        ),
        (
            json!({"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            json!({"leaseDurationSeconds": -5, "leaseTransitions": -1}),
            &["spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0", "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"].join("\n"),
        ),
        (
            json!({"strategy": ""}),
            "spec.strategy.strategy: Unsupported value: \"\": supported values: \"OldestEmulationVersion\"",
        ),
        (
            json!({"strategy": "oldestemulationversion"}),
            "spec.strategy.strategy: Unsupported value: \"oldestemulationversion\": \
               supported values: \"OldestEmulationVersion\"",
        ),
        (json!({"strategy": "a/b/c"}), &two_slashes),
        (
            json!({"strategy": "a/"}),
            &["spec.strategy.strategy: Invalid value: \"a/\": name part must be non-empty", &name_part].join("\n"),
        ),
        (
            json!({"strategy": "/b"}),
            "spec.strategy.strategy: Invalid value: \"/b\": prefix part must be non-empty",
        ),
        (
            json!({"preferredHolder": "x"}),
            "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
        ),
        (
            json!({"preferredHolder": "x", "strategy": ""}),
            &["spec.strategy.strategy: Unsupported value: \"\": supported values: \"OldestEmulationVersion\"", "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"].join("\n"),
        ),
        (
            json!({"renewTime": "x"}),
            "spec.renewTime: Invalid value: \"x\": must be an RFC 3339 time of the years 1 to 9999",
        ),
    ];
    for (spec, expected) in cases {
        let new = lease(spec);
        assert_eq!(text(&validate_lease(&new)), expected, "{:?}", new.spec);
        let old = lease(json!({"leaseTransitions": 9}));
        assert_eq!(text(&validate_lease_update(&new, &old)), expected);
    }
}

#[test]
fn every_rule_of_a_candidate() {
    let needed = "spec.emulationVersion: Required value: \
                  must be specified when `strategy` is 'OldestEmulationVersion'";
    let cases: [(Value, &str); 19] = [
        (json!({}), ""),
        (json!({"emulationVersion": "1.2.0"}), ""),
        (json!({"emulationVersion": "", "strategy": "a/b"}), ""),
        (
            json!({"emulationVersion": "1.2.0+build", "binaryVersion": "1.2.0"}),
            "",
        ),
        // The name of no Lease: not checked.
        (json!({"leaseName": "Not/A.Name "}), ""),
        (
            json!({"leaseName": ""}),
            "spec.leaseName: Required value",
        ),
        (
            json!({"binaryVersion": null}),
            "spec.binaryVersion: Required value",
        ),
        (
            json!({"binaryVersion": "1.2"}),
            &["spec.binaryVersion: Invalid value: \"1.2\": must be a valid semantic version", "spec.binaryVersion: Invalid value: \"1.2\": must be greater than or equal to `emulationVersion`"].join("\n"),
        ),
        (
            json!({"emulationVersion": "v1.2.0", "strategy": "a/b"}),
            "spec.emulationVersion: Invalid value: \"v1.2.0\": must be a valid semantic version",
        ),
        (
            json!({"emulationVersion": "01.2.0"}),
            &["spec.emulationVersion: Invalid value: \"01.2.0\": must be a valid semantic version", needed].join("\n"),
        ),
        (
            json!({"emulationVersion": "1.30.0", "binaryVersion": "1.30.0-alpha.1"}),
            "spec.binaryVersion: Invalid value: \"1.30.0-alpha.1\": \
               must be greater than or equal to `emulationVersion`",
        ),
        (json!({"strategy": ""}), "spec.strategy: Required value"),
        (
            json!({"binaryVersion": format!("1.2.0-{}", "a".repeat(300))}),
            "",
        ),
        (
            json!({"binaryVersion": "2.0.0-99999999999999999999"}),
            &["spec.binaryVersion: Invalid value: \"2.0.0-99999999999999999999\": must be a valid semantic version", "spec.binaryVersion: Invalid value: \"2.0.0-99999999999999999999\": \
                 must be greater than or equal to `emulationVersion`"].join("\n"),
        ),
        (
            json!({"strategy": "Newest"}),
            "spec.strategy.strategy: Unsupported value: \"Newest\": supported values: \"OldestEmulationVersion\"",
        ),
        (json!({"emulationVersion": ""}), needed),
        (json!({"emulationVersion": "0.0.0+x"}), needed),
        (json!({"emulationVersion": "0.0.0-x"}), ""),
        (
            json!({"strategy": 3}),
            "spec.strategy: Invalid value: 3: must be a string",
        ),
    ];
    for (spec, expected) in cases {
        let new = candidate(spec);
        assert_eq!(text(&validate_candidate(&new)), expected, "{:?}", new.spec);
    }
}

#[test]
fn every_rule_of_a_list_of_strategies() {
    let needed = |field: &str| {
        format!(
            "spec.{field}: Required value: must be specified when `strategy` is 'OldestEmulationVersion'"
        )
    };
    let unsupported = |index, text: &str| {
        format!(
            "spec.preferredStrategies[{index}].strategy: Unsupported value: {text:?}: \
             supported values: \"OldestEmulationVersion\""
        )
    };
    let cases: [(Value, Vec<String>); 8] = [
        (json!({"strategy": "x", "binaryVersion": null}), vec![]),
        (
            json!({"preferredStrategies": ["a/b", "OldestEmulationVersion", "a/b"]}),
            vec![],
        ),
        (
            json!({"preferredStrategies": ["a/b"], "binaryVersion": "", "emulationVersion": ""}),
            vec![],
        ),
        (
            json!({"preferredStrategies": ["a/b"], "binaryVersion": "1.0.0"}),
            vec!["spec.binaryVersion: Invalid value: \"1.0.0\": must be greater than or equal to `emulationVersion`".into()],
        ),
        (
            json!({
                "preferredStrategies": ["OldestEmulationVersion", "OldestEmulationVersion"],
                "binaryVersion": "", "emulationVersion": "0.0.0",
            }),
            vec![needed("binaryVersion"), needed("emulationVersion")],
        ),
        (
            json!({"preferredStrategies": ["a/b", "x", "OldestEmulationVersion", ""], "emulationVersion": ""}),
            vec![unsupported(1, "x"), needed("emulationVersion"), unsupported(3, "")],
        ),
        (
            json!({"preferredStrategies": ["a/"]}),
            vec![
                "spec.preferredStrategies[0].strategy: Invalid value: \"a/\": name part must be non-empty".into(),
                format!("spec.preferredStrategies[0].strategy: Invalid value: \"a/\": {NAME_PART}"),
            ],
        ),
        (
            json!({"preferredStrategies": ["a/b", 3]}),
            vec!["spec.preferredStrategies: Invalid value: [\"a/b\",3]: must be a list of strings".into()],
        ),
    ];
    for (spec, expected) in cases {
        let mut new = candidate(spec);
        new.api = CandidateApi::V1Alpha1;
        assert_eq!(texts(&validate_candidate(&new)), expected, "{:?}", new.spec);
    }
}

#[test]
fn only_the_lease_name_of_a_candidate_is_immutable() {
    let old = candidate(json!({"renewTime": "2026-01-01T00:00:00Z"}));
    let changed = json!({
        "binaryVersion": "1.0.0", "emulationVersion": "0.9.0", "strategy": "a/b",
        "renewTime": "2000-01-01T00:00:00Z", "pingTime": "1999-01-01T00:00:00Z",
    });
    assert_eq!(validate_candidate_update(&candidate(changed), &old), []);
    assert_eq!(
        texts(&validate_candidate_update(
            &candidate(json!({"leaseName": "other"})),
            &old
        )),
        ["spec.leaseName: Invalid value: \"other\": field is immutable"]
    );
}

/// The stated difference: Kubernetes' own kinds take any text that is not empty.
#[test]
fn only_a_custom_resource_demands_the_name_of_a_lease_that_can_exist() {
    let (longest, longer) = ("a".repeat(253), "a".repeat(254));
    let refused = format!("spec.leaseName: Invalid value: \"A\": {LEASE_NAME_RULE}");
    let too_long = "spec.leaseName: Too long: may not be more than 253 bytes".to_owned();
    for (name, expected) in [
        ("0.a-b", None),
        (&longest, None),
        ("A", Some(refused)),
        (&longer, Some(too_long)),
    ] {
        let mut new = candidate(json!({"leaseName": name, "preferredStrategies": ["a/b"]}));
        for api in CandidateApi::ALL {
            new.api = api;
            let expected = expected.iter().filter(|_| api == CandidateApi::Elector);
            let expected: Vec<_> = expected.cloned().collect();
            assert_eq!(texts(&validate_candidate(&new)), expected, "{api}: {name}");
        }
    }
}

#[test]
fn a_custom_resource_has_a_plainer_name_and_shorter_versions() {
    let mut named = candidate(json!({"preferredStrategies": ["a/b"]}));
    named.metadata.name = Some("Host_0.uid-".into());
    for api in [
        CandidateApi::V1Beta1,
        CandidateApi::V1Alpha2,
        CandidateApi::V1Alpha1,
    ] {
        named.api = api;
        assert_eq!(validate_candidate(&named), []);
    }
    named.api = CandidateApi::Elector;
    named.spec.binary_version = format!("1.2.0-{}", "a".repeat(251));
    let expected = ["spec.binaryVersion: Too long: may not be more than 256 bytes"];
    assert_eq!(texts(&validate_candidate(&named))[1..], expected);
    named.spec.binary_version.pop();
    assert_eq!(validate_candidate(&named).len(), 1);
    named.metadata.name = Some("host-0".into());
    assert_eq!(validate_candidate(&named), []);
}
