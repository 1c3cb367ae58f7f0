//! The effect of a transition on a state.

use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::holder::WriteKind;
use elector_protocol::{LeaseRecord, LeaseWrite, Occupancy};
use elector_verify::Actor;

use super::super::elector::ElectorRequest;
use super::super::elector_transition::ElectorTransition;
use super::super::store::{Landed, LeaseStore, Property, Side};
use super::super::witness::Witnesses;
use super::process::{AcquiringMessage, AcquiringProcess, LeaseRequest};
use super::system::{AcquisitionState, AcquisitionSystem};
use super::transition::{AcquisitionTransition, ProcessTransition};

// === impl AcquisitionState ===

impl AcquisitionState {
    /// Applies a transition, and then everything that follows from it at once. Numbers are left as they are.
    pub(super) fn apply(
        &mut self,
        by: &AcquisitionTransition,
        system: &AcquisitionSystem,
    ) -> Witnesses {
        let witnesses = match by {
            AcquisitionTransition::Tick => Witnesses::NONE,
            AcquisitionTransition::Process(index, by) => self.of_process(*index, *by, system),
            AcquisitionTransition::Elector(index, by) => self.of_elector(*index, by, system),
            AcquisitionTransition::LandPost => {
                if self.land_post() {
                    self.lease_changed(system, None);
                }
                Witnesses::NONE
            }
            AcquisitionTransition::Delete
            | AcquisitionTransition::Blank
            | AcquisitionTransition::Wipe => {
                self.of_stranger(by, system);
                Witnesses::NONE
            }
        };
        self.catch_up(system);
        witnesses
    }

    /// The immediate consequences, whatever happened.
    pub(super) fn catch_up(&mut self, system: &AcquisitionSystem) {
        for process in &mut self.candidates {
            Rc::make_mut(process).catch_up(&self.store, &system.run);
        }
        self.settle_electors(&system.run);
    }

    fn of_process(
        &mut self,
        index: usize,
        by: ProcessTransition,
        system: &AcquisitionSystem,
    ) -> Witnesses {
        let run = &system.run;
        match by {
            ProcessTransition::See => self.with_process(index, |it, store| it.see(store, run)),
            ProcessTransition::Read => self.with_process(index, |it, store| it.read(store, run)),
            ProcessTransition::Reply => self.with_process(index, |it, store| it.reply(store, run)),
            ProcessTransition::GiveUp => self.with_process(index, |it, _| it.give_up(run)),
            ProcessTransition::SetAside => self.with_process(index, |it, _| it.set_aside(run)),
            ProcessTransition::Step => self.with_process(index, |it, _| it.settle(run)),
            ProcessTransition::Ping => self.with_process(index, |it, _| it.ping(run)),
            ProcessTransition::WorkStops | ProcessTransition::WorkEnds => {
                self.with_process(index, |it, _| it.end_work(run))
            }
            ProcessTransition::Land => {
                let process = Rc::make_mut(&mut self.candidates[index]);
                let Some(AcquiringMessage::Sent(request)) = process.message.take() else {
                    return Witnesses::NONE;
                };
                let (landed, witnesses) = self.land(index, &request, system);
                let message = match self.store.lease.clone() {
                    Some(lease) if landed == Landed::Applied => {
                        AcquiringMessage::Landed(request.kind().cloned(), lease)
                    }
                    _ => AcquiringMessage::Dead,
                };
                Rc::make_mut(&mut self.candidates[index]).message = Some(message);
                witnesses
            }
            ProcessTransition::LandOrphan(number) => {
                let process = Rc::make_mut(&mut self.candidates[index]);
                let request = process.orphans.remove(number);
                self.land(index, &request, system).1
            }
            ProcessTransition::Crash => {
                let process = Rc::make_mut(&mut self.candidates[index]);
                let name = system.next_name(index, process.name);
                process.crash(name, Arc::clone(&system.kind.configs[name]), run);
                Witnesses::NONE
            }
        }
    }

