//! Many runs in numbers, as text and as a page.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::guards::{BELIEVERS, DISPLACED_CLIENT_GO, ELECTORS, LATE_TERMS, LeadershipStats, WORK};
use crate::history;
use crate::simulation::RunReport;

/// Many runs in numbers.
#[derive(Clone, Debug, Default)]
pub struct RunStatistics {
    seeds: u64,
    failed: u64,
    lasted: Duration,
    /// That of all runs.
    leadership: LeadershipStats,
    faults: BTreeMap<String, u64>,
    violations: BTreeMap<String, u64>,
}

/// The kinds of faults that have to take effect, which are all, and what has to come of some of them (R20 to R22).
const KINDS: &str = "Builtin ClientGoCandidate Compact Crash Delay DowngradeCandidates ElectorsAway EndWatches FloodNamespace \
    Forbid Freeze Hedged HideCandidates HoldLock IdleCandidate Lose OldCache Partition Pause Plain Refuse RefuseAfterwards Rejoined Repeat \
    RestoreStore Resumed SayFreeze SayPrefer ShutDown Slow StandDown StepClock StopClock TamperWithCandidate \
    TamperWithLease TamperWithLock Twin WorkFails WorkNever WorkPanics WorkReturns";

/// The least effects of a kind in as many seeds, or in those of `cargo test`.
const LEAST: (u64, u64) = (50, 200);

/// The most exemptions from S1 and S5 in as many seeds, by what is exempt and by the kind of the write, and as many more by
/// chance.
const EXEMPT: (&[(&str, &str, u64)], u64, u64) = (
    &[
        (BELIEVERS, history::BUILTIN_EXPIRED, 200),
        (BELIEVERS, history::BUILTIN_GRANTED, 10),
        (BELIEVERS, history::STRANGER_NAMED, 5),
        (BELIEVERS, history::STRANGER_SHORTENED, 40),
        (BELIEVERS, history::STORE_RESTORED, 15),
        (DISPLACED_CLIENT_GO, history::BUILTIN_EXPIRED, 60),
        (DISPLACED_CLIENT_GO, history::BUILTIN_GRANTED, 10),
        (DISPLACED_CLIENT_GO, history::STRANGER_NAMED, 10),
        (DISPLACED_CLIENT_GO, history::STRANGER_SHORTENED, 10),
        (DISPLACED_CLIENT_GO, history::STORE_RESTORED, 120),
        (LATE_TERMS, history::BUILTIN_EXPIRED, 30),
        (WORK, history::BUILTIN_EXPIRED, 80),
        (WORK, history::BUILTIN_GRANTED, 20),
        (WORK, history::STRANGER_NAMED, 5),
        (WORK, history::STRANGER_SHORTENED, 20),
        (WORK, history::STORE_RESTORED, 5),
        (ELECTORS, history::LOCK_CHANGED, 600),
        (ELECTORS, history::STORE_RESTORED, 260),
    ],
    10_000,
    3,
);

// === impl RunStatistics ===

impl RunStatistics {
    /// Adds a run.
    pub fn add(&mut self, report: &RunReport) {
        self.seeds += 1;
        self.failed += u64::from(!report.violations.is_empty());
        self.lasted += report.lasted;
        let (all, run) = (&mut self.leadership, &report.leadership);
        all.elections += run.elections;
        all.acquired += run.acquired;
        all.resumed += run.resumed;
        all.rejoined += run.rejoined;
        all.hedged += run.hedged;
        all.elector_terms += run.elector_terms;
        all.work_writes += run.work_writes;
        for (times, more) in [
            (&mut all.hand_overs, &run.hand_overs),
            (&mut all.fail_overs, &run.fail_overs),
            (&mut all.unelected, &run.unelected),
            (&mut all.recoveries, &run.recoveries),
            (&mut all.best, &run.best),
            (&mut all.elector_fail_overs, &run.elector_fail_overs),
        ] {
            times.extend(more);
        }
        for (of, count) in &run.exempt {
            *all.exempt.entry(*of).or_default() += count;
        }
        for (kind, count) in &report.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        for violation in &report.violations {
            *self
                .violations
                .entry(violation.rule.to_owned())
                .or_default() += 1;
        }
    }

    /// Faults that took effect too seldom.
    #[must_use]
    pub fn rarities(&self) -> Vec<String> {
        let of = &self.leadership;
        let count = |kind: &str| match kind {
            "Resumed" => of.resumed,
            "Rejoined" => of.rejoined,
            "Hedged" => of.hedged,
            kind => self.faults.get(kind).copied().unwrap_or_default(),
        };
        let few = self.seeds <= LEAST.1;
        let rare = KINDS
            .split_whitespace()
            .filter(|kind| few && count(kind) * LEAST.1 < self.seeds * LEAST.0);
        let rare =
            rare.map(|kind| format!("{} took effect {} times only", words(kind), count(kind)));
        let unknown = self.faults.keys();
        let unknown = unknown.filter(|kind| !KINDS.split_whitespace().any(|known| known == *kind));
        let unknown = unknown.map(|kind| format!("{} may be rare", words(kind)));
        rare.chain(unknown).collect()
    }

