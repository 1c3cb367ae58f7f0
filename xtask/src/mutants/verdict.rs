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
    pub(super) played: Vec<PlayedMutant>,
}

// === impl MutantVerdict ===

impl MutantVerdict {
    pub(super) const ALL: [Self; 5] = [
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
        let is_wanted = |verdict: MutantVerdict| match survived {
            true => verdict == MutantVerdict::Survived,
            false => verdict.is_killed(),
        };
        let standing = self.standing(all).into_iter();
        let wanted =
            standing.filter(|(mutant, last)| mutant.package == package && is_wanted(last.verdict));
        wanted.map(|(mutant, _)| mutant.clone()).collect()
    }

    /// The mutants there are that were played, each with its last verdict: of its place, but for the line, or of a place that
    /// no mutant has any more, where the same change was made to code that has moved.
    pub(super) fn standing<'a>(
        &'a self,
        all: &'a [ListedMutant],
    ) -> Vec<(&'a ListedMutant, &'a PlayedMutant)> {
        let place = |mutant: &'a ListedMutant| place_of(&mutant.package, &mutant.name);
        let places: BTreeSet<_> = all.iter().map(place).collect();
        let (mut newest, mut moved) = (BTreeMap::new(), BTreeMap::new());
        for it in &self.played {
            let place = place_of(&it.sample.package, &it.name);
            if !places.contains(&place) {
                moved.insert((place.0, ListedMutant::change(&it.name)), it);
            }
            // Mutants in several lines of one place share a verdict: the worst that a commit gave.
            let shares = |last: &&PlayedMutant| {
                last.verdict == MutantVerdict::Survived
                    && last.sample.commit == it.sample.commit
                    && last.name != it.name
            };
            if !newest.get(&place).is_some_and(shares) {
                newest.insert(place, it);
            }
        }
        let last = |mutant: &'a ListedMutant| {
            let change = (mutant.package.as_str(), ListedMutant::change(&mutant.name));
            let last = newest.get(&place(mutant)).or_else(|| moved.get(&change));
            last.map(|last| (mutant, *last))
        };
        all.iter().filter_map(last).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::page::MutantPage;

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
        let last = played(sample("p", "d"), "0", MutantVerdict::Survived);
        VerdictFile::open(&path).unwrap().note(last).unwrap();
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
            ..ListedMutant::default()
        });
        let table_of = |all, page| MutantPage::new(&file, all, page).by_crate(&[]);
        let table = table_of(&all[..], "");
        assert!(table.contains("| p | c | seed 1 | 5 | 1 | 1 | 1 | 1 | 1 | 30–95 % |"));
        assert!(table.contains("* p at d: `0`") && table.contains("* p at c: `4`"));
        assert!(table.contains("| p | 2 | 2 | 0 | 0 | 0 | 2 | 0–66 % |"));
        let page =
            "\n## Changes that change nothing\n\n* `p`, `4`: `4`, since …\n* `q`, `0`, `0`: …";
        let table = table_of(&all[..], page);
        assert!(table.contains("* p at d: `0`") && !table.contains("`4`"));
        assert!(table.contains("| p | 2 | 2 | 0 | 0 | 1 | 1 | 0–79 % |"));
        // Its code is gone since.
        assert!(!table_of(&all[1..], "").contains("`0`"));
    }

    /// Lines move, so that nothing tells the mutants of two lines apart which are equal otherwise.
    #[test]
    fn a_survivor_is_not_hidden_by_an_equal_mutant_in_another_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = VerdictFile::open(&folder.path().join("verdicts.tsv")).unwrap();
        let mutant = |line| format!("src/a.rs:{line}:9: delete ! in f");
        let all = [1, 2].map(|line| ListedMutant {
            name: mutant(line),
            package: "p".to_owned(),
            ..ListedMutant::default()
        });
        let (killed, survived) = (MutantVerdict::KilledByItsCrate, MutantVerdict::Survived);
        for (commit, verdicts, survivors) in [
            ("c", [survived, killed], 2),
            ("d", [killed, killed], 0),
            ("e", [killed, survived], 2),
        ] {
            for (line, verdict) in verdicts.into_iter().enumerate() {
                let name = mutant(line + 1);
                file.note(played(sample("p", commit), &name, verdict))
                    .unwrap();
            }
            assert_eq!(file.again("p", &all, true).len(), survivors, "{commit}");
        }
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
            ..ListedMutant::default()
        });
        fn table_of(file: &VerdictFile, all: &[ListedMutant]) -> String {
            MutantPage::new(file, all, "").by_crate(&[])
        }
        assert_eq!(recorded.again("p", &all, false), all[..1]);
        assert_eq!(recorded.again("p", &all, true), all[1..2]);
        // A test that came since notices it, in another column.
        assert!(table_of(&recorded, &all).contains("* p at c: `src/b.rs"));
        let mut of = sample("p", "d");
        of.chosen = "survived before".to_owned();
        let of = played(of, "src/b.rs:7:9: 2 in f", killed);
        recorded.note(of).unwrap();
        let holds = |text| table_of(&recorded, &all).contains(text);
        assert!(!holds("2 in f") && !holds("| d |") && !holds("*survived*"));
        assert_eq!(recorded.again("p", &all, false), all[..2]);
        assert_eq!(recorded.again("p", &all, true), []);
        // New code, in which the same can be changed, has not been played.
        let mut new = all[1].clone();
        new.name = new.name.replace("9:9", "9:5");
        let all = [&all[..], &[new]].concat();
        assert_eq!(recorded.again("p", &all, false), all[..2]);
    }
}