    /// Lets a process do something that leaves the store alone.
    fn with_process(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut AcquiringProcess, &LeaseStore) -> Witnesses,
    ) -> Witnesses {
        let witnesses = act(Rc::make_mut(&mut self.candidates[index]), &self.store);
        let again = witnesses.include(Witnesses::LEADS) && self.store.created > 1;
        witnesses | Witnesses::RETURNS.when(again)
    }

    /// A request of a process reaches the store.
    fn land(
        &mut self,
        index: usize,
        request: &LeaseRequest,
        system: &AcquisitionSystem,
    ) -> (Landed, Witnesses) {
        let mut witnesses = Witnesses::NONE;
        let landed = match request {
            LeaseRequest::Post(record) => Rc::make_mut(&mut self.store).create(record.clone()),
            LeaseRequest::Put(_, _, write) if !self.store.accepts(write, Side::Candidate) => {
                Landed::Conflict
            }
            LeaseRequest::Put(name, kind, write) => {
                witnesses = self.witnesses_of(index, kind, system);
                self.judge_new_term(&write.record, system);
                let author = &system.kind.configs[*name].identity;
                Rc::make_mut(&mut self.store).put(write, Actor::Candidate(author))
            }
        };
        if landed == Landed::Applied {
            self.lease_changed(system, None);
        }
        (landed, witnesses)
    }

    fn of_elector(
        &mut self,
        index: usize,
        by: &ElectorTransition,
        system: &AcquisitionSystem,
    ) -> Witnesses {
        let run = &system.run;
        match by {
            ElectorTransition::See => Rc::make_mut(&mut self.electors[index]).see(&self.store, run),
            ElectorTransition::Decide(ElectorRequest::Write(write)) => {
                return self.put_decision(write, system, Some(index));
            }
            ElectorTransition::Decide(ElectorRequest::Post(record)) => {
                Rc::make_mut(&mut self.store).post = Some(record.clone());
            }
            ElectorTransition::Decide(ElectorRequest::Ping {
                index,
                uid,
                version,
                ping,
            }) => {
                // Every candidate acks at once.
                let store = Rc::make_mut(&mut self.store);
                let landed = store.put_object(*index, uid, *version, Some(*ping), ping.next());
                if landed == Landed::Applied {
                    self.deliver_object(*index, run);
                }
            }
            ElectorTransition::Land => {
                let message = Rc::make_mut(&mut self.electors[index]).message.take();
                if let Some(write) = message {
                    return self.put_decision(&write, system, None);
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

    /// A write of an elector's reaches the store. `writer` learns of it by the reply, the others by their watches.
    fn put_decision(
        &mut self,
        write: &LeaseWrite,
        system: &AcquisitionSystem,
        writer: Option<usize>,
    ) -> Witnesses {
        if self.store.accepts(write, Side::Elector) {
            self.judge_new_term(&write.record, system);
        }
        if Rc::make_mut(&mut self.store).put(write, Actor::Elector) == Landed::Conflict {
            return Witnesses::NONE;
        }
        self.lease_changed(system, writer);
        if let (Some(index), Some(lease)) = (writer, self.store.lease.clone()) {
            Rc::make_mut(&mut self.electors[index]).take_reply(lease, &self.store, &system.run);
        }
        Witnesses::NONE
    }

    fn of_stranger(&mut self, by: &AcquisitionTransition, system: &AcquisitionSystem) {
        let store = Rc::make_mut(&mut self.store);
        match by {
            AcquisitionTransition::Delete => {
                store.interference.deletions -= 1;
                store.delete();
            }
            AcquisitionTransition::Blank => {
                store.interference.blanks -= 1;
                store.overwrite(|record| LeaseRecord::born(record.strategy.clone()));
            }
            AcquisitionTransition::Wipe => store.wipe(),
            AcquisitionTransition::Tick
            | AcquisitionTransition::Process(..)
            | AcquisitionTransition::Elector(..)
            | AcquisitionTransition::LandPost => return,
        }
        self.lease_changed(system, None);
    }

    /// A term that begins while another process believes overwrites a live one, whether or not its own holder ever
    /// comes to believe.
    fn judge_new_term(&mut self, after: &LeaseRecord, system: &AcquisitionSystem) {
        let before = self.store.lease.as_ref().map(|lease| lease.record.term);
        let begins = after.holder.is_some() && before != Some(after.term);
        let mut processes = self.candidates.iter();
        if begins
            && system.kind.setup.lock.is_none()
            && processes.any(|it| it.believes(&system.run))
        {
            Rc::make_mut(&mut self.store).note(Property::AllowedMove);
        }
    }

    /// The witnesses of a write that lands now.
    fn witnesses_of(
        &self,
        index: usize,
        kind: &WriteKind,
        system: &AcquisitionSystem,
    ) -> Witnesses {
        let Some(lease) = &self.store.lease else {
            return Witnesses::NONE;
        };
        let acquires = |request: &LeaseRequest| request.kind() == Some(&WriteKind::Acquire);
        let other_acquires = self.candidates.iter().enumerate().any(|(other, process)| {
            let sent = match &process.message {
                Some(AcquiringMessage::Sent(request)) => acquires(request),
                _ => false,
            };
            other != index && (sent || process.orphans.iter().any(acquires))
        });
        match kind {
            WriteKind::Accept => Witnesses::BESIDE.when(other_acquires),
            WriteKind::Acquire if self.candidates.iter().any(|it| it.believes(&system.run)) => {
                Witnesses::DISPLACES
            }
            WriteKind::Acquire => match lease.record.occupancy() {
                Occupancy::Held(_) => Witnesses::TAKES_EXPIRED,
                Occupancy::Released => Witnesses::TAKES_RELEASED,
                Occupancy::Unproven => Witnesses::TAKES_UNPROVEN,
            },
            WriteKind::HandOff(_) => Witnesses::HANDS_OVER,
            WriteKind::Renew | WriteKind::Release => Witnesses::NONE,
        }
    }

    /// Tells every process and every elector of a change of the Lease; the elector `but` has seen it already.
    fn lease_changed(&mut self, system: &AcquisitionSystem, but: Option<usize>) {
        let run = &system.run;
        for process in &mut self.candidates {
            Rc::make_mut(process).deliver(&self.store, run);
        }
        self.deliver_lease(run, but);
    }
}
