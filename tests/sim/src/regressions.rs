//! Plans that once failed, as they were cut down, each under the name of what was wrong. They are kept as data, since a
//! change of the drawing gives every seed another meaning.

use crate::plan::RunPlan;

/// All of them.
///
/// # Panics
/// When one cannot be read.
#[must_use]
pub fn regressions() -> Vec<(String, RunPlan)> {
    let plans = include_str!("../regressions.json");
    serde_json::from_str(plans).expect("each is a name and a plan")
}
