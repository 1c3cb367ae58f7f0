//! Everything that happened in one namespace, in the order in which it was seen.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use elector_api::Lease;
use elector_protocol::Timestamp;
use elector_verify::{EntryContent, Event, EventKind, History, HistoryEntry, between};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

/// The record of one namespace. Readers can wait for what is still to come.
#[derive(Debug, Default)]
pub struct Journal {
    entries: Mutex<Vec<HistoryEntry>>,
    length: watch::Sender<usize>,
}

/// A moment of a scenario, and the number of entries of its journal before it.
#[derive(Clone, Copy, Debug)]
pub struct JournalMark {
    /// The moment.
    pub at: Timestamp,
    entries: usize,
}

/// The wall clock, in whole microseconds as everything in a journal.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
}

/// The events of this kind, and when each happened.
pub fn events(
    entries: &[HistoryEntry],
    kind: EventKind,
) -> impl DoubleEndedIterator<Item = (&Event, Timestamp)> {
    entries
        .iter()
        .filter_map(move |entry| match &entry.content {
            EntryContent::Event(event) if event.kind == kind => Some((event, entry.at)),
            _ => None,
        })
}

/// The revisions of a Lease, and when each was seen.
pub fn revisions<'e>(
    entries: &'e [HistoryEntry],
    lease: &'e str,
) -> impl DoubleEndedIterator<Item = (&'e Arc<Lease>, Timestamp)> {
    entries
        .iter()
        .filter_map(move |entry| match &entry.content {
            EntryContent::Lease(name, revision) if name == lease => Some((revision, entry.at)),
            _ => None,
        })
}

// === impl JournalMark ===

impl JournalMark {
    /// Before everything.
    pub const BEGINNING: Self = Self {
        at: Timestamp::MIN,
        entries: 0,
    };

    /// The entries before it, and those after it.
    pub fn split(self, entries: &[HistoryEntry]) -> (&[HistoryEntry], &[HistoryEntry]) {
        entries.split_at(self.entries)
    }

    /// The entries after it.
    pub fn since(self, entries: &[HistoryEntry]) -> &[HistoryEntry] {
        &entries[self.entries..]
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        between(self.at, now())
    }
}

// === impl Journal ===

impl Journal {
    /// Adds what was seen at `at`.
    pub fn record(&self, at: Timestamp, content: EntryContent) {
        let mut entries = self.entries.lock();
        entries.push(HistoryEntry { at, content });
        self.length.send_replace(entries.len());
    }

    /// Adds what the test does.
    pub fn note(&self, text: impl Into<String>) {
        self.record(now(), EntryContent::Note(text.into()));
    }

    /// This moment.
    pub fn mark(&self) -> JournalMark {
        let entries = self.read(<[HistoryEntry]>::len);
        JournalMark { at: now(), entries }
    }

    /// Looks at everything so far.
    pub fn read<T>(&self, look: impl FnOnce(&[HistoryEntry]) -> T) -> T {
        look(&self.entries.lock())
    }

    /// Everything so far, to be judged.
    pub fn history(&self) -> History {
        self.read(|entries| History::from(entries.to_vec()))
    }

    /// Waits until `look` finds what it looks for; `what` says what that is.
    pub async fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&[HistoryEntry]) -> Option<T>,
    ) -> Result<T> {
        let mut length = self.length.subscribe();
        let found = timeout(patience, async {
            loop {
                length.borrow_and_update();
                if let Some(found) = self.read(&mut look) {
                    return Ok(found);
                }
                length.changed().await.context("the journal was closed")?;
            }
        });
        let seconds = patience.as_secs_f64();
        match found.await {
            Ok(found) => found,
            Err(_) => bail!("waited {seconds:.1} s in vain until {what}"),
        }
    }

    /// The entries for a reader, one line each, times in seconds since the first entry.
    pub fn text(&self) -> String {
        self.read(|entries| {
            let mut entries: Vec<&HistoryEntry> = entries.iter().collect();
            entries.sort_by_key(|entry| entry.at);
            let Some(start) = entries.first().map(|entry| entry.at) else {
                return String::new();
            };
            let mut text = String::new();
            for entry in entries {
                let seconds = between(start, entry.at).as_secs_f64();
                // Writing to a String does not fail.
                let _ = writeln!(text, "{seconds:9.3}  {}", entry.content);
            }
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_entry_and_not_before() {
        let journal = Arc::new(Journal::default());
        let patience = Duration::from_secs(5);
        let noted =
            |entries: &[HistoryEntry]| entries.last().map(|entry| entry.content.to_string());

        let error = journal.until("a note", patience, noted).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 5.0 s in vain until a note");

        let writer = Arc::clone(&journal);
        let task = tokio::spawn(async move { writer.note("now") });
        assert_eq!(
            journal.until("a note", patience, noted).await.unwrap(),
            "----- now"
        );
        task.await.unwrap();
        let mark = journal.mark();
        assert_eq!(journal.read(|entries| mark.since(entries).len()), 0);
        assert_eq!(journal.read(|entries| mark.split(entries).0.len()), 1);
    }
}
