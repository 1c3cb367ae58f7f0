//! One fault and one subject: set up, struck, watched, judged.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::analysis::Analysis;
use crate::fault::Fault;
use crate::subject::Subject;
use crate::world::{Ground, World};

/// One run of one fault with one subject.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The fault.
    pub fault: &'static Fault,
    /// The subject.
    pub subject: Subject,
    /// Counted from 0, over phases and repetitions.
    pub run: u32,
}

/// What was seen in a cell.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// The fault's name.
    pub fault: &'static str,
    /// The subject.
    pub subject: Subject,
    /// The run.
    pub run: u32,
    /// How far into a renewal interval the fault struck, from 0 to 1.
    pub phase: f64,
    /// For how long at worst a process stood still meanwhile to which nothing was done, seconds.
    pub stall: f64,
    /// What the witness says.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// What of it must not be. What others' candidates do is not judged, what an elector of ours does for them is.
    pub faults: Vec<String>,
}

/// How long it may take until somebody works: the elector's `W_max`, and the start of many processes at once.
const STARTS: Duration = Duration::from_secs(120);

/// How long there is no fault at first.
const QUIET: Duration = Duration::from_secs(8);

/// How long after the window somebody must work again, if nobody does.
const RECOVERS: Duration = Duration::from_secs(60);

// === impl Cell ===

impl Cell {
    /// What it is called.
    pub fn name(&self) -> String {
        format!("{}::{}::{}", self.fault.name, self.subject, self.run)
    }

    /// Plays it to its end.
    ///
    /// # Errors
    /// When it cannot be set up, so that there is nothing to judge.
    pub(crate) async fn play(self, ground: Arc<Ground>) -> Result<Outcome> {
        let mut world = World::open(self, ground).await?;
        world.log.next(STARTS).await?;
        sleep(QUIET).await;
        let leader = world.leader()?;
        let phase = world.phase();
        world.wait_for_phase(leader, phase).await?;
        let (start, calm_from) = (world.log.now(), world.pulse());
        let end = Instant::now() + self.fault.window;
        timeout(self.fault.window, world.strike(leader))
            .await
            .context("the fault took longer than its window")??;
        sleep_until(end).await;
        let window = start..start + self.fault.window;
        let stall = world.stall(calm_from);
        let judged = self.subject.is_judged();
        let recovers = if judged {
            world.log.next(RECOVERS).await.err()
        } else {
            None
        };
        let operations = world.log.operations();
        let order = self.subject.order();
        let analysis = Analysis::read(&operations, order, &window);
        world.save(&operations)?;
        let mut faults = world.broken().await?;
        if judged {
            faults.extend(self.judge(&analysis));
            faults.extend(recovers.map(|error| format!("it does not recover: {error}")));
            faults.extend(world.deaths()?);
        }
        Ok(Outcome {
            fault: self.fault.name,
            subject: self.subject,
            run: self.run,
            phase,
            stall,
            analysis,
            faults,
        })
    }

    fn judge(&self, analysis: &Analysis) -> Vec<String> {
        let mut faults = Vec::new();
        let late = self.fault.lateness(self.subject);
        if analysis.two_believers > late.time.as_secs_f64() {
            faults.push(format!("two believers for {:.2} s", analysis.two_believers));
        }
        if analysis.past_the_fence > 0 {
            faults.push(format!(
                "{} stale operations past the fence",
                analysis.past_the_fence
            ));
        }
        if analysis.wrongly_refused > 0 {
            faults.push(format!(
                "{} operations of the leader refused",
                analysis.wrongly_refused
            ));
        }
        if analysis.stale > late.operations {
            faults.push(format!("{} stale operations", analysis.stale));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FAULTS;

    fn cell(fault: &str, subject: Subject) -> Cell {
        let fault = FAULTS.iter().find(|one| one.name == fault).unwrap();
        Cell {
            fault,
            subject,
            run: 0,
        }
    }

    #[test]
    fn one_late_operation_is_forgiven_where_a_process_was_stopped() {
        let late = Analysis {
            stale: 1,
            ..Analysis::default()
        };
        assert_eq!(cell("stop-20", Subject::Ours).judge(&late), [""; 0]);
        let found = cell("partition-20", Subject::Ours).judge(&late);
        assert_eq!(found, ["1 stale operations"]);
        let twice = Analysis { stale: 2, ..late };
        let found = cell("stop-20", Subject::Ours).judge(&twice);
        assert_eq!(found, ["2 stale operations"]);
        assert_eq!(cell("stop-20", Subject::Command).judge(&twice), [""; 0]);
    }

    #[test]
    fn an_overlap_and_a_fence_that_fails_are_never_forgiven() {
        let overlap = Analysis {
            two_believers: 0.05,
            past_the_fence: 1,
            wrongly_refused: 3,
            ..Analysis::default()
        };
        let found = cell("stop-60", Subject::Ours).judge(&overlap);
        assert_eq!(
            found,
            [
                "two believers for 0.05 s",
                "1 stale operations past the fence",
                "3 operations of the leader refused"
            ]
        );
        let found = cell("stop-60", Subject::Command).judge(&overlap);
        assert_eq!(found.len(), 2);
        let found = cell("replies-10", Subject::Command).judge(&overlap);
        assert_eq!(found.len(), 3);
    }
}
