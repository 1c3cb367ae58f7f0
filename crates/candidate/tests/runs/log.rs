//! What a run logs, line by line.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

/// Everything logged at info or above on this thread, as long as this lives.
pub(crate) struct Log(());

/// Writes to the log of the thread that it is on.
struct ToThread;

thread_local! {
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

// === impl Log ===

impl Log {
    /// One logger serves the whole process: whether a line is wanted at all is remembered process-wide.
    pub(crate) fn capture() -> Self {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            tracing_subscriber::fmt()
                .with_writer(|| ToThread)
                .without_time()
                .with_ansi(false)
                .init();
        });
        LOG.set(Some(Vec::new()));
        Self(())
    }

    /// The lines that hold a text.
    #[expect(
        clippy::unused_self,
        reason = "a log that is captured is what makes this mean something"
    )]
    pub(crate) fn lines(&self, part: &str) -> Vec<String> {
        LOG.with_borrow(|log| {
            let text = String::from_utf8_lossy(log.as_deref().unwrap_or_default());
            let lines = text.lines().filter(|line| line.contains(part));
            lines.map(str::to_owned).collect()
        })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        LOG.set(None);
    }
}

// === impl ToThread ===

impl Write for ToThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| {
            if let Some(log) = log {
                log.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
