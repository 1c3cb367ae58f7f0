//! The verdicts on mutants: written down one by one, summed up, and recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::sample::ListedMutant;

/// The verdict on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MutantVerdict {
    /// A test of its crate failed.
    KilledByItsCrate,
    /// None did, and one of a crate that uses it.
    KilledByUsers,
    /// The tests did not end.
    TimedOut,
    /// It does not compile, and counts for nothing.
    Unviable,
    /// All tests passed.
    Survived,
}

/// The mutants of a package at a commit that were chosen in one way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MutantSample {
    pub(super) package: String,
    pub(super) commit: String,
    /// The seed, or that they were killed once before.
    pub(super) chosen: String,
}

/// A mutant and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlayedMutant {
    pub(super) sample: MutantSample,
    pub(super) verdict: MutantVerdict,
    pub(super) name: String,
    /// The rules that the mutated code follows, by its comments.
    pub(super) rules: BTreeSet<u8>,
    /// The first test that failed.
    pub(super) test: Option<String>,
}

/// A file with a mutant in each line: package, commit, how it was chosen, verdict, name; then rules and test, which the first
/// runs did not write.
pub(super) struct VerdictFile {
    path: PathBuf,
    played: Vec<PlayedMutant>,
}

// === impl MutantVerdict ===

impl MutantVerdict {
    const ALL: [Self; 5] = [
        Self::KilledByItsCrate,
        Self::KilledByUsers,
        Self::TimedOut,
        Self::Unviable,
        Self::Survived,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::KilledByItsCrate => "killed",
            Self::KilledByUsers => "killed-by-users",
            Self::TimedOut => "timed-out",
            Self::Unviable => "unviable",
            Self::Survived => "survived",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// True if a test noticed.
    pub(super) const fn is_killed(self) -> bool {
        matches!(
            self,
            Self::KilledByItsCrate | Self::KilledByUsers | Self::TimedOut
        )
    }
}

impl fmt::Display for MutantVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl PlayedMutant ===

impl PlayedMutant {
    fn of_line(line: &str) -> Option<Self> {
        let mut cells = line.split('\t');
        let mut next = || cells.next().map(str::to_owned);
        let rules = |cell: &str| cell.split(' ').filter_map(|it| it.parse().ok()).collect();
        Some(Self {
            sample: MutantSample {
                package: next()?,
                commit: next()?,
                chosen: next()?,
            },
            verdict: MutantVerdict::of_name(&next()?)?,
            name: next()?,
            rules: next().map(|cell| rules(&cell)).unwrap_or_default(),
            test: next().filter(|test| !test.is_empty()),
        })
    }
}

impl fmt::Display for PlayedMutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MutantSample {
            package,
            commit,
            chosen,
        } = &self.sample;
        let (verdict, name) = (self.verdict, &self.name);
        write!(f, "{package}\t{commit}\t{chosen}\t{verdict}\t{name}")?;
        if self.rules.is_empty() && self.test.is_none() {
            return Ok(());
        }
        let rules: Vec<String> = self.rules.iter().map(u8::to_string).collect();
        let test = self.test.as_deref().unwrap_or_default();
        write!(f, "\t{}\t{test}", rules.join(" "))
    }
}

// === impl VerdictFile ===

