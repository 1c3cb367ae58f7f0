//! The budget of lines in the log for the successes of a namespace's leases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Instant;

use crate::namespace_budget::NamespaceBudget;

/// Lines for changes of leader and collected candidates. Failures have a log of their own
/// ([`FailureLog`](elector_runtime::FailureLog)).
pub(crate) struct LineBudget {
    budget: NamespaceBudget,
    /// The number of lines of a namespace left out since its last one.
    left_out: BTreeMap<Arc<str>, u64>,
}

/// The burst of lines of a namespace: a start of that number of leases.
const BURST: u32 = 1000;
/// The time until another one may follow.
const REFILL: Duration = Duration::from_secs(1);

// === impl LineBudget ===

impl LineBudget {
    pub(crate) const fn new() -> Self {
        Self {
            budget: NamespaceBudget::new(BURST, REFILL),
            left_out: BTreeMap::new(),
        }
    }

    /// A line for this namespace, if any: the number of those left out before it, if any.
    pub(crate) fn take(&mut self, now: Instant, namespace: &Arc<str>) -> Option<Option<u64>> {
        if self.budget.take(now, namespace) {
            return Some(self.left_out.remove(namespace));
        }
        *self.left_out.entry(Arc::clone(namespace)).or_default() += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted_by_the_next_line() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        let mut lines = LineBudget::new();
        let first = (0..1500).filter_map(|_| lines.take(at(0), &noisy));
        assert_eq!(first.collect::<Vec<_>>(), [None; 1000]);
        assert_eq!(lines.take(at(0), &quiet), Some(None));
        assert_eq!(lines.take(at(1), &noisy), Some(Some(500)));
        assert_eq!(lines.take(at(1), &noisy), None);
        assert_eq!(lines.take(at(2), &noisy), Some(Some(1)));
    }
}
