//! Everything that can happen next.

use std::rc::Rc;

use elector_protocol::elector::Effect;

use super::clocks::Time;
use super::elector::ElectorProcess;
use super::lease_message::LeaseMessage;
use super::mutant::Mutant;
use super::process::{ModelProcess, ProcessWork};
use super::state::SystemState;
use super::store::{LeaseStore, Side};
use super::system::ModelSystem;
use super::transition::{ElectorTransition, ModelTransition, ProcessTransition};

// === impl ModelSystem ===

impl ModelSystem {
    /// All transitions from a state.
    pub(super) fn possible(&self, state: &SystemState) -> Vec<ModelTransition> {
        let store = &state.store;
        let mut transitions = vec![ModelTransition::Tick];
        let mutant = self.run.mutant;
        for index in 0..state.candidates.len() {
            let drifts = [
                (mutant == Some(Mutant::ClockStops), Time::PassesBut(index)),
                (self.run.drifts, Time::Suspends(index)),
                (self.run.drifts, Time::Gains(index)),
            ];
            let drifts = drifts.into_iter().filter(|(possible, _)| *possible);
            transitions.extend(drifts.map(|(_, time)| ModelTransition::Drift(time)));
        }
        for (index, process) in state.candidates.iter().enumerate() {
            let next = self.of_process(process, store).into_iter();
            transitions.extend(next.map(|by| ModelTransition::Process(index, by)));
        }
        for (index, elector) in state.electors.iter().enumerate() {
            let next = self.of_elector(elector, store).into_iter();
            transitions.extend(next.map(|by| ModelTransition::Elector(index, by)));
        }
        transitions.extend(of_strangers(store));
        if let Some(lease) = store.lease.as_ref().filter(|_| self.run.operated) {
            let words = &lease.overrides;
            transitions.push(ModelTransition::Freeze(words.freeze.is_none()));
            transitions.push(ModelTransition::Prefer(words.prefer.is_none()));
        }
        transitions
    }

    fn of_process(&self, process: &Rc<ModelProcess>, store: &LeaseStore) -> Vec<ProcessTransition> {
        let run = &self.run;
        let message = process.message.as_ref();
        let sent = matches!(message, Some(LeaseMessage::Sent(_)));
        let running = process.work == ProcessWork::Running;
        let pinged = run.pings && process.is_pinged(store);
        let shortens = running && run.mutant.is_some_and(Mutant::shortens);
        let first = [
            (process.can_see(store, run), ProcessTransition::See),
            (process.reading, ProcessTransition::Read),
            (sent, ProcessTransition::Land),
            (message.is_some() && !sent, ProcessTransition::Reply),
        ];
        let then = [
            (process.can_give_up(run), ProcessTransition::GiveUp),
            (process.can_set_aside(run), ProcessTransition::SetAside),
            (self.is_due(process), ProcessTransition::Step),
            (running && run.releases, ProcessTransition::WorkEnds),
            (
                process.work == ProcessWork::Stopping,
                ProcessTransition::WorkStops,
            ),
            (
                shortens && !process.variation.short,
                ProcessTransition::Shorten,
            ),
            (
                process.variation.late_reply.is_some(),
                ProcessTransition::LateReply,
            ),
            // The candidate whose writes are refused acks at once, before anything else can happen.
            (
                pinged && run.refused_candidate != Some(process.name),
                ProcessTransition::Ack,
            ),
            (
                run.pinged && process.can_be_pinged(run),
                ProcessTransition::Ping,
            ),
            (
                !run.hurries || process.can_crash(),
                ProcessTransition::Crash,
            ),
        ];
        let possible = |(possible, by): (bool, ProcessTransition)| possible.then_some(by);
        let orphans = (0..process.orphans.len()).map(ProcessTransition::LandOrphan);
        let first = first.into_iter().filter_map(possible);
        let then = then.into_iter().filter_map(possible);
        first.chain(orphans).chain(then).collect()
    }

    /// A write on a revision that was replaced is dead (R2).
    fn of_elector(
        &self,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Vec<ElectorTransition> {
        let run = &self.run;
        let mut transitions = Vec::with_capacity(6);
        if elector.can_see() {
            transitions.push(ElectorTransition::See);
        }
        for effect in self.effects(elector, store).iter() {
            match effect {
                Effect::Write(_) | Effect::Create(_) if !run.electors_write => {}
                Effect::Write(write) if !store.may_accept(write, Side::Elector) => {}
                Effect::Write(write) if run.slow_electors => {
                    if elector.message.is_none() {
                        transitions.push(ElectorTransition::Send(write.clone()));
                    }
                }
                _ => transitions.push(ElectorTransition::Decide(effect.clone())),
            }
        }
        if elector.message.is_some() {
            transitions.push(ElectorTransition::Land);
        }
        if elector.whole && (!run.hurries || run.interference.deletions > 0) {
            transitions.push(ElectorTransition::BreakWatch);
        }
        if run.restarts {
            transitions.push(ElectorTransition::Restart);
        }
        transitions
    }
}

fn of_strangers(store: &LeaseStore) -> Vec<ModelTransition> {
    let may = store.interference;
    let accepted = store.lease.as_ref().map(|lease| lease.record.has_token());
    let there = accepted.is_some();
    let changes = [
        (store.post.is_some(), ModelTransition::LandPost),
        (!there && may.creations > 0, ModelTransition::Create),
        (there && may.deletions > 0, ModelTransition::Delete),
        (there && may.blanks > 0, ModelTransition::Blank),
        (
            there && store.labelled && may.unlabels > 0,
            ModelTransition::Unlabel,
        ),
        (
            accepted == Some(true) && may.wipes > 0,
            ModelTransition::Wipe,
        ),
    ];
    let possible = |(possible, by): (bool, ModelTransition)| possible.then_some(by);
    let objects = if there && may.object_deletions > 0 {
        store.objects.len()
    } else {
        0
    };
    let objects = (0..objects).map(ModelTransition::DeleteObject);
    changes
        .into_iter()
        .filter_map(possible)
        .chain(objects)
        .collect()
}
