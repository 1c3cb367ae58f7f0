//! Two leases of a group for which the same processes stand, and electors that spread them: a system for each lease, on
//! one time.
//!
//! A process crashes in both systems at once; electors go on. What an elector sees of the one lease
//! reaches the other by the assignment alone, which is made anew after each transition by the production function.

use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::elector::{Effect, Election, Settings};
use elector_protocol::{GroupPart, Identity, LeaseGroup, LeaseRecord, PartMobility};

use super::mutant::Mutant;
use super::numbers::{FRESH, LONG_AGO, NOW, timestamp};
use super::run::Run;
use super::search::{Successor, TransitionKind, TransitionSystem};
use super::state::{StateKey, SystemState};
use super::store::{GROUP, Property};
use super::system::ModelSystem;
use super::transition::{ElectorTransition, ModelTransition, ProcessTransition};
use super::witness::Witnesses;

/// Two leases of a group, ready to be searched.
pub(super) struct GroupSystem {
    /// The system of each of the leases.
    part: ModelSystem,
}

/// The state of both.
#[derive(Clone)]
pub(super) struct GroupState {
    parts: [SystemState; PARTS.len()],
}

/// A transition of a group.
#[derive(Clone, Debug)]
pub(super) enum GroupTransition {
    /// Every clock goes on by its rate.
    Tick,
    /// A process dies and starts again.
    Crash(usize),
    /// The last process registers its candidate for this lease.
    Join(usize),
    /// Anything else that happens to one lease.
    Part(usize, ModelTransition),
}

/// The names of the leases.
const PARTS: [&str; 2] = ["p0", "p1"];

// === impl GroupSystem ===

impl GroupSystem {
    /// The system of a run.
    pub(super) fn new(run: Run) -> Self {
        Self {
            part: ModelSystem::new(run),
        }
    }

    fn possible(&self, state: &GroupState) -> Vec<GroupTransition> {
        let run = &self.part.run;
        let mut transitions = vec![GroupTransition::Tick];
        for (index, part) in state.parts.iter().enumerate() {
            let alone = self.part.possible(part).into_iter().filter(|by| {
                !matches!(
                    by,
                    ModelTransition::Tick | ModelTransition::Process(_, ProcessTransition::Crash)
                )
            });
            transitions.extend(alone.map(|by| GroupTransition::Part(index, by)));
            if part.store.objects.last().is_some_and(Option::is_none) {
                transitions.push(GroupTransition::Join(index));
            }
        }
        let crashes = |process: &usize| {
            let mut parts = state.parts.iter();
            parts.any(|part| part.candidates[*process].can_crash())
        };
        let processes = (0..run.candidates).filter(crashes);
        transitions.extend(processes.map(GroupTransition::Crash));
        transitions
    }

    fn follow(&self, state: &GroupState, by: &GroupTransition) -> (GroupState, Witnesses) {
        let mut next = state.clone();
        let mut witnesses = Witnesses::empty();
        for (index, part) in next.parts.iter_mut().enumerate() {
            let by = match by {
                GroupTransition::Tick => ModelTransition::Tick,
                GroupTransition::Crash(process) => {
                    ModelTransition::Process(*process, ProcessTransition::Crash)
                }
                GroupTransition::Join(at) if *at == index => {
                    ModelTransition::CreateObject(self.part.run.candidates - 1)
                }
                GroupTransition::Part(at, by) if *at == index => by.clone(),
                GroupTransition::Join(_) | GroupTransition::Part(..) => continue,
            };
            let (after, met) = self.part.follow(&state.parts[index], &by);
            *part = after;
            witnesses |= met;
        }
        if let GroupTransition::Part(part, ModelTransition::Elector(elector, by)) = by
            && let ElectorTransition::Decide(Effect::Write(write)) = by
            && self.is_needless(state, *part, *elector, &write.record)
        {
            Rc::make_mut(&mut next.parts[*part].store).note(Property::NeededMove);
        }
        self.spread(&mut next);
        let leaders = next.parts.each_ref().map(|part| self.leader(part));
        let spread = leaders[0].is_some() && leaders[1].is_some() && leaders[0] != leaders[1];
        (next, witnesses | Witnesses::SPREAD.when(spread))
    }

