//! The check for objects that are to go and do not.

use elector_api::age;

use super::line::CheckLine;
use super::place::CheckedPlace;
use crate::explain::cluster::ListedObjects;

const CHECK: &str = "finalizers";

/// After how many seconds a deletion is stuck: controllers remove their finalizers within moments.
const STUCK_AFTER: i64 = 60;

/// The most objects that have a line each.
const LONGEST: usize = 20;

/// Looks for Leases and candidates that are being deleted for long.
pub(super) fn check(place: &CheckedPlace, listed: &ListedObjects, lines: &mut Vec<CheckLine>) {
    let leases = listed
        .leases
        .iter()
        .map(|each| ("Lease", "lease", &each.metadata));
    let candidates = listed.candidates.iter();
    let candidates = candidates.map(|each| ("LeaseCandidate", "leasecandidate", &each.metadata));
    let mut found = Vec::new();
    for (kind, plain, metadata) in leases.chain(candidates) {
        let Some(since) = &metadata.deletion_timestamp else {
            continue;
        };
        let seconds = place.now.as_micros().div_euclid(1_000_000) - since.0.as_second();
        if seconds < STUCK_AFTER {
            continue;
        }
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let name = metadata.name.as_deref().unwrap_or_default();
        let holds = metadata.finalizers.iter().flatten();
        let holds: Vec<_> = holds.map(String::as_str).collect();
        found.push(CheckLine::warning(
            CHECK,
            format!(
                "{kind} {namespace}/{name} is being deleted for {}, held up by the finalizers {}",
                age(seconds),
                holds.join(", ")
            ),
            format!(
                "find the controller that is to remove them; where it is gone, an administrator does: kubectl -n \
                 {namespace} patch {plain} {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"
            ),
        ));
    }
    let all = found.len();
    lines.extend(found.into_iter().take(LONGEST));
    if all > LONGEST {
        let text = format!("{} more objects are being deleted", all - LONGEST);
        let fix = format!("{} get leases,leasecandidates -o yaml", place.kubectl());
        lines.push(CheckLine::warning(CHECK, text, fix));
    }
}
