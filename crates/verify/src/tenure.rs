//! The terms of a Lease, one after the other: who held it, and how it ended.

use std::time::Duration;

use elector_protocol::{LeaseSnapshot, ResourceVersion, Term, Timestamp, Token, Uid};

use crate::entry::between;
use crate::roster::Maker;

/// One term: a holder under one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The Lease object that it is a term of.
    pub uid: Uid,
    /// `spec.leaseTransitions`.
    pub term: Term,
    /// Who holds it.
    pub holder: String,
    /// Whose code the holder is, where that is known.
    pub maker: Option<Maker>,
    /// The fencing token, where the holder wrote one.
    pub token: Option<Token>,
    /// The revision that named the holder.
    pub granted: Moment,
    /// The first revision that the holder wrote itself; `None` where it never did.
    pub accepted: Option<Moment>,
    /// The newest revision that the holder wrote.
    pub renewed: Option<Moment>,
    /// How often it wrote after the accept.
    pub renewals: usize,
    /// The longest duration that stood in the record, in seconds; 0 where none did.
    pub duration: Duration,
    /// How it ended.
    pub end: End,
    /// The revision that ended it; `None` while it lasts.
    pub ended: Option<Moment>,
}

/// A revision of the Lease, and when that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The revision.
    pub version: ResourceVersion,
    /// When it was seen.
    pub at: Timestamp,
    /// The time that its writer wrote into it: `spec.renewTime`.
    pub written: Option<Timestamp>,
}

/// How a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It lasts.
    Lasts,
    /// The holder wrote its successor (R3 c).
    HandedOver,
    /// The holder let go (R3 c).
    Released,
    /// The record was granted, reserved or taken although it was held, which its expiry alone permits (R3 b).
    Replaced,
    /// Somebody else wrote over it or blanked it.
    Overwritten,
    /// The Lease was deleted.
    Deleted,
    /// In a gap of the recording.
    Unseen,
}

/// The terms so far.
#[derive(Debug, Default)]
pub(crate) struct Tenures {
    done: Vec<Tenure>,
    /// Whether the newest one lasts.
    open: bool,
}

// === impl Tenure ===

impl Tenure {
    /// The last sign of its holder: its last renewal, or its own deed that ended the term.
    pub fn last_sign(&self) -> Option<Moment> {
        match self.end {
            End::HandedOver | End::Released => self.ended,
            End::Lasts | End::Replaced | End::Overwritten | End::Deleted | End::Unseen => {
                self.renewed
            }
        }
    }
}

// === impl Tenures ===

impl Tenures {
    /// A revision that names a holder; `own` where it is that holder's own write.
    pub(crate) fn held(
        &mut self,
        snapshot: &LeaseSnapshot,
        moment: Moment,
        maker: Option<Maker>,
        own: bool,
    ) {
        let record = &snapshot.record;
        let Some(holder) = record
            .holder
            .as_ref()
            .filter(|_| record.reserved_from().is_none())
        else {
            return;
        };
        let duration = record.duration().unwrap_or_default();
        let token = record.token.filter(|_| record.has_token());
        if let Some(tenure) = self.current()
            && tenure.uid == snapshot.uid
            && tenure.term == record.term
            && tenure.holder == holder.as_str()
        {
            tenure.duration = tenure.duration.max(duration);
            tenure.token = tenure.token.or(token);
            let newest = tenure.renewed.unwrap_or(tenure.granted);
            if newest.written != moment.written {
                tenure.renewals += usize::from(tenure.accepted.is_some());
                tenure.accepted = tenure.accepted.or(Some(moment));
                tenure.renewed = Some(moment);
            }
            return;
        }
        let met = own.then_some(moment);
        self.done.push(Tenure {
            uid: snapshot.uid.clone(),
            term: record.term,
            holder: holder.as_str().to_owned(),
            maker,
            token,
            granted: moment,
            accepted: met,
            renewed: met,
            renewals: 0,
            duration,
            end: End::Lasts,
            ended: None,
        });
        self.open = true;
    }

    /// The newest term is over.
    pub(crate) fn end(&mut self, end: End, moment: Moment) {
        if let Some(tenure) = self.current() {
            tenure.end = end;
            tenure.ended = Some(moment);
        }
        self.open = false;
    }

    /// All of them.
    pub(crate) fn finish(self) -> Vec<Tenure> {
        self.done
    }

    fn current(&mut self) -> Option<&mut Tenure> {
        self.done.last_mut().filter(|_| self.open)
    }
}

/// The longest time from the last sign of a leader to the accept of the next.
pub(crate) fn longest_gap(tenures: &[Tenure]) -> Duration {
    let led: Vec<&Tenure> = tenures
        .iter()
        .filter(|tenure| tenure.accepted.is_some())
        .collect();
    let gaps = led.windows(2).filter_map(|pair| {
        let (sign, next) = (pair[0].last_sign()?, pair[1].accepted?);
        Some(between(sign.at, next.at))
    });
    gaps.max().unwrap_or_default()
}
