//! One copy of each offer: most candidates of a fleet are of one version, and each member of a group stands for many leases.

use std::collections::HashSet;
use std::sync::Arc;

use elector_protocol::{CandidateRecord, CandidateSpec, Rejection};

/// The offers of candidates that are known, and of some that are not any more.
#[derive(Debug, Default)]
pub(super) struct SharedSpecs {
    known: HashSet<Arc<Result<CandidateSpec, Rejection>>>,
    /// At this number, those that nobody has any more are let go of.
    swept_at: usize,
}

/// The fewest specs that are worth looking through for unused ones.
const FEWEST_SWEPT: usize = 64;

// === impl SharedSpecs ===

impl SharedSpecs {
    /// Gives a candidate the copy of its spec that others have.
    pub(super) fn share(&mut self, candidate: &mut CandidateRecord) {
        if let Some(known) = self.known.get(&candidate.spec) {
            candidate.share_spec(known);
        } else if candidate.offer().is_ok() {
            if self.known.len() >= self.swept_at {
                self.known.retain(|spec| Arc::strong_count(spec) > 1);
                self.swept_at = FEWEST_SWEPT.max(2 * self.known.len());
            }
            self.known.insert(Arc::clone(&candidate.spec));
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{Identity, ResourceVersion, Timestamp, Uid};

    use super::*;

    fn candidate(emulation: &str) -> CandidateRecord {
        let spec = CandidateSpec::parse("1.99.0", emulation, "OldestEmulationVersion");
        CandidateRecord {
            name: Identity::new("web-0").unwrap(),
            uid: Uid::new("u"),
            version: ResourceVersion(1),
            created: Timestamp::MIN,
            ping: None,
            renew: None,
            marked: false,
            announced: None,
            deleting: false,
            spec: Arc::new(spec),
        }
    }

    #[test]
    fn equal_specs_are_one_and_those_without_a_candidate_are_let_go_of() {
        let mut specs = SharedSpecs::default();
        let [mut one, mut other] = [candidate("1.98.0"), candidate("1.98.0")];
        specs.share(&mut one);
        specs.share(&mut other);
        assert!(Arc::ptr_eq(&one.spec, &other.spec));
        for minor in 0..10 * FEWEST_SWEPT {
            specs.share(&mut candidate(&format!("1.{}.0", minor % 98)));
        }
        let mut refused = candidate("none");
        specs.share(&mut refused);
        assert!(specs.known.len() <= FEWEST_SWEPT && !specs.known.contains(&refused.spec));
        let mut again = candidate("1.98.0");
        specs.share(&mut again);
        assert!(Arc::ptr_eq(&one.spec, &again.spec));
    }
}
