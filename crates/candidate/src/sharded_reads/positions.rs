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

    /// The span of the list whose next page a client asks for. It is forgotten then: a server gives the same token to a later
    /// list of the same version, which may be of other ranges. `None` also where two lists of different ranges are here.
    pub(super) fn take_page(&self, position: &ReadPosition) -> Option<ReadSpan> {
        let mut all = self.lock();
        let place = all.iter().position(|it| it.position == *position)?;
        let known = &mut all[place];
        known.clients = known.clients.saturating_sub(1);
        let span = known.span.clone();
        if known.clients == 0 || span.is_none() {
            all.remove(place);
        }
        span
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

#[cfg(test)]
mod tests {
    use elector_protocol::shard::{ShardField, ShardRange};

    use super::*;

    fn ranges(last: u64) -> ShardSelector {
        let range = ShardRange::new(0, last);
        ShardSelector::new(ShardField::Uid, range).unwrap()
    }

    fn version(text: &str) -> ReadPosition {
        ReadPosition::Version(text.to_owned())
    }

    #[test]
    fn a_watch_goes_on_where_the_ranges_are_those_that_are_led() {
        let (positions, led) = (Positions::default(), ranges(9));
        let span = ReadSpan::Ranges(led.clone());
        positions.note_list(version("1"), span.clone());
        // A watch that could not be opened is tried again from there.
        for _ in 0..2 {
            let resumed = positions.resume(&version("1"), &led);
            assert_eq!(resumed, Some((span.clone(), true)));
        }
        positions.note_resumed(&version("1"));
        assert_eq!(positions.resume(&version("1"), &led), None);
        positions.note_watch(version("2"), span.clone());
        assert_eq!(positions.resume(&version("2"), &led), Some((span, false)));
        assert_eq!(positions.resume(&version("2"), &ranges(8)), None);
        positions.note_list(version("3"), ReadSpan::Whole);
        let resumed = positions.resume(&version("3"), &ranges(8));
        assert_eq!(resumed, Some((ReadSpan::Whole, true)));
    }

    /// Two clients of the same selectors at the same version cannot be told apart.
    #[test]
    fn neither_goes_on_where_two_hold_different_ranges_and_both_do_where_they_hold_the_same() {
        let (positions, led) = (Positions::default(), ranges(9));
        positions.note_list(version("1"), ReadSpan::Ranges(ranges(8)));
        positions.note_list(version("1"), ReadSpan::Ranges(led.clone()));
        assert_eq!(positions.resume(&version("1"), &led), None);
        for _ in 0..2 {
            positions.note_list(version("1"), ReadSpan::Ranges(led.clone()));
        }
        for _ in 0..2 {
            assert!(positions.resume(&version("1"), &led).is_some());
            positions.note_resumed(&version("1"));
        }
        assert_eq!(positions.resume(&version("1"), &led), None);
    }

    /// Else a list of other ranges at the same version could never be finished.
    #[test]
    fn a_page_is_asked_for_once_and_two_lists_of_different_ranges_begin_anew() {
        let positions = Positions::default();
        let page = || ReadPosition::Page("1".to_owned());
        let spans = [ranges(8), ranges(9)].map(ReadSpan::Ranges);
        for span in &spans {
            positions.note_list(page(), span.clone());
            assert_eq!(positions.take_page(&page()).as_ref(), Some(span));
            assert_eq!(positions.take_page(&page()), None);
        }
        for span in &spans {
            positions.note_list(page(), span.clone());
        }
        assert_eq!(positions.take_page(&page()), None);
        positions.note_list(page(), spans[1].clone());
        assert_eq!(positions.take_page(&page()).as_ref(), Some(&spans[1]));
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let positions = Positions::default();
        for number in 0..=KEPT {
            positions.note_list(version(&number.to_string()), ReadSpan::Whole);
        }
        assert_eq!(positions.take_page(&version("0")), None);
        assert_eq!(positions.take_page(&version("1")), Some(ReadSpan::Whole));
    }
}
