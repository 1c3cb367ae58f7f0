//! Runs a search and reports its verdict.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::group::GroupSystem;
use super::run::{Expectation, Run};
use super::search::{Search, SearchVerdict};
use super::system::ModelSystem;
use super::witness::Witnesses;

/// The report of a run.
#[derive(Clone, Debug)]
pub struct SearchReport {
    /// The run.
    pub run: Run,
    /// The finding, in a word.
    pub verdict: String,
    /// The number of states that were reached.
    pub states: usize,
    /// The time that it took, on a processor of its own.
    pub took: Duration,
    /// Why it is not what was expected.
    pub failure: Option<String>,
    /// The shortest way to what was found, one transition a line.
    pub trace: Vec<String>,
}

/// A safe run that meets fewer states proves too little.
const LEAST: usize = 1_000;
/// More states than any run may have.
const LIMIT: usize = 80_000_000;

// === impl Run ===

impl Run {
    /// Searches the world of this run.
    pub fn check(self) -> SearchReport {
        let begun = Instant::now();
        let seeks_goal = matches!(
            self.expectation,
            Expectation::SafeAndLive(_) | Expectation::Trapped(_)
        );
        let found = if self.group {
            Search::new(GroupSystem::new(self)).run(LIMIT, seeks_goal)
        } else {
            Search::new(ModelSystem::new(self)).run(LIMIT, seeks_goal)
        };
        let (verdict, trace) = match found.verdict {
            SearchVerdict::Holds if seeks_goal => ("safe, live".to_owned(), Vec::new()),
            SearchVerdict::Holds => ("safe".to_owned(), Vec::new()),
            SearchVerdict::Violated(property, trace) => (
                format!("UNSAFE ({property}, {} moves)", trace.len() - 1),
                trace,
            ),
            SearchVerdict::Trapped(count, trace) => (format!("TRAPPED ({count} states)"), trace),
            SearchVerdict::Unfinished => ("unfinished".to_owned(), Vec::new()),
        };
        let (expected, wanted) = match self.expectation {
            Expectation::Safe(wanted) => ("safe".to_owned(), wanted),
            Expectation::SafeAndLive(wanted) => ("safe, live".to_owned(), wanted),
            Expectation::Unsafe(property, _) => {
                (format!("UNSAFE ({property},"), Witnesses::empty())
            }
            Expectation::Trapped(_) => ("TRAPPED (".to_owned(), Witnesses::empty()),
        };
        let missing = wanted.difference(found.witnesses);
        let failure = if !verdict.starts_with(&expected) {
            Some(format!("expected {expected}"))
        } else if !missing.is_empty() {
            Some(format!("this was never met: {missing:?}"))
        } else if verdict.starts_with("safe") && found.states < LEAST {
            Some(format!("fewer than {LEAST} states"))
        } else {
            None
        };
        SearchReport {
            run: self,
            verdict,
            states: found.states,
            took: begun.elapsed(),
            failure,
            trace,
        }
    }
}

/// The reports as a table.
pub fn table(reports: &[SearchReport]) -> String {
    let mut text = format!(
        "{:<10} {:<45} {:>9} {:>7}  {:<6} {}\n",
        "run", "verdict", "states", "s", "clocks", "about"
    );
    for report in reports {
        let run = &report.run;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<10} {:<45} {:>9} {:>7.1}  {:<6} {}",
            run.id,
            report.verdict,
            report.states,
            report.took.as_secs_f64(),
            run.clocks(),
            run.about
        );
    }
    text
}

/// The reports as a page of markdown; `command` is what it came from.
pub fn page(reports: &[SearchReport], command: &str) -> String {
    let states = |reports: &mut dyn Iterator<Item = &SearchReport>| -> usize {
        reports.map(|report| report.states).sum()
    };
    let all = states(&mut reports.iter());
    let as_shipped = || reports.iter().filter(|report| report.run.is_as_shipped());
    let mut text = format!(
        "<!-- Written by `{command}`. Do not edit. -->\n\n# The model check\n\n\
         Every state that the production step functions can reach in {} small worlds, {all} states in all. {} of these \
         states, in {} worlds, belong to the rules that ship, with candidates of ours; the others belong to variations \
         of the rules and to worlds with a broken rule. What is checked, what the words mean and what is left out: \
         [How the rules are checked](README.md). \
         A safe world must also meet its witnesses; a world with a broken rule must be found unsafe (or trapped: with \
         states from which no candidate can come to lead), with this very property violated; the column *breaks* names \
         the rule that is broken in it.\n\n\
         This table: `{command}`; {LAST_WORDS}\n\n\
         | run | about | breaks | candidates | electors | clocks | verdict | states | seconds |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        reports.len(),
        states(&mut as_shipped()),
        as_shipped().count(),
    );
    for report in reports {
        text.push_str(&row(report));
    }
    text
}

/// The end of the text before the rows.
const LAST_WORDS: &str = "seconds are those of one processor.";
/// The sentence that follows where not all rows were recorded together.
const RECORDED_ALONE: &str = "Some rows were recorded alone since then: they are not in the sums above, and the other rows \
                              are of the rules of before.";

/// The page with the rows of these reports in the place of those that it has of the same runs, or behind the row of the
/// run before. Its sums stay those of the last time that all runs were recorded, and it says so.
pub fn page_with(page: &str, reports: &[SearchReport], order: &[Run]) -> String {
    let mut lines: Vec<String> = page.lines().map(|line| format!("{line}\n")).collect();
    for report in reports {
        let place_of = |run: &Run| {
            let begins = format!("| {} |", run.id);
            lines.iter().position(|line| line.starts_with(&begins))
        };
        let before = order.iter().take_while(|run| run.id != report.run.id);
        match (place_of(&report.run), before.filter_map(place_of).last()) {
            (Some(place), _) => lines[place] = row(report),
            (None, Some(before)) => lines.insert(before + 1, row(report)),
            (None, None) => lines.push(row(report)),
        }
    }
    let page = lines.concat();
    if page.contains(RECORDED_ALONE) {
        return page;
    }
    page.replacen(LAST_WORDS, &format!("{LAST_WORDS} {RECORDED_ALONE}"), 1)
}

fn row(report: &SearchReport) -> String {
    let (run, verdict) = (&report.run, &report.verdict);
    let mark = if verdict.starts_with("safe") {
        ""
    } else {
        "**"
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {mark}{verdict}{mark} | {} | {:.1} |\n",
        run.id,
        run.about,
        run.breaks(),
        run.candidates,
        run.electors,
        run.clocks(),
        report.states,
        report.took.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::runs;
    use super::*;

    fn report(run: Run) -> SearchReport {
        SearchReport {
            run,
            verdict: "safe".to_owned(),
            states: 1,
            took: Duration::ZERO,
            failure: None,
            trace: Vec::new(),
        }
    }

    #[test]
    fn rows_that_are_recorded_alone_stand_where_they_would_otherwise() {
        let reports: Vec<SearchReport> = runs().into_iter().map(report).collect();
        let whole = page(&reports, "");
        let without: String = whole
            .lines()
            .filter(|line| !line.starts_with(row(&reports[2]).trim_end()))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_ne!(without, whole);
        let again = page_with(&without, &reports[1..3], &runs());
        let said = format!("{LAST_WORDS} {RECORDED_ALONE}");
        assert_eq!(again, whole.replacen(LAST_WORDS, &said, 1));
        assert_eq!(page_with(&again, &reports[1..3], &runs()), again);
    }
}
