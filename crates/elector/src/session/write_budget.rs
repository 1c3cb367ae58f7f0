//! The budget of a namespace's writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{Instant, LeaseKey};

use crate::namespace_budget::NamespaceBudget;
use crate::view::LimitHit;

/// The requests of each namespace: one whose leases change all the time waits, and takes no more of the API server.
pub(crate) struct WriteBudget {
    budget: NamespaceBudget,
    /// Until when it is not reported again that a namespace is held up.
    reported: BTreeMap<Arc<str>, Instant>,
}

/// A namespace has had all its requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeldUp {
    /// When there is room for another one.
    pub(crate) until: Instant,
    /// The report due of it, once in a while.
    pub(crate) news: Option<LimitHit>,
}

/// The burst of requests of a namespace: five thousand leases that begin at the same time, with candidates that are
/// to be pinged.
const BURST: u32 = 20_000;
/// The time until another one may follow: 200 a second, an eighth of what a small API server writes.
const REFILL: Duration = Duration::from_millis(5);
/// The period of reports of a namespace held up.
const REPORT_EVERY: Duration = Duration::from_secs(600);

// === impl WriteBudget ===

impl WriteBudget {
    pub(crate) const fn new() -> Self {
        Self {
            budget: NamespaceBudget::new(BURST, REFILL),
            reported: BTreeMap::new(),
        }
    }

    /// This number of requests of this lease is sent.
    pub(crate) fn charge(
        &mut self,
        now: Instant,
        lease: &LeaseKey,
        requests: usize,
    ) -> Option<HeldUp> {
        let until = self.budget.charge(now, &lease.namespace, requests)?;
        self.reported.retain(|_, again| *again > now);
        let is_news = !self.reported.contains_key(&lease.namespace);
        if is_news {
            let again = now.after(REPORT_EVERY);
            self.reported.insert(Arc::clone(&lease.namespace), again);
        }
        let news = is_news.then(|| LimitHit::Writes {
            lease: lease.clone(),
        });
        Some(HeldUp { until, news })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_held_up_alone_and_that_is_reported_once_in_a_while() {
        let at = |seconds| Instant::from_epoch(Duration::from_secs(seconds));
        let noisy = LeaseKey::new("noisy", "l");
        let quiet = LeaseKey::new("quiet", "l");
        let mut budget = WriteBudget::new();
        assert_eq!(budget.charge(at(0), &noisy, 20_000), None);
        let held_up = budget.charge(at(0), &noisy, 200).unwrap();
        assert_eq!(held_up.until, at(1));
        assert_eq!(
            held_up.news,
            Some(LimitHit::Writes {
                lease: noisy.clone()
            })
        );
        assert_eq!(budget.charge(at(0), &quiet, 200), None);
        let held_up = budget.charge(at(1), &noisy, 600).unwrap();
        assert_eq!((held_up.until, held_up.news), (at(4), None));
        assert_eq!(budget.charge(at(5), &noisy, 10), None);
        let held_up = budget.charge(at(601), &noisy, 30_000).unwrap();
        assert!(held_up.news.is_some());
    }
}
