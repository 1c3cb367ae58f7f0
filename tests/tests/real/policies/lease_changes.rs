//! Changes of a Lease by accounts: a write for each row of the table.

use serde_json::{Value, json};

use super::accounts::{HOLDER, PREFERRED, THIRD};
use super::requests::{ObjectWrite, delete, put};
use super::tables::TableRow;

/// Every row.
pub(super) const ROWS: &[TableRow] = &[
    row("grant of an unheld Lease", unheld, |o, _| grant(o, THIRD)),
    row("grant of a held Lease", led, |o, _| grant(o, THIRD)),
    row("grant to the same holder", led, |o, _| grant(o, HOLDER)),
    row("grant for 61 s", led, |o, _| term(o, THIRD, 61, None)),
    row("grant for 60 s", led, |o, _| term(o, THIRD, 60, None)),
    row("grant with a part of a token", led, |o, _| {
        grant(o, THIRD).with(|object| note(object, "token", "5"))
    }),
    row("grant that keeps the preference", preferring, |o, _| {
        grant(o, THIRD).with(|object| note(object, "preferred-holder", PREFERRED))
    }),
    row("grant of a term that is not the next", led, |o, _| {
        grant(o, THIRD).with(spec("leaseTransitions", 9))
    }),
    row(
        "acquisition of an unheld Lease for itself",
        unheld,
        acquisition,
    ),
    row("acquisition of a held Lease for itself", led, acquisition),
    row("acquisition for another", led, |o, _| acquisition(o, THIRD)),
    row(
        "acquisition with a token of its own making",
        led,
        |o, me| term(o, me, 15, Some("999999999999")),
    ),
    row(
        "acquisition with the strategy of another elector",
        led,
        |o, me| acquisition(o, me).with(|object| note(object, "strategy", "attacker.example/mine")),
    ),
    row("acquisition for 61 s", led, |o, me| {
        term(o, me, 61, Some(TRUE_TOKEN))
    }),
    row("acquisition of term 0, after the last", last, |o, me| {
        acquisition(o, me).with(|object| {
            object["spec"]["leaseTransitions"] = json!(0);
            token(object, TRUE_TOKEN);
        })
    }),
    row("accept", granted, |o, _| {
        put(o, |object| {
            object["spec"]["leaseDurationSeconds"] = json!(15);
            object["spec"]["renewTime"] = json!(LATER);
            token(object, TRUE_TOKEN);
        })
    }),
    row("accept by client-go", granted, |o, _| {
        put(o, |object| {
            object["spec"]["leaseDurationSeconds"] = json!(15);
            object["spec"]["acquireTime"] = json!("2026-01-01T00:00:00.000000Z");
            object["spec"]["renewTime"] = json!(LATER);
        })
    }),
    row("accept for 61 s", granted, |o, _| {
        renewal(o, spec("leaseDurationSeconds", 61))
    }),
    row("renewal", led, |o, _| renewal(o, |_| {})),
    row("renewal with another duration", led, |o, _| {
        renewal(o, spec("leaseDurationSeconds", 16))
    }),
    row("renewal by client-go", led_by_client_go, |o, _| {
        renewal(o, |_| {})
    }),
    row(
        "renewal by client-go with another duration",
        led_by_client_go,
        |o, _| renewal(o, spec("leaseDurationSeconds", 16)),
    ),
    row("renewal with another acquireTime", led, |o, _| {
        renewal(o, spec("acquireTime", LATER))
    }),
    row("renewal with another token", led, |o, _| {
        renewal(o, |object| token(object, TRUE_TOKEN))
    }),
    row("renewal without the token", led, |o, _| {
        renewal(o, without_token)
    }),
    row("renewal that clears the preference", preferring, |o, _| {
        renewal(o, |object| unnote(object, "preferred-holder"))
    }),
    row("release", preferring, |o, _| {
        release(o, |object| {
            without_token(object);
            unnote(object, "preferred-holder");
        })
    }),
    row("release by client-go", preferring, |o, _| {
        release(o, |_| {})
    }),
    row("release of a lower term", led, |o, _| {
        release(o, spec("leaseTransitions", 6))
    }),
    row("hand-over to the preferred", preferring, |o, _| {
        grant(o, PREFERRED)
    }),
    row("hand-over to another", preferring, |o, _| grant(o, THIRD)),
    row("hand-over to the preferred for 60 s", preferring, |o, _| {
        term(o, PREFERRED, 60, None)
    }),
    row("preference", led, |o, _| {
        put(o, |object| note(object, "preferred-holder", THIRD))
    }),
    row("withdrawal of the preference", preferring, |o, _| {
        put(o, |object| unnote(object, "preferred-holder"))
    }),
    row("strategy", led, |o, _| {
        put(o, |object| note(object, "strategy", "a.example/b"))
    }),
    row("term that falls", led, |o, _| {
        renewal(o, spec("leaseTransitions", 6))
    }),
    row("token that falls", granted, |o, _| {
        renewal(o, |object| token(object, "3"))
    }),
    row("record of an unheld Lease", unheld, |o, _| {
        put(o, spec("leaseDurationSeconds", 2))
    }),
    row("owner of a held Lease", led, |o, _| put(o, owner)),
    row("owner of an unheld Lease", unheld, |o, _| put(o, owner)),
    row("renewal with an owner", led, |o, _| renewal(o, owner)),
    row("renewal without an owner that was there", owned, |o, _| {
        renewal(o, |object| {
            object["metadata"]["ownerReferences"] = json!([]);
        })
    }),
    row("acquisition for itself, with an owner", unheld, |o, me| {
        acquisition(o, me).with(owner)
    }),
    row("grant with an owner", unheld, |o, _| {
        grant(o, THIRD).with(owner)
    }),
    row(
        "hand-over to the preferred, with an owner",
        preferring,
        |o, _| grant(o, PREFERRED).with(owner),
    ),
    row("release with an owner", led, |o, _| release(o, owner)),
    row("finalizer of a held Lease", led, |o, _| put(o, finalizer)),
    row("finalizer of an unheld Lease", unheld, |o, _| {
        put(o, finalizer)
    }),
    row("label and annotation", led, |o, _| put(o, labelled)),
    row("no change", led, |o, _| put(o, |_| {})),
    row("annotation alone", led, |o, _| {
        put(o, |object| other_note(object, "kept"))
    }),
    row("value of an annotation that is there", noted, |o, _| {
        put(o, |object| other_note(object, "changed"))
    }),
    row(
        "acquisition for itself, with a label and an annotation",
        unheld,
        |o, me| acquisition(o, me).with(labelled),
    ),
    row("mark of Elector taken off", led, |o, _| {
        put(o, |object| unnote(object, "protocol"))
    }),
    row(
        "mark of Elector put on a plain Lease",
        plain_of_third,
        |o, _| put(o, |object| note(object, "protocol", "1")),
    ),
    row(
        "acquisition for another, of a Lease that client-go released",
        released_by_client_go,
        |o, _| term(o, THIRD, 15, None),
    ),
    row("freeze", led, |o, _| put(o, freeze)),
    row("preference of an operator", led, |o, _| put(o, prefer)),
    row("operator's word taken back", frozen, |o, _| {
        put(o, |object| unnote(object, "freeze"))
    }),
    row(
        "renewal that carries an operator's word over",
        frozen,
        |o, _| renewal(o, |_| {}),
    ),
    row(
        "operator's word on a Lease without a strategy",
        plain_of_third,
        |o, _| put(o, prefer),
    ),
    row(
        "creation of a Lease without a strategy, with an operator's word",
        none,
        |_, _| ObjectWrite::post(plain_frozen().unwrap_or_default()),
    ),
    row(
        "deletion of a Lease without a strategy, with an operator's word",
        plain_frozen,
        |o, _| delete(o),
    ),
    row("creation without a holder", none, |_, _| post("")),
    row("creation with itself as the holder", none, |_, me| post(me)),
    row("creation with another holder", none, |_, _| post(THIRD)),
    row(
        "creation with the strategy of another elector",
        none,
        |_, _| post("").with(|object| note(object, "strategy", "attacker.example/mine")),
    ),
    row("creation with a preferred holder", none, |_, _| {
        post("").with(|object| note(object, "preferred-holder", THIRD))
    }),
    row("deletion of a held Lease", led, |o, _| delete(o)),
    row("deletion of an unheld Lease", unheld, |o, _| delete(o)),
];

