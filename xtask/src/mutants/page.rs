//! The tables of the page, from the mutants there are and the verdicts so far.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::reason::MutantReasons;
use super::sample::ListedMutant;
use super::verdict::{MutantSample, MutantVerdict, PlayedMutant, VerdictFile};

/// The most tests that are named for a rule.
const NAMED_TESTS: usize = 3;

/// The mutants there are, and the verdicts on them.
pub(super) struct MutantPage<'a> {
    all: &'a [ListedMutant],
    played: &'a [PlayedMutant],
    standing: Vec<StandingMutant<'a>>,
}

/// A mutant there is, what became of it when it was played last, and the column that counts it.
struct StandingMutant<'a> {
    mutant: &'a ListedMutant,
    last: &'a PlayedMutant,
    column: usize,
}

/// The columns of what became of mutants.
const UNVIABLE: usize = 0;
const NOTICED: usize = 1;
const EXPLAINED_AWAY: usize = 2;
const SURVIVED: usize = 3;

// === impl MutantPage ===

impl<'a> MutantPage<'a> {
    /// The verdicts on these mutants, with the page as it stands, which explains survivors.
    pub(super) fn new(verdicts: &'a VerdictFile, all: &'a [ListedMutant], page: &str) -> Self {
        let mut reasons = MutantReasons::of_page(page);
        let standing = verdicts.standing(all).into_iter();
        let standing = standing.map(|(mutant, last)| StandingMutant {
            mutant,
            last,
            column: match last.verdict {
                MutantVerdict::Unviable => UNVIABLE,
                MutantVerdict::Survived if reasons.excuse(mutant) => EXPLAINED_AWAY,
                MutantVerdict::Survived => SURVIVED,
                _ => NOTICED,
            },
        });
        Self {
            all,
            played: &verdicts.played,
            standing: standing.collect(),
        }
    }

    /// A table with a row for each crate, what is left out and why, a row for each sample, and the mutants there are
    /// whose change survived when it was last played, but for the changes that the page explains.
    pub(super) fn by_crate(&self, left_out: &[(&str, &str)]) -> String {
        let mut table = "| crate | mutants | played | do not compile | noticed | explained | survived | noticed, 95 % interval |\n\
                         |---|--:|--:|--:|--:|--:|--:|---|\n"
            .to_owned();
        for (package, counts) in self.counts() {
            let there_are = self.all.iter().filter(|it| it.package == package).count();
            let played: usize = counts.iter().sum();
            let (low, high) = interval_of(counts);
            let counts = counts.map(|count| count.to_string()).join(" | ");
            table += &format!(
                "| {package} | {there_are} | {played} | {counts} | {low:.0}–{high:.0} % |\n"
            );
        }
        table += "\nNo mutants are made of\n\n";
        for (what, why) in left_out {
            table += &format!("* {what}: {why}\n");
        }
        table + &self.by_sample() + &self.survivors()
    }

    /// The verdicts on the mutants of each crate.
    fn counts(&self) -> BTreeMap<&str, [usize; 4]> {
        let mut by_crate = BTreeMap::<&str, [usize; 4]>::new();
        for it in &self.standing {
            by_crate.entry(&it.mutant.package).or_default()[it.column] += 1;
        }
        by_crate
    }

    /// The targets that these crates miss, in a sentence each: no survivor without a reason, and a share that is noticed.
    pub(super) fn missed(&self, packages: &[&str]) -> Vec<String> {
        let mut missed = Vec::new();
        for (package, counts) in self.counts() {
            if !packages.contains(&package) {
                continue;
            }
            let (survived, target) = (counts[SURVIVED], target_of(package));
            if survived > 0 {
                missed.push(format!(
                    "{package}: {survived} mutants survive, and the page explains none of them"
                ));
            }
            let (low, _) = interval_of(counts);
            if low < target {
                missed.push(format!(
                    "{package}: the interval begins at {low:.1} %, below {target} %"
                ));
            }
        }
        missed
    }

