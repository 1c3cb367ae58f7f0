//! Asks the program whether it is well, again and again: in a term, before it, and while it is no candidate.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use elector_protocol::{Instant, Term};
use elector_runtime::{Clock, panic_text, printable};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::health::HealthTiming;

/// The function that a program gives: whether it is well, or why not.
pub(crate) type HealthProbe =
    Arc<Mutex<dyn FnMut() -> BoxFuture<'static, Result<(), String>> + Send>>;

/// Why the program says by itself that it is not well, while it does.
pub(crate) type HealthReports = watch::Receiver<Option<String>>;

/// The probe of a program without its types.
pub(crate) fn health_probe<F, E>(mut probe: impl FnMut() -> F + Send + 'static) -> HealthProbe
where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    Arc::new(Mutex::new(move || {
        let asked = probe();
        // With its sources, where the error knows how to.
        asked
            .map(|answer| answer.map_err(|error| format!("{error:#}")))
            .boxed()
    }))
}

/// The health of the program. Dropping it drops the question that is under way.
pub(crate) struct HealthMonitor {
    /// None where the program says nothing by itself.
    reports: Option<HealthReports>,
    /// None where the program counts as well.
    probe: Option<HealthProbe>,
    timing: HealthTiming,
    clock: Arc<dyn Clock>,
    /// Where the probe runs: beside the work, so that it cannot hold up renewals.
    runtime: Handle,
    /// The question that was asked last, until it has ended. There is one at a time, also where one does not end.
    asked: JoinSet<Result<(), String>>,
    stage: ProbeStage,
    /// The number of failures since the last success.
    failures: u32,
    is_well: bool,
    term: Option<Term>,
}

#[derive(Clone, Copy, Debug)]
enum ProbeStage {
    Waiting { until: Instant },
    Asked { at: Instant },
}

/// The length to which the text of a probe, or of a part beside the work, is kept. A kubelet keeps 10 KiB.
const LONGEST_TEXT: usize = 1024;

// === impl HealthMonitor ===

impl HealthMonitor {
    /// Nothing is asked before [`Self::recovered`] or [`Self::unwell`] is.
    pub(crate) fn new(
        probe: Option<HealthProbe>,
        reports: Option<HealthReports>,
        timing: HealthTiming,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Self {
        Self {
            is_well: probe.is_none(),
            reports,
            probe,
            timing,
            stage: ProbeStage::Waiting {
                until: clock.holder(),
            },
            clock,
            runtime,
            asked: JoinSet::new(),
            failures: 0,
            term: None,
        }
    }

    /// True if it was well by the last that was heard. Before the first answer it was not.
    pub(crate) const fn is_well(&self) -> bool {
        self.is_well
    }

    /// The term of this process. New work is asked for when it has run for a period, and not before.
    pub(crate) fn note_term(&mut self, term: Option<Term>) {
        if self.term != term && term.is_some() {
            self.asked.abort_all();
            self.failures = 0;
            self.stage = ProbeStage::Waiting {
                until: self.clock.holder().after(self.timing.period),
            };
        }
        self.term = term;
    }

    /// Waits until a process that was well is not, and says why. May be dropped and called again.
    pub(crate) async fn unwell(&mut self) -> String {
        let mut reports = self.reports.clone();
        loop {
            let answer = tokio::select! {
                biased;
                reason = reported(&mut reports) => {
                    self.is_well = false;
                    return one_line(&reason);
                }
                answer = self.answer() => answer,
            };
            match answer {
                Ok(()) => self.failures = 0,
                Err(error) => {
                    self.failures += 1;
                    let (failures, threshold) = (self.failures, self.timing.failures);
                    tracing::debug!(error, failures, threshold, "the health probe failed");
                    if failures >= threshold {
                        self.is_well = false;
                        return error;
                    }
                }
            }
        }
    }

    /// Waits for the next answer while the process is not well: the first success makes it well, once the program does
    /// not say otherwise by itself. May be dropped and called again.
    pub(crate) async fn recovered(&mut self) -> Result<(), String> {
        if let Some(reports) = &mut self.reports {
            // A program that has dropped its end says nothing any more.
            let _ = reports.wait_for(Option::is_none).await;
        }
        if self.probe.is_some() {
            self.answer().await?;
        }
        self.failures = 0;
        self.is_well = true;
        Ok(())
    }

    /// The next answer, which is a failure where there is none in time.
    async fn answer(&mut self) -> Result<(), String> {
        let Some(probe) = &self.probe else {
            return std::future::pending().await;
        };
        loop {
            match self.stage {
                ProbeStage::Waiting { until } => {
                    self.clock.sleep_until_holder(until).await;
                    self.stage = ProbeStage::Asked {
                        at: self.clock.holder(),
                    };
                    while self.asked.try_join_next().is_some() {}
                    if self.asked.is_empty() {
                        self.asked.spawn_on(ask(Arc::clone(probe)), &self.runtime);
                    }
                }
                ProbeStage::Asked { at } => {
                    let timeout = self.timing.timeout;
                    let silent = || format!("no answer within {timeout:?}");
                    let answer = tokio::select! {
                        biased;
                        Some(ended) = self.asked.join_next() => {
                            ended.unwrap_or_else(|error| Err(panic_or(error, silent)))
                        }
                        () = self.clock.sleep_until_holder(at.after(timeout)) => {
                            self.asked.abort_all();
                            Err(silent())
                        }
                    };
                    let next = at.after(self.timing.period).max(self.clock.holder());
                    self.stage = ProbeStage::Waiting { until: next };
                    return answer.map_err(|text| one_line(&text));
                }
            }
        }
    }
}

/// Waits until the program says by itself that it is not well.
async fn reported(reports: &mut Option<HealthReports>) -> String {
    let reported = match reports {
        Some(reports) => reports.wait_for(Option::is_some).await.ok(),
        None => None,
    };
    match reported.and_then(|reason| reason.clone()) {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}

async fn ask(probe: HealthProbe) -> Result<(), String> {
    let asked = probe.lock().unwrap_or_else(PoisonError::into_inner)();
    asked.await
}

/// The panic of a probe, or the text for one that was dropped.
fn panic_or(error: JoinError, dropped: impl FnOnce() -> String) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("panic: {}", panic_text(&*panic)),
        Err(_) => dropped(),
    }
}

