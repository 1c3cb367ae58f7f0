//! The budget of each namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Instant;

/// A token bucket for each namespace: a tenant whose leases change all the time takes nothing from the others.
#[derive(Debug)]
pub(crate) struct NamespaceBudget {
    /// The burst of a namespace.
    burst: u32,
    /// The time until another one may follow.
    refill: Duration,
    /// When the bucket of a namespace will be full again. One that is full is not kept.
    full_at: BTreeMap<Arc<str>, Instant>,
}

/// The number of buckets at which full ones are dropped.
const KEPT: usize = 1000;

// === impl NamespaceBudget ===

impl NamespaceBudget {
    pub(crate) const fn new(burst: u32, refill: Duration) -> Self {
        Self {
            burst,
            refill,
            full_at: BTreeMap::new(),
        }
    }

    /// Takes one out of the budget of a namespace, if there is one.
    pub(crate) fn take(&mut self, now: Instant, namespace: &Arc<str>) -> bool {
        let full_at = self.full_at(now, namespace).after(self.refill);
        let taken = full_at.since(now) <= self.refill * self.burst;
        if taken {
            self.full_at.insert(Arc::clone(namespace), full_at);
        }
        taken
    }

    /// Takes `amount` out of the budget of a namespace, whether they are there or not. Says when there is something in it
    /// again, where nothing is left.
    pub(crate) fn charge(
        &mut self,
        now: Instant,
        namespace: &Arc<str>,
        amount: usize,
    ) -> Option<Instant> {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        let cost = self.refill.saturating_mul(amount);
        let full_at = self.full_at(now, namespace).after(cost);
        self.full_at.insert(Arc::clone(namespace), full_at);
        let debt = full_at.since(now).checked_sub(self.refill * self.burst)?;
        (!debt.is_zero()).then(|| now.after(debt))
    }

    fn full_at(&mut self, now: Instant, namespace: &Arc<str>) -> Instant {
        if self.full_at.len() >= KEPT {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
        let full_at = self.full_at.get(namespace).copied();
        full_at.unwrap_or_default().max(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    const fn budget() -> NamespaceBudget {
        NamespaceBudget::new(100, Duration::from_secs(5))
    }

    #[test]
    fn a_namespace_has_a_burst_and_then_one_in_a_while() {
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        let mut budget = budget();
        // Fifty times a second for ten minutes.
        let taken = (0..30_000).filter(|tick| budget.take(at(tick * 20), &noisy));
        assert_eq!(taken.count(), 100 + 119);
        assert!(budget.take(at(600_000), &quiet));
        // After a pause it is full again.
        let taken = (0..1000).filter(|_| budget.take(at(1_200_000), &noisy));
        assert_eq!(taken.count(), 100);
    }

    #[test]
    fn what_is_spent_in_advance_is_waited_for() {
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        let mut budget = budget();
        assert_eq!(budget.charge(at(0), &noisy, 100), None);
        assert_eq!(budget.charge(at(0), &noisy, 2), Some(at(10_000)));
        assert!(!budget.take(at(10_000), &noisy));
        assert_eq!(budget.charge(at(15_000), &noisy, 1), None);
        assert_eq!(budget.charge(at(15_000), &noisy, 1), Some(at(20_000)));
        assert_eq!(budget.charge(at(15_000), &quiet, 50), None);
    }

    #[test]
    fn namespaces_whose_budget_is_whole_are_forgotten() {
        let mut budget = budget();
        for index in 0..=KEPT {
            assert!(budget.take(at(0), &index.to_string().into()));
        }
        assert_eq!(budget.full_at.len(), KEPT + 1);
        assert!(budget.take(at(5001), &"next".into()));
        assert_eq!(budget.full_at.len(), 1);
    }
}
