//! The rules that the shell of an elector has to keep, on the API server in memory and in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod collecting;
mod lock;
mod namespaces;
mod restored;
mod retries;
mod stage;
mod unreadable;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{BuiltinController, Config, Elector, Event};
use stage::Stage;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An elector that runs until it is stopped; dropping it is a crash.
struct Running {
    events: Arc<Mutex<Vec<Event>>>,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl Running ===

impl Running {
    fn start(stage: &Stage, config: Config) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let elector = Elector::new(config, stage.cluster())
            .unwrap()
            .with_clock(stage.clock())
            .with_seed(0)
            .observed_by(move |event| told.lock().unwrap().push(event.clone()));
        let (shutdown, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(elector.run(async {
            stopped.await.unwrap_or_default();
        }));
        Self {
            events,
            shutdown: Some(shutdown),
            task,
        }
    }

    /// Stops it as a signal does.
    async fn stop(mut self) {
        drop(self.shutdown.take());
        (&mut self.task).await.unwrap();
    }

    /// How often it has begun, or begun anew: once for each time that all was listed.
    fn lives(&self) -> usize {
        self.count(|event| matches!(event, Event::Listed { .. }))
    }

    fn count(&self, like: impl Fn(&Event) -> bool) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| like(event)).count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One that takes the lock of the built-in controller.
fn replacing(seed: u64) -> Config {
    Config {
        builtin: BuiltinController::Replace {
            host: format!("pod_{seed}"),
        },
        ..Config::default()
    }
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
