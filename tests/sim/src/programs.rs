//! The production elector and candidate, as the program of a simulated process.

use std::sync::Arc;
use std::time::Duration;

use elector::{
    BuiltinController, Config as ElectorConfig, Elector, Event as ElectorEvent, LeaderElection,
};
use elector_candidate::{
    Candidate, Cluster, Config as CandidateConfig, GroupCandidate, Leadership, Mode, Parts, Timing,
};
use elector_protocol::{ElectorTiming, LeaseKey};
use elector_runtime::InstanceLock;

use crate::names::{ELECTOR_LOCK, FALLBACK, GROUP, NAMESPACE, lease_name};
use crate::pause::PauseSwitch;
use crate::plan::{self, ElectorFlags, PlannedMode};
use crate::register::WorkTerm;
use crate::transport::Transport;
use crate::witness::WitnessedWork;

/// Runs an elector until it is shut down.
pub(crate) async fn run_elector(
    transport: Transport,
    flags: ElectorFlags,
    seed: u64,
    shutdown: impl Future<Output = ()>,
) {
    let (context, name) = (transport.context.clone(), transport.author.name.clone());
    let timing = ElectorTiming::default();
    let config = ElectorConfig {
        timing: ElectorTiming {
            max_lease_duration: Duration::from_secs(flags.max_lease_duration),
            preemptions: flags.preemptions.unwrap_or(timing.preemptions),
            ..timing
        },
        builtin: match flags.locks.builtin {
            true => BuiltinController::Replace { host: name.clone() },
            false => BuiltinController::Respect,
        },
        leader_election: flags.locks.leader_election.map(|(w, h)| LeaderElection {
            lease: LeaseKey::new(NAMESPACE, ELECTOR_LOCK),
            lease_duration: Duration::from_secs(w),
            renew_deadline: Duration::from_secs(h),
            retry_period: Duration::from_secs(h.min(6)) / 3,
            ..LeaderElection::new(name.clone())
        }),
        ..ElectorConfig::default()
    };
    let tell = {
        let (context, name) = (context.clone(), name.clone());
        move |event: &ElectorEvent| match event {
            ElectorEvent::LeadershipChanged(change) => {
                let holder = change.holder.as_ref().map_or("nobody", |it| it.as_str());
                context.log().note(
                    &name,
                    format_args!(
                        "{}: {holder} in term {}: {}",
                        change.lease.name, change.term, change.reason
                    ),
                );
            }
            other => context.log().note(&name, format_args!("{other:?}")),
        }
    };
    match Elector::new(config, transport.cluster()) {
        Ok(elector) => {
            let clock = transport.clock.production();
            let elector = elector.with_clock(clock).with_seed(seed);
            elector.observed_by(tell).run(shutdown).await;
        }
        Err(error) => context.report("setup", error.to_string()),
    }
    context.log().note(&name, "has ended");
}

/// A candidate in one incarnation of its process.
pub(crate) struct CandidateRun {
    pub(crate) identity: String,
    pub(crate) incarnation: u32,
    pub(crate) candidate: plan::PlannedCandidate,
    pub(crate) pauses: PauseSwitch,
    pub(crate) seed: u64,
    pub(crate) instance: Option<Arc<InstanceLock>>,
    pub(crate) transport: Transport,
}

// === impl CandidateRun ===

impl CandidateRun {
    /// Runs the candidate until it is shut down or ends by itself.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()>) {
        let (context, name) = (
            self.transport.context.clone(),
            self.transport.author.name.clone(),
        );
        let clock = self.transport.clock.production();
        let cluster = Cluster::from(self.transport.cluster());
        let cluster = cluster.with_clock(clock).with_seed(self.seed);
        let cluster = match self.instance.clone() {
            Some(lock) => cluster.with_instance_lock(lock),
            None => cluster,
        };
        let tell = {
            let (context, name) = (context.clone(), name.clone());
            move |lease: &LeaseKey, event: &elector_candidate::Event| {
                let lease = &lease.name;
                context
                    .log()
                    .note(&name, format_args!("{lease}: {event:?}"));
                let now = context.log().now();
                context
                    .state()
                    .guards
                    .handle_event(now, &name, lease, event);
            }
        };
        let work = |leadership| self.work(leadership);
        let outcome = if self.candidate.is_member() {
            let parts = (0..self.candidate.parts).map(|part| part.to_string());
            match GroupCandidate::new(self.config(GROUP), Parts::named(parts), cluster) {
                Ok(member) => {
                    let ended = member.observed_by(tell).run(work, shutdown).await;
                    format!("{ended:?}")
                }
                Err(error) => return context.report("setup", error.to_string()),
            }
        } else {
            let lease = lease_name(self.candidate.lease);
            match Candidate::new(self.config(&lease), cluster) {
                Ok(candidate) => {
                    let ended = candidate.observed_by(tell).run(work, shutdown).await;
                    format!("{ended:?}")
                }
                Err(error) => return context.report("setup", error.to_string()),
            }
        };
        context
            .log()
            .note(&name, format_args!("has ended: {outcome}"));
    }

    /// The work of a term, under its guard.
    fn work(
        &self,
        leadership: Leadership,
    ) -> impl Future<Output = Result<(), std::fmt::Error>> + Send + use<> {
        let context = &self.transport.context;
        let limit = Duration::from_secs(self.candidate.timing.1);
        let now = context.log().now();
        let wrong = {
            let state = &mut *context.state();
            state.guards.add_term(
                now,
                (&self.transport.author.name, self.incarnation),
                limit,
                leadership.clone(),
                &state.history,
            )
        };
        if let Some((rule, text)) = wrong {
            context.report(rule, text);
        }
        let work = WitnessedWork {
            context: context.clone(),
            pauses: self.pauses.clone(),
            term: WorkTerm {
                name: self.transport.author.name.clone(),
                incarnation: self.incarnation,
                candidate: self.candidate,
                clock: self.transport.clock.clone(),
                leadership,
            },
        };
        self.pauses.wrap(work.run(), context.check_hook())
    }

    /// Its configuration for a lease or a group of this name.
    fn config(&self, lease: &str) -> CandidateConfig {
        let plan::PlannedCandidate {
            version: (emulation, binary),
            timing: (w, h),
            mode,
            strategy,
            ..
        } = self.candidate;
        let version = |minor| format!("1.{minor}.0");
        // W_max stays as it is by default: the own W of a candidate counts beside it (R18).
        CandidateConfig::new(lease, version(binary))
            .namespace(NAMESPACE)
            .identity(self.identity.as_str())
            .emulation_version(version(emulation))
            .strategy(strategy.name())
            .timing(Timing::new(Duration::from_secs(w), Duration::from_secs(h)))
            .mode(match mode {
                PlannedMode::Elected => Mode::Elected,
                PlannedMode::Auto => Mode::Auto,
                PlannedMode::Plain => Mode::Plain,
            })
            .fallback(FALLBACK)
    }
}
