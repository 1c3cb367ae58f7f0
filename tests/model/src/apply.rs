//! The effect of a transition on a state.

use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::elector::Effect;
use elector_protocol::holder::WriteKind;
use elector_protocol::{LeaseRecord, LeaseWrite, Occupancy, OperatorPreference};
use elector_verify::Actor;

use super::clocks::TICK_SECONDS;
use super::lease_message::{LeaseMessage, LeaseRequest};
use super::mutant::Mutant;
use super::run::Run;
use super::state::SystemState;
use super::store::{Landed, NAMES, Property, Side, WORD_ENDS, identity, names};
use super::system::ModelSystem;
use super::transition::{ElectorTransition, ModelTransition, ProcessTransition};
use super::witness::Witnesses;

// === impl SystemState ===

impl SystemState {
    /// Applies a transition, and then everything that follows from it at once. Numbers are left as they are.
    pub(super) fn apply(&mut self, by: &ModelTransition, system: &ModelSystem) -> Witnesses {
        let run = &system.run;
        let store = Rc::clone(&self.store);
        let candidates = self.candidates.clone();
        let witnesses = match by {
            ModelTransition::Tick | ModelTransition::Drift(_) => Witnesses::empty(),
            ModelTransition::Process(index, by) => self.of_process(*index, *by, system),
            ModelTransition::Elector(index, by) => self.of_elector(*index, by, run),
            ModelTransition::LandPost
            | ModelTransition::Delete
            | ModelTransition::Create
            | ModelTransition::Blank
            | ModelTransition::Unlabel
            | ModelTransition::Wipe
            | ModelTransition::Freeze(_)
            | ModelTransition::Prefer(_)
            | ModelTransition::DeleteObject(_)
            | ModelTransition::CreateObject(_) => {
                self.of_stranger(by, run);
                Witnesses::empty()
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
        // An elector that does not lag sees all that its watch has to deliver.
        for elector in self.electors.iter_mut().skip(run.lagging) {
            while elector.can_see() {
                Rc::make_mut(elector).see(&self.store, run);
            }
        }
        witnesses
    }

    /// The immediate consequences of time that has passed, which may have ended a belief.
    pub(super) fn catch_up(&mut self, run: &Run) {
        for candidate in &mut self.candidates {
            Rc::make_mut(candidate).catch_up(&self.store, run);
        }
    }

    fn of_process(
        &mut self,
        index: usize,
        by: ProcessTransition,
        system: &ModelSystem,
    ) -> Witnesses {
        let run = &system.run;
        let store = &self.store;
        let process = Rc::make_mut(&mut self.candidates[index]);
        let mut witnesses = Witnesses::empty();
        match by {
            ProcessTransition::See => witnesses = process.see(store, run),
            ProcessTransition::Read => witnesses = process.read(store, run),
            ProcessTransition::Reply => witnesses = process.reply(store, run),
            ProcessTransition::GiveUp => witnesses = process.give_up(run),
            ProcessTransition::SetAside => witnesses = process.set_aside(run),
            ProcessTransition::Step => witnesses = process.settle(run, None),
            ProcessTransition::Ping => witnesses = process.ping(run),
            ProcessTransition::WorkStops | ProcessTransition::WorkEnds => {
                let config = &system.configs[process.name];
                witnesses = if run.mutant == Some(Mutant::ReleaseByOldRecord) {
                    process.release_by_old_record(store, Arc::clone(config), run)
                } else {
                    process.end_work(run)
                };
            }
            ProcessTransition::Shorten => process.variation.short = true,
            ProcessTransition::LateReply => {
                process.variation.counted_from = process.variation.late_reply.take();
            }
            ProcessTransition::Crash => {
                let name = run.next_name(index, process.name);
                process.crash(name, Arc::clone(&system.configs[name]), run);
                if run.mutant == Some(Mutant::RejoinBesideTheLiving) {
                    self.share_notes(index);
                }
            }
            ProcessTransition::Ack => self.ack(index, run),
            ProcessTransition::LandOrphan(number) => {
                let request = process.orphans.remove(number);
                return self.land(index, &request, system).1;
            }
            ProcessTransition::Land => {
                let Some(LeaseMessage::Sent(request)) = process.message.take() else {
                    return witnesses;
                };
                let (landed, witnesses) = self.land(index, &request, system);
                let kind = request.kind().cloned();
                let message = match self.store.lease.clone() {
                    Some(lease) if landed == Landed::Applied => LeaseMessage::Landed(kind, lease),
                    _ => LeaseMessage::Dead(kind),
                };
                Rc::make_mut(&mut self.candidates[index]).message = Some(message);
                return witnesses;
            }
        }
        let again = witnesses.contains(Witnesses::LEADS) && self.store.created > 1;
        witnesses | Witnesses::RETURNS.when(again)
    }

    /// A request of a process reaches the store.
    fn land(
        &mut self,
        index: usize,
        request: &LeaseRequest,
        system: &ModelSystem,
    ) -> (Landed, Witnesses) {
        let run = &system.run;
        let mut witnesses = Witnesses::empty();
        let landed = match request {
            LeaseRequest::Post(record) => Rc::make_mut(&mut self.store).create(record.clone()),
            LeaseRequest::Put(_, _, write) if !self.store.accepts(write, Side::Candidate) => {
                Landed::Conflict
            }
            LeaseRequest::Put(name, kind, write) => {
                witnesses = self.witnesses_of(index, kind, run);
                self.judge_new_term(&write.record, run);
                let author = &system.configs[*name].identity;
                Rc::make_mut(&mut self.store).put(write, Actor::Candidate(author))
            }
        };
        if landed == Landed::Applied {
            self.lease_changed(run, None);
        }
        (landed, witnesses)
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

    fn of_elector(&mut self, index: usize, by: &ElectorTransition, run: &Run) -> Witnesses {
        let elector = Rc::make_mut(&mut self.electors[index]);
        match by {
            ElectorTransition::See => {
                let recurs = elector.finds_again(&self.store);
                elector.see(&self.store, run);
                return Witnesses::RECURS.when(recurs && self.is_believed(run));
            }
            ElectorTransition::Decide(effect) => return self.decide(index, effect, run),
            ElectorTransition::Send(write) => elector.message = Some(write.clone()),
            ElectorTransition::Land => {
                if let Some(write) = elector.message.take() {
                    return self.put_decision(&write, run, None);
                }
            }
            ElectorTransition::BreakWatch => elector.break_watch(),
            ElectorTransition::Restart => elector.restart(run),
        }
        Witnesses::empty()
    }

    /// Carries out what an elector decided.
    fn decide(&mut self, index: usize, effect: &Effect, run: &Run) -> Witnesses {
        let store = Rc::make_mut(&mut self.store);
        match effect {
            Effect::Write(write) => return self.put_decision(write, run, Some(index)),
            Effect::Create(record) => {
                store.post = Some(record.clone());
                if !run.slow_posts {
                    self.land_post(run);
                }
            }
            Effect::Ping {
                name,
                uid,
                version,
                ping,
            } => {
                let Some(index) = store.index_of(name) else {
                    return Witnesses::empty();
                };
                let asked = store.objects[index].as_ref();
                let renew = if run.pings {
                    asked.and_then(|object| object.renew)
                } else {
                    // Every candidate acks at once.
                    ping.next()
                };
                let landed = store.put_object(index, uid, *version, Some(*ping), renew);
                if landed == Landed::Applied {
                    self.deliver_object(index, run);
                }
            }
            // No candidate is silent for long enough here.
            Effect::Collect { .. } => {}
        }
        Witnesses::empty()
    }

    /// A write of an elector's reaches the store. `writer` learns of it by the reply, the others by their watches.
    fn put_decision(&mut self, write: &LeaseWrite, run: &Run, writer: Option<usize>) -> Witnesses {
        let takes_over = self.takes_over(&write.record);
        let before = self.store.lease.as_ref();
        let signals = before.is_some_and(|lease| lease.record.same_record(&write.record));
        if self.store.accepts(write, Side::Elector) {
            self.judge_new_term(&write.record, run);
        }
        if Rc::make_mut(&mut self.store).put(write, Actor::Elector) == Landed::Conflict {
            return Witnesses::empty();
        }
        self.lease_changed(run, writer);
        if let (Some(index), Some(lease)) = (writer, self.store.lease.clone()) {
            Rc::make_mut(&mut self.electors[index]).take_reply(lease, &self.store, run);
        }
        Witnesses::TAKES_OVER.when(takes_over) | Witnesses::SIGNALS.when(signals)
    }

    fn of_stranger(&mut self, by: &ModelTransition, run: &Run) {
        let store = Rc::make_mut(&mut self.store);
        match by {
            ModelTransition::LandPost => return self.land_post(run),
            ModelTransition::Delete => {
                store.interference.deletions -= 1;
                store.delete();
            }
            ModelTransition::Create => {
                store.interference.creations -= 1;
                store.create(LeaseRecord {
                    duration_seconds: Some(TICK_SECONDS),
                    ..LeaseRecord::born(None)
                });
            }
            ModelTransition::Blank => {
                store.interference.blanks -= 1;
                store.labelled = true;
                store.overwrite(|record| LeaseRecord::born(record.strategy.clone()));
            }
            ModelTransition::Unlabel => {
                store.interference.unlabels -= 1;
                store.labelled = false;
                store.overwrite(LeaseRecord::clone);
            }
            ModelTransition::Wipe => store.wipe(),
            ModelTransition::Freeze(on) => {
                store.instruct(|words| words.freeze = on.then_some(WORD_ENDS));
            }
            ModelTransition::Prefer(on) => {
                let word = OperatorPreference {
                    candidate: identity(NAMES[run.candidates - 1]),
                    until: WORD_ENDS,
                };
                store.instruct(|words| words.prefer = on.then(|| Box::new(word)));
            }
            ModelTransition::DeleteObject(index) => {
                store.interference.object_deletions -= 1;
                store.objects[*index] = None;
                return self.deliver_object(*index, run);
            }
            ModelTransition::CreateObject(index) => {
                store.objects[*index] = Some(run.candidate(*index));
                return self.deliver_object(*index, run);
            }
            ModelTransition::Tick
            | ModelTransition::Drift(_)
            | ModelTransition::Process(..)
            | ModelTransition::Elector(..) => return,
        }
        self.lease_changed(run, None);
    }

    /// A POST of an elector lands.
    fn land_post(&mut self, run: &Run) {
        let store = Rc::make_mut(&mut self.store);
        let created = store.post.take().map(|record| store.create(record));
        if created == Some(Landed::Applied) {
            self.lease_changed(run, None);
        }
    }

    /// Tells every process and every elector of a change of the Lease, each in its own time; the elector `but` has seen
    /// it already. A write on what was replaced is dead (R2).
    fn lease_changed(&mut self, run: &Run, but: Option<usize>) {
        if run.acquires() {
            for process in &mut self.candidates {
                Rc::make_mut(process).deliver(&self.store, run);
            }
        }
        for (index, elector) in self.electors.iter_mut().enumerate() {
            let elector = Rc::make_mut(elector);
            let message = elector.message.take();
            elector.message = message.filter(|write| self.store.may_accept(write, Side::Elector));
            if but != Some(index) {
                elector.deliver(self.store.lease.clone(), run);
            }
        }
    }

    /// Tells every elector of a change of a candidate's object. The candidate's own delay covers that this may take its
    /// time.
    fn deliver_object(&mut self, index: usize, run: &Run) {
        for elector in &mut self.electors {
            if elector.knows_candidates() {
                let object = self.store.objects[index].as_ref();
                Rc::make_mut(elector).see_object(index, object, run);
            }
        }
    }

    /// True if any process believes that it leads.
    fn is_believed(&self, run: &Run) -> bool {
        self.candidates.iter().any(|process| process.believes(run))
    }

    /// A term that begins while another process believes overwrites a live one, whether or not its own holder ever
    /// comes to believe. Where all are elected, that would show in the belief of its holder.
    fn judge_new_term(&mut self, after: &LeaseRecord, run: &Run) {
        let before = self.store.lease.as_ref().map(|lease| lease.record.term);
        let begins = after.holder.is_some() && before != Some(after.term);
        if begins && run.acquires() && run.lock.is_none() && self.is_believed(run) {
            Rc::make_mut(&mut self.store).note(Property::AllowedMove);
        }
    }

    /// The witnesses of a process's write that lands now.
    fn witnesses_of(&self, index: usize, kind: &WriteKind, run: &Run) -> Witnesses {
        let Some(lease) = &self.store.lease else {
            return Witnesses::empty();
        };
        let acquires = |request: &LeaseRequest| request.kind() == Some(&WriteKind::Acquire);
        let other_acquires = || {
            let mut others = self.candidates.iter().enumerate();
            others.any(|(other, process)| {
                let sent = match &process.message {
                    Some(LeaseMessage::Sent(request)) => acquires(request),
                    _ => false,
                };
                other != index && (sent || process.orphans.iter().any(acquires))
            })
        };
        match kind {
            WriteKind::Accept => Witnesses::BESIDE.when(other_acquires()),
            WriteKind::Acquire if self.is_believed(run) => Witnesses::DISPLACES,
            WriteKind::Acquire => match lease.record.occupancy() {
                Occupancy::Held(_) => Witnesses::TAKES_EXPIRED,
                Occupancy::Released => Witnesses::TAKES_RELEASED,
                Occupancy::Unproven => Witnesses::TAKES_UNPROVEN,
            },
            WriteKind::Resume => Witnesses::RESUMES,
            WriteKind::Rejoin => Witnesses::REJOINS,
            WriteKind::HandOff(to) => {
                let word = lease.overrides.prefer.as_ref();
                let obeys =
                    word.map(|word| &word.candidate) == lease.record.preferred_holder.as_ref();
                let below = self.store.index_of(to) > Some(self.candidates[index].name);
                Witnesses::HANDS_OVER
                    | Witnesses::OBEYS.when(obeys)
                    | Witnesses::REVERSES.when(below)
            }
            WriteKind::Renew => Witnesses::UNLABELLED.when(!self.store.labelled),
            WriteKind::Release => Witnesses::empty(),
        }
    }

    /// A process that has just started takes the notes of the other ones for its own.
    fn share_notes(&mut self, index: usize) {
        let others = self.candidates.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        let notes: Vec<_> = others
            .filter_map(|(_, process)| process.instance.as_ref())
            .flat_map(|instance| instance.noted.clone())
            .collect();
        let process = Rc::make_mut(&mut self.candidates[index]);
        process.holder = process.holder.clone().with_former_terms(notes);
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
}
