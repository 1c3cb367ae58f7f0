//! What a move does to a state.

use std::rc::Rc;

use elector_protocol::elector::Actor;
use elector_protocol::{CandidateRecord, LeaseWrite, Occupancy, ResourceVersion, Timestamp, Uid};

use super::super::elector::ElectorRequest;
use super::super::numbers::{BUCKET, FRESH, timestamp};
use super::super::store::{Landed, Side};
use super::super::transitions::ElectorTransition;
use super::super::witness::Witnesses;
use super::holder::PlainMessage;
use super::transitions::{HolderTransition, Transition};
use super::{ReservationSystem, State};

// === impl State ===

impl State {
    /// Lets a move happen, and then everything that follows from it at once. Numbers are left as they are.
    pub(super) fn apply(&mut self, by: &Transition, world: &ReservationSystem) -> Witnesses {
        let witnesses = match by {
            Transition::Tick => Witnesses::NONE,
            Transition::Holder(index, by) => self.of_holder(*index, *by, world),
            Transition::Elector(index, by) => self.of_elector(*index, by, world),
            Transition::LandPost => {
                let store = Rc::make_mut(&mut self.store);
                let created = store.post.take().map(|record| store.create(record));
                if created == Some(Landed::Applied) {
                    self.lease_changed(world, None);
                }
                Witnesses::NONE
            }
            Transition::Delete => {
                let store = Rc::make_mut(&mut self.store);
                store.interference.deletions -= 1;
                store.delete();
                self.lease_changed(world, None);
                Witnesses::NONE
            }
            Transition::Wipe => {
                let store = Rc::make_mut(&mut self.store);
                store.wipe();
                self.lease_changed(world, None);
                Witnesses::NONE
            }
        };
        self.settle(world);
        witnesses
    }

    /// What follows at once, whatever happened.
    pub(super) fn settle(&mut self, world: &ReservationSystem) {
        for holder in &mut self.candidates {
            Rc::make_mut(holder).settle(&self.store);
        }
        for elector in self.electors.iter_mut().skip(world.run.lagging) {
            while elector.can_see() {
                Rc::make_mut(elector).see(&self.store, &world.run);
            }
        }
    }

    fn of_holder(
        &mut self,
        index: usize,
        by: HolderTransition,
        world: &ReservationSystem,
    ) -> Witnesses {
        let holder = Rc::make_mut(&mut self.candidates[index]);
        match by {
            HolderTransition::Write => holder.write(index, &self.store, world.reserve.duration),
            HolderTransition::Land => {
                if let Some(PlainMessage::Sent(write, sent)) = holder.message.take() {
                    holder.message = Some(PlainMessage::Landed(sent));
                    self.put(&write, world);
                }
            }
            HolderTransition::LandOrphan(number) => {
                let write = holder.orphans.remove(number);
                self.put(&write, world);
            }
            HolderTransition::Reply => {
                let led = holder.believes();
                holder.hear(world.reserve.counts);
                return Witnesses::LEADS.when(!led && holder.believes());
            }
            HolderTransition::GiveUp => holder.give_up(),
            HolderTransition::Ack => {
                let object = self.store.objects[index].clone();
                if let Some(CandidateRecord {
                    uid, version, ping, ..
                }) = object
                {
                    // Its own clock is ahead of what it is asked by.
                    let bucket = BUCKET * i64::try_from(index).unwrap_or(0);
                    let now = timestamp(bucket + FRESH);
                    self.put_object(index, &uid, version, ping, Some(now), world);
                }
            }
            HolderTransition::Crash => holder.crash(world.run.orphans),
        }
        Witnesses::NONE
    }

    /// A write of a candidate's reaches the store, which holds it against nothing: it is not one of ours.
    fn put(&mut self, write: &LeaseWrite, world: &ReservationSystem) {
        if self.store.accepts(write, Side::Candidate) {
            Rc::make_mut(&mut self.store).overwrite(|_| write.record.clone());
            self.lease_changed(world, None);
        }
    }

    fn of_elector(
        &mut self,
        index: usize,
        by: &ElectorTransition,
        world: &ReservationSystem,
    ) -> Witnesses {
        let run = &world.run;
        match by {
            ElectorTransition::See => Rc::make_mut(&mut self.electors[index]).see(&self.store, run),
            ElectorTransition::Decide(ElectorRequest::Write(write)) => {
                return self.put_decision(write, world, Some(index));
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
                let asked = self.store.objects[*index].as_ref();
                let renew = if run.pings {
                    asked.and_then(|object| object.renew)
                } else {
                    // Everybody answers at once.
                    ping.next()
                };
                self.put_object(*index, uid, *version, Some(*ping), renew, world);
            }
            ElectorTransition::Land => {
                let message = Rc::make_mut(&mut self.electors[index]).message.take();
                if let Some(write) = message {
                    return self.put_decision(&write, world, None);
                }
            }
            ElectorTransition::Send(_)
            | ElectorTransition::BreakWatch
            | ElectorTransition::Restart => {
                Rc::make_mut(&mut self.electors[index]).alone(by);
            }
        }
        Witnesses::NONE
    }

    /// A question or an answer reaches the store, and every elector sees it.
    fn put_object(
        &mut self,
        index: usize,
        uid: &Uid,
        version: ResourceVersion,
        ping: Option<Timestamp>,
        renew: Option<Timestamp>,
        world: &ReservationSystem,
    ) {
        let store = Rc::make_mut(&mut self.store);
        if store.put_object(index, uid, version, ping, renew) == Landed::Conflict {
            return;
        }
        for elector in &mut self.electors {
            if elector.knows_candidates() {
                let object = self.store.objects[index].as_ref();
                Rc::make_mut(elector).see_object(index, object, &world.run);
            }
        }
    }

    /// A write of an elector's reaches the store. `writer` learns of it by the reply, the others by their watches.
    fn put_decision(
        &mut self,
        write: &LeaseWrite,
        world: &ReservationSystem,
        writer: Option<usize>,
    ) -> Witnesses {
        let Some(lease) = self.store.lease.clone() else {
            return Witnesses::NONE;
        };
        let mut write = write.clone();
        if world.lands(&write, &self.store) {
            (write.uid, write.version) = (lease.uid.clone(), lease.version);
        }
        if Rc::make_mut(&mut self.store).put(&write, &Actor::Elector) == Landed::Conflict {
            return Witnesses::NONE;
        }
        self.lease_changed(world, writer);
        if let (Some(index), Some(lease)) = (writer, self.store.lease.clone()) {
            Rc::make_mut(&mut self.electors[index]).take_reply(lease, &self.store, &world.run);
        }
        let stood = lease.record.reserved_from().is_some();
        let stands = write.record.reserved_from().is_some();
        let held = matches!(write.record.occupancy(), Occupancy::Held(_));
        Witnesses::RESERVES.when(stands) | Witnesses::FOLLOWS.when(stood && !stands && held)
    }

    /// Tells every elector of a change of the Lease, each in its own time; `but` has heard already.
    fn lease_changed(&mut self, world: &ReservationSystem, but: Option<usize>) {
        for (index, elector) in self.electors.iter_mut().enumerate() {
            let elector = Rc::make_mut(elector);
            elector.message = elector
                .message
                .take()
                .filter(|write| world.lands(write, &self.store));
            if but != Some(index) {
                elector.deliver(self.store.lease.clone(), &world.run);
            }
        }
    }
}
