//! The counts of tests, as their programs print them.

use std::fmt;
use std::ops::AddAssign;

/// The numbers of tests that passed, failed, and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TestCount {
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// The tests that libtest calls ignored.
    pub(super) left_out: u64,
    /// Programs that were killed after their time limit; what they did not say is not counted.
    pub(super) timed_out: u64,
}

// === impl TestCount ===

impl TestCount {
    /// The counts of a libtest line: `test result: ok. 3 passed; 0 failed; 1 ignored; …`. `None` for any other line.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut tally = Self::default();
        for part in counts.split("; ") {
            match part.split_once(' ') {
                Some((count, "passed")) => tally.passed = count.parse().ok()?,
                Some((count, "failed")) => tally.failed = count.parse().ok()?,
                Some((count, "ignored")) => tally.left_out = count.parse().ok()?,
                _ => {}
            }
        }
        Some(tally)
    }
}

impl AddAssign for TestCount {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.left_out += other.left_out;
        self.timed_out += other.timed_out;
    }
}

impl fmt::Display for TestCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, word) in [(self.left_out, "skipped"), (self.timed_out, "timed out")] {
            if count > 0 {
                write!(f, ", {count} {word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_libtest_and_of_our_own_programs_are_counted() {
        let libtest = "test result: FAILED. 81 passed; 2 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.89s";
        let mut tally = TestCount::of_line(libtest).unwrap();
        tally += TestCount::of_line("test result: ok. 95 passed; 0 failed").unwrap();
        assert_eq!(
            tally,
            TestCount {
                passed: 176,
                failed: 2,
                left_out: 3,
                timed_out: 0,
            }
        );
        assert_eq!(tally.to_string(), "176 passed, 2 failed, 3 skipped");
        assert_eq!(TestCount::of_line("test a ... ok"), None);
    }
}
