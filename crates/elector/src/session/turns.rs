//! The turns that the requests of one namespace take, so that a namespace which asks for much of a slow API server does
//! not slow it down for all others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::namespace_budget::NamespaceBudget;

/// The turns of all namespaces.
pub(crate) struct RequestTurns {
    clock: Arc<dyn Clock>,
    /// The turns of each namespace that has requests.
    namespaces: BTreeMap<Arc<str>, Arc<NamespaceTurns>>,
    /// The pings of a namespace that take their turns as they come.
    prompt: NamespaceBudget,
    fastest: Arc<Mutex<FastestPing>>,
}

/// The turns of one namespace.
pub(crate) struct NamespaceTurns {
    clock: Arc<dyn Clock>,
    side_by_side: Semaphore,
    patient: Semaphore,
    pace: Mutex<PatientPace>,
    fastest: Arc<Mutex<FastestPing>>,
}

/// The number of turns for pings that are patient, as the answers to them are slow or prompt.
#[derive(Debug)]
struct PatientPace {
    turns: usize,
    /// None is taken before this.
    not_before: Instant,
}

/// The shortest time in which a ping was applied of late: a server that has moved away is not slow for ever.
#[derive(Debug, Default)]
struct FastestPing {
    /// That of the period which began then.
    this: Option<Duration>,
    begun: Instant,
    /// That of the period before.
    before: Option<Duration>,
}

/// A turn, which another request takes once it is dropped.
pub(crate) struct RequestTurn<'a> {
    turns: &'a NamespaceTurns,
    patient: Option<SemaphorePermit<'a>>,
    _permit: SemaphorePermit<'a>,
    start: Instant,
}

/// The most requests of one namespace under way at the same time. Each may be of an object of 256 KiB, of which a small API
/// server writes a dozen a second: with ten times as many, few would have their answer in time.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// The pings of a namespace that no slow server holds back: those of a hundred leases with five candidates each.
const PROMPT: u32 = 500;
/// The time until another one may follow.
const PROMPT_EVERY: Duration = Duration::from_secs(1);

/// A period for which the fastest ping is known; it counts in the next one too.
const PERIOD: Duration = Duration::from_secs(600);
/// A ping is answered slowly if it takes so many times as long as the fastest one,
const SLOW: u32 = 3;
/// and this on top, the pause of a busy disk or scheduler.
const SLOW_ON_TOP: Duration = Duration::from_millis(10);

// === impl RequestTurns ===

impl RequestTurns {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            namespaces: BTreeMap::new(),
            prompt: NamespaceBudget::new(PROMPT, PROMPT_EVERY),
            fastest: Arc::default(),
        }
    }

    /// Those of a namespace.
    pub(crate) fn of(&mut self, namespace: &Arc<str>) -> Arc<NamespaceTurns> {
        self.namespaces
            .retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = self.namespaces.entry(Arc::clone(namespace));
        let turns = turns.or_insert_with(|| {
            Arc::new(NamespaceTurns {
                clock: Arc::clone(&self.clock),
                side_by_side: Semaphore::new(SIDE_BY_SIDE),
                patient: Semaphore::new(SIDE_BY_SIDE),
                pace: Mutex::new(PatientPace {
                    turns: SIDE_BY_SIDE,
                    not_before: Instant::default(),
                }),
                fastest: Arc::clone(&self.fastest),
            })
        });
        Arc::clone(turns)
    }

    /// True for a ping beyond those that the namespace has at once.
    pub(crate) fn is_patient(&mut self, namespace: &Arc<str>) -> bool {
        !self.prompt.take(self.clock.monotonic(), namespace)
    }
}

// === impl NamespaceTurns ===

impl NamespaceTurns {
    /// Waits for a turn. No other request waits behind a patient one.
    pub(crate) async fn take(&self, is_patient: bool) -> RequestTurn<'_> {
        let mut patient = None;
        if is_patient {
            patient = self.patient.acquire().await.ok();
            let not_before = lock(&self.pace).not_before;
            if self.clock.monotonic() < not_before {
                self.clock.sleep_until(not_before).await;
            }
        }
        let permit = self.side_by_side.acquire().await;
        RequestTurn {
            turns: self,
            patient,
            _permit: permit.expect("the turns of a namespace are never closed"),
            start: self.clock.monotonic(),
        }
    }
}

// === impl FastestPing ===

impl FastestPing {
    /// A ping was applied now, and took so long.
    fn note(&mut self, now: Instant, took: Duration) {
        if now.since(self.begun) >= PERIOD {
            self.before = self.this.take();
            self.begun = now;
        }
        self.this = self.this.into_iter().chain([took]).min();
    }

