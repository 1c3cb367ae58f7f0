//! The shell of a holder: its machine, the Lease as an object, and its request under way.

mod carried_metadata;
mod reading;
mod request;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{Lease, LeaseMetadata, Malformed};
use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Belief, Decision, Effect, Ending, FormerTerm, Holder, HolderConfig, LeaseEvent, LeaseOutcome,
    ReadFailed, Wait,
};
use elector_protocol::{
    CandidateTiming, Instant, LeaseKey, LeaseSnapshot, MOST_WRITES_UNDER_WAY, Moment,
    ResourceVersion, Timestamp,
};
use futures::FutureExt as _;
use futures::future::{BoxFuture, select_all};

use self::carried_metadata::CarriedMetadata;
use self::reading::{lease_outcome, lease_snapshot, read_lease};
pub use self::request::LeaseResponse;
use self::request::lease_request;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::instance_lock::InstanceLock;
use crate::request::RequestError;
use crate::request_slot::RequestSlot;
use crate::watch::{Scope, Watch, WatchEvent, WatchOptions, watch_leases};
use crate::write_outcome::WriteOutcome;
use crate::writer::Writer;

/// The machine that wins, keeps and ends terms of one Lease, with what it takes to follow it.
///
/// The caller takes each [`step`](Self::step), hands the requests that it asks for to [`send`](Self::send), and brings
/// back what [`response`](Self::response) and the watch of the Lease tell.
pub struct HolderShell {
    machine: Holder,
    lease: LeaseKey,
    /// The timing of requests where the belief leaves them the time.
    timing: CandidateTiming,
    /// The newest revision of the Lease as an object, which a write carries over.
    object: Option<Lease>,
    metadata: CarriedMetadata,
    request: RequestSlot<LeaseResponse>,
    /// Ends when a write under way has had the time of a request: it is kept then, and another may be sent beside it (R22).
    patience: RequestSlot<RequestError>,
    /// The version that the write under way replaces.
    base: Option<ResourceVersion>,
    /// Requests that are waited for no more, the oldest first. They come to their end: dropping one closes its connection,
    /// and a server may drop a request whose client has gone.
    kept: VecDeque<KeptRequest>,
    /// True if the request that is under way is a read.
    reads: bool,
    /// When the Lease last changed, as far as this process knows.
    changed_at: Instant,
    /// Where its terms are noted before they begin (R21).
    instance: Option<Arc<InstanceLock>>,
    /// True from when a read brought what the watch had not, until the watch brings anything.
    watch_lags: bool,
}

/// A request that the machine takes for one of unknown outcome, or of none, with the version that it replaces.
type KeptRequest = BoxFuture<'static, (Option<ResourceVersion>, LeaseResponse)>;

/// A way from a holder to its Lease: what works one way may fail another, so their failures are logged apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasePath {
    /// Reads and writes.
    Requests,
    /// The watch.
    Watch,
}

/// The log of a [`HolderShell`], which knows failures and not how a program words them.
pub trait HolderLog {
    /// A request failed, or the next one of its kind did not.
    fn log_result(&mut self, now: Instant, path: LeasePath, error: Option<&RequestError>);

    /// The Lease cannot be read and is ignored, or can be read again.
    fn log_fault(&mut self, now: Instant, fault: Option<&Malformed>);
}

/// The least time that a request gets, even where the belief is nearly over.
const SHORTEST_REQUEST: Duration = Duration::from_millis(100);

// === impl HolderShell ===

impl HolderShell {
    /// The shell of a holder that knows nothing of its Lease yet.
    pub fn new(config: HolderConfig, lease: LeaseKey, now: Instant) -> Self {
        Self {
            timing: config.timing.clone(),
            machine: Holder::new(Arc::new(config)),
            lease,
            object: None,
            metadata: CarriedMetadata::default(),
            request: RequestSlot::default(),
            patience: RequestSlot::default(),
            base: None,
            kept: VecDeque::new(),
            reads: false,
            changed_at: now,
            instance: None,
            watch_lags: false,
        }
    }

    /// The same shell, whose writes carry this onto the Lease: that which creates it, and those by which this process
    /// takes or renews a term. No write is made for it, and no term hangs on it.
    #[must_use]
    pub fn with_metadata(mut self, wanted: LeaseMetadata) -> Self {
        self.metadata = CarriedMetadata::new(wanted);
        self
    }

