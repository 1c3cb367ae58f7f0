//! The known past of a lease.

use std::path::Path;

use anyhow::Context as _;
use elector_api::{Lease, ReportedEvent, Rfc3339, age};
use elector_protocol::{LeaseKey, Timestamp};
use elector_runtime::{Cluster, Target, Verb, list_reported_events};
use elector_verify::{EntryContent, History, RecordingReader};
use serde::{Serialize, Serializer};

use crate::{input, output};

/// The past of one lease, the oldest line first.
#[derive(Clone, Debug)]
pub(in crate::kubectl) struct LeasePast {
    pub(super) lease: LeaseKey,
    pub(super) lines: Vec<PastLine>,
    /// When it was last heard of; `None` for now.
    pub(super) until: Option<Timestamp>,
    source: PastSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PastSource {
    Events,
    Recording,
}

/// One thing that happened. The JSON form is stable.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PastLine {
    #[serde(serialize_with = "rfc3339")]
    pub(super) at: Timestamp,
    /// The reason of the Event, or where else it is known from.
    pub(super) reason: String,
    /// The leader from then on; `None` where none led, or where the line is about something else.
    pub(super) leader: Option<String>,
    pub(super) term: Option<i32>,
    pub(super) note: String,
    pub(super) is_warning: bool,
    /// True where leadership changed.
    pub(super) is_change: bool,
    /// The number of reports, and the time of the last.
    count: u32,
    #[serde(skip)]
    last: Timestamp,
}

/// The reasons of Events that tell of a leader, and of those that tell that there is none (docs/events.md).
const LED: &[&str] = &[
    "Elected",
    "Expired",
    "NotAccepted",
    "HandedOver",
    "Acquired",
    "Resumed",
    "Rejoined",
];
const LEADERLESS: &[&str] = &["Released", "Removed", "Deleted"];
/// Those of terms that a candidate began by itself, so that no rank says why.
const BY_ITSELF: &[&str] = &["Acquired", "Resumed", "Rejoined"];

// === impl LeasePast ===

impl LeasePast {
    /// The reports of electors in Events, and the start of the present holder, by its Lease.
    pub(super) async fn told(cluster: &Cluster, lease: &LeaseKey) -> anyhow::Result<Self> {
        let target = Target {
            verb: Verb::Get,
            resource: "leases.coordination.k8s.io".into(),
            namespace: Some(lease.namespace.clone()),
            name: Some(lease.name.clone()),
        };
        let (namespace, name) = (&lease.namespace, &lease.name);
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let present = match cluster.request::<Lease>(target, &path, None).await {
            Ok(present) => Some(present),
            Err(error) if error.code() == Some(404) => None,
            Err(error) => return Err(error.into()),
        };
        Self::with_lease(cluster, lease, present.as_ref()).await
    }

    /// The same, where the Lease is known as it is now.
    pub(in crate::kubectl) async fn with_lease(
        cluster: &Cluster,
        lease: &LeaseKey,
        present: Option<&Lease>,
    ) -> anyhow::Result<Self> {
        let events = list_reported_events(cluster, lease).await?;
        let mut lines: Vec<_> = events.into_iter().map(PastLine::from).collect();
        let is_known = |line: &PastLine| {
            let same = |other: &PastLine| (&other.leader, other.term) == (&line.leader, line.term);
            lines.iter().any(same)
        };
        let line = present.and_then(PastLine::of_present);
        let line = line.filter(|line| !is_known(line));
        lines.extend(line);
        lines.sort_by_key(|line| line.at);
        Ok(Self {
            lease: lease.clone(),
            lines,
            until: None,
            source: PastSource::Events,
        })
    }

    /// The beginning of that leader's term in words, where it began the term by itself.
    pub(in crate::kubectl) fn own_beginning(
        &self,
        leader: &str,
        term: Option<i32>,
    ) -> Option<String> {
        let mut told = self.lines.iter().rev();
        let line = told.find(|line| line.leader.as_deref() == Some(leader) && line.term == term)?;
        let (_, why) = line
            .note
            .split_once(" leads in term ")?
            .1
            .split_once(": ")?;
        let reason = line.reason.to_lowercase();
        BY_ITSELF
            .contains(&&*line.reason)
            .then(|| format!("{reason}: {why}"))
    }

