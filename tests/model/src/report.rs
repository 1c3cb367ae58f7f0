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

/// A page of markdown: the rows of these reports, and those that the page before has of other runs, in this order. The sums
/// are those of its rows. `command` is what writes it whole.
pub fn page(before: &str, reports: &[SearchReport], order: &[Run], command: &str) -> String {
    let row_of = |run: &Run| {
        let begins = format!("| {} |", run.id);
        let reported = reports.iter().find(|report| report.run.id == run.id);
        let kept = || before.lines().find(|line| line.starts_with(&begins));
        reported.map(row).or_else(|| Some(format!("{}\n", kept()?)))
    };
    let rows: Vec<_> = order
        .iter()
        .filter_map(|run| Some((run, row_of(run)?)))
        .collect();
    let states = |of: &dyn Fn(&Run) -> bool| -> (usize, usize) {
        let states = |row: &str| row.rsplit('|').nth(2)?.trim().parse::<usize>().ok();
        let rows = rows.iter().filter(|(run, _)| of(run));
        rows.fold((0, 0), |(count, sum), (_, row)| {
            (count + 1, sum + states(row).unwrap_or(0))
        })
    };
    let (count, all) = states(&|_| true);
    let (shipped, as_shipped) = states(&Run::is_as_shipped);
    let mut text = format!(
        "<!-- Written by `{command}`. Do not edit. -->\n\n# The model check\n\n\
         Every state that the production step functions can reach in {count} small worlds, {all} states in all. \
         {as_shipped} of these states, in {shipped} worlds, belong to the rules that ship, with candidates of ours; the \
         others belong to variations of the rules and to worlds with a broken rule. What is checked, what the words mean \
         and what is left out: [How the rules are checked](README.md). \
         A safe world must also meet its witnesses; a world with a broken rule must be found unsafe (or trapped: with \
         states from which no candidate can come to lead), with this very property violated; the column *breaks* names \
         the rule that is broken in it.\n\n\
         This table: `{command}`, which can be given the names of runs and writes their rows alone then; seconds are \
         those of one processor.\n\n\
         | run | about | breaks | candidates | electors | clocks | verdict | states | seconds |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    text.extend(rows.into_iter().map(|(_, row)| row));
    text
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
        let whole = page("", &reports, &runs(), "");
        let sums = format!("in {0} small worlds, {0} states", reports.len());
        assert!(whole.contains(&sums), "{whole}");
        let without = page("", &[&reports[..2], &reports[3..]].concat(), &runs(), "");
        assert_ne!(without, whole);
        assert_eq!(page(&without, &reports[1..3], &runs(), ""), whole);
        assert_eq!(page(&whole, &[], &runs(), ""), whole);
    }
}
