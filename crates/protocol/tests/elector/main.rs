//! The elector's step, scenario by scenario.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod absence;
mod acks;
mod balance;
mod conflicts;
mod disagreeing;
mod doubted;
mod fixture;
mod frozen;
mod group_looks;
mod groups;
mod held;
mod hold_back;
mod maintenance;
mod many;
mod operator_preference;
mod passed_over;
mod ping_round;
mod preempting;
mod preferring;
mod records;
mod stand_down;
mod stopwatch;
mod strategies;
mod vacant;
mod wmax;
