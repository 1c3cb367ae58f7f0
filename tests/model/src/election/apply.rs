//! The effect of a transition on a state.

use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::{LeaseRecord, LeaseWrite};
use elector_verify::Actor;

use super::super::clocks::TICK_SECONDS;
use super::super::elector::ElectorRequest;
use super::super::elector_transition::ElectorTransition;
use super::super::mutant::Mutant;
use super::super::numbers::{FRESH, timestamp};
use super::super::run::Run;
use super::super::store::{Landed, LeaseStore, names};
use super::super::witness::Witnesses;
use super::candidate::{CandidateMessage, CandidateProcess};
use super::system::{ElectionState, ElectionSystem};
use super::transition::{CandidateTransition, ElectionTransition};

// === impl ElectionState ===

impl ElectionState {
    /// Applies a transition, and then everything that follows from it at once. Numbers are left as they are.
    pub(in super::super) fn apply(
        &mut self,
        by: &ElectionTransition,
        system: &ElectionSystem,
    ) -> Witnesses {
        let run = &system.run;
        let store = Rc::clone(&self.store);
        let candidates = self.candidates.clone();
        let witnesses = match by {
            ElectionTransition::Tick | ElectionTransition::Sleep(_) => Witnesses::NONE,
            ElectionTransition::Candidate(index, by) => self.of_candidate(*index, *by, system),
            ElectionTransition::Elector(index, by) => self.of_elector(*index, by, run),
            ElectionTransition::LandPost
            | ElectionTransition::Delete
            | ElectionTransition::Create
            | ElectionTransition::Blank
            | ElectionTransition::Wipe
            | ElectionTransition::DeleteObject(_) => {
                self.of_stranger(by, run);
                Witnesses::NONE
            }
        };
        if let Some(refused_candidate) = run.refused_candidate {
            self.ack(refused_candidate, run);
        }
        let still = Rc::ptr_eq(&store, &self.store);
        for (candidate, before) in self.candidates.iter_mut().zip(&candidates) {
            if !still || !Rc::ptr_eq(candidate, before) {
                Rc::make_mut(candidate).catch_up(&self.store, run);
            }
        }
        self.settle_electors(run);
        witnesses
    }

    fn of_candidate(
        &mut self,
        index: usize,
        by: CandidateTransition,
        system: &ElectionSystem,
    ) -> Witnesses {
        let run = &system.run;
        match by {
            CandidateTransition::Look => {
                self.with_candidate(index, |candidate, store| candidate.look(store, run))
            }
            CandidateTransition::Read => {
                self.with_candidate(index, |candidate, store| candidate.read(store, run))
            }
            CandidateTransition::Reply => {
                self.with_candidate(index, |candidate, store| candidate.reply(store, run))
            }
            CandidateTransition::GiveUp => {
                self.with_candidate(index, |candidate, _| candidate.give_up(run))
            }
            CandidateTransition::SetAside => {
                self.with_candidate(index, |candidate, _| candidate.set_aside(run))
            }
            CandidateTransition::Step => {
                self.with_candidate(index, |candidate, _| candidate.settle(run, None))
            }
            CandidateTransition::Land => self.land(index, system),
            CandidateTransition::LandOrphan(number) => {
                let write = Rc::make_mut(&mut self.candidates[index])
                    .orphans
                    .remove(number);
                self.put(index, &write, system);
                Witnesses::NONE
            }
            CandidateTransition::WorkStops | CandidateTransition::WorkEnds => {
                self.end_work(index, system)
            }
            CandidateTransition::Shorten => {
                Rc::make_mut(&mut self.candidates[index]).variation.short = true;
                Witnesses::NONE
            }
            CandidateTransition::LateReply => {
                let variation = &mut Rc::make_mut(&mut self.candidates[index]).variation;
                variation.counted_from = variation.late_reply.take();
                Witnesses::NONE
            }
            CandidateTransition::Ack => {
                self.ack(index, run);
                Witnesses::NONE
            }
            CandidateTransition::Crash => {
                let config = Arc::clone(&system.kind.configs[index]);
                Rc::make_mut(&mut self.candidates[index]).crash(config, run);
                Witnesses::NONE
            }
        }
    }

