//! Judging one lease: a step of its election, unless it is left to the built-in controller.

use std::panic::{AssertUnwindSafe, catch_unwind};

use elector_api::Carrier;
use elector_protocol::elector::{Decision, Election, PreferenceField, Settings};
use elector_protocol::{ElectorTiming, Instant, StrategyName, Timestamp};
use elector_runtime::panic_text;

use crate::builtin::Authority;
use crate::config::Config;

/// How an election is stepped: [`Election::step`], save in tests that make it fail.
pub(crate) type StepFn = fn(&Election, Instant, Timestamp, &Settings) -> Decision;

/// What one elector judges by.
pub(crate) struct ElectionJudge {
    step: StepFn,
    timing: ElectorTiming,
    reserve: bool,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Judgement {
    Decided(Decision),
    /// The lease is left to the built-in controller.
    Left,
    /// The code failed; the text is the panic's.
    Panicked(String),
}

// === impl ElectionJudge ===

impl ElectionJudge {
    pub(crate) fn new(config: &Config, step: StepFn) -> Self {
        Self {
            step,
            timing: config.timing.clone(),
            reserve: config.reserve,
        }
    }

    /// Judges one election. `carrier` is what the server does with a preferred holder, as far as that is known.
    pub(crate) fn judge(
        &self,
        election: &Election,
        (now, wall): (Instant, Timestamp),
        carrier: Carrier,
        authority: &Authority,
    ) -> Judgement {
        let settings = Settings {
            timing: self.timing.clone(),
            preference_field: match carrier {
                Carrier::Unknown => PreferenceField::Unknown,
                Carrier::Fields => PreferenceField::Kept,
                Carrier::Annotations => PreferenceField::Dropped,
            },
            reserve: self.reserve,
        };
        let judged = catch_unwind(AssertUnwindSafe(|| {
            if *authority != Authority::Ours && is_for_builtin(election, now, &settings) {
                return Judgement::Left;
            }
            Judgement::Decided((self.step)(election, now, wall, &settings))
        }));
        judged.unwrap_or_else(|panic| Judgement::Panicked(panic_text(&*panic)))
    }
}

/// Whether the built-in controller would decide about this lease: all but those of a foreign strategy.
fn is_for_builtin(election: &Election, now: Instant, settings: &Settings) -> bool {
    let strategy = election.strategy(now, settings);
    strategy.is_none_or(|strategy| strategy.as_str() == StrategyName::OLDEST_EMULATION_VERSION)
}