    /// The past in a recorded watch: each revision in which the holder or the term is another.
    pub(super) fn of_history(history: &History, lease: &LeaseKey) -> Self {
        let mut lines: Vec<PastLine> = Vec::new();
        let mut until = None;
        for entry in history.entries() {
            let line = match &entry.content {
                EntryContent::Lease(_, object) if object.key() == *lease => {
                    PastLine::of_revision(entry.at, object)
                }
                EntryContent::LeaseGone(_, object) if object.key() == *lease => {
                    PastLine::leaderless(entry.at, "Deleted", "the Lease was deleted")
                }
                _ => continue,
            };
            until = Some(entry.at);
            let said = |line: &PastLine| (line.leader.clone(), line.term);
            if lines.last().map(said) != Some(said(&line)) {
                lines.push(line);
            }
        }
        Self {
            lease: lease.clone(),
            lines,
            until,
            source: PastSource::Recording,
        }
    }

    /// The reach of this past, in words.
    pub(super) fn reach(&self, now: Timestamp) -> String {
        let Some(first) = self.lines.first() else {
            return self.nothing().to_owned();
        };
        let ago = age((now.as_micros() - first.at.as_micros()).div_euclid(1_000_000));
        let source = match self.source {
            PastSource::Events => {
                "Events and the Lease; servers keep Events for an hour, unless --event-ttl says otherwise"
            }
            PastSource::Recording => "the recording",
        };
        format!(
            "This reaches back to {}, {ago} ago: {source}.",
            in_seconds(first.at)
        )
    }

    /// Why there is nothing.
    pub(super) fn nothing(&self) -> &'static str {
        match self.source {
            PastSource::Events => "the server has no Events about it, and it has no holder",
            PastSource::Recording => "it is not in the recording",
        }
    }
}

/// A recorded watch. Unreadable parts are named on standard error.
pub(super) fn read_recording(path: &Path) -> anyhow::Result<History> {
    let (name, bytes) = input::read(path)?;
    let text = String::from_utf8(bytes).with_context(|| format!("read {name}"))?;
    let mut reader = RecordingReader::default();
    reader.read(&name, &text);
    let (history, errors) = reader.finish();
    for error in errors {
        output::print_error(error);
    }
    Ok(history)
}

// === impl PastLine ===

impl PastLine {
    /// The note, and how often it was reported.
    pub(super) fn message(&self, now: Timestamp) -> String {
        if self.count < 2 {
            return self.note.clone();
        }
        let ago = age((now.as_micros() - self.last.as_micros()).div_euclid(1_000_000));
        format!("{} (x{}, last {ago} ago)", self.note, self.count)
    }

    /// The present term, as its Lease tells it.
    fn of_present(lease: &Lease) -> Option<Self> {
        let at = lease.spec.acquire_time?;
        let line = Self::of_revision(at, lease);
        line.leader.is_some().then(|| Self {
            reason: "Lease".to_owned(),
            note: "leads according to its Lease (acquireTime); no Event says why".to_owned(),
            ..line
        })
    }

    fn of_revision(at: Timestamp, lease: &Lease) -> Self {
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        let term = lease.spec.lease_transitions.unwrap_or_default();
        if holder.is_empty() {
            return Self {
                term: Some(term),
                ..Self::leaderless(at, "Unheld", "the Lease has no holder")
            };
        }
        Self {
            reason: "Held".to_owned(),
            note: format!("{holder} holds the Lease in term {term}"),
            leader: Some(holder),
            term: Some(term),
            ..Self::leaderless(at, "", "")
        }
    }

    fn leaderless(at: Timestamp, reason: &str, note: &str) -> Self {
        Self {
            at,
            reason: reason.to_owned(),
            leader: None,
            term: None,
            note: note.to_owned(),
            is_warning: false,
            is_change: true,
            count: 1,
            last: at,
        }
    }
}

impl From<ReportedEvent> for PastLine {
    fn from(event: ReportedEvent) -> Self {
        let is_led = LED.contains(&event.reason.as_str());
        let (leader, term) = leader(&event.note).filter(|_| is_led).unzip();
        let (last, count) = event.repeated.unwrap_or((event.at, 1));
        Self {
            at: event.at,
            is_change: leader.is_some() || LEADERLESS.contains(&event.reason.as_str()),
            reason: event.reason,
            leader,
            term,
            note: event.note,
            is_warning: event.is_warning,
            count,
            last,
        }
    }
}

/// The leader and the term of a note: `web-0 leads in term 3: why`.
fn leader(note: &str) -> Option<(String, i32)> {
    let (name, rest) = note.split_once(" leads in term ")?;
    let (term, _) = rest.split_once(':')?;
    Some((name.to_owned(), term.parse().ok()?))
}

fn rfc3339<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Rfc3339(*time))
}

/// A time in whole seconds, for people.
pub(super) fn in_seconds(time: Timestamp) -> String {
    let text = Rfc3339(time).to_string();
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}
