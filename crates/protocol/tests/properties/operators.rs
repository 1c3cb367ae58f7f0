//! Operators' words at random, and what an elector may not do then (R16).

use elector_protocol::{LeaseRecord, OperatorOverrides, OperatorPreference, Timestamp};
use proptest::option;
use proptest::prelude::{Strategy as Arbitrary, prop_assert, prop_oneof};
use proptest::test_runner::TestCaseError;

use crate::arbitrary::{identities, timestamps};

/// The wall clock of all histories.
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_micros(1_000).unwrap()
}

pub(crate) fn words() -> impl Arbitrary<Value = OperatorOverrides> {
    let until = || {
        let beside = (998..1_003i64).prop_filter_map("in range", Timestamp::from_micros);
        prop_oneof![beside, timestamps()]
    };
    let preference = (identities(), until()).prop_map(|(candidate, until)| {
        let preference = OperatorPreference { candidate, until };
        Box::new(preference)
    });
    (option::of(until()), option::of(preference))
        .prop_map(|(freeze, prefer)| OperatorOverrides { freeze, prefer })
}

/// While the lease is frozen, no live holder is asked to make room.
pub(crate) fn check_frozen(
    overrides: &OperatorOverrides,
    before: &LeaseRecord,
    after: &LeaseRecord,
) -> Result<(), TestCaseError> {
    if overrides.frozen_for(wall()).is_none() {
        return Ok(());
    }
    let asks =
        after.preferred_holder != before.preferred_holder && after.preferred_holder.is_some();
    prop_assert!(!asks, "frozen: {before:?} -> {after:?}");
    Ok(())
}
