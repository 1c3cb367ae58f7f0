//! One run: both machines, their requests, their watches and the work, in one loop that owns them all.
//!
//! ```text
//!   inputs: watch events, responses, deadlines ──> HolderShell, RegistrationShell ──> effects ──> requests
//!                                                       └──> the work of a term: started, stopped
//! ```

pub(crate) mod failures;
mod inputs;
mod migration;
mod registration;
mod requests;
pub(crate) mod sources;
mod term;

use elector_api::CandidateApi;
use elector_protocol::holder::{Effect, WaitReason};
use elector_protocol::{Instant, Moment, Term};
use elector_runtime::{HolderShell, LeaseResponse, WatchEvent, WriteOutcomeKind, Writer};

use self::failures::SessionFailures;
use self::inputs::{CandidateInput, candidate_event};
use self::migration::Migration;
use self::registration::RegistrationShell;
use self::requests::{CandidateResponse, LeaseWriteUnderWay};
use self::sources::ApiSource;
use crate::boxed_work::MakeWork;
use crate::candidate_context::CandidateContext;
use crate::error::Error;
use crate::event::{Event, TermOrigin};
use crate::finish::{Finish, RunEnd, ShutdownSignal};
use crate::group::pace::PartPace;
use crate::outcome::TermEnd;
use crate::process_health::ProcessHealth;
use crate::term_state::TermState;
use crate::work::TermWork;

/// Everything that one run owns. Dropping it drops the work, the watches and the requests.
pub(crate) struct CandidateSession<'a> {
    run: &'a CandidateContext,
    writer: Writer,
    api: ApiSource,
    holder: HolderShell,
    registration: RegistrationShell,
    migration: Migration,
    failures: SessionFailures,
    write: Option<LeaseWriteUnderWay>,
    work: Option<TermWork>,
    /// The term that began last and whose end has not been reported.
    term: Option<Term>,
    /// When the clock alone changes the published status next.
    status_changes_at: Option<Instant>,
    /// The wait that was reported last, since the last term.
    announced: Option<WaitReason>,
    /// Of a part of a group.
    pace: Option<PartPace>,
    /// The way in which the term begins that this process has asked for.
    origin: TermOrigin,
    last_end: Option<TermEnd>,
    finish: Option<Finish>,
    /// Until when a shutdown waits for the server.
    finish_by: Option<Instant>,
}

/// The number of requests for which a shutdown waits at most.
const SHUTDOWN_REQUESTS: u32 = 2;

// === impl CandidateSession ===

impl<'a> CandidateSession<'a> {
    pub(crate) fn new(
        run: &'a CandidateContext,
        api: ApiSource,
        served: Option<CandidateApi>,
    ) -> Self {
        let (config, clock, instance) = (&run.config, &run.clock, run.instance.lock());
        // Leases are the same in all of these APIs.
        let writer = Writer::new(run.cluster.clone(), served.unwrap_or(CandidateApi::V1Beta1));
        Self {
            run,
            holder: HolderShell::new(
                config.holder(instance.as_ref().map(|lock| lock.life())),
                config.lease.clone(),
                clock.holder(),
            )
            .with_metadata(config.lease_metadata())
            .with_instance(instance),
            registration: RegistrationShell::new(config, served.map(|_| writer.clone())),
            writer,
            api,
            migration: Migration::default(),
            failures: SessionFailures::new(config.given.mode, run.monitor.clone()),
            write: None,
            work: None,
            term: None,
            status_changes_at: None,
            announced: None,
            pace: run.sources.pace().cloned(),
            origin: TermOrigin::Granted,
            last_end: None,
            finish: None,
            finish_by: None,
        }
    }

    /// Runs until something ends the run.
    pub(crate) async fn run(
        mut self,
        work: &mut MakeWork<'_>,
        health: &mut ProcessHealth,
        shutdown: &mut ShutdownSignal,
    ) -> Result<RunEnd, Error> {
        let run = self.run;
        let sources = &run.sources;
        let mut leases = sources.lease(&run.cluster, &run.config.lease, run.seed);
        let candidates = |session: &Self| {
            let registration = &session.registration;
            registration.events(sources, &run.config, run.seed)
        };
        let mut candidate = candidates(&self);
        let registers = self.run.config.given.mode.registers();
        loop {
            let wake_at = self.advance(work)?;
            if self.is_over() {
                return Ok(RunEnd::new(self.finish.take(), self.last_end.take()));
            }
            health.note_term(self.term);
            let input = tokio::select! {
                biased;
                response = self.holder.response() => CandidateInput::LeaseResponse(response),
                change = work_change(&mut self.work) => CandidateInput::WorkChange(change),
                _ = &mut *shutdown, if self.finish.is_none() => CandidateInput::ShutDown,
                error = health.unwell(), if self.finish.is_none() => CandidateInput::Unwell(error),
                response = self.registration.request.response() => CandidateInput::CandidateResponse(response),
                event = leases.next() => CandidateInput::LeaseEvent(event),
                event = candidate_event(&mut candidate) => CandidateInput::CandidateEvent(event),
                api = self.api.next(), if registers && self.finish.is_none() => CandidateInput::ApiMoved(api),
                () = self.migration.removal.response() => CandidateInput::Removed,
                () = run.sleep_until(wake_at) => CandidateInput::Time,
            };
            if self.handle_input(input)? {
                candidate = candidates(&self);
            }
        }
    }

