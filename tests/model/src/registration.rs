//! The registration of a candidate: it creates its own object, and acks pings.

use elector_protocol::registration::{
    CandidateEvent, CandidateSnapshot, RegistrationEffect, RegistrationOutcome,
};
use elector_protocol::{CandidateRecord, ResourceVersion, Uid};

use super::mutant::Mutant;
use super::numbers::{BUCKET, FRESH, NOW, timestamp};
use super::process::ModelProcess;
use super::run::Run;
use super::store::{Landed, LeaseStore};

// === impl ModelProcess ===

impl ModelProcess {
    /// True if there is something to write into its own object.
    pub(super) fn is_pinged(&self, store: &LeaseStore) -> bool {
        let object = store.objects[self.name].as_ref();
        object.is_none_or(CandidateRecord::is_pinged) || !self.registration.is_registered()
    }

    /// Looks at its own object, and registers or acks where that is due.
    pub(super) fn ack(&mut self, store: &mut LeaseStore, run: &Run) {
        let index = self.name;
        let may_lead = self.believes(run) || self.message.is_some() || self.reading;
        if run.mutant.is_some_and(Mutant::is_unanimous) && may_lead {
            return;
        }
        self.registration.handle_event(self.seen(store));
        let bucket = i64::try_from(index).unwrap_or(0) * BUCKET;
        let wall = timestamp(bucket + FRESH);
        // A life begins with at most a refusal, a read and a write.
        for _ in 0..4 {
            match self.registration.step(NOW, wall).effect {
                None => return,
                Some(RegistrationEffect::Read) => self
                    .registration
                    .handle_read(NOW, Ok(object_of(store, index))),
                Some(RegistrationEffect::Create { renew }) => {
                    let outcome = if store.objects[index].is_some() {
                        RegistrationOutcome::Conflict
                    } else {
                        store.acked |= 1 << index;
                        store.objects[index] = Some(CandidateRecord {
                            uid: Uid::new(format!("again{index}")),
                            version: ResourceVersion(
                                wall.as_micros().unsigned_abs() + BUCKET.unsigned_abs(),
                            ),
                            renew: Some(renew),
                            ..run.candidate(index)
                        });
                        RegistrationOutcome::Done(object_of(store, index))
                    };
                    self.registration.handle_outcome(NOW, outcome);
                }
                Some(RegistrationEffect::Replace {
                    uid,
                    version,
                    ping,
                    renew,
                }) => {
                    let outcome = match store.put_object(index, &uid, version, ping, Some(renew)) {
                        Landed::Applied => RegistrationOutcome::Done(object_of(store, index)),
                        Landed::Conflict => RegistrationOutcome::Conflict,
                    };
                    self.registration.handle_outcome(NOW, outcome);
                }
                // No candidate shuts down here.
                Some(RegistrationEffect::Delete { .. }) => return,
            }
        }
    }

    /// The news from the watch of its own object. Lists have no version here: one that is as old as can be calls for a read,
    /// which tells the same.
    pub(super) fn seen(&self, store: &LeaseStore) -> CandidateEvent {
        match object_of(store, self.name) {
            Some(seen) => CandidateEvent::Seen(seen),
            None => CandidateEvent::Absent(ResourceVersion(0)),
        }
    }
}

fn object_of(store: &LeaseStore, index: usize) -> Option<CandidateSnapshot> {
    let object = store.objects.get(index)?.as_ref()?;
    Some(CandidateSnapshot {
        uid: object.uid.clone(),
        version: object.version,
        lease: "lease".into(),
        ping: object.ping,
        renew: object.renew,
    })
}
