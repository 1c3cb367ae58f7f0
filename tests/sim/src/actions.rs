//! The actions of a schedule, carried out on the simulation.

use elector_api::CandidateApi;
use elector_apiserver::{ApiServer, Fault, NativeCandidates, RequestVerb, Rule};
use serde_json::json;

use crate::foreign::ForeignClient;
use crate::names::{BUILTIN_LOCK, ELECTOR_LOCK, NAMESPACE, lease_name};
use crate::plan::{Applied, FaultKind, ProcessIndex, Requests, RestartName, WatchClose};
use crate::process::{ProcessKind, SimulatedProcess};
use crate::recorder::RECORDER;
use crate::schedule::ScheduledAction;
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    pub(crate) async fn perform(&mut self, action: ScheduledAction) {
        match action {
            ScheduledAction::Start(who) => {
                let away = self.is_away(who);
                let process = self.processes.get_mut(who.0);
                if let Some(process) = process.filter(|it| !away && !it.runs()) {
                    process.start(RestartName::New);
                }
            }
            ScheduledAction::Begin(fault) => {
                let kind = self.plan.faults[fault].kind.clone();
                self.context.log().note("plan", format_args!("{kind:?}"));
                self.mark_traffic(fault, &kind);
                if self.begin(fault, kind.clone()).await {
                    self.strike(fault, &kind);
                }
            }
            ScheduledAction::BackUp(fault) => {
                let now = self.context.log().now();
                self.backups.insert(fault, (now, self.server.backup()));
            }
            ScheduledAction::End(fault) => {
                let kind = self.plan.faults[fault].kind.clone();
                self.context
                    .log()
                    .note("plan", format_args!("end of {kind:?}"));
                self.compare_traffic(fault, &kind);
                self.end(fault, kind).await;
            }
        }
    }

    /// Says whether the fault takes effect by that alone.
    async fn begin(&mut self, fault: usize, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Compact => {
                self.server.compact();
                self.context.state().effects.compacted = Some(fault);
                false
            }
            FaultKind::RestoreStore(_, touched) => self.restore_store(fault, touched),
            FaultKind::TamperWithLease(lease, how) => {
                self.tamper_with_lease(&lease_name(lease), how).await
            }
            FaultKind::TamperWithLock(how) => self.tamper_with_lease(ELECTOR_LOCK, how).await,
            FaultKind::Plain(lease, lasts) => {
                self.start_foreign_client(ForeignClient::Plain, lease, lasts, fault)
            }
            FaultKind::Builtin(lease, lasts) => {
                self.start_foreign_client(ForeignClient::Builtin, lease, lasts, fault)
            }
            FaultKind::ClientGoCandidate(lease, lasts) => {
                let strategy = self.plan.setup.common_strategy(lease).unwrap_or_default();
                let client = ForeignClient::ClientGo(strategy);
                self.start_foreign_client(client, lease, lasts, fault)
            }
            FaultKind::HoldLock(lasts) => {
                self.start_foreign_client(ForeignClient::LockHolder, 0, lasts, fault)
            }
            FaultKind::FloodNamespace(lasts) => self.start_tenant(lasts, fault),
            FaultKind::IdleCandidate(lease, keeps, lasts) => {
                let strategy = self.plan.setup.common_strategy(lease).unwrap_or_default();
                let client = ForeignClient::Idle(keeps, strategy);
                self.start_foreign_client(client, lease, lasts, fault)
            }
            FaultKind::TamperWithCandidate(who, how) => self.tamper_with_candidate(who, how).await,
            FaultKind::HideCandidates(lasts) | FaultKind::DowngradeCandidates(lasts) => {
                let native = match kind {
                    FaultKind::HideCandidates(_) => NativeCandidates::Absent,
                    _ => NativeCandidates::V1Alpha2,
                };
                let until = self.context.log().now() + lasts;
                self.hidden.push((fault, until, native));
                self.serve_candidates(native);
                false
            }
            FaultKind::SpoilWork(lease, how, _) => {
                let state = &mut *self.context.state();
                if let Some((leader, _)) = state.guards.leader_of(&lease_name(lease)) {
                    state.work.spoil(fault, leader.to_owned(), how);
                }
                false
            }
            FaultKind::Twin(who, _) => self.twin(who),
            FaultKind::Say(lease, word, lasts) => self.say(lease, word, lasts).await,
            FaultKind::StandDown(who, until, _) => self.stand_down(who, until).await,
            FaultKind::ElectorsAway(_) => {
                self.electors_away += 1;
                let mut some = false;
                for elector in self.electors() {
                    some |= elector.runs();
                    elector.crash().await;
                }
                some
            }
            kind => {
                let process = kind.who().and_then(|who| self.processes.get_mut(who.0));
                let Some(process) = process else {
                    return false;
                };
                let at_once = match kind {
                    FaultKind::Crash(..)
                    | FaultKind::Pause(..)
                    | FaultKind::StepClock(..)
                    | FaultKind::StopClock(..) => process.runs(),
                    FaultKind::ShutDown(..) => process.runs() && !process.is_ending(),
                    FaultKind::EndWatches(..) => {
                        let watches = &self.context.state().effects.watches;
                        watches.get(&process.name).is_some_and(|open| *open > 0)
                    }
                    _ => false,
                };
                begin(process, &self.server, fault, kind).await;
                at_once
            }
        }
    }

    async fn end(&mut self, fault: usize, kind: FaultKind) {
        match kind {
            FaultKind::Twin(who, _) => {
                let name = twin_name(who);
                if let Some(index) = self.twins.iter().position(|client| client.name == name) {
                    self.twins.remove(index).crash().await;
                }
            }
            FaultKind::Say(lease, word, _) => self.unsay(lease, word).await,
            FaultKind::StandDown(who, ..) => self.stand_up(who),
            FaultKind::HideCandidates(_) | FaultKind::DowngradeCandidates(_) => {
                self.hidden.retain(|(other, ..)| *other != fault);
                self.serve_candidates(match kind {
                    FaultKind::HideCandidates(_) => NativeCandidates::V1Beta1,
                    _ => NativeCandidates::V1Beta1AndV1Alpha2,
                });
            }
            FaultKind::SpoilWork(..) => {
                let leader = self.context.state().work.unspoil(fault);
                let mut processes = self.processes.iter_mut();
                if let Some(process) = processes.find(|it| Some(&it.name) == leader.as_ref()) {
                    process.restart_if_ended(RestartName::New).await;
                }
            }
            FaultKind::ElectorsAway(_) => {
                self.electors_away = self.electors_away.saturating_sub(1);
                let back = self.electors_away == 0;
                for elector in self.electors().iter_mut().filter(|_| back) {
                    elector.restart_if_ended(RestartName::New).await;
                }
            }
            kind => {
                let Some(who) = kind.who() else { return };
                let away = self.is_away(who);
                if let Some(process) = self.processes.get_mut(who.0) {
                    end(process, away, kind).await;
                }
            }
        }
    }

    /// Restores a backup, and says whether that changes anything. The revision is bumped, each Lease gets a new one where
    /// docs/operate.md is followed, and the watches break, as with the restart of the API servers.
    fn restore_store(&mut self, fault: usize, touched: bool) -> bool {
        let Some((kept_at, backup)) = self.backups.remove(&fault) else {
            return false;
        };
        let newest = self.server.revision();
        let bump = newest.saturating_sub(backup.revision()) + 1_000_000;
        self.server.restore_and_bump(&backup, bump);
        let now = self.context.log().now();
        let leases = {
            let state = &mut *self.context.state();
            state
                .history
                .restore(now, kept_at, backup.revision(), newest);
            state.effects.compacted = None;
            if !touched {
                state.guards.forget_tokens();
                state.work.forget_tokens();
            }
            let names = state.history.stored.leases.keys();
            let names = names.filter(|name| touched && state.history.current(name).is_some());
            names.cloned().collect::<Vec<_>>()
        };
        for name in leases {
            self.intervene(&name);
            let namespace = match &*name {
                BUILTIN_LOCK => "kube-system",
                _ => NAMESPACE,
            };
            self.server.corrupt("leases", (namespace, &name), |lease| {
                lease["metadata"]["annotations"]["restored"] = json!("true");
            });
        }
        for process in self.processes.iter().chain(&self.twins) {
            process.faults.break_watches();
        }
        self.server.faults(RECORDER).break_watches();
        newest > backup.revision()
    }

    /// Changes the built-in versions of LeaseCandidates, whose objects stay in the store, if there are any, to those of the
    /// newest fault that has not ended. That one strikes until its end when a process is told of it.
    fn serve_candidates(&mut self, otherwise: NativeCandidates) {
        if self.plan.setup.custom || self.plan.setup.unserved {
            return;
        }
        let newest = self.hidden.last();
        let native = newest.map_or(otherwise, |(.., native)| *native);
        self.server.serve_candidates(native, false);
        let state = &mut *self.context.state();
        state.effects.hidden = newest.map(|(fault, until, _)| (*fault, *until));
        state.api = match native {
            NativeCandidates::V1Alpha2 => CandidateApi::V1Alpha2,
            _ => CandidateApi::V1Beta1,
        };
    }

    /// The electors come first among the processes.
    pub(crate) fn electors(&mut self) -> &mut [SimulatedProcess] {
        let count = self.plan.setup.electors.len();
        self.processes.get_mut(..count).unwrap_or_default()
    }

    /// True if a process stays away because it is an elector.
    fn is_away(&self, who: ProcessIndex) -> bool {
        self.electors_away > 0 && who.0 < self.plan.setup.electors.len()
    }

    /// A second process under the name of a candidate.
    fn twin(&mut self, who: ProcessIndex) -> bool {
        let Some((process, host)) = self.processes.get(who.0).zip(self.plan.setup.host(who)) else {
            return false;
        };
        let ProcessKind::Candidate(candidate, _) = &process.kind else {
            return false;
        };
        let name = twin_name(who);
        if self.twins.iter().any(|client| client.name == name) {
            return false;
        }
        let kind = ProcessKind::Candidate(*candidate, Some(process.identity()));
        let seed = self.plan.seed ^ 0x7717;
        let environment = (self.context.clone(), self.server.clone());
        let mut twin = SimulatedProcess::new(name, kind, host, seed, environment);
        twin.start(RestartName::New);
        self.twins.push(twin);
        true
    }
}

