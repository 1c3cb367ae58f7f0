//! The answers of all cases, as text that can be kept.

use std::fmt;

use crate::fidelity::answer::ComparableAnswer;

/// The answers of all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    cases: Vec<(String, Vec<ComparableAnswer>)>,
}

// === impl Recording ===

impl Recording {
    pub(super) fn new(cases: Vec<(String, Vec<ComparableAnswer>)>) -> Self {
        Self { cases }
    }

    /// Reads what [`fmt::Display`] wrote.
    ///
    /// # Panics
    ///
    /// When lines stand where they cannot.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut cases: Vec<(String, Vec<ComparableAnswer>)> = Vec::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("== ") {
                cases.push((title.to_owned(), Vec::new()));
            } else if let Some(request) = line.strip_prefix("> ") {
                let (_, answers) = cases
                    .last_mut()
                    .expect("a title comes before the first request");
                answers.push(ComparableAnswer {
                    request: request.to_owned(),
                    lines: Vec::new(),
                });
            } else if let Some(line) = line.strip_prefix("  ") {
                let answer = cases.last_mut().and_then(|(_, answers)| answers.last_mut());
                answer
                    .expect("a request comes before its answer")
                    .lines
                    .push(line.to_owned());
            }
        }
        Self { cases }
    }

    /// The number of cases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// The differences from another recording: for each answer, the lines on both sides.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for (title, answers) in &self.cases {
            let Some((_, others)) = other.cases.iter().find(|(one, _)| one == title) else {
                differences.push(format!("== {title}\n   is missing on the other side"));
                continue;
            };
            if answers.len() != others.len() {
                differences.push(format!(
                    "== {title}\n   has {} answers and {}",
                    answers.len(),
                    others.len()
                ));
            }
            for (here, there) in answers
                .iter()
                .zip(others)
                .filter(|(here, there)| here != there)
            {
                let lines = |answer: &ComparableAnswer| answer.lines.join("\n     ");
                let request = &here.request;
                differences.push(format!(
                    "== {title}\n > {request}\n   - {}\n   + {}",
                    lines(here),
                    lines(there)
                ));
            }
        }
        let unknown = other
            .cases
            .iter()
            .filter(|(title, _)| !self.cases.iter().any(|(one, _)| one == title));
        differences
            .extend(unknown.map(|(title, _)| format!("== {title}\n   is only on the other side")));
        differences
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, answers) in &self.cases {
            writeln!(f, "== {title}")?;
            for answer in answers {
                writeln!(f, "> {}", answer.request)?;
                for line in &answer.lines {
                    writeln!(f, "  {line}")?;
                }
            }
        }
        Ok(())
    }
}
