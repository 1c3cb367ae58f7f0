//! The effect of a transition on a state.

use std::rc::Rc;

use elector_protocol::elector::Actor;
use elector_protocol::{CandidateRecord, LeaseWrite, Occupancy, ResourceVersion, Timestamp, Uid};

use super::super::elector::ElectorRequest;
use super::super::elector_transition::ElectorTransition;
use super::super::numbers::{BUCKET, FRESH, timestamp};
use super::super::store::{Landed, Side};
use super::super::witness::Witnesses;
use super::holder::PlainMessage;
use super::system::{ReservationState, ReservationSystem};
use super::transition::{HolderTransition, ReservationTransition};

// === impl ReservationState ===

impl ReservationState {
    /// Applies a transition, and then everything that follows from it at once. Numbers are left as they are.
    pub(in super::super) fn apply(
        &mut self,
        by: &ReservationTransition,
        system: &ReservationSystem,
    ) -> Witnesses {
        let witnesses = match by {
            ReservationTransition::Tick => Witnesses::NONE,
            ReservationTransition::Holder(index, by) => self.of_holder(*index, *by, system),
            ReservationTransition::Elector(index, by) => self.of_elector(*index, by, system),
            ReservationTransition::LandPost => {
                if self.land_post() {
                    self.lease_changed(system, None);
                }
                Witnesses::NONE
            }
            ReservationTransition::Delete => {
                let store = Rc::make_mut(&mut self.store);
                store.interference.deletions -= 1;
                store.delete();
                self.lease_changed(system, None);
                Witnesses::NONE
            }
            ReservationTransition::Wipe => {
                let store = Rc::make_mut(&mut self.store);
                store.wipe();
                self.lease_changed(system, None);
                Witnesses::NONE
            }
        };
        self.settle(system);
        witnesses
    }

    /// What follows at once, whatever happened.
    pub(in super::super) fn settle(&mut self, system: &ReservationSystem) {
        for holder in &mut self.candidates {
            Rc::make_mut(holder).settle(&self.store);
        }
        self.settle_electors(&system.run);
    }

    fn of_holder(
        &mut self,
        index: usize,
        by: HolderTransition,
        system: &ReservationSystem,
    ) -> Witnesses {
        let holder = Rc::make_mut(&mut self.candidates[index]);
        match by {
            HolderTransition::Write => holder.write(index, &self.store, system.kind.duration),
            HolderTransition::Land => {
                if let Some(PlainMessage::Sent(write, sent)) = holder.message.take() {
                    holder.message = Some(PlainMessage::Landed(sent));
                    self.put(&write, system);
                }
            }
            HolderTransition::LandOrphan(number) => {
                let write = holder.orphans.remove(number);
                self.put(&write, system);
            }
            HolderTransition::Reply => {
                let led = holder.believes();
                holder.take_reply(system.kind.counts);
                return Witnesses::LEADS.when(!led && holder.believes());
            }
            HolderTransition::GiveUp => holder.give_up(),
            HolderTransition::Ack => {
                let object = self.store.objects[index].clone();
                if let Some(CandidateRecord {
                    uid, version, ping, ..
                }) = object
                {
                    // Its own clock is ahead of the ping.
                    let bucket = BUCKET * i64::try_from(index).unwrap_or(0);
                    let now = timestamp(bucket + FRESH);
                    self.put_object(index, &uid, version, ping, Some(now), system);
                }
            }
            HolderTransition::Crash => holder.crash(system.run.orphans),
        }
        Witnesses::NONE
    }

    /// A write of a candidate's reaches the store, which holds it against nothing: it is not one of ours.
    fn put(&mut self, write: &LeaseWrite, system: &ReservationSystem) {
        if self.store.accepts(write, Side::Candidate) {
            Rc::make_mut(&mut self.store).overwrite(|_| write.record.clone());
            self.lease_changed(system, None);
        }
    }

    fn of_elector(
        &mut self,
        index: usize,
        by: &ElectorTransition,
        system: &ReservationSystem,
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
                let asked = self.store.objects[*index].as_ref();
                let renew = if run.pings {
                    asked.and_then(|object| object.renew)
                } else {
                    // Every candidate acks at once.
                    ping.next()
                };
                self.put_object(*index, uid, *version, Some(*ping), renew, system);
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

    /// A ping or an ack reaches the store, and every elector sees it.
    fn put_object(
        &mut self,
        index: usize,
        uid: &Uid,
        version: ResourceVersion,
        ping: Option<Timestamp>,
        renew: Option<Timestamp>,
        system: &ReservationSystem,
    ) {
        let store = Rc::make_mut(&mut self.store);
        if store.put_object(index, uid, version, ping, renew) == Landed::Applied {
            self.deliver_object(index, &system.run);
        }
    }

    /// A write of an elector's reaches the store. `writer` learns of it by the reply, the others by their watches.
    fn put_decision(
        &mut self,
        write: &LeaseWrite,
        system: &ReservationSystem,
        writer: Option<usize>,
    ) -> Witnesses {
        let Some(lease) = self.store.lease.clone() else {
            return Witnesses::NONE;
        };
        let mut write = write.clone();
        if system.lands(&write, &self.store) {
            (write.uid, write.version) = (lease.uid.clone(), lease.version);
        }
        if Rc::make_mut(&mut self.store).put(&write, &Actor::Elector) == Landed::Conflict {
            return Witnesses::NONE;
        }
        self.lease_changed(system, writer);
        if let (Some(index), Some(lease)) = (writer, self.store.lease.clone()) {
            Rc::make_mut(&mut self.electors[index]).take_reply(lease, &self.store, &system.run);
        }
        let stood = lease.record.reserved_from().is_some();
        let stands = write.record.reserved_from().is_some();
        let held = matches!(write.record.occupancy(), Occupancy::Held(_));
        Witnesses::RESERVES.when(stands) | Witnesses::FOLLOWS.when(stood && !stands && held)
    }

    /// Tells every elector of a change of the Lease; the elector `but` has seen it already.
    fn lease_changed(&mut self, system: &ReservationSystem, but: Option<usize>) {
        self.deliver_lease(&system.run, but, |write, store| system.lands(write, store));
    }
}
