//! Breadth-first search over all reachable states, and the backward search for states that cannot reach a goal.

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hash;

use super::intern::QuickMap;
use super::witness::Witnesses;

/// A transition system to search.
pub(super) trait TransitionSystem {
    /// A state, numbers and all.
    type State;
    /// A state in short: equal keys are equal states.
    type Key: Copy + Eq + Hash;
    /// A step from one state to the next.
    type Transition: fmt::Debug;
    /// A violation.
    type Violation: Copy;

    /// Where everything starts.
    fn initial(&self) -> Vec<Self::State>;
    /// All that can happen next.
    fn successors(&self, state: &Self::State) -> Vec<Successor<Self>>;
    /// The key of a state, made up where it is new.
    fn key(&mut self, state: &Self::State) -> Self::Key;
    /// The state of a key.
    fn state(&self, key: Self::Key) -> Self::State;
    /// The violation in a state, if any.
    fn violation(&self, state: &Self::State) -> Option<Self::Violation>;
    /// True if this is a state that must stay within reach.
    fn is_goal(&self, state: &Self::State) -> bool;
    /// One line for a trace.
    fn describe(&self, state: &Self::State) -> String;
}

/// One step of a model.
pub(super) struct Successor<S: TransitionSystem + ?Sized> {
    /// The transition.
    pub(super) by: S::Transition,
    /// Its kind: prompt, time or a fault.
    pub(super) kind: TransitionKind,
    /// The possibilities that were seen.
    pub(super) witnesses: Witnesses,
    /// The state after it.
    pub(super) state: S::State,
}

/// The kind of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransitionKind {
    /// It happens without delay.
    Prompt,
    /// Time passes, once nothing prompt is left to happen.
    Time,
    /// A fault, or a stranger: it need not happen.
    Fault,
}

/// The result of a search.
pub(super) struct SearchResult<V> {
    /// The number of states that were reached.
    pub(super) states: usize,
    /// The possibilities that were seen.
    pub(super) witnesses: Witnesses,
    /// The verdict.
    pub(super) verdict: SearchVerdict<V>,
}

/// The verdict of a search.
pub(super) enum SearchVerdict<V> {
    /// Every state is as it must be.
    Holds,
    /// A state is wrong; the shortest way there.
    Violated(V, Vec<String>),
    /// This number of states cannot reach a goal without a fault; the shortest way to one of them.
    Trapped(usize, Vec<String>),
    /// The search met more states than it was allowed to.
    Unfinished,
}

/// A search under way.
pub(super) struct Search<S: TransitionSystem> {
    model: S,
    indices: QuickMap<S::Key, u32>,
    keys: Vec<S::Key>,
    parents: Vec<u32>,
    /// From, to: transitions without faults. Filled only where goals are looked for.
    prompt: Vec<(u32, u32)>,
    goals: Vec<u32>,
    witnesses: Witnesses,
}

/// The parent of an initial state.
const NONE: u32 = u32::MAX;

// === impl Search ===

impl<S: TransitionSystem> Search<S> {
    /// A search of this model that has not begun.
    pub(super) fn new(model: S) -> Self {
        Self {
            model,
            indices: QuickMap::default(),
            keys: Vec::new(),
            parents: Vec::new(),
            prompt: Vec::new(),
            goals: Vec::new(),
            witnesses: Witnesses::empty(),
        }
    }

    /// Visits every state, up to `limit`; with `seeks_goal`, then looks for states that cannot reach a goal.
    pub(super) fn run(mut self, limit: usize, seeks_goal: bool) -> SearchResult<S::Violation> {
        let verdict = self.explore(limit, seeks_goal);
        SearchResult {
            states: self.keys.len(),
            witnesses: self.witnesses,
            verdict,
        }
    }

    fn explore(&mut self, limit: usize, seeks_goal: bool) -> SearchVerdict<S::Violation> {
        for state in self.model.initial() {
            let (index, _) = self.index(&state, NONE);
            if let Some(violation) = self.model.violation(&state) {
                return SearchVerdict::Violated(violation, self.trace(index));
            }
        }
        let mut next = 0;
        while let Some(&key) = self.keys.get(next) {
            if self.keys.len() > limit {
                return SearchVerdict::Unfinished;
            }
            let from = id(next);
            next += 1;
            let state = self.model.state(key);
            if seeks_goal && self.model.is_goal(&state) {
                self.goals.push(from);
            }
            let mut prompt = false;
            let mut later = None;
            for successor in self.model.successors(&state) {
                self.witnesses |= successor.witnesses;
                let (to, new) = self.index(&successor.state, from);
                if new && let Some(violation) = self.model.violation(&successor.state) {
                    return SearchVerdict::Violated(violation, self.trace(to));
                }
                match successor.kind {
                    TransitionKind::Prompt if seeks_goal && to != from => {
                        prompt = true;
                        self.prompt.push((from, to));
                    }
                    TransitionKind::Time => later = Some(to),
                    TransitionKind::Prompt | TransitionKind::Fault => {}
                }
            }
            if let Some(to) = later.filter(|_| seeks_goal && !prompt) {
                self.prompt.push((from, to));
            }
        }
        if seeks_goal {
            self.find_trapped()
        } else {
            SearchVerdict::Holds
        }
    }

    /// The index of a state, and whether it is new.
    fn index(&mut self, state: &S::State, parent: u32) -> (u32, bool) {
        let key = self.model.key(state);
        let fresh = id(self.keys.len());
        let index = *self.indices.entry(key).or_insert(fresh);
        if index == fresh {
            self.keys.push(key);
            self.parents.push(parent);
        }
        (index, index == fresh)
    }