impl VerdictFile {
    /// The verdicts so far, perhaps of a run that was broken off within a line.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("failed to read {}", path.display()))?,
        };
        Ok(Self {
            path: path.to_owned(),
            played: text.lines().filter_map(PlayedMutant::of_line).collect(),
        })
    }

    /// A mutant of a package at a commit that was played, however it was chosen.
    pub(super) fn of(&self, sample: &MutantSample, name: &str) -> Option<&PlayedMutant> {
        let same = |it: &&PlayedMutant| {
            it.name == name
                && it.sample.package == sample.package
                && it.sample.commit == sample.commit
        };
        self.played.iter().find(same)
    }

    pub(super) fn note(&mut self, played: PlayedMutant) -> Result<()> {
        if self.played.contains(&played) {
            return Ok(());
        }
        self.played.push(played);
        let lines: String = self.played.iter().map(|it| format!("{it}\n")).collect();
        fs::write(&self.path, lines)
            .with_context(|| format!("failed to write {}", self.path.display()))
    }

    /// Those of all mutants of a package that make a change which was noticed when it was last played, or which survived.
    pub(super) fn again(
        &self,
        package: &str,
        all: &[ListedMutant],
        survived: bool,
    ) -> Vec<ListedMutant> {
        let is_wanted = |it: &&&PlayedMutant| match survived {
            true => it.verdict == MutantVerdict::Survived,
            false => it.verdict.is_killed(),
        };
        let newest = self.newest();
        let wanted = newest.values().filter(is_wanted);
        let wanted = wanted.filter(|it| it.sample.package == package && stands(it, &newest, all));
        let changes: BTreeSet<&str> = wanted.map(|it| ListedMutant::change(&it.name)).collect();
        let same = |mutant: &&ListedMutant| changes.contains(ListedMutant::change(&mutant.name));
        all.iter().filter(same).cloned().collect()
    }

    /// The last verdict on each mutant, whose line may be another one since.
    fn newest(&self) -> NewestVerdicts<'_> {
        let played = self.played.iter();
        let by_place = played.map(|it| (place_of(&it.sample.package, &it.name), it));
        by_place.collect()
    }

    /// A table with a row for each sample, and those of all mutants there are whose change survived when it was last played, but
    /// for the changes that a text explains.
    pub(super) fn table(&self, all: &[ListedMutant], explained: &str) -> String {
        let mut table = "| crate | at | chosen | played | killed by its own tests | by those of its users | timed out | \
                         do not compile | survived | noticed, 95 % interval |\n|---|---|---|---|---|---|---|---|---|---|\n"
            .to_owned();
        let samples: BTreeSet<&MutantSample> = self.played.iter().map(|it| &it.sample).collect();
        for sample in samples {
            let played = || self.played.iter().filter(|it| it.sample == *sample);
            let count = |verdict| played().filter(|it| it.verdict == verdict).count();
            let counts = MutantVerdict::ALL.map(|verdict| count(verdict).to_string());
            let viable = played().count() - count(MutantVerdict::Unviable);
            let (low, high) = interval(viable - count(MutantVerdict::Survived), viable);
            let MutantSample {
                package,
                commit,
                chosen,
            } = sample;
            table += &format!(
                "| {package} | {commit} | {chosen} | {} | {} | {low:.0}–{high:.0} % |\n",
                played().count(),
                counts.join(" | ")
            );
        }
        table += "\nThose that survived when they were last played, whose code still stands, and that are not explained below:\n\n";
        let newest = self.newest();
        for it in newest.values() {
            let change = ListedMutant::change(&it.name);
            let survived = it.verdict == MutantVerdict::Survived && stands(it, &newest, all);
            if survived && !explained.contains(change) {
                let (of, name) = (&it.sample, &it.name);
                table += &format!("* {} at {}: `{name}`\n", of.package, of.commit);
            }
        }
        table
    }

    /// A table with a row for each rule: its mutants, and the tests that notice most of them.
    pub(super) fn table_of_rules(&self) -> String {
        let mut by_rule: BTreeMap<u8, Vec<&PlayedMutant>> = BTreeMap::new();
        for played in &self.played {
            let viable = played.verdict != MutantVerdict::Unviable;
            for rule in played.rules.iter().filter(|_| viable) {
                by_rule.entry(*rule).or_default().push(played);
            }
        }
        let mut table =
            "| rule | mutants | noticed | first by these tests, most often |\n|---|--:|--:|---|\n"
                .to_owned();
        for (rule, mutants) in by_rule {
            let killed = mutants.iter().filter(|it| it.verdict.is_killed()).count();
            let mut tests: BTreeMap<&str, usize> = BTreeMap::new();
            for test in mutants.iter().filter_map(|it| it.test.as_deref()) {
                *tests.entry(test).or_default() += 1;
            }
            let mut tests: Vec<_> = tests.into_iter().collect();
            tests.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let named = tests.iter().take(NAMED_TESTS);
            let named: Vec<String> = named
                .map(|(test, count)| format!("`{test}` {count}"))
                .collect();
            let (all, named) = (mutants.len(), named.join(", "));
            table +=
                &format!("| [R{rule}](../protocol.md#r{rule}) | {all} | {killed} | {named} |\n");
        }
        table
    }
}

/// The place of a mutant, whose line may be another one since: package, file, column and change.
fn place_of<'a>(package: &'a str, name: &'a str) -> (&'a str, Vec<&'a str>) {
    let mut place: Vec<&str> = name.splitn(4, ':').collect();
    if place.len() == 4 {
        place.remove(1);
    }
    (package, place)
}

/// True if a verdict may be that on a mutant there is: one of all that make the same change has it as its last verdict, or has
/// none, since its code has moved.
fn stands(played: &PlayedMutant, newest: &NewestVerdicts<'_>, all: &[ListedMutant]) -> bool {
    let (of, change) = (&played.sample.package, ListedMutant::change(&played.name));
    let same = |it: &&ListedMutant| it.package == *of && ListedMutant::change(&it.name) == change;
    all.iter().filter(same).any(|mutant| {
        let last = newest.get(&place_of(of, &mutant.name));
        last.is_none_or(|last| last.verdict == played.verdict)
    })
}

/// The last verdicts by the place of the mutant.
type NewestVerdicts<'a> = BTreeMap<(&'a str, Vec<&'a str>), &'a PlayedMutant>;

