//! The runtime of a sub-command that asks, prints and ends.

use anyhow::Context as _;

/// Waits for a future in a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let done = runtime.block_on(future);
    // Nothing is left, save perhaps a look-up of the server's address that blocks a thread.
    runtime.shutdown_background();
    done
}
