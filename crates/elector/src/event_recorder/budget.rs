//! How many Events a namespace may have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Instant;

/// A token bucket for each namespace: a tenant whose leases change all the time takes nothing from the others, and fills
/// no store.
#[derive(Debug, Default)]
pub(super) struct EventBudget {
    /// When the bucket of a namespace will be full again. One that is full is not kept.
    full_at: BTreeMap<Arc<str>, Instant>,
}

/// How many Events a namespace may have at once: a start of as many leases. client-go allows 25 for one object.
pub(super) const BURST: u32 = 100;
/// How long it takes until another one may follow.
pub(super) const REFILL: Duration = Duration::from_secs(5);
/// How many namespaces are looked through for full buckets.
const KEPT: usize = 1000;

// === impl EventBudget ===

impl EventBudget {
    /// Takes one Event out of the budget of a namespace, if there is one.
    pub(super) fn take(&mut self, now: Instant, namespace: &Arc<str>) -> bool {
        if self.full_at.len() >= KEPT {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let full_at = self.full_at.get(namespace).copied().unwrap_or_default();
        let full_at = full_at.max(now).after(REFILL);
        if full_at.since(now) > REFILL * BURST {
            return false;
        }
        self.full_at.insert(Arc::clone(namespace), full_at);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_a_burst_and_then_one_event_in_a_while() {
        let at = |millis| Instant::from_epoch(Duration::from_millis(millis));
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        let mut budget = EventBudget::default();
        // Fifty times a second for ten minutes.
        let taken = (0..30_000).filter(|tick| budget.take(at(tick * 20), &noisy));
        assert_eq!(taken.count(), 100 + 119);
        assert!(budget.take(at(600_000), &quiet));
        // After a pause it is full again.
        let taken = (0..1000).filter(|_| budget.take(at(1_200_000), &noisy));
        assert_eq!(taken.count(), 100);
    }

    #[test]
    fn namespaces_without_events_are_forgotten() {
        let mut budget = EventBudget::default();
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        for index in 0..10_000 {
            assert!(budget.take(at(index), &index.to_string().into()));
        }
        assert!(budget.full_at.len() <= KEPT, "{}", budget.full_at.len());
    }
}
