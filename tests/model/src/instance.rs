//! The instance lock of a process, whose notes outlive its crashes (R21).

use std::sync::Arc;

use elector_protocol::holder::{FormerTerm, Holder, HolderConfig};
use elector_protocol::{LeaseSnapshot, LeaseWrite, LifeId, Renumber, Renumbering};

use super::mutant::Mutant;
use super::run::Run;

/// The part of a process that outlives its lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelInstance {
    /// The present life. A life and the one after the next are told apart by the versions that their terms replaced.
    life: LifeId,
    /// The terms that its lives began, or were about to, and that the Lease may show yet.
    pub(super) noted: Vec<FormerTerm>,
}

// === impl ModelInstance ===

impl ModelInstance {
    /// The instance of the process at that place, where processes have any.
    pub(super) fn new(place: usize, run: &Run) -> Option<Self> {
        let instance = match run.mutant {
            Some(Mutant::ShareTheLife) => 0,
            _ => place as u64,
        };
        let life = LifeId { instance, life: 0 };
        let noted = Vec::new();
        run.rejoins.then_some(Self { life, noted })
    }

    /// Begins the next life.
    pub(super) fn restart(&mut self, run: &Run) {
        if run.mutant != Some(Mutant::ShareTheLife) {
            self.life.life = 1 - self.life.life;
        }
    }

    /// The holder of the present life, given what is noted.
    pub(super) fn holder(&self, config: &HolderConfig, noted: Vec<FormerTerm>) -> Holder {
        let config = HolderConfig {
            life: Some(self.life),
            ..config.clone()
        };
        Holder::new(Arc::new(config)).with_former_terms(noted)
    }

    /// Notes the term that a write begins, before it is sent.
    pub(super) fn note(&mut self, write: &LeaseWrite) {
        let noted = FormerTerm::of(write).filter(|term| !self.noted.contains(term));
        self.noted.extend(noted);
    }

    /// Forgets the terms that the Lease shows no more, and that none of these requests begins.
    pub(super) fn forget(&mut self, lease: Option<&LeaseSnapshot>, requests: &[&LeaseWrite]) {
        let begins =
            |term: &FormerTerm, write: &LeaseWrite| FormerTerm::of(write).as_ref() == Some(term);
        self.noted.retain(|term| {
            lease.is_some_and(|lease| term.is_shown_by(lease))
                || requests.iter().any(|write| begins(term, write))
        });
    }
}

/// The term that the Lease shows, whoever wrote it, to a process that goes by the name alone.
pub(super) fn term_of(lease: &LeaseSnapshot) -> Option<FormerTerm> {
    Some(FormerTerm {
        life: lease.record.life?,
        uid: lease.uid.clone(),
        holder: lease.record.holder.clone()?,
        base: lease.record.token?.0,
    })
}

impl Renumber for ModelInstance {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.noted.renumber(by);
    }
}