/// The name of the second process under the name of this one.
fn twin_name(who: ProcessIndex) -> String {
    format!("c{}twin", who.0)
}

async fn begin(process: &mut SimulatedProcess, server: &ApiServer, fault: usize, kind: FaultKind) {
    let faults = &process.faults;
    match kind {
        FaultKind::Crash(..) => process.crash().await,
        FaultKind::ShutDown(..) => process.shut_down(),
        FaultKind::Partition(..) => faults.partition(true),
        FaultKind::Pause(..) => process.pauses.pause(),
        FaultKind::Slow(_, more, _) => process.slow(more),
        FaultKind::Freeze(..) => faults.freeze_watches(true),
        FaultKind::EndWatches(_, WatchClose::Closed) => faults.close_watches(),
        FaultKind::EndWatches(_, WatchClose::Broken) => faults.break_watches(),
        FaultKind::OldCache(_, back, _) => {
            faults.hold_cache(Some(server.revision().saturating_sub(back)));
            faults.close_watches();
        }
        FaultKind::StepClock(_, millis) => process.clock.step(millis * 1000),
        FaultKind::StopClock(..) => process.clock.stop(true),
        kind => {
            if let Some(rule) = rule(&kind) {
                faults.inject(rule.labelled(fault as u64));
            }
        }
    }
}

