//! The writes of one candidate: its registration, its ack, and what it does with a lease that it is granted.

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{
    CandidateTiming, Identity, LeaseKey, LeaseRecord, LeaseSnapshot, StrategyName, Timestamp, Token,
};

use crate::scale::args::RunSize;

/// The version of all candidates: none is better than another but by its age.
const VERSION: &str = "1.0.0";

/// The key of a lease.
pub(crate) fn lease_key(prefix: &str, size: &RunSize, lease: u32) -> LeaseKey {
    let namespace = format!("{prefix}-{}", lease % size.namespaces);
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

/// The ack of a ping, where one is open.
pub(crate) fn ack(candidate: &LeaseCandidate, now: Timestamp) -> Option<LeaseCandidate> {
    let spec = &candidate.spec;
    let ping = spec
        .ping_time
        .filter(|ping| Some(*ping) > spec.renew_time)?;
    let ack = ping.max(now).differing_from(spec.renew_time);
    Some(candidate.with_renewal(ack))
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
        ..renewal(&grant.record, now)
    }
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
