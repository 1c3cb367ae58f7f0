//! The terms of a Lease, one after the other: the holder of each, and how it ended.

use std::time::Duration;

use elector_protocol::{LeaseSnapshot, ResourceVersion, Term, Timestamp, Token, Uid};

use crate::entry::between;
use crate::participants::Implementation;
use crate::placeholder;
use crate::reading;

/// One term: a holder under one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermRecord {
    /// The Lease object that it is a term of.
    pub uid: Uid,
    /// `spec.leaseTransitions`.
    pub term: Term,
    /// The holder.
    pub holder: String,
    /// The code that the holder runs, where that is known.
    pub implementation: Option<Implementation>,
    /// The fencing token, where the holder wrote one.
    pub token: Option<Token>,
    /// The revision that named the holder.
    pub granted: SeenRevision,
    /// The first revision that the holder wrote itself; `None` where it never did.
    pub accepted: Option<SeenRevision>,
    /// The newest revision that the holder wrote.
    pub renewed: Option<SeenRevision>,
    /// The number of its writes after the accept.
    pub renewals: usize,
    /// The longest duration that stood in the record, in seconds; 0 where none did.
    pub duration: Duration,
    /// Its end.
    pub end: RecordedEnd,
    /// The revision that ended it; `None` while it lasts.
    pub ended: Option<SeenRevision>,
}

/// A revision of the Lease, and when that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenRevision {
    /// The revision.
    pub version: ResourceVersion,
    /// When it was seen.
    pub at: Timestamp,
    /// The time that its writer wrote into it: `spec.renewTime`.
    pub written: Option<Timestamp>,
}

/// The end of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// It lasts.
    Lasts,
    /// The holder wrote its successor (R3 c).
    HandedOver,
    /// The holder let go (R3 c).
    Released,
    /// The record was granted, reserved or taken although it was held, which its expiry alone permits (R3 b).
    Replaced,
    /// A later life of its instance began the next term: the holder was dead (R21).
    Died,
    /// Another writer wrote over it or blanked it.
    Overwritten,
    /// The Lease was deleted.
    Deleted,
    /// In a gap of the recording.
    Unseen,
}

/// The terms so far.
#[derive(Debug, Default)]
pub(crate) struct TermRecords {
    done: Vec<TermRecord>,
    /// True while the newest one lasts.
    open: bool,
}

// === impl TermRecord ===

impl TermRecord {
    /// The last sign of its holder: its last renewal, or its own deed that ended the term.
    pub fn last_sign(&self) -> Option<SeenRevision> {
        match self.end {
            RecordedEnd::HandedOver | RecordedEnd::Released => self.ended,
            RecordedEnd::Lasts
            | RecordedEnd::Replaced
            | RecordedEnd::Died
            | RecordedEnd::Overwritten
            | RecordedEnd::Deleted
            | RecordedEnd::Unseen => self.renewed,
        }
    }
}

// === impl TermRecords ===

impl TermRecords {
    /// A revision that names a holder; `own` where it is that holder's own write.
    pub(crate) fn held(
        &mut self,
        snapshot: &LeaseSnapshot,
        moment: SeenRevision,
        implementation: Option<Implementation>,
        own: bool,
    ) {
        let record = &snapshot.record;
        let Some(holder) = placeholder::holder(record) else {
            return;
        };
        let duration = reading::duration(record).unwrap_or_default();
        let token = record.token.filter(|_| reading::has_token(record));
        if let Some(term_record) = self.current()
            && term_record.uid == snapshot.uid
            && term_record.term == record.term
            && term_record.holder == holder.as_str()
        {
            term_record.duration = term_record.duration.max(duration);
            term_record.token = term_record.token.or(token);
            let newest = term_record.renewed.unwrap_or(term_record.granted);
            if newest.written != moment.written {
                term_record.renewals += usize::from(term_record.accepted.is_some());
                term_record.accepted = term_record.accepted.or(Some(moment));
                term_record.renewed = Some(moment);
            }
            return;
        }
        let met = own.then_some(moment);
        self.done.push(TermRecord {
            uid: snapshot.uid.clone(),
            term: record.term,
            holder: holder.as_str().to_owned(),
            implementation,
            token,
            granted: moment,
            accepted: met,
            renewed: met,
            renewals: 0,
            duration,
            end: RecordedEnd::Lasts,
            ended: None,
        });
        self.open = true;
    }

    /// The newest term is over.
    pub(crate) fn end(&mut self, end: RecordedEnd, moment: SeenRevision) {
        if let Some(term_record) = self.current() {
            term_record.end = end;
            term_record.ended = Some(moment);
        }
        self.open = false;
    }

    /// All of them.
    pub(crate) fn finish(self) -> Vec<TermRecord> {
        self.done
    }

    fn current(&mut self) -> Option<&mut TermRecord> {
        self.done.last_mut().filter(|_| self.open)
    }
}

/// The longest time from the last sign of a leader to the accept of the next.
pub(crate) fn longest_gap(term_records: &[TermRecord]) -> Duration {
    let led: Vec<&TermRecord> = term_records
        .iter()
        .filter(|term_record| term_record.accepted.is_some())
        .collect();
    let gaps = led.windows(2).filter_map(|pair| {
        let (sign, next) = (pair[0].last_sign()?, pair[1].accepted?);
        Some(between(sign.at, next.at))
    });
    gaps.max().unwrap_or_default()
}
