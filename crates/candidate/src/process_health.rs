//! The health of the process, as one run loop asks for it: by a probe of its own, or by that of its group.

use std::convert::Infallible;

use elector_protocol::Term;
use tokio::sync::watch;

use crate::health_monitor::HealthMonitor;

/// The health of the process of one run loop.
pub(crate) enum ProcessHealth {
    /// By a probe of its own, or none.
    Own(HealthMonitor),
    /// By the probe that all parts of a group share.
    Shared(SharedHealth),
}

/// The health of a process, followed from where its probe is asked.
pub(crate) struct SharedHealth {
    answers: watch::Receiver<HealthAnswer>,
    is_well: bool,
}

/// The last answer of the probe that was news. `None` before the first.
pub(crate) type HealthAnswer = Option<Result<(), String>>;

// === impl ProcessHealth ===

impl ProcessHealth {
    /// True if it was well by the last that was heard. Before the first answer it was not.
    pub(crate) const fn is_well(&self) -> bool {
        match self {
            Self::Own(monitor) => monitor.is_well(),
            Self::Shared(health) => health.is_well,
        }
    }

    /// The term of this process. New work is asked for when it has run for a period; that of a part of a group, beside
    /// others, when its turn comes.
    pub(crate) fn note_term(&mut self, term: Option<Term>) {
        if let Self::Own(monitor) = self {
            monitor.note_term(term);
        }
    }

    /// Waits until a process that was well is not, and says why. May be dropped and called again.
    pub(crate) async fn unwell(&mut self) -> String {
        match self {
            Self::Own(monitor) => monitor.unwell().await,
            Self::Shared(health) => health.unwell().await,
        }
    }

    /// Waits for the next answer while the process is not well: the first success makes it well. May be dropped and
    /// called again.
    pub(crate) async fn recovered(&mut self) -> Result<(), String> {
        match self {
            Self::Own(monitor) => monitor.recovered().await,
            Self::Shared(health) => health.recovered().await,
        }
    }
}

// === impl SharedHealth ===

impl SharedHealth {
    /// Follows the answers that [`publish_health`] gives from the start of the run on.
    pub(crate) fn follow(answers: &watch::Sender<HealthAnswer>) -> Self {
        let answers = answers.subscribe();
        let is_well = *answers.borrow() == Some(Ok(()));
        Self { answers, is_well }
    }

    async fn unwell(&mut self) -> String {
        loop {
            if let Some(Err(error)) = self.answer().await {
                self.is_well = false;
                return error;
            }
        }
    }

    async fn recovered(&mut self) -> Result<(), String> {
        loop {
            if let Some(answer) = self.answer().await {
                self.is_well = answer.is_ok();
                return answer;
            }
        }
    }

    /// The next answer, or the newest of those that came meanwhile.
    async fn answer(&mut self) -> HealthAnswer {
        if self.answers.changed().await.is_err() {
            return std::future::pending().await;
        }
        self.answers.borrow_and_update().clone()
    }
}

/// The answers of a monitor before it was asked anything.
pub(crate) fn health_answers(monitor: &HealthMonitor) -> watch::Sender<HealthAnswer> {
    watch::Sender::new(monitor.is_well().then_some(Ok(())))
}

/// Asks the probe again and again, and publishes what is news. While there is an obstacle, the process is unwell for that
/// reason.
pub(crate) async fn publish_health(
    mut monitor: HealthMonitor,
    mut obstacle: watch::Receiver<Option<String>>,
    answers: watch::Sender<HealthAnswer>,
) -> Infallible {
    let mut probed = answers.borrow().clone();
    loop {
        tokio::select! {
            biased;
            Ok(()) = obstacle.changed() => {}
            answer = next_answer(&mut monitor) => probed = Some(answer),
        }
        let answer = match &*obstacle.borrow_and_update() {
            Some(reason) => Some(Err(reason.clone())),
            None => probed.clone(),
        };
        answers.send_replace(answer);
    }
}

/// The next answer of the probe that is news. May be dropped and called again.
async fn next_answer(monitor: &mut HealthMonitor) -> Result<(), String> {
    if monitor.is_well() {
        Err(monitor.unwell().await)
    } else {
        monitor.recovered().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// A session that winds up for an answer takes its time, in which the process may have become well, and unwell again.
    #[tokio::test]
    async fn an_answer_that_came_meanwhile_is_heard_and_one_that_was_overtaken_is_not() {
        let answers = watch::Sender::new(Some(Ok(())));
        let mut health = SharedHealth::follow(&answers);
        assert!(health.is_well && health.unwell().now_or_never().is_none());
        let unwell = |text: &str| Some(Err(text.to_owned()));
        answers.send_replace(unwell("full"));
        assert_eq!(health.unwell().await, "full");
        answers.send_replace(Some(Ok(())));
        assert!(!health.is_well, "until it is asked");
        answers.send_replace(unwell("full again"));
        assert_eq!(health.recovered().await, Err("full again".to_owned()));
        assert!(health.recovered().now_or_never().is_none());
        answers.send_replace(Some(Ok(())));
        assert_eq!(health.recovered().await, Ok(()));
        assert!(health.is_well && health.unwell().now_or_never().is_none());
    }
}
