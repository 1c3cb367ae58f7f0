//! Failures in the log: one line for each cause, few lines for each object, and how many were left out.
//!
//! Failed attempts recur within seconds, a thousand leases may fail for one reason, and an object may fail for a new
//! reason with each of its revisions. Without a limit an outage buries its own cause, and one object fills the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use elector_protocol::Instant;

use crate::line::cut;

/// The failures by subject: a lease, a watch, a way to the server.
///
/// A cause is logged as a warning when it is new for its subject, and a subject has five lines a minute. What is left out
/// is counted, and the count is logged when the minute is over, beside the newest cause, or when the failure ends. So a
/// failure that lasts is one line, and then one line a minute.
///
/// ```
/// use std::time::Duration;
///
/// use elector_protocol::Instant;
/// use elector_runtime::FailureLog;
///
/// let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
/// let mut failures = FailureLog::default();
/// for second in 0..10 {
///     failures.note(at(second), "lease ns/l", "failed to update ns/l: no answer");
/// }
/// failures.end(at(10), "lease ns/l", Some("ns/l is written again"));
/// // WARN failed to update ns/l: no answer
/// // INFO ns/l is written again left_out=9
/// ```
#[derive(Debug, Default)]
pub struct FailureLog {
    subjects: BTreeMap<String, FailureSubject>,
    /// When the minute of each subject ends.
    minutes: BTreeSet<(Instant, String)>,
    /// The subjects of each group that have lines of their own, and until when they keep that place at least.
    groups: BTreeMap<String, BTreeMap<String, Instant>>,
}

#[derive(Debug)]
struct FailureSubject {
    /// When its minute ends.
    until: Instant,
    /// The number of lines that it has had in this minute.
    lines: usize,
    /// The causes that were logged in this minute, as far as they have not ended.
    causes: BTreeSet<String>,
    /// The number of failures that have not been logged.
    left_out: u64,
    /// The newest cause, until it ends.
    newest: Option<String>,
    /// When it last failed.
    failed: Instant,
}

/// A line to log.
#[derive(Debug, PartialEq, Eq)]
enum FailureLine {
    Failed { text: String, left_out: u64 },
    Again { text: String },
    Ended { text: String, left_out: u64 },
}

/// The span for which lines are counted, and after which a failure that lasts is repeated.
const MINUTE: Duration = Duration::from_secs(60);
/// The number of lines that a subject has in that time.
const LINES: usize = 5;
/// The number of subjects of a group that have lines of their own.
const PLACES: usize = 20;
/// The longest line, in characters.
const LONGEST_LINE: usize = 2000;
/// The number of subjects that are compared one by one.
const FEW: usize = 8;
/// The time for which a failure is remembered that neither ends nor happens again.
const MEMORY: Duration = Duration::from_secs(600);

// === impl FailureLog ===

impl FailureLog {
    /// Logs a failure, unless its cause was logged within the last minute or its subject has had all its lines.
    pub fn note(&mut self, now: Instant, subject: &str, text: &str) {
        self.tick(now);
        self.take(now, subject, text).log();
    }

    /// The same for one of a group of subjects that somebody else chooses, such as the objects of a namespace: 20 of them
    /// have lines of their own, each for a minute at least and for as long as it is known. The others share the lines of
    /// the group.
    pub fn note_in(&mut self, now: Instant, group: &str, subject: &str, text: &str) {
        self.tick(now);
        let subject = if self.has_place(now, group, subject) {
            subject
        } else {
            group
        };
        self.take(now, subject, text).log();
    }

    /// The subject does not fail any more, which `text` says. Without a text that is worth a line only where something
    /// was left out.
    pub fn end(&mut self, now: Instant, subject: impl Display, text: Option<&str>) {
        self.tick(now);
        // Most of the time next to nothing fails, and then no name is put together.
        if self.subjects.len() <= FEW && !self.subjects.keys().any(|it| is_text(&subject, it)) {
            return;
        }
        if let Some(line) = self.take_end(&subject.to_string(), text) {
            line.log();
        }
    }

    /// The subject is none any more: nothing more is said of it.
    pub fn forget(&mut self, subject: &str) {
        if let Some(known) = self.subjects.remove(subject) {
            self.minutes.remove(&(known.until, subject.to_owned()));
        }
    }

    /// Logs what was left out in the minutes that are over. To be called at [`Self::wake_at`]; earlier is harmless.
    pub fn tick(&mut self, now: Instant) {
        for line in self.take_minutes(now) {
            line.log();
        }
    }

    /// When [`Self::tick`] next has something to do if nothing fails before.
    pub fn wake_at(&self) -> Option<Instant> {
        self.minutes.first().map(|(until, _)| *until)
    }

