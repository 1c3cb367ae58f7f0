//! Handing keys to workers: step an election, turn its effects into requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use elector_api::Carrier;
use elector_protocol::elector::{
    Action, Decision, Effect, Election, PreferenceField, Reason, Settings,
};
use elector_protocol::{Instant, LeaseKey, StrategyName};
use elector_runtime::panic_text;
use elector_workqueue::Poll;
use tracing::field::display;
use tracing::{debug, error};

use crate::builtin::Authority;
use crate::event::Event;
use crate::life::Life;
use crate::work::{self, Task};

// === impl Life ===

impl Life<'_> {
    /// Hands out keys as long as a worker is free, and says when the next one is due. Nothing is handed out before
    /// the view is synced; with every worker busy, the end of some work comes first.
    pub(super) fn dispatch(&mut self) -> Option<Instant> {
        while self.view.is_synced() && self.at_work.len() < self.config.concurrent_elections.get() {
            let now = self.clock.monotonic();
            let key = match self.queue.poll(now.since_epoch()) {
                Poll::Ready(key) => key,
                Poll::Wait(deadline) => return deadline.map(Instant::from_epoch),
                Poll::ShutDown => return None,
            };
            let tasks = self.judge(&key);
            if tasks.is_empty() {
                self.queue.done(&key, now.since_epoch());
                continue;
            }
            self.jobs.push(work::job(&self.writer, &key, tasks));
            self.at_work.insert(key, false);
        }
        None
    }

    /// Steps one election and says which requests follow.
    fn judge(&mut self, key: &LeaseKey) -> Vec<Task> {
        let now = self.clock.monotonic();
        let election = match self.view.election(key) {
            None => {
                self.queue.forget(key);
                return Vec::new();
            }
            Some(Err(fault)) => {
                let text = format!("failed to judge a Lease: {fault}");
                self.complain(&key.to_string(), &text);
                self.queue.forget(key);
                return Vec::new();
            }
            Some(Ok(election)) => election,
        };
        let settings = Settings {
            timing: self.config.timing.clone(),
            preference_field: match self.writer.carrier() {
                Carrier::Unknown => PreferenceField::Unknown,
                Carrier::Fields => PreferenceField::Kept,
                Carrier::Annotations => PreferenceField::Dropped,
            },
            reserve: self.config.reserve,
        };
        let (step, wall) = (self.step, self.clock.wall());
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            let left =
                self.authority != Authority::Ours && is_builtin_affair(election, now, &settings);
            (left, step(election, now, wall, &settings))
        }));
        let (left, decision) = match stepped {
            Ok(stepped) => stepped,
            Err(panic) => {
                let text = panic_text(&*panic);
                error!(lease = %key, panic = text, "failed to judge a lease, which is tried again");
                self.queue.add_rate_limited(key.clone(), now.since_epoch());
                return Vec::new();
            }
        };
        if left {
            // The authority wakes every lease when it changes.
            debug!(lease = %key, action = %Action::Leave, reason = %self.authority, "judged");
            self.queue.forget(key);
            return Vec::new();
        }
        let wake = decision.wake.map(|wake| display(wake.after(now)));
        debug!(lease = %key, action = %decision.action(), reason = %decision.reason, wake, "judged");
        self.report_standstill(key, &decision);
        self.report_preference(key, &decision.reason);
        if let Some(at) = decision.wake_at() {
            self.queue
                .add_after(key.clone(), at.since(now), now.since_epoch());
        }
        let tasks = self.tasks(key, decision);
        if tasks.is_empty() {
            self.queue.forget(key);
        }
        tasks
    }

    /// The requests that a decision asks for, each with the object of the very revision that was judged.
    fn tasks(&mut self, key: &LeaseKey, decision: Decision) -> Vec<Task> {
        let grant = match &decision.reason {
            Reason::Granted { .. } | Reason::Reserved { .. } => Some(decision.reason.to_string()),
            _ => None,
        };
        let mut tasks = Vec::with_capacity(decision.effects.len());
        for effect in decision.effects {
            match effect {
                Effect::Create(record) => tasks.push(Task::Create(record.strategy)),
                Effect::Write(write) => {
                    let version = write.version;
                    let Some(judged) = self.view.lease_object(key, version).map(Arc::clone) else {
                        tasks.push(Task::Read(version));
                        continue;
                    };
                    let record = write.record;
                    if let (Some(reason), Some(to)) = (&grant, &record.holder) {
                        self.view
                            .expect_grant(key, to.clone(), record.term, reason.clone());
                    }
                    tasks.push(Task::Write {
                        judged,
                        version,
                        record,
                    });
                }
                Effect::Ping {
                    name,
                    version,
                    ping,
                    ..
                } => {
                    let object = self.view.candidate_object(&key.namespace, &name, version);
                    tasks.extend(
                        object.map(|object| Task::Ping(name, Box::new(object.with_ping(ping)))),
                    );
                }
                // The built-in controller collects as long as it elects.
                Effect::Collect { .. } if self.authority != Authority::Ours => {}
                Effect::Collect { name, version, .. } => {
                    let object = self.view.candidate_object(&key.namespace, &name, version);
                    tasks.extend(object.map(|object| Task::Collect(name, Arc::clone(object))));
                }
            }
        }
        tasks
    }

    /// Says once why nobody can be elected although there are candidates.
    fn report_standstill(&mut self, key: &LeaseKey, decision: &Decision) {
        let subject = format!("standstill of {key}");
        match &decision.reason {
            Reason::StrategyConflict(_) | Reason::NoEligible { .. } => {
                let text = format!("nobody can be elected for {key}: {}", decision.reason);
                self.complain(&subject, &text);
            }
            _ => {
                self.settle_complaint(&subject);
            }
        }
    }

    /// Tells the observer who is asked to make room for whom.
    fn report_preference(&self, key: &LeaseKey, reason: &Reason) {
        if let Reason::Preferred {
            preferred, holder, ..
        } = reason
        {
            (self.observer)(&Event::Preferred {
                lease: key.clone(),
                holder: holder.clone(),
                preferred: preferred.clone(),
                reason: reason.to_string(),
            });
        }
    }
}

/// Whether the built-in controller would decide about this lease: all but those whose strategy is somebody else's.
fn is_builtin_affair(election: &Election, now: Instant, settings: &Settings) -> bool {
    let strategy = election.strategy(now, settings);
    strategy.is_none_or(|strategy| strategy.as_str() == StrategyName::OLDEST_EMULATION_VERSION)
}