    fn of_elector(&mut self, index: usize, by: &ElectorTransition, run: &Run) -> Witnesses {
        match by {
            ElectorTransition::See => {
                let believed = self
                    .candidates
                    .iter()
                    .any(|candidate| candidate.believes(run));
                let recurs = self.electors[index].finds_again(&self.store);
                Rc::make_mut(&mut self.electors[index]).see(&self.store, run);
                return Witnesses::RECURS.when(recurs && believed);
            }
            ElectorTransition::Decide(request) => return self.decide(index, request, run),
            ElectorTransition::Land => {
                let message = Rc::make_mut(&mut self.electors[index]).message.take();
                if let Some(write) = message {
                    return self.put_decision(&write, run, None);
                }
            }
            ElectorTransition::Send(_)
            | ElectorTransition::BreakWatch
            | ElectorTransition::Restart => {
                by.apply_alone(Rc::make_mut(&mut self.electors[index]));
            }
        }
        Witnesses::NONE
    }

    fn of_stranger(&mut self, by: &ElectionTransition, run: &Run) {
        let store = Rc::make_mut(&mut self.store);
        match by {
            ElectionTransition::LandPost => {
                if !self.land_post() {
                    return;
                }
            }
            ElectionTransition::Delete => {
                store.interference.deletions -= 1;
                store.delete();
            }
            ElectionTransition::Create => {
                store.interference.creations -= 1;
                store.create(LeaseRecord {
                    duration_seconds: Some(TICK_SECONDS),
                    ..LeaseRecord::born(None)
                });
            }
            ElectionTransition::Blank => {
                store.interference.blanks -= 1;
                store.overwrite(|record| LeaseRecord::born(record.strategy.clone()));
            }
            ElectionTransition::Wipe => {
                store.wipe();
            }
            ElectionTransition::DeleteObject(index) => {
                store.interference.object_deletions -= 1;
                store.objects[*index] = None;
                self.deliver_object(*index, run);
                return;
            }
            ElectionTransition::Tick
            | ElectionTransition::Sleep(_)
            | ElectionTransition::Candidate(..)
            | ElectionTransition::Elector(..) => return,
        }
        self.lease_changed(run, None);
    }