    /// Walks back from every goal, and finds the states that were not met.
    fn find_trapped(&mut self) -> SearchVerdict<S::Violation> {
        let mut starts = vec![0_u32; self.keys.len() + 1];
        for (_, to) in &self.prompt {
            starts[*to as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut filled = starts.clone();
        let mut sources = vec![0_u32; self.prompt.len()];
        for (from, to) in &self.prompt {
            let slot = &mut filled[*to as usize];
            sources[*slot as usize] = *from;
            *slot += 1;
        }
        let mut met = vec![false; self.keys.len()];
        let mut queue: VecDeque<u32> = self.goals.iter().copied().collect();
        for home in &self.goals {
            met[*home as usize] = true;
        }
        while let Some(at) = queue.pop_front() {
            let range = starts[at as usize] as usize..starts[at as usize + 1] as usize;
            for from in &sources[range] {
                if !std::mem::replace(&mut met[*from as usize], true) {
                    queue.push_back(*from);
                }
            }
        }
        let Some(first) = met.iter().position(|met| !met) else {
            return SearchVerdict::Holds;
        };
        let trapped = met.iter().filter(|met| !**met).count();
        SearchVerdict::Trapped(trapped, self.trace(id(first)))
    }

    /// The way to a state, one line for each transition.
    fn trace(&mut self, to: u32) -> Vec<String> {
        let mut way = vec![to];
        while let Some(&at) = way.last()
            && self.parents[at as usize] != NONE
        {
            way.push(self.parents[at as usize]);
        }
        way.reverse();
        let states: Vec<_> = way
            .iter()
            .map(|at| self.model.state(self.keys[*at as usize]))
            .collect();
        let mut lines = vec![format!("start: {}", self.model.describe(&states[0]))];
        for (pair, at) in states.windows(2).zip(&way[1..]) {
            let [before, after] = pair else { continue };
            let label = self.label(before, *at);
            lines.push(format!("{label}: {}", self.model.describe(after)));
        }
        lines
    }

    /// The transition that leads from a state to the one of this index.
    fn label(&mut self, before: &S::State, to: u32) -> String {
        let wanted = self.keys[to as usize];
        for successor in self.model.successors(before) {
            if self.model.key(&successor.state) == wanted {
                return format!("{:?}", successor.by);
            }
        }
        "?".to_owned()
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A walk along a line: forward by one, back by one, or a fall into the pit at `pit`, which nothing leaves.
    struct LineSystem {
        end: u32,
        onward: TransitionKind,
        wrong: Option<u32>,
        pit: Option<u32>,
    }

    impl TransitionSystem for LineSystem {
        type State = u32;
        type Key = u32;
        type Transition = LineStep;
        type Violation = ();

        fn initial(&self) -> Vec<u32> {
            vec![0]
        }

        fn successors(&self, state: &u32) -> Vec<Successor<Self>> {
            let step = |by, kind, state| Successor {
                by,
                kind,
                witnesses: Witnesses::LEADS.when(state == self.end),
                state,
            };
            if self.pit == Some(*state) {
                return vec![step(LineStep::Stay, TransitionKind::Prompt, *state)];
            }
            let mut steps = vec![step(
                LineStep::Back,
                TransitionKind::Fault,
                state.saturating_sub(1),
            )];
            if *state < self.end {
                steps.push(step(LineStep::Forward, self.onward, state + 1));
                steps.extend(
                    self.pit
                        .map(|pit| step(LineStep::Fall, TransitionKind::Fault, pit)),
                );
            }
            steps
        }

        fn key(&mut self, state: &u32) -> u32 {
            *state
        }

        fn state(&self, key: u32) -> u32 {
            key
        }

        fn violation(&self, state: &u32) -> Option<()> {
            (self.wrong == Some(*state)).then_some(())
        }

        fn is_goal(&self, state: &u32) -> bool {
            *state == self.end
        }

        fn describe(&self, state: &u32) -> String {
            state.to_string()
        }
    }

    #[derive(Debug)]
    enum LineStep {
        Back,
        Forward,
        Fall,
        Stay,
    }

    const LINE: LineSystem = LineSystem {
        end: 9,
        onward: TransitionKind::Time,
        wrong: None,
        pit: None,
    };

    #[test]
    fn every_state_is_met_once_and_time_leads_to_the_goal() {
        let found = Search::new(LINE).run(100, true);
        assert_eq!(found.states, 10);
        assert_eq!(found.witnesses, Witnesses::LEADS);
        assert!(matches!(found.verdict, SearchVerdict::Holds));
    }

    #[test]
    fn the_way_to_a_wrong_state_is_the_shortest() {
        let wrong = Some(3);
        let found = Search::new(LineSystem { wrong, ..LINE }).run(100, false);
        let SearchVerdict::Violated((), trace) = found.verdict else {
            panic!("not found");
        };
        let expected = ["start: 0", "Forward: 1", "Forward: 2", "Forward: 3"];
        assert_eq!(trace, expected);
    }

    #[test]
    fn a_pit_is_a_trap_and_the_line_beside_it_is_not() {
        let pit = Some(77);
        let found = Search::new(LineSystem { pit, ..LINE }).run(100, true);
        let SearchVerdict::Trapped(1, trace) = found.verdict else {
            panic!("not found");
        };
        assert_eq!(trace, ["start: 0", "Fall: 77"]);
    }

    #[test]
    fn a_fault_is_no_way_to_the_goal() {
        let onward = TransitionKind::Fault;
        let found = Search::new(LineSystem { onward, ..LINE }).run(100, true);
        assert!(matches!(found.verdict, SearchVerdict::Trapped(9, _)));
    }

    #[test]
    fn too_large_a_world_is_not_called_safe() {
        let found = Search::new(LINE).run(5, false);
        assert!(matches!(found.verdict, SearchVerdict::Unfinished));
    }
}