/// Stands for the resourceVersion that the write replaces.
pub(super) const TRUE_TOKEN: &str = "";

const ACQUIRED: &str = "2026-01-01T00:00:00.123456Z";
const RENEWED: &str = "2026-01-01T00:00:03.123456Z";
const LATER: &str = "2026-01-01T00:00:06.123456Z";

pub(super) const fn row(
    name: &'static str,
    before: fn() -> Option<Value>,
    write: fn(Option<Value>, &str) -> ObjectWrite,
) -> TableRow {
    TableRow {
        name,
        before,
        write,
    }
}

/// A Lease of that spec that electors have written, under the built-in strategy.
pub(super) fn lease(spec: &Value) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "work",
            "annotations": {
                "elector.dev/protocol": "1", "elector.dev/strategy": "OldestEmulationVersion",
            },
        },
        "spec": spec,
    })
}

pub(super) fn none() -> Option<Value> {
    None
}

pub(super) fn unheld() -> Option<Value> {
    Some(lease(&json!({
        "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 7,
        "acquireTime": RENEWED, "renewTime": RENEWED,
    })))
}

fn granted() -> Option<Value> {
    Some(lease(&json!({
        "holderIdentity": HOLDER, "leaseDurationSeconds": 5, "leaseTransitions": 7,
        "acquireTime": ACQUIRED, "renewTime": ACQUIRED,
    })))
}

