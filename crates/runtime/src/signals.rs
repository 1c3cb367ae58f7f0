//! The two signals that ask a process to end.

use std::fmt;
use std::io;
use std::process;
use std::time::Duration;

use tokio::signal::unix::{self, SignalKind};

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: the kubelet, or what else runs the process.
    Terminate,
}

/// Waits for SIGINT or SIGTERM, and says which it was. From then on, a second one ends the process at once, with the
/// exit code that a shell would report.
///
/// Both are caught from the moment this returns, not only once the future is polled.
///
/// # Errors
///
/// When the process may not catch signals.
pub fn shutdown_signal() -> io::Result<impl Future<Output = Signal> + Send + 'static> {
    let mut signals = Signals {
        interrupt: unix::signal(SignalKind::interrupt())?,
        terminate: unix::signal(SignalKind::terminate())?,
    };
    Ok(async move {
        let first = signals.next().await;
        // It must outlive what is being shut down, so only the process owns it.
        tokio::spawn(async move {
            let second = signals.next().await;
            let said = tokio::task::spawn_blocking(move || {
                tracing::warn!(signal = %second, "asked a second time, ending at once");
            });
            // At once also where the log is not read.
            let _ = tokio::time::timeout(LAST_WORDS, said).await;
            process::exit(second.exit_code());
        });
        first
    })
}

/// The time that the line about a second signal may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

// === impl Signal ===

impl Signal {
    /// The code that a shell reports of a process that this signal ended: 128 and its number.
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

// === impl Signals ===

impl Signals {
    async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            // Both streams end with the runtime only.
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
#[cfg(feature = "logging")]
mod tests {
    use std::env;
    use std::io::{BufRead, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal as Raw, kill_process};

    use super::*;
    use crate::testing::ForkPermit;

    const CHILD: &str = "ELECTOR_TEST_SIGNALS_CHILD";
    const FIRST: &str = "signals::tests::the_first_is_named_and_the_second_ends_at_once";

    /// The process that the tests send signals to: the first of them, in this very test binary.
    fn child() -> ! {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        crate::init_logging(&crate::LogArgs::default()).unwrap();
        runtime.block_on(async {
            let signal = shutdown_signal().unwrap();
            println!("\nready");
            println!("\ngot {}", signal.await);
            tokio::time::sleep(Duration::from_secs(30)).await;
        });
        process::exit(99);
    }

    fn signalled(first: Raw, second: Raw, stderr: Stdio) -> (String, Option<i32>) {
        let _permit = ForkPermit::obtain();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", FIRST, "--nocapture"])
            .env(CHILD, "1")
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let send = |child: &Child, signal| {
            kill_process(Pid::from_child(child), signal).unwrap();
        };
        lines.find(|line| line == "ready").unwrap();
        send(&child, first);
        let got = lines.find(|line| line.starts_with("got ")).unwrap();
        send(&child, second);
        let deadline = Instant::now() + Duration::from_secs(20);
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                None => {
                    child.kill().unwrap();
                    break child.wait().unwrap();
                }
            }
        };
        (got, status.code())
    }

    #[test]
    fn the_first_is_named_and_the_second_ends_at_once() {
        if env::var_os(CHILD).is_some() {
            child();
        }
        let expected = ("got SIGTERM".to_owned(), Some(130));
        assert_eq!(signalled(Raw::TERM, Raw::INT, Stdio::null()), expected);
        let expected = ("got SIGINT".to_owned(), Some(143));
        assert_eq!(signalled(Raw::INT, Raw::TERM, Stdio::null()), expected);
    }

    #[test]
    fn the_second_ends_it_at_once_although_the_log_is_not_read() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut filler = writer.try_clone().unwrap();
        // More than any pipe holds; ends with the reader.
        std::thread::spawn(move || filler.write_all(&vec![b' '; 2 << 20]));
        let expected = ("got SIGTERM".to_owned(), Some(143));
        assert_eq!(signalled(Raw::TERM, Raw::TERM, writer.into()), expected);
    }
}
