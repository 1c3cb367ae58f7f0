//! A stranger's writes to leases, and the time until there must be a leader again.

use std::time::Duration;

use elector_api::{Lease, LeaseSpec, annotation};
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

const fn write(name: &'static str, until: Duration, change: fn(&mut Lease)) -> StrangerWrite {
    StrangerWrite {
        name,
        change,
        until,
    }
}

pub(super) const OVERWRITTEN: &[StrangerWrite] = &[
    write("held", LEASE_DURATION, |lease| held(lease, Some(15))),
    write("held-briefly", Duration::from_secs(1), |lease| {
        held(lease, Some(1));
    }),
    write("held-for-longer", Duration::from_secs(22), |lease| {
        held(lease, Some(22));
    }),
    write("held-without-duration", UNPROVEN, |lease| held(lease, None)),
    write("held-until-far-future", LEASE_DURATION, |lease| {
        held(lease, Some(15));
        lease.spec.renew_time = Some(Timestamp::MAX);
    }),
    write("held-since-long-ago", LEASE_DURATION, |lease| {
        held(lease, Some(15));
        lease.spec.renew_time = Some(Timestamp::MIN);
    }),
    write("held-by-garbage", LEASE_DURATION, |lease| {
        held(lease, Some(15));
        lease.spec.holder_identity = Some("\u{1f451} \n".repeat(2_000));
        lease.spec.acquire_time = None;
        lease.spec.lease_transitions = Some(i32::MAX);
        note(lease, annotation::TOKEN, "none");
        note(lease, annotation::TOKEN_TERM, "-");
    }),
    write("last-term", LEASE_DURATION, |lease| {
        lease.spec.lease_transitions = Some(i32::MAX);
    }),
    write("first-term", LEASE_DURATION, |lease| {
        lease.spec.lease_transitions = None;
    }),
    write("renewed", LEASE_DURATION, |lease| {
        lease.spec.renew_time = Some(now());
    }),
    write("shortened", Duration::from_secs(1), |lease| {
        lease.spec.lease_duration_seconds = Some(1);
    }),
    write("prolonged", Duration::from_secs(22), |lease| {
        lease.spec.lease_duration_seconds = Some(22);
    }),
    write("given-to-standby", MARGIN, |lease| {
        lease.spec.holder_identity = Some(format!("{}{STANDBY}", name(lease)));
        strip(lease);
    }),
    write("ascribed-to-standby", LEASE_DURATION, |lease| {
        lease.spec.holder_identity = Some(format!("{}{STANDBY}", name(lease)));
    }),
    write("preferred", MARGIN, |lease| {
        note(lease, annotation::PREFERRED_HOLDER, "nobody-knows-him");
    }),
    write("labelled", LEADS_ON, |lease| {
        note(lease, "example.com/colour", "blue");
    }),
];

pub(super) const BLANKED: &[StrangerWrite] = &[
    write("blank", UNPROVEN, |lease| blank(lease, Some(""), Some(15))),
    write("blank-for-a-second", UNPROVEN, |lease| {
        blank(lease, Some(""), Some(1));
    }),
    write("blank-without-duration", UNPROVEN, |lease| {
        blank(lease, Some(""), None);
    }),
    write("blank-and-stripped", UNPROVEN, |lease| {
        blank(lease, Some(""), Some(15));
        strip(lease);
    }),
    // This is what a release looks like.
    write("as-if-released", MARGIN, |lease| {
        blank(lease, Some(""), Some(1));
        strip(lease);
    }),
    write("absent", UNPROVEN, |lease| blank(lease, None, Some(15))),
    write("absent-and-stripped", UNPROVEN, |lease| {
        blank(lease, None, Some(15));
        strip(lease);
    }),
    write("emptied", UNPROVEN, |lease| {
        lease.spec = LeaseSpec::default();
        strip(lease);
    }),
    write("blank-until-far-future", UNPROVEN, |lease| {
        blank(lease, Some(""), Some(15));
        lease.spec.renew_time = Some(Timestamp::MAX);
    }),
    write("stripped", LEASE_DURATION, strip),
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
