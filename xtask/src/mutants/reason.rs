//! The reasons of the page for changes that no test can notice.

use std::collections::BTreeMap;

use super::sample::ListedMutant;

/// The heading of the page below which survivors are named that change nothing, with the reasons.
pub(super) const EXPLAINED: &str = "\n## Changes that change nothing\n";

/// The reasons, and the number of mutants that were excused by them so far: package, file and change of each.
pub(super) struct MutantReasons {
    text: String,
    excused: BTreeMap<[String; 3], usize>,
}

// === impl MutantReasons ===

impl MutantReasons {
    pub(super) fn of_page(page: &str) -> Self {
        let text = page.split_once(EXPLAINED).map_or("", |(_, below)| below);
        Self {
            text: text.replace("\n  ", " "),
            excused: BTreeMap::new(),
        }
    }

    /// True if a reason, with a dot before it, names this change with its package and its file, and has not excused as many
    /// mutants yet as it says: one, or the number in brackets behind the change.
    pub(super) fn excuse(&mut self, of: &ListedMutant) -> bool {
        let file = of.name.split(':').next().unwrap_or_default();
        let words = [&of.package, file, ListedMutant::change(&of.name)].map(|it| format!("`{it}`"));
        let reasons = self.text.split("\n* ");
        let reasons = reasons.filter(|reason| words.iter().all(|word| reason.contains(word)));
        let number = |behind: &str| -> Option<usize> {
            let (number, _) = behind.strip_prefix(" (")?.split_once(')')?;
            number.parse().ok()
        };
        let allowed = reasons.flat_map(|reason| reason.split(&words[2]).skip(1));
        let allowed: usize = allowed.map(|behind| number(behind).unwrap_or(1)).sum();
        let excused = self.excused.entry(words).or_default();
        *excused += 1;
        *excused <= allowed
    }

    /// The mutants of policies that survive by the tables of the page, where no reason names their change as the table does, or
    /// the beginning of that.
    pub(super) fn unexplained_policies(&self, page: &str) -> Vec<String> {
        let named = self.text.split('`').skip(1).step_by(2);
        let named: Vec<&str> = named.filter(|name| name.contains(" before ")).collect();
        let rows = page.lines().filter_map(|line| {
            let name = line.strip_prefix("| survivor | `")?.strip_suffix("` |")?;
            Some(name.replace("\\|", "|"))
        });
        rows.filter(|survivor| !named.iter().any(|name| survivor.starts_with(name)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/proofs/mutants.md");

    #[test]
    fn a_reason_excuses_as_many_mutants_as_it_says() {
        let reasons = "* `p`, `f`, `+ in g`, `-\n  in g` (2): …\n* `p`, `e`, `* in g`: …";
        let mut reasons = MutantReasons::of_page(&format!("{EXPLAINED}\n{reasons}"));
        let mut excuse = |name: &str| {
            reasons.excuse(&ListedMutant {
                name: name.to_owned(),
                package: "p".to_owned(),
                ..ListedMutant::default()
            })
        };
        assert!(excuse("f:1:1: + in g") && !excuse("f:2:2: + in g"));
        assert!(excuse("f:1:1: - in g") && excuse("f:2:1: - in g"));
        assert!(!excuse("f:3:1: - in g") && !excuse("f:1:1: * in g"));
    }

    #[test]
    fn each_policy_mutant_that_survives_is_named_by_a_reason() {
        let left = |page: &str| MutantReasons::of_page(page).unexplained_policies(page);
        assert_eq!(left(PAGE), Vec::<String>::new());
        let new = PAGE.replace("validations 1: && to \\|\\|", "validations 2: && to \\|\\|");
        let expected =
            "elector-lease validations 2: && to || before variables.change == 'term') || variable";
        assert_eq!(left(&new), [expected]);
    }
}