async fn end(process: &mut SimulatedProcess, away: bool, kind: FaultKind) {
    let faults = &process.faults;
    match kind {
        FaultKind::Crash(..) | FaultKind::ShutDown(..) if away => {}
        FaultKind::Crash(_, _, name) => process.restart_if_ended(name).await,
        FaultKind::ShutDown(..) => process.restart_if_ended(RestartName::New).await,
        FaultKind::Partition(..) => faults.partition(false),
        FaultKind::Pause(..) => process.pauses.resume(),
        FaultKind::Slow(..) => process.slow(0),
        FaultKind::Freeze(..) => faults.freeze_watches(false),
        FaultKind::OldCache(..) => faults.hold_cache(None),
        FaultKind::StopClock(..) => process.clock.stop(false),
        FaultKind::Forbid(..) => {
            faults.clear();
            process.slow(0);
        }
        _ => {}
    }
}

/// The rule of a fault that befalls this number of requests.
fn rule(kind: &FaultKind) -> Option<Rule> {
    let code = |status| match status {
        100..1000 => status,
        _ => 500,
    };
    let (fault, requests, times) = match *kind {
        FaultKind::Refuse(_, requests, status, applied, times) => match applied {
            Applied::Yes => (Fault::RefuseAfter(code(status)), requests, times),
            Applied::No => (Fault::Refuse(code(status)), requests, times),
        },
        FaultKind::Lose(_, requests, applied, times) => match applied {
            Applied::Yes => (Fault::DropAfter, requests, times),
            Applied::No => (Fault::DropBefore, requests, times),
        },
        FaultKind::Delay(_, requests, by, times) => (Fault::Late(by), requests, times),
        FaultKind::Repeat(_, requests, after, times) => (Fault::Repeat(after), requests, times),
        FaultKind::Forbid(..) => {
            let forbidden = Fault::Refuse(403);
            (forbidden, Requests::Writes, u32::MAX)
        }
        _ => return None,
    };
    let verbs: &[RequestVerb] = match requests {
        Requests::All => &[],
        Requests::Reads => &[RequestVerb::Get, RequestVerb::List, RequestVerb::Watch],
        Requests::Writes => &[
            RequestVerb::Update,
            RequestVerb::Create,
            RequestVerb::Delete,
        ],
        Requests::Updates => &[RequestVerb::Update],
        Requests::Creates => &[RequestVerb::Create],
    };
    let rule = Rule::new(fault).times(times);
    Some(verbs.iter().fold(rule, |rule, verb| rule.verb(*verb)))
}
