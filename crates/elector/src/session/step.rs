//! A step of one election, unless its lease is left to the built-in controller.

use std::panic::{AssertUnwindSafe, catch_unwind};

use elector_api::Carrier;
use elector_protocol::elector::{Decision, Election, PreferenceField, Settings};
use elector_protocol::{ElectorTiming, Instant, StrategyName, Timestamp};
use elector_runtime::panic_text;

use crate::builtin::Authority;
use crate::config::Config;
use crate::elector_context::StepFn;

/// The settings by which an elector steps.
pub(crate) struct StepRunner {
    step: StepFn,
    timing: ElectorTiming,
}

/// The outcome of a step.
#[derive(Debug)]
pub(crate) enum StepResult {
    Decided(Decision),
    /// The lease is left to the built-in controller.
    Left,
    /// The code failed; the text is the panic's.
    Panicked(String),
}

// === impl StepRunner ===

impl StepRunner {
    pub(crate) fn new(config: &Config, step: StepFn) -> Self {
        Self {
            step,
            timing: config.timing.clone(),
        }
    }

    /// The settings of a step. `carrier` is what the server does with a preferred holder, as far as that is known.
    pub(crate) fn settings(&self, carrier: Carrier) -> Settings {
        Settings {
            timing: self.timing.clone(),
            preference_field: match carrier {
                Carrier::Unknown => PreferenceField::Unknown,
                Carrier::Fields => PreferenceField::Kept,
                Carrier::Annotations => PreferenceField::Dropped,
            },
        }
    }

    /// Steps one election.
    pub(crate) fn run(
        &self,
        election: &Election,
        now: Instant,
        wall: Timestamp,
        carrier: Carrier,
        authority: &Authority,
    ) -> StepResult {
        let settings = self.settings(carrier);
        let result = catch_unwind(AssertUnwindSafe(|| {
            if *authority != Authority::Ours && is_for_builtin(election, now, wall, &settings) {
                return StepResult::Left;
            }
            StepResult::Decided((self.step)(election, now, wall, &settings))
        }));
        result.unwrap_or_else(|panic| StepResult::Panicked(panic_text(&*panic)))
    }
}

/// True if the built-in controller would decide about this lease: all but those of a foreign strategy.
fn is_for_builtin(election: &Election, now: Instant, wall: Timestamp, settings: &Settings) -> bool {
    let strategy = election.strategy(now, wall, settings);
    strategy.is_none_or(|strategy| strategy.as_str() == StrategyName::OLDEST_EMULATION_VERSION)
}

#[cfg(test)]
mod tests;
