//! The log of a scenario, line by line.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Everything logged at info or above on this thread, as long as this lives.
pub(crate) struct Log {
    buffer: Buffer,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

// === impl Log ===

impl Log {
    pub(crate) fn capture() -> Self {
        let buffer = Buffer::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(buffer.clone())
            .with_max_level(Level::INFO)
            .with_target(false)
            .without_time()
            .with_ansi(false)
            .finish();
        Self {
            buffer,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// The lines that hold a text.
    pub(crate) fn lines(&self, part: &str) -> Vec<String> {
        let bytes = self.buffer.0.lock().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| line.contains(part))
            .collect()
    }
}

// === impl Buffer ===

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