    /// The same shell, for a life of that instance, which its configuration names: it begins the next of the terms that died
    /// with earlier lives, and notes its own.
    #[must_use]
    pub fn with_instance(mut self, instance: Option<Arc<InstanceLock>>) -> Self {
        if let Some(instance) = &instance {
            let terms = instance.former_terms(&self.lease);
            self.machine = self.machine.with_former_terms(terms);
        }
        self.instance = instance;
        self
    }

    /// A watch of the Lease, whose events are for [`handle_event`](Self::handle_event).
    pub fn watch(&self, cluster: &Cluster, options: &WatchOptions) -> Watch<Lease> {
        watch_leases(cluster, &Scope::Object(self.lease.clone()), options)
    }

    /// One step of the machine, whose effects are for the caller.
    pub fn step(&mut self, now: Moment, wall: Timestamp) -> Decision {
        self.machine.step(now, wall)
    }

    /// True if the holder believes at that instant of its clock.
    pub fn believes(&self, now: Instant) -> bool {
        self.machine.believes(now)
    }

    /// The current belief. Its deadline may have passed already.
    pub fn belief(&self) -> Option<Belief> {
        self.machine.belief()
    }

    /// The newest revision of the Lease that is known.
    pub fn known(&self) -> Option<&LeaseSnapshot> {
        self.machine.known()
    }

    /// The wait for the next term, `None` where there is none.
    pub fn waiting(&self, now: Moment) -> Option<Wait> {
        self.machine.waiting(now)
    }

    /// The time for which the Lease has been free, by the stop-watch of a holder that may acquire it.
    pub fn free_for(&self, now: Moment) -> Option<Duration> {
        self.machine.free_for(now)
    }

    /// True if a grant would be accepted. A candidate that would not should not ack pings either.
    pub fn can_accept(&self) -> bool {
        self.machine.can_accept()
    }

