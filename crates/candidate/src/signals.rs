//! The signals that ask a process to end.

use std::io;

use crate::error::Error;

/// Waits for SIGINT or SIGTERM, and logs which it was. From then on, a second one ends the process at once, with the exit
/// code that a shell would report.
///
/// Both are caught from the moment this returns, not only once the future is polled.
///
/// # Errors
///
/// [`Error::Local`] when the process may not catch signals.
pub fn shutdown_signal() -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let signal = elector_runtime::shutdown_signal().map_err(|error| {
        let text = format!("catch signals: {error}");
        Error::Local(io::Error::new(error.kind(), text))
    })?;
    Ok(async move {
        let signal = signal.await;
        // On a thread of its own: the work is asked to stop even where this line cannot be written.
        drop(tokio::task::spawn_blocking(move || {
            tracing::info!(%signal, "shutting down");
        }));
    })
}
