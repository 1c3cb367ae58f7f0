//! From faults that last to acts at instants, and their performance.

use std::time::Duration;

use elector_apiserver::{ApiServer, Fault, Rule, Verb};
use http::StatusCode;

use crate::plan::{Applied, Ending, Name, Plan, Requests, What, Who};
use crate::process::{Kind, Process};
use crate::stranger::Guest;
use crate::world::World;

/// Something that is done at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ScheduledAction {
    /// A process begins.
    Start(Who),
    /// A fault begins.
    Begin(What),
    /// A fault that lasted ends.
    End(What),
}

/// The acts of a plan in the order of time.
pub(crate) fn schedule(plan: &Plan) -> Vec<(Duration, ScheduledAction)> {
    let starts = (0..plan.setup.processes()).filter_map(|index| {
        let site = plan.setup.site(Who(index))?;
        Some((site.start, ScheduledAction::Start(Who(index))))
    });
    let mut actions: Vec<_> = starts.collect();
    for fault in &plan.faults {
        actions.push((fault.at, ScheduledAction::Begin(fault.what.clone())));
        if fault.what.ends() {
            let end = fault.at + fault.what.lasts();
            actions.push((end, ScheduledAction::End(fault.what.clone())));
        }
    }
    actions.sort_by_key(|(at, _)| *at);
    actions
}

// === impl World ===

impl World {
    pub(crate) async fn perform(&mut self, action: ScheduledAction) {
        match action {
            ScheduledAction::Start(who) => {
                if let Some(process) = self.processes.get_mut(who.0).filter(|it| !it.runs()) {
                    process.start(Name::New);
                }
            }
            ScheduledAction::Begin(what) => {
                self.context.log().note("plan", format_args!("{what:?}"));
                self.begin(what).await;
            }
            ScheduledAction::End(what) => {
                self.context
                    .log()
                    .note("plan", format_args!("end of {what:?}"));
                self.end(what).await;
            }
        }
    }

    async fn begin(&mut self, what: What) {
        match what {
            What::Compact => self.server.compact(),
            What::TamperWithLease(lease, how) => self.tamper_with_lease(lease, how).await,
            What::Plain(lease, lasts) => self.invite(Guest::Plain, lease, lasts),
            What::Builtin(lease, lasts) => self.invite(Guest::Builtin, lease, lasts),
            What::TamperWithCandidate(who, how) => self.tamper_with_candidate(who, how).await,
            What::Twin(who, _) => self.twin(who),
            what => {
                if let Some(process) = what.who().and_then(|who| self.processes.get_mut(who.0)) {
                    begin(process, &self.server, what).await;
                }
            }
        }
    }

    async fn end(&mut self, what: What) {
        if let What::Twin(who, _) = what {
            let name = twin_name(who);
            if let Some(index) = self.guests.iter().position(|guest| guest.name == name) {
                self.guests.remove(index).crash().await;
            }
            return;
        }
        let Some(process) = what.who().and_then(|who| self.processes.get_mut(who.0)) else {
            return;
        };
        match what {
            What::Crash(_, _, name) => process.revive(name).await,
            What::ShutDown(..) => process.revive(Name::New).await,
            What::Partition(..) => process.switches.partition(false),
            What::Pause(..) => process.pauses.resume(),
            What::Slow(..) => process.slow(0),
            What::Freeze(..) => process.switches.freeze_watches(false),
            What::OldCache(..) => process.switches.hold_cache(None),
            What::StopClock(..) => process.clock.stop(false),
            _ => {}
        }
    }

    /// A second process under the name of a candidate.
    fn twin(&mut self, who: Who) {
        let Some((process, site)) = self.processes.get(who.0).zip(self.plan.setup.site(who)) else {
            return;
        };
        let Kind::Candidate(candidate, _) = &process.kind else {
            return;
        };
        let name = twin_name(who);
        if self.guests.iter().any(|guest| guest.name == name) {
            return;
        }
        let kind = Kind::Candidate(*candidate, Some(process.identity()));
        let seed = self.plan.seed ^ 0x7717;
        let stage = (self.context.clone(), self.server.clone());
        let mut twin = Process::new(name, kind, site, seed, stage);
        twin.start(Name::New);
        self.guests.push(twin);
    }
}