    /// True if one that took so long is slow.
    fn is_far_from(&self, took: Duration) -> bool {
        let fastest = self.this.into_iter().chain(self.before).min();
        fastest.is_some_and(|fastest| took > fastest * SLOW + SLOW_ON_TOP)
    }
}

// === impl RequestTurn ===

impl RequestTurn<'_> {
    /// The ping that took this turn was answered, or was not in time. There is a turn less where that was slow, and one
    /// more where it was not; the last one rests for as long as it took.
    pub(crate) fn pinged(self, applied: bool) {
        let now = self.turns.clock.monotonic();
        let took = now.since(self.start);
        let is_slow = {
            let mut fastest = lock(&self.turns.fastest);
            if applied {
                fastest.note(now, took);
            }
            fastest.is_far_from(took)
        };
        let Some(patient) = self.patient else { return };
        let mut pace = lock(&self.turns.pace);
        match (is_slow, pace.turns) {
            (true, ..=1) => pace.not_before = now.after(took),
            (true, _) => {
                pace.turns -= 1;
                patient.forget();
            }
            (false, ..SIDE_BY_SIDE) => {
                pace.turns += 1;
                self.turns.patient.add_permits(1);
            }
            (false, _) => {}
        }
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use elector_runtime::TokioClock;
    use elector_testing::{TestCluster, millis, pass, seconds};
    use futures::future::join_all;

    use super::*;

    /// The pings of a namespace that has had all those which it has at once.
    struct PatientPings {
        turns: Arc<NamespaceTurns>,
        clock: Arc<dyn Clock>,
    }

    impl PatientPings {
        fn new() -> Self {
            let clock: Arc<dyn Clock> = Arc::new(TokioClock::start(TestCluster::start_time()));
            let turns = RequestTurns::new(Arc::clone(&clock)).of(&"ns".into());
            Self { turns, clock }
        }

        /// So many at once, to each of which the answer takes so long; the time that all of them take.
        async fn send(&self, pings: usize, answer: Duration) -> Duration {
            let start = self.clock.monotonic();
            join_all((0..pings).map(|_| async move {
                let turn = self.turns.take(true).await;
                pass(answer).await;
                turn.pinged(true);
            }))
            .await;
            self.clock.monotonic().since(start)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_gets_one_at_a_time_and_rests_until_it_is_fast_again() {
        let pings = PatientPings::new();
        assert_eq!(pings.send(1, millis(50)).await, millis(50));
        // Not slow, with 160 ms.
        assert_eq!(pings.send(32, millis(160)).await, millis(320));
        // The first sixteen are answered slowly, and each of the next ten has the server rest before it.
        assert_eq!(pings.send(26, seconds(1)).await, seconds(21));
        // After the last rest: 1, 2, 4, 8 and 16 of them.
        assert_eq!(pings.send(31, millis(50)).await, seconds(1) + millis(250));
    }

    /// A request that goes to a server on another continent now.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_has_moved_away_is_not_slow_for_ever() {
        let pings = PatientPings::new();
        pings.send(1, millis(50)).await;
        pings.send(16, seconds(1)).await;
        pass(PERIOD).await;
        assert_eq!(pings.send(2, seconds(1)).await, seconds(3), "one rests");
        pass(PERIOD).await;
        pings.send(1, seconds(1)).await;
        // After the one before it: 2, 4, 8 and 16 of them.
        assert_eq!(pings.send(30, seconds(1)).await, seconds(4));
    }

    #[tokio::test(start_paused = true)]
    async fn no_grant_waits_behind_pings() {
        let pings = PatientPings::new();
        pings.send(1, Duration::ZERO).await;
        pings.send(16, seconds(1)).await;
        let grant = async {
            pass(millis(1)).await;
            let _turn = pings.turns.take(false).await;
            pings.clock.monotonic()
        };
        let now = pings.clock.monotonic();
        let (all, granted) = tokio::join!(pings.send(8, seconds(1)), grant);
        assert_eq!((all, granted.since(now)), (seconds(16), millis(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_has_some_pings_at_once_and_then_one_a_second() {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start(TestCluster::start_time()));
        let mut turns = RequestTurns::new(clock);
        let (noisy, quiet): (Arc<str>, Arc<str>) = ("noisy".into(), "quiet".into());
        let mut prompt = |count, namespace| {
            let pings = (0..count).filter(|_| !turns.is_patient(namespace));
            pings.count()
        };
        assert_eq!((prompt(600, &noisy), prompt(500, &quiet)), (500, 500));
        pass(seconds(3)).await;
        assert_eq!(prompt(600, &noisy), 3);
    }
}
