//! A case: set up, struck by its fault, watched, and compared with what must be.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::CandidateTiming;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::analysis::Analysis;
use crate::case::FaultCase;
use crate::case_result::{CaseResult, MAX_STALL};
use crate::case_run::CaseRun;
use crate::fault::{ElectorStart, FaultScript};
use crate::last_operation::LastOperation;
use crate::matrix_bed::MatrixBed;
use crate::register::GuardedOperation;
use crate::server_fault::SharedFault;

/// The leader that a fault strikes.
struct StruckLeader {
    /// Its index.
    leader: usize,
    /// Its phase in a renewal interval, from 0 to 1.
    phase: f64,
    /// Its newest operation.
    operation: GuardedOperation,
}

/// A case that was run, with what a machine that stood still may be to blame for.
#[derive(Debug)]
struct PlayedCase {
    /// Its failures are those that nothing excuses.
    result: CaseResult,
    late: Vec<String>,
}

/// The longest time until a candidate works: the elector's `W_max`, and the start of many processes at once.
const STARTS: Duration = Duration::from_secs(120);

/// The time for which an elector is up before candidates start that it is to elect at once: more than its `W_max`.
const ELECTOR_KNOWS: Duration = Duration::from_secs(30);

/// The time without a fault at first.
const QUIET: Duration = Duration::from_secs(8);

/// The time before the fault that a picture shows.
const BEFORE: Duration = Duration::from_secs(5);

/// The time after the window for a candidate to work again, if none does.
const RECOVERS: Duration = Duration::from_secs(60);

/// Runs a case to its end, and once more where the machine stood still and lateness is all that was found.
///
/// # Errors
/// When it cannot be set up, so that there is no result.
pub(crate) async fn run_case(
    case: FaultCase,
    bed: Arc<MatrixBed>,
    shared: Option<SharedFault>,
) -> Result<CaseResult> {
    let from = bed.pulse.now();
    // A fault of the server strikes all cases at once, and does not come again.
    let strikes_again = shared.is_none();
    let mut played = play(case, "", Arc::clone(&bed), shared).await;
    let stall = bed.stall(from);
    if strikes_again && let Some(late) = blamed_on_stall(&played, stall) {
        let name = case.name();
        println!("test {name} ... once more, since the machine stalled {stall:.1} s: {late}");
        played = play(case, "-again", bed, None).await;
    }
    played.map(|PlayedCase { mut result, late }| {
        result.failures.extend(late);
        result
    })
}

/// The lateness that is all that was found, on a machine that stood still for `stall` seconds meanwhile.
fn blamed_on_stall(played: &Result<PlayedCase>, stall: f64) -> Option<String> {
    let late = match played {
        Ok(played) if !played.result.failures.is_empty() || played.late.is_empty() => return None,
        Ok(played) => played.late.join("; "),
        Err(error) => format!("{error:#}"),
    };
    (stall > MAX_STALL).then_some(late)
}

async fn play(
    case: FaultCase,
    suffix: &str,
    bed: Arc<MatrixBed>,
    shared: Option<SharedFault>,
) -> Result<PlayedCase> {
    let mut run = CaseRun::open(case, suffix, bed, shared).await?;
    let struck = match case.fault.script {
        FaultScript::FirstStart(electors) => {
            if electors == ElectorStart::Before {
                run.leave_electors_alone(ELECTOR_KNOWS).await?;
            }
            None
        }
        _ => Some(settle(&mut run).await?),
    };
    let (start, pulse_from) = (run.log.now(), run.bed.pulse.now());
    let end = Instant::now() + case.fault.window;
    let strike = async {
        match &struck {
            Some(struck) => run.strike(struck.leader).await,
            None => run.start_candidates().await,
        }
    };
    let begun = Instant::now();
    timeout(case.fault.window, strike)
        .await
        .context("the fault took longer than its window")??;
    // Beside the other cases several processes may take longer to start than the one that a gap explains.
    let starting = match struck {
        Some(_) => Duration::ZERO,
        None => begun.elapsed(),
    };
    sleep_until(end).await;
    let window = start..start + case.fault.window;
    let stall = run.bed.stall(pulse_from);
    let judged = case.fault.judges(case.subject);
    let recovers = if judged {
        run.log.next(RECOVERS).await.err()
    } else {
        None
    };
    let operations = run.log.operations();
    let order = case.subject.order();
    let analysis = Analysis::read(&operations, order, &window);
    let last_operation = struck
        .as_ref()
        .and_then(|struck| run.last_operation(&operations, &struck.operation));
    run.save(&operations)?;
    let mut failures = run.broken().await?;
    let mut late = Vec::new();
    if judged {
        let delay = stall + starting.as_secs_f64();
        failures.extend(failures_of(&case, &analysis));
        late.extend(gap_of(&case, &analysis, delay));
        let floor = run.floor().filter(|_| stall <= MAX_STALL);
        failures.extend(floor.and_then(|floor| analysis.below(floor)));
        let lease = CandidateTiming::default().lease_duration;
        let past = |last: LastOperation| last.failure(case.fault.stops(), stall, lease);
        failures.extend(last_operation.and_then(past));
        late.extend(recovers.map(|error| format!("it does not recover: {error}")));
        failures.extend(run.unexpected_ends()?);
    }
    let result = CaseResult {
        fault: case.fault.name.to_owned(),
        subject: case.subject,
        run: case.run,
        phase: struck.map_or(0.0, |struck| struck.phase),
        stall,
        analysis,
        last_operation,
        changes: match case.fault.compared && case.run == 0 {
            true => Analysis::changes(&operations, start.saturating_sub(BEFORE)),
            false => Vec::new(),
        },
        failures,
    };
    Ok(PlayedCase { result, late })
}

