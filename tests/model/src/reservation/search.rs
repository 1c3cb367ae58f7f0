//! A system with holders as client-go makes them, as it is searched.

use super::super::clocks::Time;
use super::super::lease_system::CandidateKind;
use super::super::search::TransitionKind;
use super::super::store::{NAMES, Property};
use super::super::witness::Witnesses;
use super::holder::PlainHolder;
use super::possible::possible;
use super::setup::Reservation;
use super::system::{ReservationState, ReservationSystem};
use super::transition::ReservationTransition;

// === impl Reservation ===

impl CandidateKind for Reservation {
    type Candidate = PlainHolder;
    type Transition = ReservationTransition;

    fn start(system: &ReservationSystem, mix: usize) -> ReservationState {
        system.start(mix)
    }

    fn possible(
        system: &ReservationSystem,
        state: &ReservationState,
    ) -> Vec<ReservationTransition> {
        possible(system, state)
    }

    fn transition_kind(
        system: &ReservationSystem,
        state: &ReservationState,
        by: &ReservationTransition,
    ) -> TransitionKind {
        by.kind(state, system)
    }

    fn time(by: &ReservationTransition) -> Time {
        match by {
            ReservationTransition::Tick => Time::Passes,
            _ => Time::Stands,
        }
    }

    fn apply(
        system: &ReservationSystem,
        state: &mut ReservationState,
        by: &ReservationTransition,
    ) -> Witnesses {
        state.apply(by, system)
    }

    fn catch_up(system: &ReservationSystem, state: &mut ReservationState) {
        state.settle(system);
    }

    fn tells_electors_apart(&self) -> bool {
        let [one, other] = self.by;
        one != other
    }

    fn violation(system: &ReservationSystem, state: &ReservationState) -> Option<Property> {
        state.violation(&system.run, PlainHolder::believes)
    }

    fn is_goal(system: &ReservationSystem, state: &ReservationState) -> bool {
        state.is_goal(&system.run, PlainHolder::believes)
    }

    fn believers(_: &ReservationSystem, state: &ReservationState) -> Vec<String> {
        let holders = NAMES.iter().zip(&state.candidates);
        let believers = holders.filter(|(_, holder)| holder.believes());
        believers.map(|(name, _)| (*name).to_owned()).collect()
    }
}