    fn by_sample(&self) -> String {
        let mut table = "\n| crate | at | chosen | played | killed by its own tests | by those of its users | timed out | \
                  do not compile | survived | noticed, 95 % interval |\n|---|---|---|---|---|---|---|---|---|---|\n".to_owned();
        let samples: BTreeSet<&MutantSample> = self.played.iter().map(|it| &it.sample).collect();
        let at_random = |it: &&MutantSample| !it.chosen.ends_with("before");
        for sample in samples.into_iter().filter(at_random) {
            let played = || self.played.iter().filter(|it| it.sample == *sample);
            let count = |verdict| played().filter(|it| it.verdict == verdict).count();
            let counts = MutantVerdict::ALL.map(|verdict| count(verdict).to_string());
            let viable = played().count() - count(MutantVerdict::Unviable);
            let (low, high) = interval(viable - count(MutantVerdict::Survived), viable);
            let (package, at, chosen) = (&sample.package, &sample.commit, &sample.chosen);
            table += &format!(
                "| {package} | {at} | {chosen}{} | {} | {} | {low:.0}–{high:.0} % |\n",
                self.broken_off(sample),
                played().count(),
                counts.join(" | ")
            );
        }
        table
    }

    /// The words for a sample that has fewer mutants than were wanted, or for a lot with fewer breakages in all packages.
    fn broken_off(&self, sample: &MutantSample) -> String {
        let Some((kind, rest)) = sample.chosen.split_once(" of ") else {
            return String::new();
        };
        let wanted: usize = rest
            .split(',')
            .next()
            .map_or(0, |it| it.parse().unwrap_or(0));
        let is_lot = kind == "lot";
        let counts = |it: &&PlayedMutant| match is_lot {
            true => {
                (&it.sample.commit, &it.sample.chosen) == (&sample.commit, &sample.chosen)
                    && it.verdict != MutantVerdict::Unviable
            }
            false => it.sample == *sample,
        };
        match self.played.iter().filter(counts).count() {
            done if done < wanted => format!("; **incomplete: {done} of {wanted}**"),
            _ => String::new(),
        }
    }

    fn survivors(&self) -> String {
        let survivors = self.standing.iter().filter(|it| it.column == SURVIVED);
        let survivors: String = survivors
            .map(|it| (&it.mutant.package, &it.last.sample.commit, &it.mutant.name))
            .map(|(package, at, name)| format!("* {package} at {at}: `{name}`\n"))
            .collect();
        match survivors.is_empty() {
            true => survivors,
            false => format!(
                "\nThose that the column *survived* of the first table counts, each with the commit at which it survived:\n\n{survivors}"
            ),
        }
    }

    /// A table with the mutants of each of these rules, and of none, the tests that notice most of them, and a mutant for
    /// each test.
    pub(super) fn by_rule(&self, rules: &BTreeSet<u8>) -> String {
        let mut table =
            "| rule | mutants | noticed | explained | survived | first by these tests, most often | for example |\n\
             |---|--:|--:|--:|--:|---|---|\n"
                .to_owned();
        let viable = || self.standing.iter().filter(|it| it.column != UNVIABLE);
        for rule in rules {
            let of_rule = viable().filter(|it| it.mutant.rules.contains(rule));
            let there_are = self.all.iter().filter(|it| it.rules.contains(rule));
            let head = format!("[R{rule}](../protocol.md#r{rule})");
            table += &rows(&head, of_rule, there_are.count());
        }
        let of_none = viable().filter(|it| it.mutant.rules.is_empty());
        table + &rows("none", of_none, 0)
    }
}

