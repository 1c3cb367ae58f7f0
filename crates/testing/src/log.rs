//! The log of the program under test, line by line.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use tracing::Level;

/// Everything logged at info or above on this thread, as long as this lives.
#[derive(Debug)]
pub struct CapturedLog(());

/// Writes to the log of the thread that it is on.
struct ThreadLog;

thread_local! {
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

// === impl CapturedLog ===

impl CapturedLog {
    /// One logger serves the whole process: whether a line is wanted at all is remembered process-wide, so loggers that
    /// come and go with the tests would hide each other's lines.
    pub fn prepare() {
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            tracing_subscriber::fmt()
                .with_writer(|| ThreadLog)
                .with_max_level(Level::INFO)
                .with_target(false)
                .without_time()
                .with_ansi(false)
                .init();
        });
    }

    /// Begins to capture.
    #[must_use]
    pub fn capture() -> Self {
        Self::prepare();
        LOG.set(Some(Vec::new()));
        Self(())
    }

    /// The lines that hold a text.
    #[must_use]
    pub fn lines(&self, part: &str) -> Vec<String> {
        LOG.with_borrow(|log| {
            let text = String::from_utf8_lossy(log.as_deref().unwrap_or_default());
            text.lines()
                .map(|line| line.trim().to_owned())
                .filter(|line| line.contains(part))
                .collect()
        })
    }
}

impl Drop for CapturedLog {
    fn drop(&mut self) {
        LOG.set(None);
    }
}

// === impl ThreadLog ===

impl Write for ThreadLog {
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
