//! The hold of a Lease by this elector: its watch, its holder and the holder's requests. The lock of the electors and
//! that of the built-in controller are driven by it; each of them decides what a term begins and ends.

use std::sync::Arc;
use std::time::Duration;

use elector_api::{Lease, Malformed};
use elector_protocol::holder::{Decision, Effect, Ending, HolderConfig};
use elector_protocol::{Identity, Instant, LeaseKey};
use elector_runtime::{
    Clock, Cluster, FailureLog, HolderLog, HolderShell, LeasePath, LeaseResponse, RequestError,
    Watch, WatchEvent, WatchOptions, Writer,
};

use crate::active_belief::ActiveBelief;

/// A Lease that this elector follows, and holds where it steps its holder.
pub(crate) struct LockDriver {
    holder: HolderShell,
    watch: Watch<Lease>,
    writer: Writer,
    clock: Arc<dyn Clock>,
}

/// News of a lock.
pub(crate) enum LockInput {
    Response(LeaseResponse),
    Event(WatchEvent<Lease>),
}

/// The log of a lock.
pub(crate) struct LockLog<'a> {
    lock: &'static str,
    failures: &'a mut FailureLog,
    now: Instant,
    consequence: &'a Consequence<'a>,
}

/// The text of the effect of a failure.
type Consequence<'a> = dyn Fn(LeasePath, &RequestError) -> String + Sync + 'a;

// === impl LockDriver ===

impl LockDriver {
    /// The driver of a lock of which nothing is known. Its watch is opened by [`Self::next`].
    pub(crate) fn new(
        config: HolderConfig,
        lease: LeaseKey,
        cluster: &Cluster,
        writer: Writer,
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Self {
        let holder = HolderShell::new(config, lease, clock.holder());
        Self {
            watch: holder.watch(cluster, &WatchOptions::elector(seed)),
            holder,
            writer,
            clock,
        }
    }

    /// Waits for an event of the watch or for the response to the request that is under way. Under a belief the request
    /// ends with it: one that was not sent before never is.
    pub(crate) async fn next(&mut self, belief: Option<&ActiveBelief>) -> LockInput {
        let Self { holder, watch, .. } = self;
        let response = async move {
            match belief {
                Some(belief) => belief.guard(holder.response()).await,
                None => Some(holder.response().await),
            }
        };
        tokio::select! {
            biased;
            Some(response) = response => LockInput::Response(response),
            event = watch.next() => LockInput::Event(event),
        }
    }

    pub(crate) fn handle_input(&mut self, input: LockInput, log: &mut LockLog<'_>) {
        let now = self.clock.moment();
        match input {
            LockInput::Response(response) => self.holder.handle_response(now, response, log),
            LockInput::Event(event) => self.holder.handle_event(now, event, log),
        }
    }

    /// One step of the holder. Its effects are for the caller, and the requests among them for [`Self::send`].
    pub(crate) fn step(&mut self) -> Decision {
        let now = self.clock.moment();
        self.holder.step(now, self.clock.wall())
    }

    /// Sends the request that an effect asks for.
    pub(crate) fn send(&mut self, effect: Effect) {
        self.holder.send(effect, self.clock.holder(), &self.writer);
    }

    /// Nothing runs any more that was begun under the lock.
    pub(crate) fn handle_work_stopped(&mut self) {
        self.holder.handle_work_stopped(self.clock.moment());
    }

    /// Gives up the request that is under way.
    pub(crate) fn give_up(&mut self) {
        self.holder.give_up(self.clock.moment());
    }

    /// True if no request is under way.
    pub(crate) const fn is_idle(&self) -> bool {
        self.holder.is_idle()
    }

    /// True if this elector believes now that it holds the lock.
    pub(crate) fn believes(&self) -> bool {
        self.holder.believes(self.clock.holder())
    }

    /// When that belief ends, `None` where there is none.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.holder.deadline()
    }

    /// The holder that the newest known record names.
    pub(crate) fn record_holder(&self) -> Option<&Identity> {
        self.holder.known()?.record.holder.as_ref()
    }

    /// Lets go of the lock if this elector holds it, within that time. Nothing may be under way any more.
    pub(crate) async fn release(
        &mut self,
        within: Duration,
        log: &mut LockLog<'_>,
    ) -> Option<Ending> {
        let clock = &*self.clock;
        self.holder.release(within, clock, &self.writer, log).await
    }
}

// === impl LockLog ===

impl<'a> LockLog<'a> {
    /// The log of the lock of that name. `now` is by the clock of `failures`; `consequence` is the text of a failure's
    /// effect, and of the remedy.
    pub(crate) fn new(
        lock: &'static str,
        failures: &'a mut FailureLog,
        now: Instant,
        consequence: &'a Consequence<'a>,
    ) -> Self {
        Self {
            lock,
            failures,
            now,
            consequence,
        }
    }
}

impl HolderLog for LockLog<'_> {
    fn log_result(&mut self, _: Instant, path: LeasePath, error: Option<&RequestError>) {
        let subject = match path {
            LeasePath::Requests => format!("requests for {}", self.lock),
            LeasePath::Watch => format!("the watch of {}", self.lock),
        };
        match error {
            Some(error) => {
                let text = format!("failed to {error}{}", (self.consequence)(path, error));
                self.failures.note(self.now, &subject, &text);
            }
            None => self.failures.end(self.now, subject, None),
        }
    }

    fn log_fault(&mut self, _: Instant, fault: Option<&Malformed>) {
        match fault {
            Some(fault) => {
                let text = format!("ignored {}, which cannot be read: {fault}", self.lock);
                self.failures.note(self.now, self.lock, &text);
            }
            None => self.failures.end(self.now, self.lock, None),
        }
    }
}
