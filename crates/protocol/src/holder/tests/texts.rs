//! Words for people and for labels, as logs, metrics and `kubectl` show them.

use std::time::Duration;

use super::super::{Ending, Loss, StopReason, WaitReason, WriteKind};
use super::fixture::identity;
use super::taken;

#[test]
fn each_write_has_its_name() {
    let kinds = [
        WriteKind::Accept,
        WriteKind::Acquire,
        WriteKind::Resume,
        WriteKind::Rejoin,
        WriteKind::Renew,
        WriteKind::Release,
        WriteKind::HandOff(identity("b")),
    ];
    assert_eq!(
        kinds.map(|kind| kind.to_string()).join(" "),
        "accept acquire resume rejoin renew release hand-off"
    );
}

#[test]
fn each_loss_has_a_label_and_a_sentence() {
    for (loss, cause, text) in [
        (
            Loss::DeadlinePassed,
            "deadline_passed",
            "no renewal succeeded within the renew deadline",
        ),
        (taken("b"), "taken", "b holds the lease"),
        (
            Loss::Taken { by: None },
            "removed",
            "another process removed the holder from the lease",
        ),
        (Loss::Deleted, "deleted", "the lease was deleted"),
        (
            Loss::NewTerm,
            "new_term",
            "a new term was granted to this identity",
        ),
        (
            Loss::NameShared,
            "name_shared",
            "another process renews the lease under this identity",
        ),
        (
            Loss::StoreRestored,
            "store_restored",
            "the store was restored from an older state",
        ),
    ] {
        assert_eq!((loss.cause(), loss.to_string().as_str()), (cause, text));
        assert_eq!(StopReason::Lost(loss.clone()).to_string(), text);
        assert_eq!(Ending::Lost(loss).to_string(), format!("lost: {text}"));
    }
}

#[test]
fn each_stop_and_each_end_has_a_sentence() {
    let to = identity("b");
    let stops = [
        StopReason::HandOver { to: to.clone() },
        StopReason::ShutDown,
    ];
    assert_eq!(
        stops.map(|stop| stop.to_string()),
        ["b is preferred", "shutting down"]
    );
    let ends = [Ending::HandedOver { to }, Ending::Released];
    assert_eq!(
        ends.map(|end| end.to_string()),
        ["handed over to b", "released"]
    );
}

#[test]
fn each_wait_has_a_sentence() {
    let waits = [
        WaitReason::Unproven {
            longest: Duration::from_secs(40),
        },
        WaitReason::Fallback,
        WaitReason::Held(identity("b")),
        WaitReason::FormerLife,
        WaitReason::Elector,
        WaitReason::StandDown,
    ];
    let expected = [
        "a process whose Lease was deleted or emptied may still lead, for up to 40s",
        "the lease is free, and an elector may grant it",
        "b holds the lease",
        "an earlier process of this identity holds the lease",
        "an elector has to grant the lease",
        "an operator wants this candidate to stand down",
    ];
    assert_eq!(waits.map(|wait| wait.to_string()), expected);
}
