//! The writes of one candidate: its registration, its ack, and what it does with a lease that it is granted.

use elector_api::{CandidateApi, GROUP_LABEL, Lease, LeaseCandidate, MEMBER_ANNOTATION};
use elector_protocol::{
    CandidateTiming, Identity, LeaseKey, LeaseRecord, LeaseSnapshot, StrategyName, Timestamp, Token,
};

use crate::scale::args::RunSize;

/// The version of all candidates: none is better than another but by its age.
const VERSION: &str = "1.0.0";

/// The key of a lease.
pub(crate) fn lease_key(prefix: &str, size: &RunSize, lease: u32) -> LeaseKey {
    let spread = size.group(lease).unwrap_or(lease);
    let namespace = format!("{prefix}-{}", spread % size.namespaces);
    LeaseKey::new(namespace, format!("lease-{lease:06}"))
}

/// Which lease it is, `None` for one that is not of this measurement.
pub(crate) fn lease_number(name: &str) -> Option<u32> {
    name.strip_prefix("lease-")?.parse().ok()
}

/// The object that registers a candidate.
pub(crate) fn candidate(
    api: CandidateApi,
    key: &LeaseKey,
    number: u32,
    timing: &CandidateTiming,
    now: Timestamp,
) -> Option<LeaseCandidate> {
    let name = Identity::new(format!("{}-{number}", key.name))?;
    let mut candidate = LeaseCandidate::named(api, key, &name)
        .with_strategy(StrategyName::OLDEST_EMULATION_VERSION)
        .marked(timing.lease_duration);
    VERSION.clone_into(&mut candidate.spec.binary_version);
    VERSION.clone_into(&mut candidate.spec.emulation_version);
    candidate.spec.renew_time = Some(now);
    Some(candidate)
}

/// The same as that of a member of a group.
pub(crate) fn of_member(mut candidate: LeaseCandidate, group: u32, number: u32) -> LeaseCandidate {
    let (group, member) = (
        format!("group-{group:05}"),
        format!("member-{group:05}-{number}"),
    );
    let metadata = &mut candidate.metadata;
    metadata.name = Some(format!("{member}.{}", candidate.spec.lease_name));
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(GROUP_LABEL.to_owned(), group);
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(MEMBER_ANNOTATION.to_owned(), member);
    candidate
}

/// The ack of a ping, where one is open.
pub(crate) fn ack(candidate: &LeaseCandidate, now: Timestamp) -> Option<LeaseCandidate> {
    let spec = &candidate.spec;
    let ping = spec
        .ping_time
        .filter(|ping| Some(*ping) > spec.renew_time)?;
    let ack = ping.max(now).differing_from(spec.renew_time);
    Some(candidate.with_renewal(ack))
}

/// True if the holder has not accepted the lease yet. Kubernetes' own controller writes no acquireTime.
pub(crate) fn is_grant(record: &LeaseRecord) -> bool {
    let of_builtin = record.holder.is_some() && record.acquire_time.is_none();
    record.is_unaccepted_grant() || of_builtin
}

/// The accept of a grant.
pub(crate) fn accept(
    grant: &LeaseSnapshot,
    timing: &CandidateTiming,
    now: Timestamp,
) -> LeaseRecord {
    LeaseRecord {
        token: Some(Token(grant.version)),
        token_term: Some(grant.record.term),
        duration_seconds: i32::try_from(timing.lease_duration.as_secs()).ok(),
        acquire_time: grant.record.acquire_time.or(Some(now)),
        ..renewal(&grant.record, now)
    }
}

/// The candidate that the holder of a lease is to make room for.
pub(crate) fn successor(record: &LeaseRecord) -> Option<&Identity> {
    let preferred = record.preferred_holder.as_ref();
    preferred.filter(|preferred| record.holder.as_ref() != Some(preferred))
}

/// The renewal of a lease.
pub(crate) fn renewal(record: &LeaseRecord, now: Timestamp) -> LeaseRecord {
    LeaseRecord {
        renew_time: Some(now.differing_from(record.renew_time)),
        ..record.clone()
    }
}

/// The revision of a Lease and what it says.
pub(crate) fn snapshot(lease: &Lease) -> Option<LeaseSnapshot> {
    lease.snapshot().ok()
}
