//! Limits on what is kept of a namespace, so that one tenant cannot take the memory or the time of all.

use std::collections::BTreeMap;
use std::sync::Arc;

use elector_protocol::{CandidateRecord, CandidateSpec};

/// The limit of candidates considered of one lease: the holder, the preferred one, and then the oldest objects. The
/// others wait until there is a place.
pub(crate) const LEASE_CANDIDATES: usize = 64;
/// The limit of candidates kept of one namespace, considered or waiting.
pub(crate) const NAMESPACE_CANDIDATES: usize = 30_000;
/// The limit of bytes kept of one namespace's candidates.
pub(crate) const NAMESPACE_BYTES: usize = 16 << 20;
/// The limit of bytes kept of one candidate; of one that has more, only that it cannot be elected.
pub(crate) const CANDIDATE_BYTES: usize = 16 << 10;

/// A candidate's bytes beside its texts: two entries of maps, times, versions, stop-watches.
const FIXED_BYTES: usize = 512;

/// The usage by the candidates of each namespace.
#[derive(Debug, Default)]
pub(super) struct Usage(BTreeMap<Arc<str>, NamespaceUsage>);

#[derive(Debug, Default)]
struct NamespaceUsage {
    candidates: usize,
    bytes: usize,
    /// True once the lack of room is reported.
    reported: bool,
}

/// The candidates of a namespace are more than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespaceFull {
    /// True if this is news: once, until a tenth is free again.
    pub(super) is_new: bool,
    pub(super) candidates: usize,
    pub(super) bytes: usize,
}

// === impl Usage ===

impl Usage {
    /// Counts a candidate that takes `bytes` in the place of one that took `before`.
    ///
    /// # Errors
    ///
    /// When that is more than is kept; nothing is counted then.
    pub(super) fn replace(
        &mut self,
        namespace: &Arc<str>,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), NamespaceFull> {
        let usage = self.0.entry(namespace.clone()).or_default();
        let after = NamespaceUsage {
            candidates: usage.candidates + usize::from(before.is_none()),
            bytes: usage.bytes.saturating_sub(before.unwrap_or_default()) + bytes,
            reported: usage.reported,
        };
        let grows = before.is_none_or(|before| before < bytes);
        let too_many = after.candidates > NAMESPACE_CANDIDATES || after.bytes > NAMESPACE_BYTES;
        if grows && too_many {
            return Err(NamespaceFull {
                is_new: !std::mem::replace(&mut usage.reported, true),
                candidates: usage.candidates,
                bytes: usage.bytes,
            });
        }
        *usage = after;
        Ok(())
    }

    /// The same name of a namespace, in the text that is kept already.
    pub(super) fn shared(&self, namespace: Arc<str>) -> Arc<str> {
        match self.0.get_key_value(&namespace) {
            Some((shared, _)) => Arc::clone(shared),
            None => namespace,
        }
    }

    /// A candidate that took `bytes` is gone.
    pub(super) fn remove(&mut self, namespace: &Arc<str>, bytes: usize) {
        let Some(usage) = self.0.get_mut(namespace) else {
            return;
        };
        usage.candidates = usage.candidates.saturating_sub(1);
        usage.bytes = usage.bytes.saturating_sub(bytes);
        let below = |value: usize, limit: usize| value < limit / 10 * 9;
        if below(usage.candidates, NAMESPACE_CANDIDATES) && below(usage.bytes, NAMESPACE_BYTES) {
            usage.reported = false;
        }
        if usage.candidates == 0 {
            self.0.remove(namespace);
        }
    }
}

/// About how many bytes are kept of a candidate.
pub(super) fn bytes_of(candidate: &CandidateRecord) -> usize {
    let spec = candidate.offer().map_or(0, |spec| {
        let membership = spec.membership.as_ref();
        let member = membership.map_or(0, |it| it.group.len() + it.member.as_str().len());
        strategies(spec) + member
    });
    FIXED_BYTES + 2 * candidate.name.as_str().len() + spec
}

/// About how many bytes the strategies of a candidate take, of which it may list a hundred thousand.
pub(super) fn strategies(spec: &CandidateSpec) -> usize {
    let listed = spec.supersedes.iter().flatten();
    let listed = listed.map(|strategy| 16 + strategy.as_str().len());
    spec.strategy.as_str().len() + listed.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_full_by_number_or_by_bytes_and_another_is_not() {
        let (full, other): (Arc<str>, Arc<str>) = ("full".into(), "other".into());
        for bytes in [500, 16 << 10] {
            let mut usage = Usage::default();
            let kept = (0..).find(|_| usage.replace(&full, None, bytes).is_err());
            let expected = NAMESPACE_CANDIDATES.min(NAMESPACE_BYTES / bytes);
            assert_eq!(kept, Some(expected), "{bytes}");
            assert_eq!(usage.replace(&other, None, bytes), Ok(()));
            // One that is kept may change, but not grow.
            assert_eq!(usage.replace(&full, Some(bytes), bytes), Ok(()));
            usage.remove(&full, bytes);
            assert_eq!(usage.replace(&full, None, bytes), Ok(()));
            // It was reported, and is news again when there has been room.
            let is_new = |usage: &mut Usage| {
                let result = usage.replace(&full, None, bytes);
                result.unwrap_err().is_new
            };
            assert!(!is_new(&mut usage));
            for _ in 0..expected / 5 {
                usage.remove(&full, bytes);
            }
            let again = (0..).find_map(|_| usage.replace(&full, None, bytes).err());
            assert!(again.unwrap().is_new);
            usage.remove(&full, bytes);
            assert_eq!(usage.replace(&full, None, bytes), Ok(()));
            assert!(!is_new(&mut usage));
        }
    }

    #[test]
    fn what_a_candidate_takes_is_counted_anew_when_it_is_replaced() {
        let (namespace, mut usage) = ("ns".into(), Usage::default());
        for (before, bytes, counted) in [
            (None, 600, (1, 600)),
            (None, 700, (2, 1_300)),
            (Some(600), 9_000, (2, 9_700)),
            (Some(9_000), 500, (2, 1_200)),
        ] {
            assert_eq!(usage.replace(&namespace, before, bytes), Ok(()));
            let of = &usage.0[&namespace];
            assert_eq!((of.candidates, of.bytes), counted);
        }
        usage.remove(&namespace, 500);
        assert_eq!(usage.0[&namespace].bytes, 700);
        usage.remove(&namespace, 700);
        assert!(usage.0.is_empty());
    }

    #[test]
    fn one_that_is_kept_may_shrink_where_there_is_no_room() {
        let (namespace, mut usage) = ("ns".into(), Usage::default());
        while usage.replace(&namespace, None, CANDIDATE_BYTES).is_ok() {}
        let larger = CANDIDATE_BYTES + 1;
        assert!(
            usage
                .replace(&namespace, Some(CANDIDATE_BYTES), larger)
                .is_err()
        );
        assert_eq!(
            usage.replace(&namespace, Some(CANDIDATE_BYTES), 600),
            Ok(())
        );
    }
}
