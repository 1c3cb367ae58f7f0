//! A list as kept while its pages come in: of each object what is needed of it, and of each namespace no more than
//! the view keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use elector_api::{Lease, LeaseCandidate};

use crate::view::limits::{NAMESPACE_BYTES, NAMESPACE_CANDIDATES, bytes_of};
use crate::view::observed::{CandidateSeen, LeaseSeen, ParsedCandidate};
use crate::view::overflow::Seniority;

/// A list of Leases on its way in.
#[derive(Debug, Default)]
pub(crate) struct LeaseList(Vec<LeaseSeen>);

/// A list of LeaseCandidates on its way in.
#[derive(Debug, Default)]
pub(crate) struct CandidateList(BTreeMap<Arc<str>, NamespaceCandidates>);

/// Those of one namespace.
#[derive(Debug, Default)]
struct NamespaceCandidates {
    seen: Vec<CandidateSeen>,
    /// The bytes kept of them.
    bytes: usize,
    malformed: Vec<ParsedCandidate>,
}

/// The limit of unreadable candidates reported of a namespace. A few have lines in the log.
const MALFORMED: usize = 1000;

// === impl LeaseList ===

impl LeaseList {
    pub(crate) fn into_leases(self) -> impl Iterator<Item = LeaseSeen> {
        self.0.into_iter()
    }
}

impl Extend<Lease> for LeaseList {
    fn extend<I: IntoIterator<Item = Lease>>(&mut self, leases: I) {
        self.0.extend(leases.into_iter().map(LeaseSeen::of));
    }
}

// === impl CandidateList ===

impl CandidateList {
    /// The candidates of each namespace, the oldest ones first, up to the first for which there is no room.
    pub(crate) fn into_candidates(self) -> impl Iterator<Item = ParsedCandidate> {
        self.0.into_values().flat_map(|mut namespace| {
            namespace.cut();
            let seen = namespace.seen.into_iter().map(ParsedCandidate::Seen);
            seen.chain(namespace.malformed)
        })
    }

    /// The number of candidates that are kept.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.values().map(|namespace| namespace.seen.len()).sum()
    }
}

impl Extend<LeaseCandidate> for CandidateList {
    fn extend<I: IntoIterator<Item = LeaseCandidate>>(&mut self, candidates: I) {
        for parsed in candidates
            .into_iter()
            .filter_map(|object| ParsedCandidate::of(&object))
        {
            let namespace = parsed.object().namespace;
            self.0.entry(namespace).or_default().push(parsed);
        }
    }
}

// === impl NamespaceCandidates ===

impl NamespaceCandidates {
    fn push(&mut self, parsed: ParsedCandidate) {
        match parsed {
            ParsedCandidate::Seen(seen) => {
                self.bytes += bytes_of(&seen.candidate);
                self.seen.push(seen);
                // At twice the limit, so that what is sorted is worth it.
                if self.seen.len() > 2 * NAMESPACE_CANDIDATES || self.bytes > 2 * NAMESPACE_BYTES {
                    self.cut();
                }
            }
            malformed if self.malformed.len() < MALFORMED => self.malformed.push(malformed),
            _ => {}
        }
    }

    /// Keeps the oldest, up to the first for which there is no room: from that one the view learns that the namespace is
    /// full. A candidate stays out whichever page it came with, as those that are older only become more.
    fn cut(&mut self) {
        self.seen
            .sort_by_cached_key(|seen| Seniority::of(&seen.candidate));
        let (mut count, mut bytes) = (0, 0);
        for seen in &self.seen {
            if count > NAMESPACE_CANDIDATES || bytes > NAMESPACE_BYTES {
                break;
            }
            (count, bytes) = (count + 1, bytes + bytes_of(&seen.candidate));
        }
        self.seen.truncate(count);
        self.bytes = bytes;
    }
}