/// The rows of a rule: one for each test, the first with what became of the mutants.
fn rows<'a>(
    rule: &str,
    mutants: impl Iterator<Item = &'a StandingMutant<'a>>,
    there_are: usize,
) -> String {
    let (mut counts, mut tests) = ([0; 4], BTreeMap::<&str, Vec<&StandingMutant<'_>>>::new());
    for it in mutants {
        counts[it.column] += 1;
        if let Some(test) = it.last.test.as_deref() {
            tests.entry(test).or_default().push(it);
        }
    }
    let all: usize = counts.iter().sum();
    let (noticed, explained, survived) =
        (counts[NOTICED], counts[EXPLAINED_AWAY], counts[SURVIVED]);
    let head = format!("| {rule} | {all} | {noticed} | {explained} | {survived} |");
    if all == 0 {
        return format!(
            "{head} none: {there_are} mutants are of code whose comments name it, and none was played that compiles | |\n"
        );
    }
    let mut tests: Vec<_> = tests.into_iter().collect();
    tests.sort_by_key(|(_, noticed)| Reverse(noticed.len()));
    let heads = [&*head].into_iter().chain(std::iter::repeat("| | | | | |"));
    let rows = tests.iter().take(NAMED_TESTS).zip(heads);
    let rows: String = rows
        .map(|((test, noticed), head)| {
            // A mutant of few rules says most of this one.
            let example = noticed
                .iter()
                .min_by_key(|it| (it.mutant.rules.len(), &it.last.name));
            let example = example.map_or(String::new(), |it| it.last.name.replace('|', "\\|"));
            format!("{head} `{test}` {} | `{example}` |\n", noticed.len())
        })
        .collect();
    match rows.is_empty() {
        true => format!("{head} | |\n"),
        false => rows,
    }
}

/// The least lower end of a crate's interval, in per cent: more of the crates that decide and that queue what is decided.
fn target_of(package: &str) -> f64 {
    match package {
        "elector-protocol" | "elector-workqueue" => 94.0,
        _ => 88.0,
    }
}

/// The interval of what is noticed among the mutants that compile and are not explained.
fn interval_of(counts: [usize; 4]) -> (f64, f64) {
    interval(counts[NOTICED], counts[NOTICED] + counts[SURVIVED])
}

/// Wilson's interval for a share, in per cent: Wilson, *Probable inference, the law of succession, and statistical
/// inference* (1927), at 95 %.
fn interval(part: usize, whole: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let whole = whole.max(1) as f64;
    let share = part as f64 / whole;
    let middle = share + Z * Z / (2.0 * whole);
    let spread = Z * (share * (1.0 - share) / whole + Z * Z / (4.0 * whole * whole)).sqrt();
    let percent = |end: f64| 100.0 * end / (1.0 + Z * Z / whole);
    (percent(middle - spread), percent(middle + spread))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::mutants::reason::EXPLAINED;
    use crate::paths;

    const PAGE: &str = include_str!("../../../docs/proofs/mutants.md");

    /// The verdicts of these lines.
    fn recorded(lines: &[&str]) -> VerdictFile {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.tsv");
        fs::write(&path, lines.join("\n")).unwrap();
        VerdictFile::open(&path).unwrap()
    }

    fn listed(name: &str, rules: &[u8]) -> ListedMutant {
        ListedMutant {
            name: name.to_owned(),
            package: "p".to_owned(),
            rules: rules.iter().copied().collect(),
        }
    }

    /// A mutant counts by what became of it last, and by the rules that its code names now; one that does not compile is none
    /// of a rule's.
    #[test]
    fn a_rule_leads_to_tests_and_each_test_to_a_mutant_that_it_noticed() {
        let verdicts = recorded(&[
            "p\ta\tseed 1\tsurvived\tf:1:1: == in f",
            "p\tb\tseed 1\tkilled\tf:2:1: == in f\t5\ta::holds",
            "p\tb\tseed 1\tkilled\tf:3:3: || in f\t5\ta::holds",
            "p\tb\tseed 1\tkilled\tf:4:4: + in g\t5\tb::holds",
            "p\tb\tseed 1\tsurvived\tf:5:5: - in g",
            "p\tb\tseed 1\tsurvived\tf:6:6: * in g",
            "p\tb\tseed 1\tunviable\tf:7:7: / in g\t5\t",
            "p\tb\tseed 1\tkilled\tf:8:8: % in h\t5\tc::is_gone",
            "p\tb\tseed 1\ttimed-out\tf:9:9: ! in h",
        ]);
        let all = [
            listed("f:2:1: == in f", &[5, 16]),
            listed("f:3:3: || in f", &[5]),
            listed("f:4:4: + in g", &[5]),
            listed("f:5:5: - in g", &[5, 7]),
            listed("f:6:6: * in g", &[7]),
            listed("f:7:7: / in g", &[5]),
            listed("f:9:9: ! in h", &[]),
            listed("f:10:9: ! in i", &[1]),
        ];
        let page = "## By crate\n\n## Changes that change nothing\n\n* `p`, `f`, `-\n  in g`: …\n* `p`, `e`, `* in g`: …";
        let table = MutantPage::new(&verdicts, &all, page).by_rule(&[1, 5, 7, 16].into());
        let expected = [
            "| [R1](../protocol.md#r1) | 0 | 0 | 0 | 0 | none: 1 mutants are of code whose comments name it, and none was played that compiles | |",
            "| [R5](../protocol.md#r5) | 4 | 3 | 1 | 0 | `a::holds` 2 | `f:3:3: \\|\\| in f` |",
            "| | | | | | `b::holds` 1 | `f:4:4: + in g` |",
            "| [R7](../protocol.md#r7) | 2 | 0 | 1 | 1 | | |",
            "| [R16](../protocol.md#r16) | 1 | 1 | 0 | 0 | `a::holds` 1 | `f:2:1: == in f` |",
            "| none | 1 | 1 | 0 | 0 | | |",
        ];
        assert_eq!(table.lines().skip(2).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_sample_and_a_lot_say_what_they_lack() {
        let verdicts = recorded(&[
            "p\tc\tlot of 2, seed 1\tkilled\t1",
            "p\tc\tlot of 2, seed 1\tunviable\t2",
            "q\tc\tlot of 2, seed 1\tsurvived\t3",
            "q\td\tlot of 2, seed 1\tkilled\t3",
            "q\td\tlot of 2, seed 1\tunviable\t4",
            "p\td\tsample of 2, seed 1\tunviable\t4",
            "p\te\tsample of 1, seed 1\tunviable\t4",
            "p\te\tseed 1\tkilled\t4",
        ]);
        let left_out = [("elector-testing", "a kit")];
        let table = MutantPage::new(&verdicts, &[], "").by_crate(&left_out);
        assert!(table.contains("\n* elector-testing: a kit\n"));
        for row in [
            "| p | c | lot of 2, seed 1 | 2 |",
            "| p | d | sample of 2, seed 1; **incomplete: 1 of 2** | 1 |",
            "| p | e | sample of 1, seed 1 | 1 |",
            "| p | e | seed 1 | 1 |",
            "| q | c | lot of 2, seed 1 | 1 |",
            "| q | d | lot of 2, seed 1; **incomplete: 1 of 2** | 2 |",
        ] {
            assert!(table.contains(row), "{row}: {table}");
        }
    }

    #[test]
    fn a_crate_misses_its_targets_by_a_survivor_and_by_a_wide_interval() {
        let (mut lines, mut all) = (Vec::new(), Vec::new());
        for (package, noticed, survived) in [
            ("elector-protocol", 59, 0),
            ("elector", 59, 0),
            ("elector-cli", 59, 1),
            ("elector-api", 3, 0),
        ] {
            for at in 0..noticed + survived {
                let verdict = ["killed", "survived"][usize::from(at >= noticed)];
                let name = format!("f:1:{at}: + in f");
                lines.push(format!("{package}\tc\tseed 1\t{verdict}\t{name}"));
                let package = package.to_owned();
                all.push(ListedMutant {
                    package,
                    ..listed(&name, &[])
                });
            }
        }
        let verdicts = recorded(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let page = MutantPage::new(&verdicts, &all, "");
        let expected = [
            "elector-cli: 1 mutants survive, and the page explains none of them",
            "elector-protocol: the interval begins at 93.9 %, below 94 %",
        ];
        assert_eq!(
            page.missed(&["elector", "elector-cli", "elector-protocol"]),
            expected
        );
        let expected = "elector-api: the interval begins at 43.9 %, below 88 %";
        assert_eq!(page.missed(&["elector-api"]), [expected]);
    }

    /// A change in code that has moved would be a survivor again.
    #[test]
    fn each_explained_change_names_a_file_of_its_package() {
        let (_, reasons) = PAGE.split_once(EXPLAINED).unwrap();
        let mut named = 0;
        for reason in reasons.split("\n* ").skip(1) {
            let words: Vec<_> = reason.split('`').collect();
            let file = match words[1].strip_prefix("elector-") {
                None => words[1],
                Some(name) => {
                    assert!(words[3].starts_with(&format!("crates/{name}/src/")));
                    named += 1;
                    words[3]
                }
            };
            assert!(paths::workspace().join(file).is_file(), "{reason}");
        }
        assert!(named > 10, "{named}");
    }
}
