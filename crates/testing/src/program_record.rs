//! The record of a program: its candidates, and the terms of each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elector_candidate::{
    CandidateHandle, CandidateWitness, Config, Event, Identity, Leadership, StopReason, TermEnd,
    TestSurroundings, WorkWitness, stop_limit,
};
use elector_protocol::Instant;
use elector_runtime::{Clock, TokioClock};

use crate::effect_log::EffectLog;
use crate::term_report::{TermReport, WorkStop};
use crate::time::since_start;

/// The record of a program.
pub(crate) struct ProgramRecord {
    name: String,
    clock: Arc<TokioClock>,
    /// True once a program has begun to run under it.
    is_claimed: AtomicBool,
    /// True once that program has ended, or was killed.
    is_over: AtomicBool,
    candidates: Mutex<Vec<Arc<TrackedCandidate>>>,
}

/// The record of a candidate.
pub(crate) struct TrackedCandidate {
    pub(crate) handle: CandidateHandle,
    pub(crate) config: Config,
    clock: Arc<TokioClock>,
    terms: Arc<Mutex<Vec<ObservedTerm>>>,
}

/// A term as observed.
struct ObservedTerm {
    leadership: Leadership,
    effects: EffectLog,
    told: Option<(StopReason, Instant)>,
    work: Option<(WorkStop, Instant)>,
    limit: Option<Instant>,
    end: Option<TermEnd>,
}

/// Notes how the future of the work ends. Lives as long as that does.
struct WorkObserver {
    clock: Arc<TokioClock>,
    terms: Arc<Mutex<Vec<ObservedTerm>>>,
    /// The place of the term in the list.
    index: usize,
    returned: bool,
}

// === impl ProgramRecord ===

impl ProgramRecord {
    pub(crate) fn new(name: &str, clock: Arc<TokioClock>) -> Self {
        Self {
            name: name.to_owned(),
            clock,
            is_claimed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            candidates: Mutex::new(Vec::new()),
        }
    }

    /// True for the first program that is to run under it.
    pub(crate) fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::AcqRel)
    }

    /// Notes that its program is over.
    pub(crate) fn close(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// True once its program is over: the name stands for the next process from then on.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// The candidate for that lease, by its name or its namespace and name; the first where none is named.
    pub(crate) fn candidate(&self, lease: Option<&str>) -> Option<Arc<TrackedCandidate>> {
        let candidates = self.candidates();
        let is_for = |candidate: &&Arc<TrackedCandidate>| {
            let key = candidate.handle.lease();
            lease.is_none_or(|lease| *key.name == *lease || key.to_string() == lease)
        };
        candidates.iter().find(is_for).cloned()
    }

    /// Writes down what a client of the program writes: it is an effect of its newest term. Of a program with several
    /// candidates it is not known whose.
    pub(crate) fn note_write(&self, what: String) {
        if let [candidate] = self.candidates().as_slice()
            && let Some(log) = candidate.newest_log()
        {
            log.record(what);
        }
    }

    fn candidates(&self) -> MutexGuard<'_, Vec<Arc<TrackedCandidate>>> {
        // A poisoned lock holds a valid state: every section adds one candidate or none.
        let candidates = self.candidates.lock();
        candidates.unwrap_or_else(PoisonError::into_inner)
    }
}

impl TestSurroundings for ProgramRecord {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::<TokioClock>::clone(&self.clock)
    }

    fn seed(&self) -> u64 {
        let add = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(byte.into());
        self.name.bytes().fold(0, add)
    }

    fn identity(&self) -> Identity {
        let before = self.candidates().len();
        let name = match before {
            0 => self.name.clone(),
            before => format!("{}-{}", self.name, before + 1),
        };
        Identity::new(name).unwrap_or_else(|| panic!("a program needs a name"))
    }

    fn join(&self, handle: CandidateHandle, config: &Config) -> Arc<dyn CandidateWitness> {
        let candidate = Arc::new(TrackedCandidate {
            handle,
            config: config.clone(),
            clock: Arc::clone(&self.clock),
            terms: Arc::default(),
        });
        self.candidates().push(Arc::clone(&candidate));
        candidate
    }
}