    /// True if a subject has a place among those of its group, or can be given one.
    fn has_place(&mut self, now: Instant, group: &str, subject: &str) -> bool {
        let places = self.groups.entry(group.to_owned()).or_default();
        if !places.contains_key(subject) {
            if places.len() >= PLACES {
                let known = &self.subjects;
                places.retain(|other, until| *until > now || known.contains_key(other));
            }
            if places.len() >= PLACES {
                return false;
            }
            places.insert(subject.to_owned(), now.after(MINUTE));
        }
        true
    }

    fn take(&mut self, now: Instant, subject: &str, text: &str) -> FailureLine {
        let known = match self.subjects.get_mut(subject) {
            Some(known) => known,
            None => {
                let until = now.after(MINUTE);
                self.minutes.insert((until, subject.to_owned()));
                let new = FailureSubject::new(until);
                self.subjects.entry(subject.to_owned()).or_insert(new)
            }
        };
        let text = cut(text, LONGEST_LINE);
        known.failed = now;
        known.newest = Some(text.clone());
        if known.lines >= LINES || known.causes.contains(&text) {
            known.left_out += 1;
            return FailureLine::Again { text };
        }
        known.lines += 1;
        known.causes.insert(text.clone());
        FailureLine::Failed { text, left_out: 0 }
    }

    fn take_end(&mut self, subject: &str, text: Option<&str>) -> Option<FailureLine> {
        let known = self.subjects.get_mut(subject)?;
        known.newest.take()?;
        // The next failure is a new one, but the lines of this minute stay counted: many a subject comes and goes.
        known.causes.clear();
        if known.lines >= LINES || (text.is_none() && known.left_out == 0) {
            return None;
        }
        known.lines += 1;
        Some(FailureLine::Ended {
            text: text.map_or_else(|| ended(subject), |text| cut(text, LONGEST_LINE)),
            left_out: std::mem::take(&mut known.left_out),
        })
    }

    fn take_minutes(&mut self, now: Instant) -> Vec<FailureLine> {
        let mut lines = Vec::new();
        if self.wake_at().is_none_or(|until| until > now) {
            return lines;
        }
        while let Some((until, _)) = self.minutes.first()
            && *until <= now
            && let Some((_, subject)) = self.minutes.pop_first()
        {
            let Some(known) = self.subjects.get_mut(&subject) else {
                continue;
            };
            let forgotten = match &known.newest {
                Some(_) => now.since(known.failed) >= MEMORY,
                None => true,
            };
            lines.extend(known.start_minute(now, &subject));
            if forgotten {
                self.subjects.remove(&subject);
            } else {
                self.minutes.insert((known.until, subject));
            }
        }
        let known = &self.subjects;
        self.groups.retain(|_, places| {
            places.retain(|subject, until| *until > now || known.contains_key(subject));
            !places.is_empty()
        });
        lines
    }
}

// === impl FailureSubject ===

impl FailureSubject {
    fn new(until: Instant) -> Self {
        Self {
            until,
            lines: 0,
            causes: BTreeSet::new(),
            left_out: 0,
            newest: None,
            failed: Instant::default(),
        }
    }

    /// Begins a minute with what the last one left out: the first line of the new one.
    fn start_minute(&mut self, now: Instant, subject: &str) -> Option<FailureLine> {
        self.until = now.after(MINUTE);
        self.lines = 0;
        self.causes.clear();
        let left_out = std::mem::take(&mut self.left_out);
        if left_out == 0 {
            return None;
        }
        self.lines = 1;
        Some(match &self.newest {
            Some(text) => {
                self.causes.insert(text.clone());
                let text = text.clone();
                FailureLine::Failed { text, left_out }
            }
            None => FailureLine::Ended {
                text: ended(subject),
                left_out,
            },
        })
    }
}

// === impl FailureLine ===

impl FailureLine {
    fn log(&self) {
        match self {
            Self::Failed { text, left_out: 0 } => tracing::warn!("{text}"),
            Self::Failed { text, left_out } => tracing::warn!(left_out, "{text}"),
            Self::Again { text } => tracing::debug!("{text}"),
            Self::Ended { text, left_out: 0 } => tracing::info!("{text}"),
            Self::Ended { text, left_out } => tracing::info!(left_out, "{text}"),
        }
    }
}

/// True if that is the text of `value`, of which no more is put together than agrees.
fn is_text(value: &impl Display, text: &str) -> bool {
    struct RemainingText<'a>(&'a str);
    impl fmt::Write for RemainingText<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = RemainingText(text);
    write!(rest, "{value}").is_ok() && rest.0.is_empty()
}

