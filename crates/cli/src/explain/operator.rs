//! Operators' words on a lease, by annotations: those that count now, and those ignored.

use elector_api::{Rfc3339, annotation};
use elector_protocol::elector::IgnoredOverride;
use elector_protocol::{OperatorOverrides, OperatorPreference};
use serde::Serialize;

/// An operator's word on one lease.
#[derive(Debug, Default, Serialize)]
pub(crate) struct OperatorRow {
    freeze: Option<String>,
    prefer: Option<PreferRow>,
    /// One line for each word that does not count.
    ignored: Vec<String>,
}

/// The candidate that an operator prefers.
#[derive(Debug, Serialize)]
pub(crate) struct PreferRow {
    candidate: String,
    until: String,
}

// === impl OperatorRow ===

impl OperatorRow {
    /// The word that counts, those ignored, and the notes on unreadable ones.
    pub(crate) fn new(
        counts: &OperatorOverrides,
        ignored: &[IgnoredOverride],
        notes: Option<&Vec<String>>,
    ) -> Self {
        let notes = notes.into_iter().flatten().cloned();
        let prefer = counts.prefer.as_deref().map(|preference| PreferRow {
            candidate: preference.candidate.as_str().to_owned(),
            until: Rfc3339(preference.until).to_string(),
        });
        Self {
            freeze: counts.freeze.map(|until| Rfc3339(until).to_string()),
            prefer,
            ignored: ignored.iter().map(why_ignored).chain(notes).collect(),
        }
    }

    /// A line for each word: the annotation, whether it counts, and what it says.
    pub(crate) fn lines(&self) -> Vec<[String; 3]> {
        let freeze = self.freeze.iter().map(|until| {
            let what = format!("no leader is asked to make room until {until}");
            [annotation::FREEZE, "yes", &what].map(str::to_owned)
        });
        let prefer = self.prefer.iter().map(|PreferRow { candidate, until }| {
            let what = format!("{candidate} goes before all others until {until}");
            [annotation::PREFER, "yes", &what].map(str::to_owned)
        });
        let ignored = self.ignored.iter();
        let ignored = ignored.map(|why| ["(ignored)", "no", why].map(str::to_owned));
        freeze.chain(prefer).chain(ignored).collect()
    }
}

/// Why a word does not count, in one line.
pub(crate) fn why_ignored(word: &IgnoredOverride) -> String {
    match word {
        IgnoredOverride::Freeze { until, why } => {
            format!("{} until {} {why}", annotation::FREEZE, Rfc3339(*until))
        }
        IgnoredOverride::Preference(OperatorPreference { candidate, until }, why) => format!(
            "{} of {candidate} until {} {why}",
            annotation::PREFER,
            Rfc3339(*until)
        ),
        IgnoredOverride::StandDown {
            candidate,
            until,
            why,
        } => format!(
            "{} of {candidate} until {} {why}",
            annotation::STAND_DOWN,
            Rfc3339(*until)
        ),
        IgnoredOverride::NotEligible(OperatorPreference { candidate, until }) => format!(
            "{} until {}: no eligible candidate has the name {candidate}",
            annotation::PREFER,
            Rfc3339(*until)
        ),
    }
}