/// The name of the second process under the name of this one.
fn twin_name(who: Who) -> String {
    format!("c{}twin", who.0)
}

async fn begin(process: &mut Process, server: &ApiServer, what: What) {
    let switches = &process.switches;
    match what {
        What::Crash(..) => process.crash().await,
        What::ShutDown(..) => process.shut_down(),
        What::Partition(..) => switches.partition(true),
        What::Pause(..) => process.pauses.pause(),
        What::Slow(_, more, _) => process.slow(more),
        What::Freeze(..) => switches.freeze_watches(true),
        What::EndWatches(_, Ending::Closed) => switches.close_watches(),
        What::EndWatches(_, Ending::Broken) => switches.break_watches(),
        What::OldCache(_, back, _) => {
            switches.hold_cache(Some(server.revision().saturating_sub(back)));
            switches.close_watches();
        }
        What::Refuse(_, requests, status, applied, times) => {
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let fault = match applied {
                Applied::Yes => Fault::RefuseAfter(code),
                Applied::No => Fault::Refuse(code),
            };
            switches.inject(rule(fault, requests).times(times));
        }
        What::Lose(_, requests, applied, times) => {
            let fault = match applied {
                Applied::Yes => Fault::DropAfter,
                Applied::No => Fault::DropBefore,
            };
            switches.inject(rule(fault, requests).times(times));
        }
        What::Delay(_, requests, by, times) => {
            switches.inject(rule(Fault::Late(by), requests).times(times));
        }
        What::Repeat(_, requests, after, times) => {
            switches.inject(rule(Fault::Repeat(after), requests).times(times));
        }
        What::StepClock(_, millis) => process.clock.step(millis * 1000),
        What::StopClock(..) => process.clock.stop(true),
        _ => {}
    }
}

fn rule(fault: Fault, requests: Requests) -> Rule {
    let verbs: &[Verb] = match requests {
        Requests::All => &[],
        Requests::Reads => &[Verb::Get, Verb::List, Verb::Watch],
        Requests::Writes => &[Verb::Update, Verb::Create, Verb::Delete],
        Requests::Updates => &[Verb::Update],
        Requests::Creates => &[Verb::Create],
    };
    verbs
        .iter()
        .fold(Rule::new(fault), |rule, verb| rule.verb(*verb))
}

// === impl What ===

impl What {
    /// Whom it befalls.
    pub(crate) const fn who(&self) -> Option<Who> {
        match self {
            Self::Crash(who, ..)
            | Self::ShutDown(who, ..)
            | Self::Pause(who, ..)
            | Self::Partition(who, ..)
            | Self::Slow(who, ..)
            | Self::Freeze(who, ..)
            | Self::EndWatches(who, ..)
            | Self::OldCache(who, ..)
            | Self::Refuse(who, ..)
            | Self::Lose(who, ..)
            | Self::Delay(who, ..)
            | Self::Repeat(who, ..)
            | Self::StepClock(who, ..)
            | Self::StopClock(who, ..)
            | Self::TamperWithCandidate(who, ..)
            | Self::Twin(who, ..) => Some(*who),
            Self::Compact | Self::TamperWithLease(..) | Self::Plain(..) | Self::Builtin(..) => None,
        }
    }

    /// Whether something is done when it is over.
    pub(crate) const fn ends(&self) -> bool {
        matches!(
            self,
            Self::Crash(..)
                | Self::ShutDown(..)
                | Self::Pause(..)
                | Self::Partition(..)
                | Self::Slow(..)
                | Self::Freeze(..)
                | Self::OldCache(..)
                | Self::StopClock(..)
                | Self::Twin(..)
                | Self::Plain(..)
                | Self::Builtin(..)
        )
    }
}
