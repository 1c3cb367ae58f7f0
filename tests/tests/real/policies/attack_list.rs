//! Writes that harm the elections of others.

use elector_api::format_freeze;
use elector_protocol::Timestamp;
use elector_tests::rig::now;
use serde_json::{Value, json};

use super::accounts::HOLDER;
use super::candidate_changes::candidate;
use super::lease_changes::{
    TRUE_TOKEN, finalizer, labelled, lease, led, released_by_client_go, spec, term, unheld,
};
use super::requests::{ObjectWrite, delete, put};

/// A write that harms others.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// The account, by its column of the tables.
    pub(super) by: &'static str,
    /// The policies of which one refuses it.
    pub(super) policies: &'static [&'static str],
    pub(super) kind: AttackedKind,
    /// The object before it.
    pub(super) before: fn() -> Option<Value>,
    pub(super) write: fn(Option<Value>) -> ObjectWrite,
    /// Its effect on the choice, where `elector explain` shows it.
    pub(super) effect: Option<AttackEffect>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AttackedKind {
    Candidate,
    Lease,
}

/// The effect of an attack on an election.
#[derive(Clone, Copy)]
pub(super) enum AttackEffect {
    /// No elector elects: the strategy belongs to another one.
    Frozen,
    /// The lease stays without a leader for an hour.
    Delayed,
    /// The choice follows what an operator is taken to have said.
    Obeyed,
}

/// The fields that most attacks on a led Lease share.
const BY_AN_EDITOR: Attack = Attack {
    name: "",
    by: "editor",
    policies: &["elector-lease"],
    kind: AttackedKind::Lease,
    before: led,
    write: delete,
    effect: None,
};

/// Those that most attacks by a LeaseCandidate share.
const OF_A_CANDIDATE: Attack = Attack {
    by: "another Pod",
    kind: AttackedKind::Candidate,
    before: || None,
    ..BY_AN_EDITOR
};

/// Every attack; the first and the third are those of an account that may write LeaseCandidates only.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        name: "a strategy of its own, in the highest version",
        by: "outsider",
        policies: &["elector-candidate-lease", "elector-candidate-strategy"],
        write: |_| {
            post("outsider-0", |object| {
                object["spec"]["binaryVersion"] = json!("999.0.0");
                object["spec"]["strategy"] = json!(STRATEGY);
            })
        },
        effect: Some(AttackEffect::Frozen),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "the lowest version",
        by: "outsider",
        policies: &["elector-candidate-lease"],
        write: |_| {
            post("outsider-0", |object| {
                object["spec"]["binaryVersion"] = json!("0.0.1");
                object["spec"]["emulationVersion"] = json!("0.0.1");
            })
        },
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "an announced lease duration of an hour",
        by: "outsider",
        policies: &["elector-candidate-lease", "elector-candidate-duration"],
        write: |_| post("outsider-0", announce_an_hour),
        effect: Some(AttackEffect::Delayed),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "an announced lease duration of an hour, by a candidate for the Lease",
        policies: &["elector-candidate-duration"],
        write: |_| post("web-2-0123456789abcdef", announce_an_hour),
        effect: Some(AttackEffect::Delayed),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "the strategy of another candidate",
        policies: &["elector-candidate-author"],
        before: || Some(candidate(HOLDER)),
        write: |before| {
            // One that any candidate may wish for: so the author alone is refused.
            put(before, |object| {
                object["spec"]["binaryVersion"] = json!("999.0.0");
                object["spec"]["strategy"] = json!("elector.dev/newest-version");
            })
        },
        effect: Some(AttackEffect::Frozen),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "the strategy of another elector in the highest version, by a candidate for the Lease",
        policies: &["elector-candidate-strategy"],
        write: |_| {
            post("web-2-0123456789abcdef", |object| {
                object["spec"]["binaryVersion"] = json!("999.0.0");
                object["spec"]["strategy"] = json!(STRATEGY);
            })
        },
        effect: Some(AttackEffect::Frozen),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "deletion of another candidate",
        by: "editor",
        policies: &["elector-candidate-author"],
        before: || Some(candidate(HOLDER)),
        write: delete,
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "an emptied holder",
        write: |before| put(before, spec("holderIdentity", "")),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a candidate that prefers itself",
        by: "another Pod",
        policies: &["elector-operator-word"],
        write: |before| {
            put(before, |object| {
                let text = format!("{VICTIM} until {}", in_an_hour());
                object["metadata"]["annotations"]["elector.dev/prefer"] = json!(text);
            })
        },
        effect: Some(AttackEffect::Obeyed),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a leader that is there to stay",
        policies: &["elector-operator-word"],
        write: |before| {
            put(before, |object| {
                object["metadata"]["annotations"]["elector.dev/freeze"] = json!(in_an_hour());
            })
        },
        effect: Some(AttackEffect::Obeyed),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "another candidate that stands down",
        policies: &["elector-candidate-author", "elector-operator-word"],
        before: || Some(candidate(HOLDER)),
        write: |before| {
            put(before, |object| {
                object["metadata"]["annotations"] = json!({"elector.dev/stand-down": "true"});
            })
        },
        effect: Some(AttackEffect::Obeyed),
        ..OF_A_CANDIDATE
    },
    Attack {
        name: "an acquisition for an hour",
        by: "another Pod",
        write: |before| term(before, "web-2-0123456789abcdef", 3600, Some(TRUE_TOKEN)),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "deletion of a Lease that nobody holds",
        before: unheld,
        write: delete,
        ..BY_AN_EDITOR
    },
    Attack {
        name: "deletion of a Lease that is led",
        write: delete,
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a finalizer on an unheld Lease, by which it is deleted once it is led",
        before: unheld,
        write: |before| put(before, finalizer),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a Lease with the strategy of another elector, before the first election",
        before: || None,
        write: |_| {
            let mut object = lease(&json!({"holderIdentity": ""}));
            object["metadata"]["annotations"]["elector.dev/strategy"] = json!(STRATEGY);
            ObjectWrite::post(object)
        },
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a plain Lease in the place of one that client-go released",
        before: released_by_client_go,
        write: |before| {
            put(before, |object| {
                object["metadata"]["annotations"] = json!({});
                object["spec"]["holderIdentity"] = json!("squatter");
            })
        },
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a label by which another program takes a Lease that is led for its own",
        by: "another Pod",
        write: |before| put(before, labelled),
        ..BY_AN_EDITOR
    },
    Attack {
        name: "a Lease that is led for 68 years",
        by: "another Pod",
        write: |before| {
            put(before, |object| {
                object["spec"]["leaseDurationSeconds"] = json!(i32::MAX);
            })
        },
        ..BY_AN_EDITOR
    },
];

const STRATEGY: &str = "attacker.example/mine";

/// A candidate that has just acked, of a Pod that takes no part in the attacks.
pub(super) const VICTIM: &str = "web-3-fedcba9876543210";

fn in_an_hour() -> String {
    let micros = now().as_micros() + 3_600_000_000;
    format_freeze(Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX))
}

fn announce_an_hour(object: &mut Value) {
    object["metadata"]["annotations"] = json!({"elector.dev/lease-duration": "1h"});
}

fn post(name: &str, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    let mut object = candidate(name);
    change(&mut object);
    ObjectWrite::post(object)
}