/// Led by the holder, which has accepted its term.
pub(super) fn led() -> Option<Value> {
    let mut lease = lease(&json!({
        "holderIdentity": HOLDER, "leaseDurationSeconds": 15, "leaseTransitions": 7,
        "acquireTime": ACQUIRED, "renewTime": RENEWED,
    }));
    token(&mut lease, "5");
    Some(lease)
}

fn owned() -> Option<Value> {
    let mut lease = led()?;
    owner(&mut lease);
    Some(lease)
}

fn frozen() -> Option<Value> {
    let mut lease = led()?;
    freeze(&mut lease);
    Some(lease)
}

fn noted() -> Option<Value> {
    let mut lease = led()?;
    other_note(&mut lease, "kept");
    Some(lease)
}

/// Led in the last term, after which they are counted anew.
fn last() -> Option<Value> {
    let mut lease = led()?;
    lease["spec"]["leaseTransitions"] = json!(i32::MAX);
    Some(lease)
}

/// Led by the holder's Pod under a name as client-go makes it: without a token.
fn led_by_client_go() -> Option<Value> {
    let mut lease = led()?;
    without_token(&mut lease);
    lease["spec"]["holderIdentity"] = json!("web-0_6a2a58f8");
    Some(lease)
}

/// Led by that holder, and never written by anything of Elector.
pub(super) fn plain(holder: &str) -> Option<Value> {
    let mut lease = led()?;
    lease["metadata"]["annotations"] = json!({});
    lease["spec"]["holderIdentity"] = json!(holder);
    Some(lease)
}

/// The same for a holder that is none of the accounts.
fn plain_of_third() -> Option<Value> {
    plain(THIRD)
}

/// Left by client-go, which writes the whole spec and releases: the strategy is gone with it, and the mark is not.
pub(super) fn released_by_client_go() -> Option<Value> {
    let mut lease = unheld()?;
    unnote(&mut lease, "strategy");
    Some(lease)
}

fn plain_frozen() -> Option<Value> {
    let mut lease = plain(THIRD)?;
    freeze(&mut lease);
    Some(lease)
}

