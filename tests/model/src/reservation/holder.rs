//! A candidate as client-go makes it: it takes what names it, renews, and stops by its own deadline.

use std::time::Duration;

use elector_protocol::{Identity, Instant, LeaseRecord, LeaseWrite, Renumber, Renumbering};

use super::super::numbers::{FRESH, NOW, timestamp};
use super::super::store::{LeaseStore, NAMES, Side, names};
use super::super::timing::Timing;
use super::setup::Counts;

/// H of the holders.
const RENEW_DEADLINE: Duration = Duration::from_secs(Timing::USUAL.belief);

/// One candidate's process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in super::super) struct PlainHolder {
    /// The write under way.
    pub(in super::super) message: Option<PlainMessage>,
    /// Writes that were given up, by this life or an earlier one, and may land yet.
    pub(in super::super) orphans: Vec<LeaseWrite>,
    /// From when its belief counts, as long as it lasts.
    pub(in super::super) since: Option<Instant>,
}

/// A write and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum PlainMessage {
    /// Sent. It may land.
    Sent(LeaseWrite, Instant),
    /// It landed; the reply is under way.
    Landed(Instant),
}

// === impl PlainHolder ===

impl PlainHolder {
    /// Whether this process believes that it leads.
    pub(in super::super) fn believes(&self) -> bool {
        self.since
            .is_some_and(|since| NOW < since.after(RENEW_DEADLINE))
    }

    /// Whether it could write now: the Lease names it, and nothing is under way.
    pub(in super::super) fn can_write(&self, index: usize, store: &LeaseStore) -> bool {
        self.message.is_none()
            && store
                .lease
                .as_ref()
                .is_some_and(|lease| names(&lease.record, index))
    }

    /// Whether a write is due: a grant to be taken, or a renewal after half of the deadline.
    pub(in super::super) fn is_due(&self) -> bool {
        self.since
            .is_none_or(|since| NOW >= since.after(RENEW_DEADLINE / 2))
    }

    /// Reads the Lease and writes it as its own: the whole spec, and nothing but the spec. Terms are counted by others.
    pub(in super::super) fn write(&mut self, index: usize, store: &LeaseStore, duration: Duration) {
        let Some(lease) = store.lease.as_ref() else {
            return;
        };
        let at = timestamp(FRESH).differing_from(lease.record.renew_time);
        let record = LeaseRecord {
            holder: Identity::new(NAMES[index]),
            duration_seconds: i32::try_from(duration.as_secs()).ok(),
            renew_time: Some(at),
            preferred_holder: None,
            ..lease.record.clone()
        };
        self.message = Some(PlainMessage::Sent(lease.replace(record), NOW));
    }

    /// Whether the reply to a write that landed would still be waited for.
    pub(in super::super) fn can_take_reply(&self, counts: Counts) -> bool {
        match (&self.message, counts) {
            (Some(PlainMessage::Landed(sent)), Counts::FromReply(timeout)) => {
                NOW <= sent.after(timeout)
            }
            (message, Counts::FromSend) => matches!(message, Some(PlainMessage::Landed(_))),
            _ => false,
        }
    }

    /// The reply to a write that landed comes.
    pub(in super::super) fn take_reply(&mut self, counts: Counts) {
        if let Some(PlainMessage::Landed(sent)) = self.message.take() {
            self.since = Some(match counts {
                Counts::FromSend => sent,
                Counts::FromReply(_) => NOW,
            });
        }
    }

    /// The write under way is given up. It may land yet, if it has not.
    pub(in super::super) fn give_up(&mut self) {
        if let Some(PlainMessage::Sent(write, _)) = self.message.take() {
            self.orphans.push(write);
        }
    }

    /// The process dies and starts again under the same name.
    pub(in super::super) fn crash(&mut self, orphans: usize) {
        self.since = None;
        if self.orphans.len() < orphans {
            self.give_up();
        }
        self.message = None;
    }

    /// Forgets what makes no difference any more: writes that can never land, and a belief that is over.
    pub(in super::super) fn settle(&mut self, store: &LeaseStore) {
        if let Some(PlainMessage::Sent(write, _)) = &self.message
            && !store.accepts(write, Side::Candidate)
        {
            self.message = None;
        }
        self.orphans
            .retain(|write| store.accepts(write, Side::Candidate));
        if !self.believes() {
            self.since = None;
        }
    }
}

impl Renumber for PlainHolder {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.message.renumber(by);
        self.orphans.renumber(by);
        self.since.renumber(by);
    }
}

// === impl PlainMessage ===

impl Renumber for PlainMessage {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Sent(write, sent) => {
                write.renumber(by);
                by.instant(sent);
            }
            Self::Landed(sent) => by.instant(sent),
        }
    }
}
