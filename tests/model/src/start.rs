//! The server and the candidates' objects at the start of a run.

use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LeaseRecord, ResourceVersion, StrategyName,
    Timestamp, Uid,
};

use super::mutant::Mutant;
use super::numbers::{BUCKET, NOW, timestamp};
use super::run::{Run, Start};
use super::store::{LeaseStore, NAMES, Property};

// === impl Run ===

impl Run {
    /// Which name the candidate of an index bears.
    pub(super) fn name_of(&self, index: usize) -> usize {
        if self.one_name { 0 } else { index }
    }

    /// The server as it stands at the start.
    pub(super) fn store(&self, objects: Vec<Option<CandidateRecord>>) -> LeaseStore {
        let mut store = LeaseStore {
            revision: ResourceVersion(1),
            lease: None,
            objects,
            post: None,
            created: 0,
            interference: self.interference,
            acked: if self.pings { 0 } else { u8::MAX },
            highest: self.fence.highest(),
            written: matches!(self.mutant, Some(Mutant::ExpireByRenewTime(_))).then_some(NOW),
            gone: None,
            lax: self.lax,
            watched: Property::ALL
                .into_iter()
                .filter(|property| self.checks(*property))
                .fold(0, |bits, property| bits | property.bit()),
            broken: None,
        };
        if self.start == Start::Released {
            let born = LeaseRecord::born(Some(StrategyName::oldest_emulation_version()));
            store.create(born.released(timestamp(0)));
        }
        store
    }

    /// The object of a candidate as it stands at the start. The lower the index, the better the candidate.
    pub(super) fn candidate(&self, index: usize) -> CandidateRecord {
        let emulation = format!("1.{index}.0");
        let spec =
            CandidateSpec::parse("1.9.0", &emulation, StrategyName::OLDEST_EMULATION_VERSION);
        let bucket = BUCKET * i64::try_from(index).unwrap_or(0);
        CandidateRecord {
            name: identity(NAMES[index]),
            uid: Uid::new(NAMES[index]),
            version: ResourceVersion((bucket + BUCKET).unsigned_abs()),
            created: Timestamp::MIN,
            ping: None,
            renew: Some(timestamp(bucket)),
            marked: true,
            announced: self.announced.then(|| self.lease_duration()),
            deleting: false,
            spec: spec.into(),
        }
    }
}

/// The identity of a name, which is not empty.
pub(super) fn identity(name: &str) -> Identity {
    Identity::new(name).unwrap_or_else(|| unreachable!("names are not empty"))
}
