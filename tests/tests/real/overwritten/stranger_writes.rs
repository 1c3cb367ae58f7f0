//! A stranger's writes to leases, and the time until there must be a leader again.

use std::time::Duration;

use elector_api::{Lease, annotation};
use elector_protocol::Timestamp;
use elector_tests::rig::{LONGEST_LEASE, now};

use crate::LEASE_DURATION;

/// Something that a stranger does to a lease.
pub(super) struct StrangerWrite {
    /// The name of the lease that it is done to.
    pub(super) name: &'static str,
    pub(super) change: fn(&mut Lease),
    /// Until there is a leader again, at the latest; zero where the leader is to lead on.
    pub(super) until: Duration,
}

/// A writer that holds nothing.
const STRANGER: &str = "stranger";

/// The better one of the two candidates of each lease has this added to the name of the lease, the other one the other.
pub(super) const LEADER: &str = "-leader";
pub(super) const STANDBY: &str = "-standby";

/// For the news to spread and the work to be done.
pub(super) const MARGIN: Duration = Duration::from_secs(5);

/// The leader keeps its lease all the same.
const LEADS_ON: Duration = Duration::ZERO;

/// The record that the stranger left counts for as long as a lease may last.
const UNPROVEN: Duration = LONGEST_LEASE;

pub(super) const OVERWRITTEN: &[StrangerWrite] = &[
    StrangerWrite {
        name: "held",
        change: |lease| held(lease, Some(15)),
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "held-briefly",
        change: |lease| held(lease, Some(1)),
        until: Duration::from_secs(1),
    },
    StrangerWrite {
        name: "held-for-longer",
        change: |lease| held(lease, Some(22)),
        until: Duration::from_secs(22),
    },
    StrangerWrite {
        name: "held-without-duration",
        change: |lease| held(lease, None),
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "held-until-far-future",
        change: |lease| {
            held(lease, Some(15));
            lease.spec.renew_time = Some(Timestamp::MAX);
        },
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "held-since-long-ago",
        change: |lease| {
            held(lease, Some(15));
            lease.spec.renew_time = Some(Timestamp::MIN);
        },
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "held-by-garbage",
        change: |lease| {
            held(lease, Some(15));
            lease.spec.holder_identity = Some("\u{1f451} \n".repeat(2_000));
            lease.spec.acquire_time = None;
            lease.spec.lease_transitions = Some(i32::MAX);
            note(lease, annotation::TOKEN, "none");
            note(lease, annotation::TOKEN_TERM, "-");
        },
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "last-term",
        change: |lease| lease.spec.lease_transitions = Some(i32::MAX),
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "first-term",
        change: |lease| lease.spec.lease_transitions = None,
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "renewed",
        change: |lease| lease.spec.renew_time = Some(now()),
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "shortened",
        change: |lease| lease.spec.lease_duration_seconds = Some(1),
        until: Duration::from_secs(1),
    },
    StrangerWrite {
        name: "prolonged",
        change: |lease| lease.spec.lease_duration_seconds = Some(22),
        until: Duration::from_secs(22),
    },
    StrangerWrite {
        name: "given-to-standby",
        change: |lease| {
            lease.spec.holder_identity = Some(format!("{}{STANDBY}", name(lease)));
            strip(lease);
        },
        until: MARGIN,
    },
    StrangerWrite {
        name: "ascribed-to-standby",
        change: |lease| lease.spec.holder_identity = Some(format!("{}{STANDBY}", name(lease))),
        until: LEASE_DURATION,
    },
    StrangerWrite {
        name: "preferred",
        change: |lease| note(lease, annotation::PREFERRED_HOLDER, "nobody-knows-him"),
        until: MARGIN,
    },
    StrangerWrite {
        name: "labelled",
        change: |lease| note(lease, "example.com/colour", "blue"),
        until: LEADS_ON,
    },
];

pub(super) const BLANKED: &[StrangerWrite] = &[
    StrangerWrite {
        name: "blank",
        change: |lease| blank(lease, Some(""), Some(15)),
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "blank-for-a-second",
        change: |lease| blank(lease, Some(""), Some(1)),
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "blank-without-duration",
        change: |lease| blank(lease, Some(""), None),
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "blank-and-stripped",
        change: |lease| {
            blank(lease, Some(""), Some(15));
            strip(lease);
        },
        until: UNPROVEN,
    },
    StrangerWrite {
        // This is what a release looks like.
        name: "as-if-released",
        change: |lease| {
            blank(lease, Some(""), Some(1));
            strip(lease);
        },
        until: MARGIN,
    },
    StrangerWrite {
        name: "absent",
        change: |lease| blank(lease, None, Some(15)),
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "absent-and-stripped",
        change: |lease| {
            blank(lease, None, Some(15));
            strip(lease);
        },
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "emptied",
        change: |lease| {
            lease.spec = elector_api::LeaseSpec::default();
            lease.metadata.annotations = None;
        },
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "blank-until-far-future",
        change: |lease| {
            blank(lease, Some(""), Some(15));
            lease.spec.renew_time = Some(Timestamp::MAX);
        },
        until: UNPROVEN,
    },
    StrangerWrite {
        name: "stripped",
        change: strip,
        until: LEASE_DURATION,
    },
];

/// The stranger names itself.
fn held(lease: &mut Lease, seconds: Option<i32>) {
    lease.spec.holder_identity = Some(STRANGER.to_owned());
    lease.spec.lease_duration_seconds = seconds;
    lease.spec.acquire_time = Some(now());
    lease.spec.renew_time = Some(now());
}

/// The stranger names no holder.
fn blank(lease: &mut Lease, nobody: Option<&str>, seconds: Option<i32>) {
    lease.spec.holder_identity = nobody.map(str::to_owned);
    lease.spec.lease_duration_seconds = seconds;
    lease.spec.renew_time = Some(now());
}

/// The stranger removes all annotations.
fn strip(lease: &mut Lease) {
    lease.metadata.annotations = None;
}

fn note(lease: &mut Lease, key: &str, value: &str) {
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
}

fn name(lease: &Lease) -> &str {
    lease.metadata.name.as_deref().unwrap_or_default()
}