    /// Tells the machines what came in. Says whether the LeaseCandidate is to be watched in another API from now on.
    fn handle_input(&mut self, input: CandidateInput) -> Result<bool, Error> {
        let moment = self.run.clock.moment();
        let now = moment.holder;
        if let CandidateInput::LeaseResponse(LeaseResponse::Wrote(outcome)) = &input {
            self.note_written(now, outcome.kind());
        }
        let failures = &mut self.failures;
        let mut moved = false;
        if input.tells_of_lease() {
            self.run.status.note_heard(now);
        }
        match input {
            CandidateInput::LeaseResponse(response) => {
                self.holder.handle_response(moment, response, failures);
            }
            CandidateInput::LeaseEvent(event) => self.holder.handle_event(moment, event, failures),
            CandidateInput::CandidateResponse(response) => {
                self.handle_candidate_response(now, response)?;
            }
            CandidateInput::CandidateEvent(event) => {
                match &event {
                    WatchEvent::Failed(error) => self.api.suspect(error),
                    WatchEvent::Synced => self.api.trust(),
                    _ => {}
                }
                let config = &self.run.config;
                self.registration.handle_event(now, event, config, failures);
            }
            CandidateInput::ApiMoved(api) => {
                let (registration, leads) = (&mut self.registration, self.term.is_some());
                let writer = self.writer.with_candidate_api(api);
                let migration = &mut self.migration;
                moved = migration.start(writer, &self.run.config, registration, failures, leads)?;
            }
            CandidateInput::WorkChange(finish) => self.handle_work_change(moment, finish),
            CandidateInput::ShutDown => self.begin_finish(Finish::ShutDown),
            CandidateInput::Unwell(error) => {
                self.run.note_unwell(&error);
                self.begin_finish(Finish::Unwell(error));
            }
            CandidateInput::Removed | CandidateInput::Time => {}
        }
        if self.registration.take_ping() {
            self.holder.handle_ping(moment);
        }
        let stands_down = self
            .registration
            .stands_down_for(now, self.run.clock.wall());
        self.holder.handle_stand_down(stands_down.is_some());
        if self.registration.is_withdrawn() {
            self.holder.handle_withdrawn();
        }
        Ok(moved)
    }

    fn handle_candidate_response(
        &mut self,
        now: Instant,
        response: CandidateResponse,
    ) -> Result<(), Error> {
        if let CandidateResponse::Wrote(outcome) = &response
            && let Some(error) = outcome.error()
        {
            self.api.suspect(error);
        }
        // The release does not wait for a server that does not delete.
        let released = matches!(response, CandidateResponse::Deleted(_));
        let (config, failures, leads) = (&self.run.config, &mut self.failures, self.term.is_some());
        self.registration
            .handle_response(now, response, config, failures, leads)?;
        if released {
            self.holder.handle_withdrawn();
        }
        Ok(())
    }