/// Has the candidates lead for a while, and waits for the moment at which the fault is to strike.
async fn settle(run: &mut CaseRun) -> Result<StruckLeader> {
    run.start_candidates().await?;
    run.log.next(STARTS).await?;
    sleep(QUIET).await;
    if let Some(shared) = &mut run.shared {
        shared.begun().await?;
        let (leader, operation) = run.leader()?;
        let phase = run.present_phase(leader);
        return Ok(StruckLeader {
            leader,
            phase,
            operation,
        });
    }
    let (phase, deadline) = (run.phase(), Instant::now() + STARTS);
    let leader = loop {
        let (leader, _) = run.leader()?;
        match run.wait_for_phase(leader, phase).await {
            // The machine was so busy that the first leader lost its lease, and another one leads.
            Err(_) if run.leader()?.0 != leader && Instant::now() < deadline => {}
            waited => break waited.map(|()| leader)?,
        }
    };
    let (_, operation) = run.leader()?;
    Ok(StruckLeader {
        leader,
        phase,
        operation,
    })
}

/// The failures that the operations show, however slow the machine is.
fn failures_of(case: &FaultCase, analysis: &Analysis) -> Vec<String> {
    let mut failures = Vec::new();
    let late = case.fault.lateness(case.subject);
    if analysis.two_believers > late.time.as_secs_f64() {
        failures.push(format!("two believers for {:.2} s", analysis.two_believers));
    }
    if analysis.past_the_fence > 0 {
        let stale = analysis.past_the_fence;
        failures.push(format!("{stale} stale operations past the fence"));
    }
    if analysis.wrongly_refused > 0 {
        let refused = analysis.wrongly_refused;
        failures.push(format!("{refused} operations of the leader refused"));
    }
    if analysis.stale > late.operations {
        failures.push(format!("{} stale operations", analysis.stale));
    }
    failures
}

/// The gap that is too long, where the machine explains `delay` seconds of it.
fn gap_of(case: &FaultCase, analysis: &Analysis, delay: f64) -> Option<String> {
    let longest = case.fault.longest_gap(case.subject).as_secs_f64() + delay;
    let gap = analysis.worst_gap;
    (gap > longest).then(|| format!("a gap of {gap:.1} s, and {longest:.1} s are explained"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault_catalogue::FAULTS;
    use crate::subject::TestSubject;

    /// The failures of a case of that fault, on a machine that stalled for half a second.
    fn found(fault: &str, subject: TestSubject, analysis: Analysis) -> String {
        let fault = FAULTS.iter().find(|one| one.name == fault).unwrap();
        let case = FaultCase {
            fault,
            subject,
            run: 0,
        };
        let mut found = failures_of(&case, &analysis);
        found.extend(gap_of(&case, &analysis, 0.5));
        found.join("; ")
    }

    #[test]
    fn lateness_alone_on_a_machine_that_stood_still_is_played_once_more() {
        let played = |late: &[&str], failures: &[&str]| {
            let owned = |all: &[&str]| all.iter().copied().map(str::to_owned).collect();
            let mut result = CaseResult::of("killed", TestSubject::Ours);
            result.failures = owned(failures);
            let late = owned(late);
            Ok(PlayedCase { result, late })
        };
        let busy = MAX_STALL + 0.1;
        for (outcome, stall, blamed) in [
            (played(&["a gap"], &[]), busy, Some("a gap")),
            (played(&["a gap"], &[]), MAX_STALL, None),
            (played(&["a gap"], &["two believers"]), busy, None),
            (played(&[], &[]), busy, None),
            (Err(anyhow::anyhow!("no renewal")), busy, Some("no renewal")),
            (Err(anyhow::anyhow!("no renewal")), MAX_STALL, None),
        ] {
            let found = blamed_on_stall(&outcome, stall);
            assert_eq!(found.as_deref(), blamed, "{outcome:?}");
        }
    }

    #[test]
    fn one_late_operation_is_no_failure_where_a_process_was_stopped() {
        let stale = |stale| Analysis {
            stale,
            ..Analysis::default()
        };
        for (fault, subject, operations, failure) in [
            ("stop-20", TestSubject::Ours, 1, ""),
            ("partition-20", TestSubject::Ours, 1, "1 stale operations"),
            ("stop-20", TestSubject::Ours, 2, "2 stale operations"),
            ("stop-20", TestSubject::Command, 2, ""),
        ] {
            assert_eq!(found(fault, subject, stale(operations)), failure, "{fault}");
        }
    }

    #[test]
    fn a_gap_is_explained_by_the_lease_the_fallback_and_the_fault() {
        for (fault, subject, longest) in [
            ("killed", TestSubject::Ours, 17.5),
            ("killed", TestSubject::AutoAlone, 22.5),
            ("elector-killed", TestSubject::Ours, 22.5),
        ] {
            let gap = |worst_gap| Analysis {
                worst_gap,
                ..Analysis::default()
            };
            assert_eq!(found(fault, subject, gap(longest)), "");
            assert!(found(fault, subject, gap(longest + 0.1)).starts_with("a gap of"));
        }
    }

    #[test]
    fn an_overlap_and_a_fence_that_fails_are_always_failures() {
        let overlap = Analysis {
            two_believers: 0.05,
            past_the_fence: 1,
            wrongly_refused: 3,
            ..Analysis::default()
        };
        let fence = "1 stale operations past the fence; 3 operations of the leader refused";
        let both = format!("two believers for 0.05 s; {fence}");
        for (fault, subject, failures) in [
            ("stop-60", TestSubject::Ours, both.as_str()),
            ("stop-60", TestSubject::Command, fence),
            ("replies-10", TestSubject::Command, &both),
        ] {
            assert_eq!(found(fault, subject, overlap), failures, "{fault}");
        }
    }
}