    /// Exemptions that were too many.
    #[must_use]
    pub fn excesses(&self) -> Vec<String> {
        let (most, of, chance) = EXEMPT;
        let most = |kind: (&str, &str)| {
            let mut known = most.iter();
            known.find(|it| (it.0, it.1) == kind).map_or(0, |it| it.2)
        };
        let exempt = self.leadership.exempt.iter();
        let exempt = exempt.filter(|(of_kind, count)| {
            **count > (most(**of_kind) * self.seeds).div_ceil(of) + chance
        });
        exempt
            .map(|((what, why), count)| format!("{count} times exempt, {what}: {why}"))
            .collect()
    }

    /// The number of runs.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The number of runs that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The table, as Markdown, which reads well in a terminal too.
    #[must_use]
    pub fn table(&self) -> String {
        let of = &self.leadership;
        let mut text = String::new();
        let mut row = |name: &str, value: &str| {
            text.push_str(&format!("| {name:<34} | {value:<46} |\n"));
        };
        row("what", "how much");
        row("---", "---");
        let hours = format!("{:.1} h", self.lasted.as_secs_f64() / 3600.0);
        for (name, value) in [
            ("seeds", self.seeds.to_string()),
            ("virtual time", hours),
            ("terms", of.elections.to_string()),
            ("- acquired without a grant", of.acquired.to_string()),
            ("- resumed after a lapse", of.resumed.to_string()),
            ("- rejoined by a later life", of.rejoined.to_string()),
            ("- writes beside one on its way", of.hedged.to_string()),
            ("- writes of their work", of.work_writes.to_string()),
            ("hand-overs", spread(&of.hand_overs)),
            ("fail-overs after a crash", spread(&of.fail_overs)),
            ("- without an elector", spread(&of.unelected)),
            ("first leader after the last fault", spread(&of.recoveries)),
            ("best leader after that", spread(&of.best)),
            ("terms of an elector's lock", of.elector_terms.to_string()),
            ("fail-overs of the electors", spread(&of.elector_fail_overs)),
        ] {
            row(name, &value);
        }
        let exempt = of
            .exempt
            .iter()
            .map(|((what, why), count)| (format!("{what}: {why}"), *count));
        let faults = self
            .faults
            .iter()
            .map(|(kind, count)| (words(kind), *count));
        for (name, counts) in [
            ("exempt (S1, S5)", &exempt.collect()),
            ("faults that took effect", &faults.collect()),
            ("violations", &self.violations),
        ] {
            row(name, &counts.values().sum::<u64>().to_string());
            for (name, count) in counts {
                row(&format!("- {name}"), &count.to_string());
            }
        }
        text
    }
}

/// The name of a kind of faults in words.
fn words(kind: &str) -> String {
    let starts = kind
        .char_indices()
        .filter(|(_, letter)| letter.is_uppercase());
    let ends = starts
        .clone()
        .skip(1)
        .map(|(end, _)| end)
        .chain([kind.len()]);
    let words: Vec<&str> = starts
        .zip(ends)
        .map(|((start, _), end)| &kind[start..end])
        .collect();
    words.join(" ").to_lowercase()
}

/// The number of `times`, and their lengths.
fn spread(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    let at = |share: usize| {
        let index = times.len().saturating_sub(1) * share / 100;
        times.get(index).map_or(0.0, Duration::as_secs_f64)
    };
    if times.is_empty() {
        return "0".to_owned();
    }
    let [least, middle, most, last] = [0, 50, 99, 100].map(at);
    let count = times.len();
    format!("{count}: {least:.3} / {middle:.3} / {most:.3} / {last:.3} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_strikes_too_seldom_or_that_nobody_knows_is_a_doubt() {
        let kinds = KINDS.split_whitespace();
        let mut all = RunStatistics {
            seeds: 200,
            faults: kinds.map(|kind| (kind.to_owned(), 50)).collect(),
            ..RunStatistics::default()
        };
        let of = &mut all.leadership;
        (of.resumed, of.rejoined, of.hedged) = (50, 50, 49);
        assert_eq!(all.rarities(), ["hedged took effect 49 times only"]);
        all.leadership.hedged = 50;
        all.faults.insert("OldCache".to_owned(), 49);
        all.faults.insert("Flood".to_owned(), 900);
        let doubts = ["old cache took effect 49 times only", "flood may be rare"];
        assert_eq!(all.rarities(), doubts);
        all.seeds = 201;
        assert_eq!(all.rarities(), &doubts[1..]);
    }

    #[test]
    fn more_exemptions_than_a_ceiling_has_are_a_doubt() {
        let named = (BELIEVERS, history::STRANGER_NAMED);
        let unheard_of = (ELECTORS, history::STRANGER_NAMED);
        for (seeds, kind, most) in [
            (10_000, named, 8),
            (20_000, named, 13),
            (200, named, 4),
            (10_000, unheard_of, 3),
        ] {
            let mut all = RunStatistics {
                seeds,
                ..RunStatistics::default()
            };
            for (count, doubts) in [(most, 0), (most + 1, 1)] {
                all.leadership.exempt.insert(kind, count);
                assert_eq!(all.excesses().len(), doubts, "{kind:?}: {count} in {seeds}");
            }
        }
    }

    #[test]
    fn a_spread_names_the_least_the_middle_and_the_most() {
        let times: Vec<_> = (1..=101).rev().map(Duration::from_secs).collect();
        assert_eq!(spread(&times), "101: 1.000 / 51.000 / 100.000 / 101.000 s");
        assert_eq!(spread(&[]), "0");
    }
}
