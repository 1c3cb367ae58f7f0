//! Everything that happened in one namespace, in the order in which it was seen.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use elector_protocol::Timestamp;
use elector_verify::{EntryContent, History, HistoryEntry, between};
use tokio::sync::watch;
use tokio::time::timeout;

/// The record of one namespace. Readers can wait for what is still to come.
#[derive(Debug)]
pub struct Journal {
    entries: Mutex<Vec<HistoryEntry>>,
    length: watch::Sender<usize>,
}

/// The wall clock, in whole microseconds as everything in a journal.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
}

// === impl Journal ===

impl Default for Journal {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
            length: watch::Sender::new(0),
        }
    }
}

impl Journal {
    /// Adds what was seen at `at`.
    pub fn record(&self, at: Timestamp, content: EntryContent) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(HistoryEntry { at, content });
        self.length.send_replace(entries.len());
    }

    /// Adds what the test does.
    pub fn note(&self, text: impl Into<String>) {
        self.record(now(), EntryContent::Note(text.into()));
    }

    /// Looks at everything so far.
    pub fn read<T>(&self, look: impl FnOnce(&[HistoryEntry]) -> T) -> T {
        look(&self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything so far, to be judged.
    pub fn history(&self) -> History {
        self.read(|entries| History::from(entries.to_vec()))
    }

    /// The number of entries so far: what comes later has a higher index.
    pub fn len(&self) -> usize {
        self.read(<[HistoryEntry]>::len)
    }

    /// True while nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until `look` finds what it looks for.
    ///
    /// # Errors
    /// When it has not within `patience`; `what` says what was waited for.
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
        match found.await {
            Ok(found) => found,
            Err(_) => bail!(
                "waited {:.1} s in vain until {what}",
                patience.as_secs_f64()
            ),
        }
    }

    /// Checks that `look` finds nothing for so long.
    ///
    /// # Errors
    /// When it found something; `what` says what must not happen.
    pub async fn never<T>(
        &self,
        what: &str,
        duration: Duration,
        mut look: impl FnMut(&[HistoryEntry]) -> Option<T>,
    ) -> Result<()> {
        let found = self.until("", duration, |entries| look(entries)).await;
        match found {
            Ok(_) => bail!("{what}"),
            Err(_) => Ok(()),
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
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_entry_and_not_before() {
        let journal = Arc::new(Journal::default());
        let patience = Duration::from_secs(5);
        let noted =
            |entries: &[HistoryEntry]| entries.last().map(|entry| entry.content.to_string());

        let error = journal.until("a note", patience, noted).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 5.0 s in vain until a note");
        journal.never("a note came", patience, noted).await.unwrap();

        let writer = Arc::clone(&journal);
        let task = tokio::spawn(async move { writer.note("now") });
        assert_eq!(
            journal.until("a note", patience, noted).await.unwrap(),
            "----- now"
        );
        task.await.unwrap();
        assert!(journal.never("a note came", patience, noted).await.is_err());
    }
}