    /// True if a shutdown has been asked for and nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.machine.is_finished()
    }

    /// An elector has pinged the candidate.
    pub fn handle_ping(&mut self, now: Moment) {
        self.machine.handle_ping(now);
    }

    /// An operator wants this process not to lead, or no more.
    pub const fn handle_stand_down(&mut self, stands_down: bool) {
        self.machine.handle_stand_down(stands_down);
    }

    /// The process acquires other leases before this one, and leaves this one alone for that much longer.
    pub const fn handle_delay(&mut self, delay: Duration) {
        self.machine.handle_delay(delay);
    }

    /// Nothing of the work runs any more.
    pub fn handle_work_stopped(&mut self, now: Moment) {
        self.machine.handle_work_stopped(now);
    }

    /// The LeaseCandidate is gone, or never was.
    pub fn handle_withdrawn(&mut self) {
        self.machine.handle_withdrawn();
    }

    /// Has the holder end its term, if it has one, and begin no other.
    pub fn shut_down(&mut self, now: Moment) {
        self.machine.shut_down(now);
    }

    /// When the belief ends, `None` where there is none.
    pub fn deadline(&self) -> Option<Instant> {
        self.machine.belief().map(|belief| belief.deadline)
    }

    /// Sends the request that an effect asks for, if it asks for one. It takes no longer than the belief lasts. A write or a
    /// read may go on after its time, beside the next one ([R22](elector_protocol::rules#r22)).
    pub fn send(&mut self, effect: Effect, now: Instant, writer: &Writer) {
        let left = self
            .deadline()
            .map_or(self.timing.renew_deadline, |deadline| deadline.since(now))
            .max(SHORTEST_REQUEST);
        let patience = left.min(self.timing.request_timeout);
        let mut timeout = patience;
        if let Effect::Write { kind, write } = &effect {
            tracing::debug!(lease = %self.lease, %kind, "writing");
            let unanswered = writer.unanswered(&self.lease, patience);
            self.patience.send(Box::pin(async move {
                tokio::time::sleep(patience).await;
                unanswered
            }));
            (self.base, timeout) = (Some(write.version), left);
        }
        self.reads = effect == Effect::Read;
        if self.reads {
            timeout = left;
        }
        let noted = self.note_term(&effect);
        let (lease, object) = (&self.lease, self.object.as_ref());
        let writer = self.metadata.carried_by(&effect, object, writer);
        if let Some(request) = lease_request(effect, lease, object, &writer, patience, timeout) {
            self.request.send(match noted {
                Some(noted) => noted.then(|()| request).boxed(),
                None => request,
            });
        }
    }

    /// Notes the term that a write begins, where an instance lock is kept.
    fn note_term(&self, effect: &Effect) -> Option<BoxFuture<'static, ()>> {
        let Effect::Write { kind, write } = effect else {
            return None;
        };
        let term = FormerTerm::of(write).filter(|_| kind.begins_term())?;
        let instance = Arc::clone(self.instance.as_ref()?);
        let shown = self.machine.known().cloned();
        Some(instance.note(self.lease.clone(), term, shown).boxed())
    }

    /// True if reads bring what the watch does not: it may be dead.
    pub const fn watch_lags(&self) -> bool {
        self.watch_lags
    }

    /// True if no request is under way whose response counts.
    pub const fn is_idle(&self) -> bool {
        !self.request.is_taken()
    }

    /// Gives up the request that is under way. It may have been applied, or may be yet.
    pub fn give_up(&mut self, now: Moment) {
        self.kept.clear();
        self.forget_patience();
        if self.is_idle() {
            return;
        }
        self.request.clear();
        if self.reads {
            self.machine.handle_read(now, Err(ReadFailed));
        } else {
            self.machine.handle_outcome(now, LeaseOutcome::Unknown);
        }
    }

    /// Lets go of the Lease, if this process holds it, within that time. Says how its term ended, where one did. Nothing
    /// of the work may run any more, and no LeaseCandidate of this process may be left.
    pub async fn release(
        &mut self,
        within: Duration,
        clock: &dyn Clock,
        writer: &Writer,
        log: &mut impl HolderLog,
    ) -> Option<Ending> {
        let now = clock.moment();
        let end = now.holder.after(within);
        self.machine.shut_down(now);
        self.machine.handle_withdrawn();
        self.machine.handle_work_stopped(now);
        let (mut ending, mut denied) = (None, false);
        loop {
            let now = clock.moment();
            let decision = self.machine.step(now, clock.wall());
            for effect in decision.effects {
                match effect {
                    Effect::Ended(how) => ending = Some(how),
                    effect => self.send(effect, now.holder, writer),
                }
            }
            if self.machine.is_finished() || end <= now.holder || denied {
                return ending;
            }
            let until = decision.wake_at.map_or(end, |wake| wake.min(end));
            tokio::select! {
                biased;
                response = self.response() => {
                    // Without the right no other attempt helps: whoever deletes an overlay deletes its RBAC too.
                    denied = matches!(&response, LeaseResponse::Wrote(WriteOutcome::Refused(error))
                        if error.is_refusal_of_rights());
                    self.handle_response(clock.moment(), response, log);
                }
                () = clock.sleep_until_holder(until) => {}
            }
        }
    }

    /// Waits for the response to the request that is under way, or to a kept one; forever, while there is none. Dropping
    /// this future loses nothing.
    pub async fn response(&mut self) -> LeaseResponse {
        loop {
            tokio::select! {
                biased;
                response = self.request.response() => {
                    self.forget_patience();
                    return response;
                }
                error = self.patience.response() => {
                    self.keep_request();
                    return LeaseResponse::Wrote(WriteOutcome::Unknown(error));
                }
                (base, response) = next_kept(&mut self.kept) => {
                    if let (Some(base), LeaseResponse::Wrote(WriteOutcome::Done(lease))) = (base, response) {
                        return LeaseResponse::Late(base, lease);
                    }
                }
            }
        }
    }

    /// Has the request under way go on, while nobody waits for it.
    fn keep_request(&mut self) {
        if self.kept.len() + 1 == MOST_WRITES_UNDER_WAY {
            self.kept.pop_front();
        }
        let base = self.forget_patience();
        let request = self.request.take().into_iter();
        self.kept
            .extend(request.map(|request| request.map(move |response| (base, response)).boxed()));
    }

    /// The version that the write under way replaces, if it is one.
    fn forget_patience(&mut self) -> Option<ResourceVersion> {
        self.patience.clear();
        self.base.take()
    }

    /// Takes what [`response`](Self::response) returned.
    pub fn handle_response(
        &mut self,
        now: Moment,
        response: LeaseResponse,
        log: &mut impl HolderLog,
    ) {
        let path = LeasePath::Requests;
        match response {
            LeaseResponse::Read(response) => {
                log.log_result(now.holder, path, response.as_ref().err());
                if let Ok((Some(lease), _)) = &response {
                    let fault = lease.snapshot().err();
                    log.log_fault(now.holder, fault.as_ref());
                    if fault.is_some() {
                        self.machine.handle_event(now, LeaseEvent::Unreadable);
                    }
                }
                let before = self.version();
                let read = read_lease(response.as_ref().map(|(lease, _)| lease));
                self.machine.handle_read(now, read);
                if let Ok((_, took)) = &response {
                    self.machine.note_read_time(now, *took);
                }
                self.watch_lags |= self.version() != before;
                self.keep(now.holder, response.ok().and_then(|(lease, _)| lease));
            }
            LeaseResponse::Wrote(outcome) => {
                log.log_result(now.holder, path, outcome.error());
                self.metadata.note_outcome(&self.lease, outcome.kind());
                self.machine.handle_outcome(now, lease_outcome(&outcome));
                self.keep(now.holder, outcome.done());
            }
            LeaseResponse::Late(base, lease) => {
                log.log_result(now.holder, path, None);
                if let Some(snapshot) = lease_snapshot(&lease) {
                    self.machine.handle_late(now, base, snapshot);
                    self.keep(now.holder, Some(lease));
                    self.set_aside_overtaken(now);
                }
            }
        }
    }

    /// Takes an event of the watch of the Lease.
    pub fn handle_event(
        &mut self,
        now: Moment,
        event: WatchEvent<Lease>,
        log: &mut impl HolderLog,
    ) {
        match event {
            WatchEvent::Applied(lease) => self.handle_seen(now, lease, NewsSource::Watch, log),
            WatchEvent::Listed { version, items, .. } => match items.into_iter().next() {
                Some(lease) => self.handle_seen(now, lease, NewsSource::List, log),
                None => self.handle_missing(now, LeaseEvent::Absent(version)),
            },
            WatchEvent::Deleted(lease) => match lease_snapshot(&lease) {
                Some(last) => self.handle_missing(now, LeaseEvent::Deleted(last.version)),
                None => self.machine.handle_event(now, LeaseEvent::Unreadable),
            },
            WatchEvent::Rewound { .. } => self.machine.request_read(),
            WatchEvent::Failed(error) => log.log_result(now.holder, LeasePath::Watch, Some(&error)),
            WatchEvent::Gap { .. } => {}
            WatchEvent::Synced => log.log_result(now.holder, LeasePath::Watch, None),
        }
    }

    /// The Lease need not change from now on until then: this process leads, or is about to end.
    pub fn expect_silence(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// True if the Lease has not changed for `silence`, so that it has to be read: the watch may be dead, or its
    /// leader. Says when to look again too.
    pub fn check_silence(&mut self, now: Instant, silence: Duration) -> (bool, Instant) {
        let silent = self.changed_at.after(silence) <= now;
        if silent {
            self.changed_at = now;
            self.machine.request_read();
        }
        (silent, self.changed_at.after(silence))
    }

    fn handle_seen(
        &mut self,
        now: Moment,
        lease: Lease,
        source: NewsSource,
        log: &mut impl HolderLog,
    ) {
        self.watch_lags = false;
        log.log_fault(now.holder, lease.snapshot().err().as_ref());
        match lease_snapshot(&lease) {
            Some(snapshot) => {
                let seen = LeaseEvent::Seen(snapshot, source);
                self.machine.handle_event(now, seen);
                self.keep(now.holder, Some(lease));
                self.set_aside_overtaken(now);
            }
            None => self.machine.handle_event(now, LeaseEvent::Unreadable),
        }
    }

    fn set_aside_overtaken(&mut self, now: Moment) {
        let has_room = self.kept.len() + 1 < MOST_WRITES_UNDER_WAY;
        if has_room && self.machine.set_aside_overtaken(now) {
            self.keep_request();
        }
    }

    fn handle_missing(&mut self, now: Moment, event: LeaseEvent) {
        self.watch_lags = false;
        self.machine.handle_event(now, event);
        self.keep(now.holder, None);
    }

    fn version(&self) -> Option<ResourceVersion> {
        self.machine.known().map(|known| known.version)
    }

    /// Keeps the object that belongs to what the machine knows.
    fn keep(&mut self, now: Instant, lease: Option<Lease>) {
        let known = self.version();
        let version = |lease: &Lease| lease.snapshot().ok().map(|snapshot| snapshot.version);
        if known.is_none() {
            self.object = None;
            return;
        }
        let Some(lease) = lease.filter(|lease| version(lease) == known) else {
            return;
        };
        if self.object.as_ref().and_then(version) != known {
            self.changed_at = now;
            self.object = Some(lease);
        }
    }
}

/// The next kept request that ends; forever, while there is none. Dropping this future loses nothing.
async fn next_kept(kept: &mut VecDeque<KeptRequest>) -> (Option<ResourceVersion>, LeaseResponse) {
    if kept.is_empty() {
        return std::future::pending().await;
    }
    let (ended, index, _) = select_all(kept.iter_mut()).await;
    drop(kept.remove(index));
    ended
}

impl fmt::Debug for HolderShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HolderShell")
            .field("lease", &self.lease)
            .field("machine", &self.machine)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
