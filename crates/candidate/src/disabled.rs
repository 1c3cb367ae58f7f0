//! A run without an election: the work runs at once, and its guard says yes.

use std::time::Duration;

use elector_protocol::holder::{Belief, StopReason};
use elector_protocol::{Instant, ResourceVersion, Term, Token};

use crate::boxed_work::MakeWork;
use crate::candidate_context::CandidateContext;
use crate::event::{Event, TermOrigin};
use crate::finish::{Finish, RunEnd, ShutdownSignal};
use crate::outcome::TermEnd;
use crate::process_health::ProcessHealth;

/// The belief of a process without an election. The terms of elections are higher, and so are their tokens; no clock
/// gets to its deadline, which is a century away.
const BELIEF: Belief = Belief {
    term: Term(0),
    token: Token(ResourceVersion(0)),
    deadline: Instant::from_epoch(Duration::from_secs(100 * 365 * 24 * 3600)),
};

/// Runs the work until it ends, or is asked to stop and does.
pub(crate) async fn run_disabled(
    run: &CandidateContext,
    work: &mut MakeWork<'_>,
    health: &mut ProcessHealth,
    shutdown: &mut ShutdownSignal,
) -> RunEnd {
    let (lease, began) = (&run.config.lease, BELIEF.term);
    let term = began.0;
    tracing::warn!(%lease, "leader election is disabled: the work runs whatever other processes do");
    let publish = |stop: Option<&StopReason>| {
        run.status
            .publish(run.clock.holder(), Some(BELIEF), stop, None, None);
    };
    publish(None);
    let mut work = run.start_work(began, BELIEF.token, TermOrigin::Disabled, work);
    health.note_term(Some(began));
    let mut finish = None;
    let end = loop {
        if work.is_gone() {
            run.emit(&Event::WorkStopped { term });
            break TermEnd::Released;
        }
        if work.is_stuck() {
            break TermEnd::WorkStillRuns;
        }
        let (told, limit) = (work.guard.is_told(), work.limit());
        tokio::select! {
            biased;
            ended = work.change() => if let Some(ended) = ended {
                ended.add_to(&mut finish);
            },
            _ = &mut *shutdown, if !told => Finish::ShutDown.add_to(&mut finish),
            error = health.unwell(), if finish.is_none() => {
                run.note_unwell(&error);
                Finish::Unwell(error).add_to(&mut finish);
            }
            () = run.sleep_until(limit) => {}
        }
        if finish.is_some() && !told && !work.is_gone() {
            let reason = StopReason::ShutDown;
            publish(Some(&reason));
            run.emit(&Event::Stopping { term, reason });
        }
        work.enforce(run.clock.holder());
    };
    run.status.forget();
    health.note_term(None);
    run.emit(&Event::Ended {
        term,
        end: end.clone(),
    });
    let reason = finish.or(Some(Finish::TermEnded));
    RunEnd::new(reason, Some(end))
}
