//! A history: entries, and what their times mean.

use std::collections::BTreeSet;

use elector_protocol::{ResourceVersion, Timestamp};

use crate::entry::{EntryContent, HistoryEntry};

/// Everything that was recorded, in the order in which it was recorded.
///
/// ```
/// use elector_protocol::Timestamp;
/// use elector_verify::{Event, EventKind, History, Participants, EntryContent, verify};
///
/// let mut history = History::default();
/// let now = Timestamp::from_micros(1).unwrap();
/// history.record(now, EntryContent::Event(Event::new("a", EventKind::Start)));
/// assert!(verify(&history, &Participants::default()).holds());
/// ```
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<HistoryEntry>,
    times: Times,
    beginning: Beginning,
    traces: TraceCoverage,
    gaps: BTreeSet<ResourceVersion>,
}

/// Where the times of a history come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// One clock: that of the recorder, or the only one there is.
    #[default]
    Seen,
    /// The times that stand in the objects, by one clock for each writer.
    Written,
}

/// Where a history begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// Before there was any of the objects, so the first revision of each is its creation.
    #[default]
    Empty,
    /// In the middle: the first revision of an object is what it was like by then, unless it was created later.
    Midway,
}

/// The coverage of the candidates' events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceCoverage {
    /// Everything, also that a process was killed. A process that does not say that it stopped leads on.
    #[default]
    Complete,
    /// The words that candidates could still say. One that says no more is taken to lead as long as its lease allows.
    Partial,
}

// === impl History ===

impl History {
    /// The same entries, with times that come from there.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Self {
        self.times = times;
        self
    }

    /// The same entries, of a history that begins there.
    #[must_use]
    pub fn with_beginning(mut self, beginning: Beginning) -> Self {
        self.beginning = beginning;
        self
    }

    /// The same entries, with events that cover that much.
    #[must_use]
    pub fn with_trace_coverage(mut self, traces: TraceCoverage) -> Self {
        self.traces = traces;
        self
    }

    /// Adds that revisions may be missing before this one: the watch was broken, and a list says what there was then.
    pub fn gap_before(&mut self, version: ResourceVersion) {
        self.gaps.insert(version);
    }

    /// The revisions before which others may be missing.
    pub fn gaps(&self) -> &BTreeSet<ResourceVersion> {
        &self.gaps
    }

    /// Adds what was seen at `at`.
    pub fn record(&mut self, at: Timestamp, content: EntryContent) {
        self.entries.push(HistoryEntry { at, content });
    }

    /// The recorded entries.
    pub fn entries(&self) -> &[HistoryEntry] {
        &self.entries
    }

    /// The entries as a recording, one line each, for `elector verify` to be read again. Notes are left out.
    pub fn recording(&self) -> String {
        let lines = self.entries.iter().filter_map(HistoryEntry::line);
        lines.map(|line| line + "\n").collect()
    }

    /// When it begins: the earliest time in it.
    pub fn start(&self) -> Option<Timestamp> {
        self.entries.iter().map(|entry| entry.at).min()
    }

    /// Where the times come from.
    pub fn times(&self) -> Times {
        self.times
    }

    /// The coverage of the events.
    pub fn trace_coverage(&self) -> TraceCoverage {
        self.traces
    }

    /// Where it begins.
    pub fn beginning(&self) -> Beginning {
        self.beginning
    }
}

impl From<Vec<HistoryEntry>> for History {
    fn from(entries: Vec<HistoryEntry>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }
}

impl Extend<HistoryEntry> for History {
    fn extend<I: IntoIterator<Item = HistoryEntry>>(&mut self, entries: I) {
        self.entries.extend(entries);
    }
}
