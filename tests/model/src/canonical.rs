//! Canonical states: time passes, and every number of a state is replaced by what it means.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use elector_protocol::{ElectorTiming, Renumber};

use super::clocks::Time;
use super::mutant::Mutant;
use super::numbers::{Aging, Assign, Numbers};
use super::run::{LATE, Run};
use super::state::SystemState;
use super::store::LeaseStore;

/// Makes states canonical, for one run.
pub(super) struct Canonical {
    run: Run,
    /// By the life of an elector.
    timings: [ElectorTiming; 2],
    /// Ages of what an elector saw of the Lease are alike from here on.
    pub(super) ages: Duration,
    /// Ages of pings and acks from here on are alike. That is not exact: whether a ping came before or after a round
    /// began is forgotten with its age, so that old acks count for more than they should. This adds grants and takes
    /// none away.
    pub(super) sightings: Duration,
    /// Ages of a preference are alike from here on. Where no candidate is pinged and no wait doubles, each has had its
    /// time.
    pub(super) preference: Duration,
    /// Ages of what a candidate saw and sent are alike from here on.
    waits: Duration,
    /// Durations up to this one are alike to a candidate.
    usual: Duration,
    scratch: RefCell<Scratch>,
}

/// Kept between transitions for its memory alone.
struct Scratch {
    /// The numbers of the store that most successors of a state share with it.
    kept: Numbers,
    kept_of: Option<Rc<LeaseStore>>,
    /// Those of a store that changed.
    changed: Numbers,
    private: Numbers,
}

// === impl Canonical ===

impl Canonical {
    /// For a run whose electors have these timings in their lives.
    pub(super) fn new(run: Run, timings: [ElectorTiming; 2]) -> Self {
        let [timing, next] = &timings;
        let longest = if run.doubles {
            timing.passed_over_max
        } else {
            Duration::ZERO
        };
        let sightings = if run.pings {
            timing.ack_window.max(longest)
        } else {
            // Every ack is fresh for ever.
            Duration::ZERO
        };
        Self {
            ages: timing
                .max_lease_duration
                .max(next.max_lease_duration.max(next.accept_window))
                .max(run.lease_duration()),
            sightings,
            preference: sightings.max(longest),
            waits: run.longest_wait(),
            usual: if run.acquires() {
                run.lease_duration()
            } else {
                Duration::ZERO
            },
            scratch: RefCell::new(Scratch::new(run.strangers_restart_terms())),
            timings,
            run,
        }
    }

    /// Lets time pass, or no time at all, and replaces every number by what it means. `before` is the state that
    /// this one was made from: what both share is canonical already, unless the store changed or time passed.
    pub(super) fn apply(&self, state: &mut SystemState, before: Option<&SystemState>, time: Time) {
        let mut scratch = self.scratch.borrow_mut();
        let Scratch {
            kept,
            kept_of,
            changed,
            private,
        } = &mut *scratch;
        let mix = self.run.mixes[state.mix];
        let tick = time.passes();
        if tick && state.store.written.is_some() {
            let by = Duration::from_secs(time.of_elector(mix.electors[0]));
            Rc::make_mut(&mut state.store).age(by, self.ages);
        }
        if tick
            && state.store.restraint.is_some()
            && let Some(restraint) = &mut Rc::make_mut(&mut state.store).restraint
        {
            let by = Duration::from_secs(time.of_elector(mix.electors[0]));
            restraint.age(by);
        }
        let is_store = |store: &Rc<LeaseStore>| Rc::ptr_eq(store, &state.store);
        let before = before.filter(|before| is_store(&before.store));
        let shared = if kept_of.as_ref().is_some_and(is_store) {
            &*kept
        } else if before.is_some() {
            *kept_of = Some(Rc::clone(&state.store));
            numbers_of(&state.store, kept)
        } else {
            numbers_of(&state.store, changed)
        };
        let changes = before.is_none();
        let before = before.filter(|_| !tick);
        let mut process = 0;
        for (index, seconds) in (0..state.candidates.len()).zip(mix.candidates) {
            let aging = Aging {
                limit: self.waits,
                restart: self.run.longest_restart(),
                confirmation: LATE,
                usual: self.usual,
                ..Aging::of_candidate(time, index, seconds)
            };
            let candidate = &mut state.candidates[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.candidates[index], candidate)) {
                renumber(Rc::make_mut(candidate), process, shared, private, aging);
            }
            process += 1;
        }
        for (index, seconds) in (0..state.electors.len()).zip(mix.electors) {
            let timing = &self.timings[state.electors[index].life];
            let aging = Aging {
                by: Duration::from_secs(time.of_elector(seconds)),
                limit: self.ages,
                sightings: self.sightings,
                passed_over: timing.passed_over_max,
                preference: self.preference,
                preemptions: timing.preemption_window,
                usual: match self.run.mutant {
                    Some(Mutant::SeenIsLongest(false)) => Duration::MAX,
                    _ => timing.max_lease_duration,
                },
                failed: self.run.longest_failure(),
                counts: match self.run.mutant {
                    Some(Mutant::ForgetWithdrawals) => 0,
                    _ if self.run.doubles => 2,
                    _ => 0,
                },
                ..Aging::default()
            };
            let elector = &mut state.electors[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.electors[index], elector)) {
                renumber(Rc::make_mut(elector), process, shared, private, aging);
            }
            // Only what is sent needs numbers of its own; without that, equal electors are told apart by nothing.
            process += usize::from(self.run.slow_electors);
        }
        if changes {
            private.clear();
            let store = Rc::make_mut(&mut state.store);
            Assign::new(shared, private, process, Aging::default()).apply(store);
        }
    }
}

// === impl Scratch ===

impl Scratch {
    fn new(zero_recurs: bool) -> Self {
        Self {
            kept: Numbers::new(zero_recurs),
            kept_of: None,
            changed: Numbers::new(zero_recurs),
            private: Numbers::default(),
        }
    }
}

/// Collects the numbers of a store.
fn numbers_of<'n>(store: &Rc<LeaseStore>, numbers: &'n mut Numbers) -> &'n Numbers {
    numbers.clear();
    // Collecting leaves the store as it is, but it takes a store that could be changed.
    LeaseStore::clone(store).renumber(numbers);
    numbers.sort();
    numbers
}

/// Renumbers one process: its memory, its messages and its news.
fn renumber(
    part: &mut impl Renumber,
    process: usize,
    shared: &Numbers,
    private: &mut Numbers,
    aging: Aging,
) {
    private.clear();
    part.renumber(private);
    private.retain_private(shared);
    private.sort();
    Assign::new(shared, private, process, aging).apply(part);
}