// === impl TrackedCandidate ===

impl TrackedCandidate {
    /// True while it leads, once its work has begun.
    pub(crate) fn leads(&self) -> bool {
        let terms = lock(&self.terms);
        terms.last().is_some_and(|term| term.leadership.is_leader())
    }

    /// True once the term of that place has ended.
    pub(crate) fn has_ended(&self, index: usize) -> bool {
        let terms = lock(&self.terms);
        terms.get(index).is_some_and(|term| term.end.is_some())
    }

    /// The report of the term of that place, if there was one.
    pub(crate) fn report(&self, index: usize) -> Option<TermReport> {
        let now = self.clock.holder();
        let terms = lock(&self.terms);
        terms.get(index).map(|term| term.report(now))
    }

    /// The log of its newest term.
    pub(crate) fn newest_log(&self) -> Option<EffectLog> {
        let terms = lock(&self.terms);
        terms.last().map(|term| term.effects.clone())
    }
}

impl CandidateWitness for TrackedCandidate {
    fn note(&self, event: &Event) {
        let now = self.clock.holder();
        let mut terms = lock(&self.terms);
        let Some(current) = terms.last_mut() else {
            return;
        };
        match event {
            Event::Stopping { reason, .. } => {
                current.limit_to(stop_limit(&current.leadership, reason, now));
                current.told.get_or_insert((reason.clone(), now));
            }
            Event::WorkStopped { .. } => current.limit_to(now),
            Event::Ended { end, .. } => current.end = Some(end.clone()),
            _ => {}
        }
    }

    fn begin_work(&self, leadership: &Leadership) -> Box<dyn WorkWitness> {
        let mut terms = lock(&self.terms);
        terms.push(ObservedTerm {
            leadership: leadership.clone(),
            effects: EffectLog::new(Arc::clone(&self.clock)),
            told: None,
            work: None,
            limit: None,
            end: None,
        });
        Box::new(WorkObserver {
            clock: Arc::clone(&self.clock),
            terms: Arc::clone(&self.terms),
            index: terms.len() - 1,
            returned: false,
        })
    }
}

// === impl ObservedTerm ===

impl ObservedTerm {
    /// Nothing of the work may act after this instant, nor after one that was noted before.
    fn limit_to(&mut self, limit: Instant) {
        self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
    }

    fn report(&self, now: Instant) -> TermReport {
        let told = self.told.as_ref();
        TermReport {
            term: self.leadership.term(),
            token: self.leadership.token(),
            end: self.end.clone().unwrap_or(TermEnd::Unconfirmed),
            told: told.map(|(reason, at)| (reason.clone(), since_start(*at))),
            work: self.work.map(|(stop, at)| (stop, since_start(at))),
            limit: since_start(self.limit.unwrap_or(now)),
            effects: self.effects.effects(),
        }
    }
}

// === impl WorkObserver ===

impl WorkWitness for WorkObserver {
    fn note_return(&mut self) {
        self.returned = true;
    }
}

impl Drop for WorkObserver {
    fn drop(&mut self) {
        let stop = match (self.returned, std::thread::panicking()) {
            (true, _) => WorkStop::Returned,
            (false, true) => WorkStop::Panicked,
            (false, false) => WorkStop::Dropped,
        };
        let now = self.clock.holder();
        if let Some(term) = lock(&self.terms).get_mut(self.index) {
            term.work = Some((stop, now));
        }
    }
}

fn lock(terms: &Mutex<Vec<ObservedTerm>>) -> MutexGuard<'_, Vec<ObservedTerm>> {
    // A poisoned lock holds a valid state: every section changes one thing.
    terms.lock().unwrap_or_else(PoisonError::into_inner)
}
