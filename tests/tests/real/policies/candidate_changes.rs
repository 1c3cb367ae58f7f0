//! Changes of a LeaseCandidate by accounts: a write for each row of the table.

use serde_json::{Value, json};

use super::accounts::{HOLDER, THIRD};
use super::lease_changes::{owner, spec};
use super::requests::{ObjectWrite, delete, put};
use super::tables::TableRow;

/// Every row.
pub(super) const ROWS: &[TableRow] = &[
    row("creation under the account's own name", |_, me| post(me)),
    row("creation under the name of another Pod", |_, _| post(THIRD)),
    row(
        "creation of one more under the account's own name",
        |_, me| {
            let pod = me.strip_suffix("-0123456789abcdef").unwrap_or(me);
            post(&format!("{pod}-fedcba9876543210"))
        },
    ),
    row("creation for a part of a group", |_, me| {
        post_part(me, "fedcba9876543210")
    }),
    row(
        "creation for a part as another process of its Pod",
        |_, me| post_part(me, "0000000000000000"),
    ),
    row("ping", |o, _| put(o, spec("pingTime", LATER))),
    row("ping with another change", |o, _| {
        put(o, spec("pingTime", LATER)).with(spec("renewTime", LATER))
    }),
    row("ack", |o, _| put(o, spec("renewTime", LATER))),
    row("ack taken off", |o, _| {
        put(o, |object| {
            let spec = object["spec"].as_object_mut();
            spec.map(|spec| spec.remove("renewTime"));
        })
    }),
    row("version", |o, _| put(o, spec("binaryVersion", "999.0.0"))),
    row("strategy", |o, _| {
        put(o, spec("strategy", "elector.dev/sticky"))
    }),
    row("strategy of another elector", |o, _| {
        put(o, spec("strategy", "attacker.example/mine"))
    }),
    row("annotation", |o, _| {
        annotate(o, json!({"elector.dev/protocol": "2"}))
    }),
    row("stand-down", |o, _| annotate(o, stand_down())),
    TableRow {
        before: noted,
        ..row("value of an annotation that is there", |o, _| {
            annotate(o, json!({"example.com/note": "changed"}))
        })
    },
    TableRow {
        before: noted,
        ..row("stand-down beside another annotation", |o, _| {
            let mut both = stand_down();
            both["example.com/note"] = json!("kept");
            annotate(o, both)
        })
    },
    TableRow {
        before: stood_down,
        ..row("stand-down taken back", |o, _| annotate(o, json!({})))
    },
    row("creation with a stand-down", |_, me| {
        post(me).with(|object| object["metadata"]["annotations"] = stand_down())
    }),
    TableRow {
        before: stood_down,
        ..row("ack that carries a stand-down over", |o, _| {
            put(o, spec("renewTime", LATER))
        })
    },
    row("priority", |o, _| {
        annotate(o, json!({"elector.dev/priority": "1"}))
    }),
    row("owner", |o, _| put(o, owner)),
    row("no change", |o, _| put(o, |_| {})),
    row("deletion", |o, _| delete(o)),
];

const LATER: &str = "2026-01-01T00:00:06.123456Z";

/// A LeaseCandidate for the Lease `work`, by this name.
pub(super) fn candidate(name: &str) -> Value {
    json!({
        "kind": "LeaseCandidate",
        "metadata": {"name": name},
        "spec": {
            "leaseName": "work", "binaryVersion": "1.0.0", "emulationVersion": "1.0.0",
            "strategy": "OldestEmulationVersion", "renewTime": "2026-01-01T00:00:03.123456Z",
        },
    })
}

const fn row(name: &'static str, write: fn(Option<Value>, &str) -> ObjectWrite) -> TableRow {
    TableRow {
        name,
        before: || Some(candidate(HOLDER)),
        write,
    }
}

/// Writes these annotations alone.
fn annotate(before: Option<Value>, annotations: Value) -> ObjectWrite {
    put(before, |object| {
        object["metadata"]["annotations"] = annotations;
    })
}

fn stand_down() -> Value {
    json!({"elector.dev/stand-down": "true"})
}

fn stood_down() -> Option<Value> {
    let mut asked = candidate(HOLDER);
    asked["metadata"]["annotations"] = stand_down();
    Some(asked)
}

fn noted() -> Option<Value> {
    let mut noted = candidate(HOLDER);
    noted["metadata"]["annotations"] = json!({"example.com/note": "kept"});
    Some(noted)
}

/// A candidate for the part `work` of a group, whose annotation names the process with these digits.
fn post_part(me: &str, digits: &str) -> ObjectWrite {
    let pod = me.strip_suffix("-0123456789abcdef").unwrap_or(me);
    let mut write = post(&format!("{pod}-fedcba9876543210.work"));
    write.object["metadata"]["labels"] = json!({"elector.dev/group": "web"});
    write.object["metadata"]["annotations"] =
        json!({"elector.dev/member": format!("{pod}-{digits}")});
    write
}

fn post(name: &str) -> ObjectWrite {
    // The candidate that is there stays, and a dry run leaves no trace: only the holder's own name is taken.
    let name = if name == HOLDER { "web-0" } else { name };
    ObjectWrite::post(candidate(name))
}
