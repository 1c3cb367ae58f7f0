//! The places in lists and watches from which a client may go on, and the ranges that it holds up to them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elector_protocol::shard::ShardSelector;

use super::span::ReadSpan;

/// A place from which a client may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadPosition {
    /// The next page of a list, by its token.
    Page(String),
    /// A version, from which a watch goes on.
    Version(String),
}

/// The newest places. One that is forgotten, or was never seen, costs the client a list. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions(Arc<Mutex<VecDeque<KnownPosition>>>);

#[derive(Debug)]
struct KnownPosition {
    position: ReadPosition,
    /// `None` where two clients hold different ranges up to the same place: which of them goes on cannot be seen.
    span: Option<ReadSpan>,
    /// The number of clients that are here and have not gone on yet.
    clients: usize,
    /// True if a list has led here.
    is_list: bool,
}

/// The number of places that are kept.
const KEPT: usize = 256;

// === impl Positions ===

impl Positions {
    /// A list, or a page of one, has ended here.
    pub(super) fn note_list(&self, position: ReadPosition, span: ReadSpan) {
        self.note(position, span, true);
    }

    /// A watch has ended here.
    pub(super) fn note_watch(&self, position: ReadPosition, span: ReadSpan) {
        self.note(position, span, false);
    }

    /// The span that is held up to this place.
    pub(super) fn find(&self, position: &ReadPosition) -> Option<ReadSpan> {
        let known = self.lock();
        known
            .iter()
            .find(|it| it.position == *position)?
            .span
            .clone()
    }

    /// The span that is held up to this place, and whether a list has led here. `None` where a watch may not go on, since
    /// that span is not of the ranges that are led.
    pub(super) fn resume(
        &self,
        position: &ReadPosition,
        led: &ShardSelector,
    ) -> Option<(ReadSpan, bool)> {
        let mut all = self.lock();
        let place = all.iter().position(|it| it.position == *position)?;
        let known = &all[place];
        match known.span.clone().filter(|span| span.is_current(led)) {
            Some(span) => Some((span, known.is_list)),
            None => {
                all.remove(place);
                None
            }
        }
    }

    /// A watch has gone on from this place.
    pub(super) fn note_resumed(&self, position: &ReadPosition) {
        let mut all = self.lock();
        let place = all.iter().position(|it| it.position == *position);
        let Some(place) = place else { return };
        let known = &mut all[place];
        known.clients = known.clients.saturating_sub(1);
        if known.clients == 0 {
            all.remove(place);
        }
    }

    fn note(&self, position: ReadPosition, span: ReadSpan, is_list: bool) {
        let mut all = self.lock();
        if let Some(known) = all.iter_mut().find(|it| it.position == position) {
            known.span = known.span.take().filter(|known| *known == span);
            known.clients += 1;
            known.is_list |= is_list;
            return;
        }
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back(KnownPosition {
            position,
            span: Some(span),
            clients: 1,
            is_list,
        });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KnownPosition>> {
        // A poisoned lock holds a valid state: every section changes one entry.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
