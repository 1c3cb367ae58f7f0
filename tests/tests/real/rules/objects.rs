//! The objects that are tried.

use serde_json::{Value, json};

/// Versions, good and bad ones, with a bar between two; each is tried as binary version with each as emulation version.
pub(super) const VERSIONS: &str = "|0.0.0|0.0.0+x|0.0.0-x|0.0.1|1.2.0|1.2.0+build.01|1.2.0-0|1.2.0-9|1.2.0-10|1.2.0-alpha|\
    1.2.0-alpha.1|1.2.0-alpha.a|1.2.0-alpha-x.0|1.2.0-alpha.1.0|1.2.0-Beta|1.2.0--|1.2.0-0a|1.10.0|1.9.0|\
    18446744073709551615.0.0|1.0.0-18446744073709551615|18446744073709551616.0.0|1.0.0-18446744073709551616|1.2|v1.2.0|\
    01.2.0|1.2.0-01|1.2.0-|1.2.0-a..b|1.2.0+|1.2.0-a_b| 1.2.0|1.2.0\n";

/// Stands for a field that is not there.
pub(super) const ABSENT: &str = "(absent)";

/// The changes tried besides versions.
pub(super) fn changes() -> Vec<Value> {
    let (long, longer) = ("a".repeat(253), "a".repeat(254));
    let (name, longer_name) = ("x".repeat(63), "x".repeat(64));
    let mut changes = vec![
        json!({}),
        json!({"other": 1}),
        json!({"leaseName": ""}),
        json!({"leaseName": ABSENT}),
        json!({"leaseName": null}),
        json!({"leaseName": 3}),
        json!({"leaseName": long}),
        json!({"leaseName": "0.a-b.c"}),
        json!({"binaryVersion": ABSENT}),
        json!({"binaryVersion": null}),
        json!({"binaryVersion": 1}),
        json!({"emulationVersion": ABSENT}),
        json!({"emulationVersion": ABSENT, "strategy": "a/b"}),
        json!({"emulationVersion": null, "strategy": "a/b"}),
        json!({"emulationVersion": []}),
        json!({"strategy": ABSENT}),
        json!({"strategy": null}),
        json!({"strategy": {}}),
        json!({"binaryVersion": ABSENT, "leaseName": "", "strategy": ABSENT}),
    ];
    let prefixes = [
        "a", "0.a-b.c", &long, "", "A", "-a", "a-", "a..b", "a_b", "ä", "a ", &longer,
    ];
    let names = format!("b|C_d.e-f|0|{name}||-b|b.|b c|b\n|{longer_name}");
    let prefixed = prefixes.iter().map(|prefix| format!("{prefix}/b"));
    let named = names.split('|').map(|name| format!("a/{name}"));
    changes.extend(prefixed.chain(named).map(|it| json!({"strategy": it})));
    let others = "|a|oldestEmulationVersion|a/b/c|/|OldestEmulationVersion ".split('|');
    changes.extend(others.map(|text| json!({"strategy": text})));
    let times = "\
        2026-01-02T03:04:05.000006Z|\
        0001-01-01T00:00:00.000000Z|\
        9999-12-31T23:59:59.999999Z|\
        2024-02-29T00:00:00.000000+01:30|\
        2026-01-02T03:04:05.000006-24:00|\
        2026-02-29T00:00:00.000000Z|\
        2026-01-02T24:00:00.000000Z|\
        2026-01-02T03:04:60.000000Z|\
        2026-01-02T03:04:05.000006+25:00|\
        10000-01-01T00:00:00.000000Z|\
        2026-01-02T03:04:05.000006|\
        |soon";
    let times = times.split('|').map(Value::from);
    for time in times.chain([json!(null), json!(7)]) {
        changes.push(json!({"pingTime": time}));
        changes.push(json!({"renewTime": time}));
    }
    changes
}