/// The text, or as much of it as is kept, in visible characters.
pub(crate) fn one_line(text: &str) -> String {
    let text = text.trim();
    let longest = text.len().min(LONGEST_TEXT);
    let end = (0..=longest).rev().find(|end| text.is_char_boundary(*end));
    let end = end.unwrap_or_default();
    let rest = if end < text.len() { "…" } else { "" };
    format!("{}{rest}", printable(&text[..end]))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use elector_protocol::Timestamp;
    use elector_runtime::TokioClock;

    use super::*;

    /// Three failures in a row are too many, whatever came before a success, be it that of a process that recovers.
    #[tokio::test(start_paused = true)]
    async fn failures_before_a_success_do_not_count_after_it() {
        let mut answers = "+ --+--- -+ ---".chars().filter(|answer| *answer != ' ');
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let probe: HealthProbe = Arc::new(Mutex::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let is_well = answers.next() == Some('+');
            async move { is_well.then_some(()).ok_or_else(String::new) }.boxed()
        }));
        let clock = Arc::new(TokioClock::start(Timestamp::MIN));
        let (timing, runtime) = (HealthTiming::default(), Handle::current());
        let mut monitor = HealthMonitor::new(Some(probe), None, timing, clock, runtime);
        let asked = || asked.swap(0, Ordering::SeqCst);
        assert_eq!((monitor.recovered().await, asked()), (Ok(()), 1));
        monitor.unwell().await;
        assert_eq!(asked(), 6);
        assert!(monitor.recovered().await.is_err() && monitor.recovered().await.is_ok());
        assert_eq!(asked(), 2);
        monitor.unwell().await;
        assert_eq!(asked(), 3);
    }

    #[test]
    fn what_a_probe_says_is_one_line_and_no_longer_than_a_page() {
        assert_eq!(one_line(" disk\nfull\u{1b}[2J \n"), "disk\\nfull\\u{1b}[2J");
        let long = "ä".repeat(LONGEST_TEXT);
        let kept = one_line(&long);
        assert_eq!(kept.chars().count(), LONGEST_TEXT / 2 + 1);
        assert!(kept.ends_with('…'));
    }
}