/// The most tests that are named for a rule.
const NAMED_TESTS: usize = 3;

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
    use super::*;

    fn sample(package: &str, commit: &str) -> MutantSample {
        MutantSample {
            package: package.to_owned(),
            commit: commit.to_owned(),
            chosen: "seed 1".to_owned(),
        }
    }

    fn played(sample: MutantSample, name: &str, verdict: MutantVerdict) -> PlayedMutant {
        PlayedMutant {
            sample,
            verdict,
            name: name.to_owned(),
            rules: BTreeSet::new(),
            test: None,
        }
    }

    #[test]
    fn verdicts_are_found_again_after_a_run_that_was_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.tsv");
        for (number, verdict) in MutantVerdict::ALL.into_iter().enumerate() {
            let mut file = VerdictFile::open(&path).unwrap();
            file.note(played(sample("p", "c"), &number.to_string(), verdict))
                .unwrap();
        }
        let torn = fs::read_to_string(&path).unwrap() + "p\tc\tseed 1\tkil";
        fs::write(&path, torn).unwrap();
        let mut file = VerdictFile::open(&path).unwrap();
        file.note(played(sample("p", "d"), "0", MutantVerdict::Survived))
            .unwrap();
        let file = VerdictFile::open(&path).unwrap();
        for (number, verdict) in MutantVerdict::ALL.into_iter().enumerate() {
            let found = file.of(&sample("p", "c"), &number.to_string());
            assert_eq!(found.map(|it| it.verdict), Some(verdict));
        }
        let found = file.of(&sample("p", "d"), "0");
        assert_eq!(found.map(|it| it.verdict), Some(MutantVerdict::Survived));
        assert_eq!(file.of(&sample("q", "c"), "0"), None);
        let all = [("p", "0"), ("p", "4"), ("q", "1")].map(|(package, name)| ListedMutant {
            name: name.to_owned(),
            package: package.to_owned(),
        });
        let table = file.table(&all, "");
        let holds = table.contains("| p | c | seed 1 | 5 | 1 | 1 | 1 | 1 | 1 | 30–95 % |");
        assert!(holds, "{table}");
        assert!(table.contains("* p at d: `0`") && table.contains("* p at c: `4`"));
        let table = file.table(&all, "* `4` changes nothing, since …");
        assert!(table.contains("* p at d: `0`") && !table.contains("`4`"));
        // Its code is gone since.
        assert!(!file.table(&all[1..], "").contains("`0`"));
    }

    #[test]
    fn a_mutant_is_found_again_where_its_function_has_moved() {
        let folder = tempfile::tempdir().unwrap();
        let mut recorded = VerdictFile::open(&folder.path().join("verdicts.tsv")).unwrap();
        let (killed, survived) = (MutantVerdict::KilledByItsCrate, MutantVerdict::Survived);
        for (package, verdict, at) in [("p", killed, 1), ("p", survived, 2), ("q", killed, 3)] {
            let name = format!("src/a.rs:{at}:1: {at} in f");
            recorded
                .note(played(sample(package, "c"), &name, verdict))
                .unwrap();
        }
        let all = [1, 2, 3].map(|at| ListedMutant {
            name: format!("src/b.rs:9:9: {at} in f"),
            package: "p".to_owned(),
        });
        assert_eq!(recorded.again("p", &all, false), all[..1]);
        assert_eq!(recorded.again("p", &all, true), all[1..2]);
        // A test that came since notices it, in another column.
        let name = "src/b.rs:7:9: 2 in f";
        assert!(recorded.table(&all, "").contains("* p at c: `src/a.rs"));
        recorded
            .note(played(sample("p", "d"), name, killed))
            .unwrap();
        assert!(!recorded.table(&all, "").contains("2 in f"));
        assert_eq!(recorded.again("p", &all, false), all[..2]);
        assert_eq!(recorded.again("p", &all, true), []);
    }

    /// A line of an earlier run ends with the name, and a mutant that does not compile is none of a rule's.
    #[test]
    fn mutants_are_counted_by_rule_with_the_tests_that_noticed_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.tsv");
        let test = Some("a::holds".to_owned());
        let mut file = VerdictFile::open(&path).unwrap();
        file.note(played(sample("p", "b"), "old", MutantVerdict::Survived))
            .unwrap();
        for (name, verdict, rules, test) in [
            ("1", MutantVerdict::KilledByItsCrate, [5, 16], test),
            ("2", MutantVerdict::Survived, [5, 7], None),
            ("3", MutantVerdict::Unviable, [5, 7], None),
        ] {
            let rules = rules.into();
            let of = played(sample("p", "c"), name, verdict);
            file.note(PlayedMutant { rules, test, ..of }).unwrap();
        }
        let table = VerdictFile::open(&path).unwrap().table_of_rules();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| [R5](../protocol.md#r5) | 2 | 1 | `a::holds` 1 |",
                "| [R7](../protocol.md#r7) | 1 | 0 |  |",
                "| [R16](../protocol.md#r16) | 1 | 1 | `a::holds` 1 |",
            ]
        );
    }
}