    /// Takes both machines as far as they go now. Returns when to look again.
    fn advance(&mut self, work: &mut MakeWork<'_>) -> Result<Option<Instant>, Error> {
        let moment = self.run.clock.moment();
        let now = moment.holder;
        let silence = self.check_silence(now);
        self.keep_pace(moment);
        let decision = self.holder.step(moment, self.run.clock.wall());
        let stop = decision.effects.iter().find_map(|effect| match effect {
            Effect::Stop(reason) => Some(reason),
            _ => None,
        });
        // Before anything that may take its time, as a line of the log may.
        let holder = &self.holder;
        let (known, wait) = (holder.known(), holder.waiting(moment));
        self.run
            .status
            .publish(now, holder.belief(), stop, known, wait);
        let changes_at = self.run.status.note_time(self.status_changes_at, now);
        self.status_changes_at = changes_at;
        for effect in decision.effects {
            self.perform(effect, now, work);
        }
        self.announce_wait(moment);
        let limit = self.enforce_limit(now);
        let answers = self.holder.can_accept();
        let (config, wall) = (&self.run.config, self.run.clock.wall());
        let registration = self.registration.advance(now, wall, config, answers);
        if self.term.is_none() {
            self.registration.check_lease(&self.run.config)?;
        }
        if self.registration.take_registered() {
            self.run.emit(&Event::Registered);
        }
        if self.finish.is_some() && self.work.is_none() && self.finish_by.is_none() {
            let patience = self.run.config.timing.request_timeout * SHUTDOWN_REQUESTS;
            self.finish_by = Some(now.after(patience));
        }
        let stands_down = self.registration.stands_down_for(now, wall);
        let wake = [
            decision.wake_at,
            registration,
            stands_down.map(|remaining| now.after(remaining)),
            limit,
            silence,
            changes_at,
            self.finish_by,
            self.failures.tick(now),
        ];
        Ok(wake.into_iter().flatten().min())
    }

    /// Leaves a lease that has become free alone for as long as the acquisitions of other parts take.
    fn keep_pace(&mut self, now: Moment) {
        if let Some(pace) = &mut self.pace {
            let is_free = self.holder.free_for(now).is_some();
            self.holder.handle_delay(pace.delay(is_free, now.monotonic));
        }
    }

    /// While waiting, a Lease that has not changed for two renewals is read: the watch may be dead, or its leader. While
    /// reads bring what a watch does not, they come each retry period: a grant stands for less than two renewals.
    fn check_silence(&mut self, now: Instant) -> Option<Instant> {
        if self.term.is_some() || self.finish.is_some() {
            self.holder.expect_silence(now);
            return None;
        }
        let timing = &self.run.config.timing;
        let silence = match self.holder.watch_lags() || self.registration.watch_lags {
            true => timing.retry_period,
            false => timing.renew_interval * 2,
        };
        let (silent, next) = self.holder.check_silence(now, silence);
        if silent {
            // Electors ask for candidates when a leader is gone: their ping must not be missed either.
            self.registration.machine.request_read();
        }
        Some(next)
    }

    fn perform(&mut self, effect: Effect, now: Instant, work: &mut MakeWork<'_>) {
        match effect {
            Effect::Start { term, token } => self.start_work(term, token, work),
            Effect::Stop(reason) => self.stop_work(reason, now),
            Effect::Ended(ending) => {
                self.end_term(ending.into());
                if self.finish.is_none() && self.run.config.given.one_term {
                    self.begin_finish(Finish::TermEnded);
                }
            }
            Effect::Read | Effect::Create(_) | Effect::Write { .. } => {
                self.note_way_to_term(&effect);
                self.note_request(&effect, now);
                self.holder.send(effect, now, &self.writer);
            }
        }
    }

    /// Begins to end the run.
    fn begin_finish(&mut self, finish: Finish) {
        finish.add_to(&mut self.finish);
        self.holder.shut_down(self.run.clock.moment());
        self.registration.machine.withdraw();
    }

    fn is_over(&mut self) -> bool {
        if self.work.as_ref().is_some_and(TermWork::is_stuck) {
            self.run.status.change_term(TermState::leave_work);
            self.end_term(TermEnd::WorkStillRuns);
            if self.finish.is_none() {
                self.finish = Some(Finish::TermEnded);
            }
            return true;
        }
        if self.finish.is_none() || self.work.is_some() {
            return false;
        }
        let done = self.holder.is_finished() && self.registration.is_withdrawn();
        let late = self
            .finish_by
            .is_some_and(|finish_by| finish_by <= self.run.clock.holder());
        if late && !done {
            self.end_term(TermEnd::Unconfirmed);
        }
        done || late
    }

    fn note_request(&mut self, effect: &Effect, now: Instant) {
        self.write = LeaseWriteUnderWay::of(effect, now);
        if let Some(monitor) = &self.run.monitor
            && *effect == Effect::Read
            && self.term.is_some()
        {
            monitor.note_read_in_term();
        }
    }

    fn note_written(&mut self, now: Instant, outcome: WriteOutcomeKind) {
        if let Some(write) = self.write.take()
            && let Some(monitor) = &self.run.monitor
        {
            monitor.note_write(write.purpose, outcome, now.since(write.sent));
        }
    }
}

async fn work_change(work: &mut Option<TermWork>) -> Option<Finish> {
    match work {
        Some(work) => work.change().await,
        None => std::future::pending().await,
    }
}
