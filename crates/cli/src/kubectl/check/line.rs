//! One line of the result.

use serde::Serialize;

use crate::output::{RED, YELLOW};

/// A finding, and its remedy. The JSON form is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CheckLine {
    pub(super) level: CheckLevel,
    pub(super) check: &'static str,
    pub(super) result: String,
    /// The remedy; `None` where all is well.
    pub(super) fix: Option<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckLevel {
    Ok,
    /// Something works less well than it could, or could not be checked.
    Warning,
    /// Some lease gets no leader, or will get none.
    Error,
}

// === impl CheckLine ===

impl CheckLine {
    pub(super) fn ok(check: &'static str, result: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Ok,
            check,
            result: result.into(),
            fix: None,
        }
    }

    pub(super) fn warning(
        check: &'static str,
        result: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            level: CheckLevel::Warning,
            fix: Some(fix.into()),
            ..Self::ok(check, result)
        }
    }

    pub(super) fn error(
        check: &'static str,
        result: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            level: CheckLevel::Error,
            ..Self::warning(check, result, fix)
        }
    }

    /// The line in columns.
    pub(super) fn cells(&self) -> [String; 3] {
        let result = match &self.fix {
            Some(fix) => format!("{}; {fix}", self.result),
            None => self.result.clone(),
        };
        [
            self.level.as_str().to_owned(),
            self.check.to_owned(),
            result,
        ]
    }
}

// === impl CheckLevel ===

impl CheckLevel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    pub(super) fn colour(self) -> Option<u8> {
        match self {
            Self::Ok => None,
            Self::Warning => Some(YELLOW),
            Self::Error => Some(RED),
        }
    }
}