    /// Lets a candidate do something that leaves the store alone.
    fn with_candidate(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut CandidateProcess, &LeaseStore) -> Witnesses,
    ) -> Witnesses {
        let witnesses = act(Rc::make_mut(&mut self.candidates[index]), &self.store);
        let again = witnesses.include(Witnesses::LEADS) && self.store.created > 1;
        witnesses | Witnesses::RETURNS.when(again)
    }

    /// The write under way lands.
    fn land(&mut self, index: usize, system: &ElectionSystem) -> Witnesses {
        let Some(CandidateMessage::Sent(kind, write)) = self.candidates[index].message.clone()
        else {
            return Witnesses::NONE;
        };
        let landed = self.put(index, &write, system);
        let message = match self.store.lease.clone() {
            Some(lease) if landed == Landed::Applied => CandidateMessage::Landed(kind, lease),
            _ => CandidateMessage::Dead(kind),
        };
        Rc::make_mut(&mut self.candidates[index]).message = Some(message);
        Witnesses::HANDS_OVER.when(write.record.is_unaccepted_grant())
    }

    /// A write of a candidate's reaches the store.
    fn put(&mut self, index: usize, write: &LeaseWrite, system: &ElectionSystem) -> Landed {
        let actor = Actor::Candidate(&system.kind.configs[index].identity);
        let landed = Rc::make_mut(&mut self.store).put(write, actor);
        if landed == Landed::Applied {
            self.lease_changed(&system.run, None);
        }
        landed
    }

    /// The work of a holder has ended, and the lease is to be given up if it is still its own.
    fn end_work(&mut self, index: usize, system: &ElectionSystem) -> Witnesses {
        let run = &system.run;
        if run.mutant == Some(Mutant::ReleaseByOldRecord) {
            let candidate = Rc::make_mut(&mut self.candidates[index]);
            let known = candidate.holder.known().map(|known| &known.record);
            let name = candidate.name;
            let own = known.is_some_and(|record| names(record, name) && record.has_token());
            if let Some(lease) = self.store.lease.as_ref().filter(|_| own) {
                let write = lease.replace(lease.record.released(timestamp(FRESH)));
                candidate.crash(Arc::clone(&system.kind.configs[index]), run);
                candidate.orphans = vec![write];
                return Witnesses::NONE;
            }
        }
        self.with_candidate(index, |candidate, _| candidate.end_work(run))
    }

    fn ack(&mut self, index: usize, run: &Run) {
        if !self.candidates[index].is_pinged(&self.store) {
            return;
        }
        let name = self.candidates[index].name;
        let before = self.store.objects[name].clone();
        let candidate = Rc::make_mut(&mut self.candidates[index]);
        candidate.ack(Rc::make_mut(&mut self.store), run);
        if before != self.store.objects[name] {
            self.deliver_object(name, run);
        }
    }

    /// Carries out what an elector decided.
    fn decide(&mut self, index: usize, request: &ElectorRequest, run: &Run) -> Witnesses {
        match request {
            ElectorRequest::Write(write) => return self.put_decision(write, run, Some(index)),
            ElectorRequest::Post(record) if run.slow_posts => {
                Rc::make_mut(&mut self.store).post = Some(record.clone());
            }
            ElectorRequest::Post(record) => {
                if Rc::make_mut(&mut self.store).create(record.clone()) == Landed::Applied {
                    self.lease_changed(run, None);
                }
            }
            ElectorRequest::Ping {
                index,
                uid,
                version,
                ping,
            } => {
                let store = Rc::make_mut(&mut self.store);
                let asked = store.objects[*index].as_ref();
                let renew = if run.pings {
                    asked.and_then(|object| object.renew)
                } else {
                    // Every candidate acks at once.
                    ping.next()
                };
                let landed = store.put_object(*index, uid, *version, Some(*ping), renew);
                if landed == Landed::Applied {
                    self.deliver_object(*index, run);
                }
            }
        }
        Witnesses::NONE
    }

    /// A write of an elector's reaches the store. `writer` learns of it by the reply, the others by their watches.
    fn put_decision(&mut self, write: &LeaseWrite, run: &Run, writer: Option<usize>) -> Witnesses {
        let takes_over = self.takes_over(&write.record);
        let before = self.store.lease.as_ref();
        let signals = before.is_some_and(|lease| lease.record.same_record(&write.record));
        if Rc::make_mut(&mut self.store).put(write, Actor::Elector) == Landed::Conflict {
            return Witnesses::NONE;
        }
        self.lease_changed(run, writer);
        if let (Some(index), Some(lease)) = (writer, self.store.lease.clone()) {
            Rc::make_mut(&mut self.electors[index]).take_reply(lease, &self.store, run);
        }
        Witnesses::TAKES_OVER.when(takes_over) | Witnesses::SIGNALS.when(signals)
    }

    /// True if a grant takes the place of a holder that crashed and has not even looked since.
    fn takes_over(&self, grant: &LeaseRecord) -> bool {
        let Some(lease) = &self.store.lease else {
            return false;
        };
        let other = grant.holder.is_some() && grant.holder != lease.record.holder;
        let mut candidates = self.candidates.iter();
        let holder = candidates.find(|candidate| names(&lease.record, candidate.name));
        other
            && lease.record.has_token()
            && holder.is_some_and(|candidate| candidate.holder.known().is_none())
    }

    /// Tells every elector of a change of the Lease; the elector `but` has seen it already.
    fn lease_changed(&mut self, run: &Run, but: Option<usize>) {
        self.deliver_lease(run, but);
    }
}
