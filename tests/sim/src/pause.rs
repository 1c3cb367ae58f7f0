//! Pausing a process: its futures are not polled, while the world goes on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// Holds back all futures of a process while it is paused. Clones are the same switch.
#[derive(Clone, Default)]
pub(crate) struct PauseSwitch(Arc<Mutex<PauseState>>);

#[derive(Default)]
struct PauseState {
    /// The number of pauses that are on.
    pauses: u32,
    waiting: Vec<Waker>,
}

/// A future of a process. `after` is called whenever it has done something.
pub(crate) struct PausableFuture<F> {
    switch: PauseSwitch,
    future: Pin<Box<F>>,
    after: Arc<dyn Fn() + Send + Sync>,
}

// === impl PauseSwitch ===

impl PauseSwitch {
    /// Holds the process back until each pause had its [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        self.0.lock().pauses += 1;
    }

    /// Ends one pause.
    pub(crate) fn resume(&self) {
        let mut state = self.0.lock();
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses == 0 {
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Ends all pauses.
    pub(crate) fn resume_all(&self) {
        self.0.lock().pauses = 1;
        self.resume();
    }

    /// Wraps a future of the process.
    pub(crate) fn wrap<F: Future>(
        &self,
        future: F,
        after: Arc<dyn Fn() + Send + Sync>,
    ) -> PausableFuture<F> {
        PausableFuture {
            switch: self.clone(),
            future: Box::pin(future),
            after,
        }
    }
}

// === impl PausableFuture ===

impl<F: Future> Future for PausableFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        {
            let mut state = self.switch.0.lock();
            if state.pauses > 0 {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        let polled = self.future.as_mut().poll(context);
        (self.after)();
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_process_misses_its_timers_and_the_world_goes_on() {
        let (switch, start) = (PauseSwitch::default(), Instant::now());
        let process = tokio::spawn(switch.wrap(
            async move {
                sleep(Duration::from_secs(1)).await;
                start.elapsed()
            },
            Arc::new(|| {}),
        ));
        tokio::task::yield_now().await;
        switch.pause();
        switch.pause();
        sleep(Duration::from_secs(10)).await;
        switch.resume();
        sleep(Duration::from_secs(10)).await;
        assert!(!process.is_finished());
        switch.resume();
        assert_eq!(process.await.unwrap(), Duration::from_secs(20));
    }
}
