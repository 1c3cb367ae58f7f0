//! One line of the result.

use elector_api::CandidateApi;
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
    /// The page with more about it; `None` where all is well.
    pub(super) link: Option<String>,
    /// True for a warning about what comes to be by itself after an installation.
    #[serde(skip)]
    pub(super) is_awaited: bool,
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

/// The page of each check, in the folder `docs`.
const PAGES: &[(&str, &str)] = &[
    ("api", "clusters.md"),
    ("availability", "operate.md#draining-a-node"),
    ("builtin", "clusters.md#beside-the-built-in-controller"),
    ("candidates", "install.md#candidates"),
    ("clocks", "operate.md#size-memory-and-clocks"),
    ("crd", "operate.md#upgrade-and-back"),
    ("credentials", "operate.md#certificates"),
    ("electors", "operate.md#no-leader-now"),
    ("finalizers", "operate.md#an-object-that-does-not-go-away"),
    ("installer", "install.md"),
    ("kubernetes", "clusters.md"),
    ("leases", "operate.md#no-leader-now"),
    ("pods", "install.md"),
    ("policies", "operate.md#a-policy-refuses-renewals"),
    ("rights", "operate.md#who-may-say-what"),
    ("words", "operate.md#forgotten-words"),
    ("writers", "operate.md#who-may-say-what"),
];

/// The folder of the pages, where the build knows an address for it.
const DOCUMENTATION: &str = match option_env!("ELECTOR_DOCUMENTATION_URL") {
    Some(url) => url,
    None => "docs",
};

/// The remedy for a cluster without one of the objects that are shipped.
pub(super) fn apply_overlay(api: Option<CandidateApi>) -> String {
    let name = match api {
        Some(api) if api.is_native() => "native",
        _ => "crd",
    };
    format!("apply the overlay {name}, or the chart with mode={name}")
}

// === impl CheckLine ===

impl CheckLine {
    pub(super) fn ok(check: &'static str, result: impl Into<String>) -> Self {
        Self {
            level: CheckLevel::Ok,
            check,
            result: result.into(),
            fix: None,
            link: None,
            is_awaited: false,
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
            link: page(check).map(|page| format!("{DOCUMENTATION}/{page}")),
            ..Self::ok(check, result)
        }
    }

    /// The same as a thing that comes to be by itself.
    pub(super) fn awaited(self) -> Self {
        Self {
            is_awaited: true,
            ..self
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

    /// True where nothing is to be waited for.
    pub(super) fn is_settled(&self) -> bool {
        self.level != CheckLevel::Error && !self.is_awaited
    }

    /// The line in columns.
    pub(super) fn cells(&self) -> [String; 3] {
        let mut result = self.result.clone();
        if let Some(fix) = &self.fix {
            result = format!("{result}; {fix}");
        }
        if let Some(link) = &self.link {
            result = format!("{result} ({link})");
        }
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

fn page(check: &str) -> Option<&'static str> {
    let found = PAGES.iter().find(|(name, _)| *name == check);
    found.map(|(_, page)| *page)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The anchor that a heading has where the pages are shown.
    fn anchor(heading: &str) -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().replace(' ', "-")
    }

    #[test]
    fn each_check_has_a_page_with_its_heading() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (check, page) in PAGES {
            let (file, wanted) = page.split_once('#').unwrap_or((page, ""));
            let text = fs::read_to_string(docs.join(file)).unwrap();
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            let found = wanted.is_empty() || headings.any(|line| anchor(line) == wanted);
            assert!(found, "{check}: {page}");
        }
    }

    #[test]
    fn a_line_names_remedy_and_page() {
        let line = CheckLine::warning("policies", "a", "b");
        let expected = format!("a; b ({DOCUMENTATION}/operate.md#a-policy-refuses-renewals)");
        assert_eq!(line.cells()[2], expected);
        assert_eq!(CheckLine::ok("policies", "a").cells()[2], "a");
    }
}