fn preferring() -> Option<Value> {
    let mut lease = led()?;
    note(&mut lease, "preferred-holder", PREFERRED);
    Some(lease)
}

pub(super) fn post(holder: &str) -> ObjectWrite {
    ObjectWrite::post(lease(&json!({"holderIdentity": holder})))
}

fn grant(before: Option<Value>, holder: &str) -> ObjectWrite {
    term(before, holder, 5, None)
}

fn acquisition(before: Option<Value>, holder: &str) -> ObjectWrite {
    term(before, holder, 15, Some(TRUE_TOKEN))
}

/// The next term, for this holder: a grant without a token, an acquisition with one.
pub(super) fn term(
    before: Option<Value>,
    holder: &str,
    seconds: i64,
    own_token: Option<&str>,
) -> ObjectWrite {
    put(before, |object| {
        let term = object["spec"]["leaseTransitions"].as_i64().unwrap_or(0) + 1;
        object["spec"] = json!({
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": term,
            "acquireTime": LATER, "renewTime": LATER,
        });
        unnote(object, "preferred-holder");
        without_token(object);
        if let Some(text) = own_token {
            token(object, text);
        }
    })
}

pub(super) fn renewal(before: Option<Value>, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    put(before, |object| {
        object["spec"]["renewTime"] = json!(LATER);
        change(object);
    })
}

pub(super) fn release(before: Option<Value>, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    renewal(before, |object| {
        object["spec"]["holderIdentity"] = json!("");
        object["spec"]["leaseDurationSeconds"] = json!(1);
        object["spec"]["acquireTime"] = json!(LATER);
        change(object);
    })
}

/// Writes a field of the spec.
pub(super) fn spec(field: &str, value: impl Into<Value>) -> impl FnOnce(&mut Value) {
    move |object| object["spec"][field] = value.into()
}

/// Writes a token with the term and the holder that it belongs to.
fn token(object: &mut Value, text: &str) {
    let version = object["metadata"]["resourceVersion"].as_str();
    let text = match text {
        TRUE_TOKEN => version.unwrap_or_default(),
        other => other,
    };
    let (text, term) = (
        text.to_owned(),
        object["spec"]["leaseTransitions"].to_string(),
    );
    let holder = object["spec"]["holderIdentity"]
        .as_str()
        .unwrap_or_default();
    let holder = holder.to_owned();
    note(object, "token", &text);
    note(object, "token-term", &term);
    note(object, "token-holder", &holder);
}

/// Says what other programs may go by.
pub(super) fn labelled(object: &mut Value) {
    object["metadata"]["labels"] = json!({"team": "web"});
    other_note(object, "kept");
}

/// An annotation that is none of Elector's.
fn other_note(object: &mut Value, text: &str) {
    object["metadata"]["annotations"]["example.com/note"] = json!(text);
}

/// Says what an operator may: the leader stays.
fn freeze(object: &mut Value) {
    note(object, "freeze", "2099-01-01T00:00:00Z");
}

/// Says what an operator may: another one leads.
fn prefer(object: &mut Value) {
    let preference = format!("{PREFERRED} until 2099-01-01T00:00:00Z");
    note(object, "prefer", &preference);
}

/// Has a Lease belong to what does not exist.
pub(super) fn owner(object: &mut Value) {
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]);
}

/// Has a deletion wait for whoever wrote this.
pub(super) fn finalizer(object: &mut Value) {
    object["metadata"]["finalizers"] = json!(["attacker.example/mine"]);
}

fn without_token(object: &mut Value) {
    for name in ["token", "token-term", "token-holder"] {
        unnote(object, name);
    }
}

pub(super) fn note(object: &mut Value, name: &str, text: &str) {
    object["metadata"]["annotations"][format!("elector.dev/{name}")] = json!(text);
}

fn unnote(object: &mut Value, name: &str) {
    if let Some(map) = object["metadata"]["annotations"].as_object_mut() {
        map.remove(&format!("elector.dev/{name}"));
    }
}