    /// Assigns the parts anew, as each elector sees them. Members have always settled, and what they let expire is
    /// forgotten at once: that would hold moves back for longer than the ages of this model.
    fn spread(&self, state: &mut GroupState) {
        let run = &self.part.run;
        for elector in 0..run.electors {
            let mut group = LeaseGroup::default();
            let names = PARTS.map(Arc::from);
            for (name, part) in names.iter().zip(&state.parts) {
                let mut seen = self.part_of(&part.electors[elector].election);
                seen.lapse = None;
                if run.mutant == Some(Mutant::SpreadAnew) {
                    (seen.holder, seen.mobility, seen.avoid) = (None, PartMobility::Vacant, None);
                }
                group.handle_part(NOW, name, seen);
            }
            for process in 0..run.candidates {
                group.set_member_since(&run.member(process), LONG_AGO);
            }
            let mut wanted = PARTS.map(|_| None);
            for assignment in group.assign(NOW) {
                if let Some(part) = names.iter().position(|name| *name == assignment.part) {
                    wanted[part] = assignment.candidate;
                }
            }
            for (part, wanted) in state.parts.iter_mut().zip(wanted) {
                if part.electors[elector].election.assigned() != wanted.as_ref() {
                    let known = Rc::make_mut(&mut part.electors[elector]);
                    known.election.handle_assigned(wanted);
                    self.part.settle(part);
                }
            }
        }
    }

    fn part_of(&self, election: &Election) -> GroupPart {
        let settings: &Settings = &self.part.settings[0];
        election.part(GROUP, NOW, timestamp(FRESH), settings)
    }

    /// True if an elector asks the holder of a part to make room for a process that has not two parts less. A part that is
    /// unheld or late may be about to go to any, and one under a preference counts as moved.
    fn is_needless(
        &self,
        state: &GroupState,
        part: usize,
        elector: usize,
        after: &LeaseRecord,
    ) -> bool {
        let Some(before) = &state.parts[part].store.lease else {
            return false;
        };
        let (old, preferred) = (&before.record, &after.preferred_holder);
        let asks = old.holder == after.holder && old.preferred_holder != *preferred;
        let (Some(holder), Some(preferred)) = (&old.holder, preferred) else {
            return false;
        };
        let (mut from, mut to) = (0, 0);
        for part in &state.parts {
            let seen = self.part_of(&part.electors[elector].election);
            let has = owner(part);
            if seen.mobility == PartMobility::Vacant || has == Some(holder) {
                from += 1;
            } else if has == Some(preferred) {
                to += 1;
            }
        }
        asks && from < to + 2
    }

    /// The process that believes that it leads.
    fn leader(&self, part: &SystemState) -> Option<usize> {
        let mut processes = part.candidates.iter();
        processes.position(|process| process.believes(&self.part.run))
    }
}

/// The candidate that holds a part, or is about to get it by a preference.
fn owner(part: &SystemState) -> Option<&Identity> {
    let record = &part.store.lease.as_ref()?.record;
    let holder = record.holder.as_ref();
    holder.and(record.preferred_holder.as_ref()).or(holder)
}

impl TransitionSystem for GroupSystem {
    type State = GroupState;
    type Key = [StateKey; PARTS.len()];
    type Transition = GroupTransition;
    type Violation = Property;

    fn initial(&self) -> Vec<GroupState> {
        let starts = self.part.initial().into_iter();
        starts
            .map(|start| GroupState {
                parts: [start.clone(), start],
            })
            .collect()
    }

    fn successors(&self, state: &GroupState) -> Vec<Successor<Self>> {
        let successor = |by: GroupTransition| {
            let (next, witnesses) = self.follow(state, &by);
            Successor {
                kind: by.kind(),
                by,
                witnesses,
                state: next,
            }
        };
        self.possible(state).into_iter().map(successor).collect()
    }

    fn key(&mut self, state: &GroupState) -> Self::Key {
        let [first, second] = &state.parts;
        [self.part.key(first), self.part.key(second)]
    }

    fn state(&self, key: Self::Key) -> GroupState {
        GroupState {
            parts: key.map(|key| self.part.state(key)),
        }
    }

    fn violation(&self, state: &GroupState) -> Option<Property> {
        state
            .parts
            .iter()
            .find_map(|part| self.part.violation(part))
    }

    /// Each part is led, and by a process of its own where both stand for both.
    fn is_goal(&self, state: &GroupState) -> bool {
        let [first, second] = state.parts.each_ref().map(|part| self.leader(part));
        let joined = |part: &SystemState| part.store.objects.iter().all(Option::is_some);
        let alone = !state.parts.iter().all(joined);
        first.is_some() && second.is_some() && (alone || first != second)
    }

    fn describe(&self, state: &GroupState) -> String {
        let parts = PARTS.iter().zip(&state.parts);
        let parts = parts.map(|(name, part)| format!("{name}: {}", self.part.describe(part)));
        parts.collect::<Vec<_>>().join(" | ")
    }
}

// === impl GroupTransition ===

impl GroupTransition {
    fn kind(&self) -> TransitionKind {
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Crash(_) | Self::Join(_) => TransitionKind::Fault,
            Self::Part(_, by) => by.kind(),
        }
    }
}
