//! Everything that happened in one namespace, in the order in which it was seen.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use elector_api::{Lease, LeaseCandidate, Rfc3339, parse_time};
use elector_protocol::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it was seen; for a line of a candidate, when the candidate says it happened. Wall clock of this machine,
    /// which all processes of a test share.
    pub at: Timestamp,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// The Lease of this name was created or changed.
    Lease(String, Arc<Lease>),
    /// The Lease of this name was deleted; its last revision.
    LeaseGone(String, Arc<Lease>),
    /// A candidate object was created or changed.
    Candidate(String, Arc<LeaseCandidate>),
    /// A candidate object was deleted; its last revision.
    CandidateGone(String, Arc<LeaseCandidate>),
    /// A candidate's process said something, or ended.
    Event(Event),
    /// The test did something.
    Note(String),
}

/// What the process of a candidate says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The candidate.
    pub name: String,
    /// What it says.
    pub kind: EventKind,
    /// The term, where it knows one.
    pub term: Option<i64>,
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It runs.
    Start,
    /// Its work begins: it believes that it leads.
    Leading,
    /// Its work has ended.
    WorkStopped,
    /// It leads no more.
    Lost,
    /// The test killed its process.
    Killed,
}

/// The record of one namespace. Readers can wait for what is still to come.
#[derive(Debug)]
pub struct Journal {
    entries: Mutex<Vec<Entry>>,
    length: watch::Sender<usize>,
}

/// The line that a candidate writes for each event.
#[derive(Deserialize)]
struct Line {
    event: EventKind,
    name: String,
    time: String,
    #[serde(default)]
    term: Option<Value>,
}

/// The wall clock, in whole microseconds as everything in a journal.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let micros = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
}

/// The time from `earlier` to `later`, zero when it is the other way round.
pub fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(later.as_micros() - earlier.as_micros()).unwrap_or(0))
}

// === impl Event ===

impl Event {
    /// Reads the line of a candidate; `None` for one that is no event.
    pub fn parse(line: &str) -> Option<(Timestamp, Self)> {
        let line: Line = serde_json::from_str(line).ok()?;
        let at = parse_time(&line.time).ok()?;
        let term = line.term.and_then(|term| match term {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        let (name, kind) = (line.name, line.event);
        Some((at, Self { name, kind, term }))
    }
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
    pub fn record(&self, at: Timestamp, what: What) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(Entry { at, what });
        self.length.send_replace(entries.len());
    }

    /// Adds what the test does.
    pub fn note(&self, text: impl Into<String>) {
        self.record(now(), What::Note(text.into()));
    }

    /// Looks at everything so far.
    pub fn read<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How much there is so far: what comes later has a higher index.
    pub fn len(&self) -> usize {
        self.read(<[Entry]>::len)
    }

    /// Whether nothing has happened.
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
        mut look: impl FnMut(&[Entry]) -> Option<T>,
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
        mut look: impl FnMut(&[Entry]) -> Option<T>,
    ) -> Result<()> {
        let found = self.until("", duration, |entries| look(entries)).await;
        match found {
            Ok(_) => bail!("{what}"),
            Err(_) => Ok(()),
        }
    }

    /// The story for a reader, one line each, times in seconds since the first entry.
    pub fn story(&self) -> String {
        self.read(|entries| {
            let mut entries: Vec<&Entry> = entries.iter().collect();
            entries.sort_by_key(|entry| entry.at);
            let Some(start) = entries.first().map(|entry| entry.at) else {
                return String::new();
            };
            let mut text = String::new();
            for entry in entries {
                let seconds = between(start, entry.at).as_secs_f64();
                // Writing to a String does not fail.
                let _ = writeln!(text, "{seconds:9.3}  {}", entry.what.line());
            }
            text
        })
    }
}

// === impl What ===

impl What {
    fn line(&self) -> String {
        let time = |time: &Option<Timestamp>| time.map_or_else(|| "-".to_owned(), clock_of_day);
        let version = |version: &Option<String>| version.clone().unwrap_or_default();
        match self {
            Self::Lease(name, lease) | Self::LeaseGone(name, lease) => {
                let spec = &lease.spec;
                let mut line = format!(
                    "lease {name} @{}: holder {:?} term {} duration {} acquired {} renewed {}",
                    version(&lease.metadata.resource_version),
                    spec.holder_identity,
                    spec.lease_transitions.unwrap_or(0),
                    spec.lease_duration_seconds.unwrap_or(0),
                    time(&spec.acquire_time),
                    time(&spec.renew_time),
                );
                for (name, value) in [
                    ("strategy", &spec.strategy),
                    ("preferred", &spec.preferred_holder),
                ] {
                    if let Some(value) = value {
                        let _ = write!(line, " {name} {value:?}");
                    }
                }
                for (key, value) in lease.metadata.annotations.iter().flatten() {
                    let _ = write!(line, " {}={value}", key.trim_start_matches("elector.dev/"));
                }
                if matches!(self, Self::LeaseGone(..)) {
                    line.push_str(" DELETED");
                }
                line
            }
            Self::Candidate(name, candidate) => {
                let spec = &candidate.spec;
                format!(
                    "candidate {name} @{}: lease {} binary {} emulation {:?} strategy {} pinged {} renewed {}",
                    version(&candidate.metadata.resource_version),
                    spec.lease_name,
                    spec.binary_version,
                    spec.emulation_version,
                    spec.strategy,
                    time(&spec.ping_time),
                    time(&spec.renew_time),
                )
            }
            Self::CandidateGone(name, _) => format!("candidate {name} DELETED"),
            Self::Event(event) => {
                let term = event
                    .term
                    .map(|term| format!(" term {term}"))
                    .unwrap_or_default();
                format!("***** {} {:?}{term}", event.name, event.kind)
            }
            Self::Note(text) => format!("----- {text}"),
        }
    }
}

/// Hours, minutes and seconds: the day is the same all along.
fn clock_of_day(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    text.split_once('T')
        .map_or_else(|| text.clone(), |(_, clock)| clock.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_candidates_are_understood() {
        let client_go =
            r#"{"event":"work-stopped","name":"a","time":"1970-01-01T00:00:01.000002Z"}"#;
        let (at, event) = Event::parse(client_go).unwrap();
        assert_eq!(at.as_micros(), 1_000_002);
        assert_eq!(
            event,
            Event {
                name: "a".into(),
                kind: EventKind::WorkStopped,
                term: None
            }
        );

        let ours = r#"{"event":"leading","name":"a","time":"1970-01-01T00:00:01.000002Z","term":3,"token":7}"#;
        assert_eq!(Event::parse(ours).unwrap().1.term, Some(3));
        assert_eq!(Event::parse("panic: no"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_entry_and_not_before() {
        let journal = Arc::new(Journal::default());
        let patience = Duration::from_secs(5);
        let noted = |entries: &[Entry]| entries.last().map(|entry| entry.what.line());

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