/// The line for the end of a failure that has no words of its own.
fn ended(subject: &str) -> String {
    cut(&format!("no more failures: {subject}"), LONGEST_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    fn failed(text: &str, left_out: u64) -> FailureLine {
        let text = text.to_owned();
        FailureLine::Failed { text, left_out }
    }

    fn ended(text: &str, left_out: u64) -> FailureLine {
        let text = text.to_owned();
        FailureLine::Ended { text, left_out }
    }

    /// All that is logged at a normal level.
    #[derive(Default)]
    struct RecordedLog {
        failures: FailureLog,
        lines: Vec<FailureLine>,
    }

    impl RecordedLog {
        fn note(&mut self, millis: u64, subject: &str, text: &str) {
            self.tick(millis);
            let line = self.failures.take(at(millis), subject, text);
            self.lines
                .extend(Some(line).filter(|line| !matches!(line, FailureLine::Again { .. })));
        }

        fn end(&mut self, millis: u64, subject: &str, text: Option<&str>) {
            self.tick(millis);
            self.lines.extend(self.failures.take_end(subject, text));
        }

        fn tick(&mut self, millis: u64) {
            self.lines.extend(self.failures.take_minutes(at(millis)));
        }

        fn new_lines(&mut self) -> Vec<FailureLine> {
            std::mem::take(&mut self.lines)
        }
    }

    #[test]
    fn a_failure_that_lasts_is_one_line_and_then_one_a_minute() {
        let mut log = RecordedLog::default();
        for second in (0..=115).step_by(5) {
            log.note(second * 1000, "a", "down");
        }
        assert_eq!(log.new_lines(), [failed("down", 0), failed("down", 11)]);
        log.end(117_000, "a", Some("up"));
        assert_eq!(log.new_lines(), [ended("up", 12)]);
        log.end(118_000, "a", Some("up"));
        assert_eq!(log.new_lines(), []);
        log.tick(600_000);
        assert_eq!(log.new_lines(), []);
        assert_eq!(log.failures.wake_at(), None, "nothing is remembered");
    }

    #[test]
    fn each_cause_and_each_subject_has_its_line() {
        let mut log = RecordedLog::default();
        log.note(0, "a", "down");
        log.note(1, "b", "down");
        log.note(2, "a", "forbidden");
        let expected = [failed("down", 0), failed("down", 0), failed("forbidden", 0)];
        assert_eq!(log.new_lines(), expected);
        // A failure that ended and begins again is a new one.
        log.end(3, "a", None);
        log.note(4, "a", "forbidden");
        assert_eq!(log.new_lines(), [failed("forbidden", 0)]);
        // One that is rarer than the minute is logged each time.
        log.note(90_000, "b", "down");
        assert_eq!(log.new_lines(), [failed("down", 0)]);
    }

    /// An object that went to and fro between two faults wrote millions of lines a day.
    #[test]
    fn a_subject_has_few_lines_a_minute_however_often_its_cause_changes() {
        for causes in [2, 7, 3000] {
            let mut log = RecordedLog::default();
            let mut noted = 0;
            for millis in (0..600_000).step_by(20) {
                let cause = format!("fault {}", noted % causes);
                log.note(millis, "a", &cause);
                noted += 1;
            }
            log.tick(660_000);
            let lines = log.new_lines();
            assert!(lines.len() <= 11 * LINES, "{} lines", lines.len());
            let counted = |line: &FailureLine| match line {
                FailureLine::Failed { left_out: 0, .. } => 1,
                FailureLine::Failed { left_out, .. } => *left_out,
                _ => 0,
            };
            let all: u64 = lines.iter().map(counted).sum();
            assert_eq!(all, noted, "each failure is logged or counted");
        }
    }

    #[test]
    fn a_subject_that_comes_and_goes_has_few_lines_too() {
        let mut log = RecordedLog::default();
        for turn in 0..3000 {
            log.note(turn * 20, "a", "down");
            log.end(turn * 20 + 10, "a", Some("up"));
        }
        assert_eq!(log.new_lines().len(), LINES);
        log.tick(60_000);
        assert_eq!(log.new_lines(), [ended("no more failures: a", 2997)]);
        log.tick(120_000);
        assert_eq!(log.failures.wake_at(), None);
    }

    #[test]
    fn the_count_comes_when_the_minute_is_over_though_nothing_fails_any_more() {
        let mut log = RecordedLog::default();
        log.note(0, "a", "down");
        log.note(1000, "a", "down");
        assert_eq!(log.failures.wake_at(), Some(at(60_000)));
        log.tick(59_999);
        assert_eq!(log.new_lines(), [failed("down", 0)]);
        log.tick(60_000);
        assert_eq!(log.new_lines(), [failed("down", 1)]);
        // It has not ended, so its end is still worth a line, until it is long forgotten.
        log.tick(300_000);
        log.end(300_000, "a", Some("up"));
        assert_eq!(log.new_lines(), [ended("up", 0)]);
        log.note(400_000, "a", "down");
        for minute in 7..20 {
            log.tick(minute * 60_000);
        }
        log.end(1_200_000, "a", Some("up"));
        assert_eq!(log.new_lines(), [failed("down", 0)]);
    }

    #[test]
    fn a_line_has_a_bound() {
        let mut log = RecordedLog::default();
        let megabyte = "ä".repeat(1 << 20);
        log.note(0, "a", &megabyte);
        log.end(1, "a", Some(&megabyte));
        for line in log.new_lines() {
            let (FailureLine::Failed { text, .. }
            | FailureLine::Ended { text, .. }
            | FailureLine::Again { text }) = line;
            assert_eq!(text.chars().count(), LONGEST_LINE + 1);
        }
    }

    #[test]
    fn a_subject_that_is_none_any_more_is_not_spoken_of() {
        let mut log = RecordedLog::default();
        log.note(0, "a", "down");
        log.note(1, "a", "down");
        log.failures.forget("a");
        log.end(2, "a", Some("up"));
        log.tick(60_000);
        assert_eq!(log.new_lines(), [failed("down", 0)]);
        assert_eq!(log.failures.wake_at(), None);
    }

    /// The lines of one failure of each of so many subjects of a group, at that moment.
    fn failures_of(
        failures: &mut FailureLog,
        now: Instant,
        subjects: std::ops::Range<usize>,
    ) -> Vec<FailureLine> {
        let mut lines = failures.take_minutes(now);
        for subject in subjects {
            let subject = subject.to_string();
            let place = match failures.has_place(now, "group", &subject) {
                true => subject.as_str(),
                false => "group",
            };
            let text = format!("{subject} fails");
            let line = failures.take(now, place, &text);
            lines.extend(Some(line).filter(|line| !matches!(line, FailureLine::Again { .. })));
        }
        lines
    }

    #[test]
    fn many_subjects_of_a_group_have_few_lines_and_a_count() {
        let mut failures = FailureLog::default();
        let lines = failures_of(&mut failures, at(0), 0..10_000);
        assert_eq!(lines.len(), PLACES + LINES);
        assert_eq!(failures.subjects.len(), PLACES + 1);
        let (group, own) = failures.take_minutes(at(60_000)).into_iter().fold(
            (Vec::new(), 0),
            |(mut group, own), line| match line {
                FailureLine::Failed { left_out, .. } => {
                    group.push(left_out);
                    (group, own)
                }
                _ => (group, own + 1),
            },
        );
        assert_eq!((group, own), (vec![9_975], 0));
    }

    #[test]
    fn subjects_that_come_and_go_keep_their_places_for_a_minute() {
        let mut failures = FailureLog::default();
        let mut lines = 0;
        for second in 0..60 {
            let subjects = second * 50..(second + 1) * 50;
            lines += failures_of(&mut failures, at(1000 * second as u64), subjects.clone()).len();
            for subject in subjects {
                failures.forget(&subject.to_string());
            }
        }
        assert_eq!(lines, PLACES + LINES);
        // Their places are free then, for others.
        let later = failures_of(&mut failures, at(61_000), 9_000..9_050);
        assert!(later.len() > PLACES, "{later:?}");
    }

    #[test]
    fn a_place_is_kept_for_its_minute_or_while_its_subject_fails() {
        let mut failures = FailureLog::default();
        failures_of(&mut failures, at(0), 0..10);
        failures_of(&mut failures, at(30_000), 10..20);
        for gone in 10..20 {
            failures.forget(&gone.to_string());
        }
        for (millis, is_given) in [(60_000, false), (90_000, true)] {
            failures.take_minutes(at(millis));
            let place = failures.has_place(at(millis), "group", "another");
            assert_eq!(place, is_given, "{millis}");
        }
    }

    #[test]
    fn a_group_without_failures_is_forgotten() {
        let mut failures = FailureLog::default();
        failures_of(&mut failures, at(0), 0..100);
        failures.take_minutes(at(60_000));
        for minute in 2..20 {
            failures.take_minutes(at(60_000 * minute));
        }
        assert!(failures.groups.is_empty() && failures.subjects.is_empty());
    }

    #[test]
    fn a_value_is_compared_with_a_text_in_parts() {
        let value = format_args!("{} {}", "writes of", "ns/l");
        for (text, same) in [
            ("writes of ns/l", true),
            ("writes of ns/lease", false),
            ("writes of ns", false),
            ("reads of ns/l", false),
            ("", false),
        ] {
            assert_eq!(is_text(&value, text), same, "{text}");
        }
    }
}
