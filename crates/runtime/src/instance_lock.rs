//! The lock of an instance: the proof that an earlier life of this process is dead, and what it was about to lead
//! ([R21](elector_protocol::rules#r21)).
//!
//! The lock is the kernel's (`flock`), on a file of node-local storage. What the process starts inherits it, so that it is
//! free only when all of that is gone; nothing else releases it but a run that has given everything up. The same file holds
//! the notes: which life was about to begin which term of which Lease. They count as long as the machine has not been booted
//! anew, so they need not outlast a loss of power, and are not synced: what a process has written stays when it is killed.

mod notes;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError as NotesInUse};
use std::time::Duration;

use elector_protocol::holder::FormerTerm;
use elector_protocol::{LeaseKey, LeaseSnapshot, LifeId};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use self::notes::{Note, Notes};
use crate::seed::random_seed;

/// A lock that this process has until its death, or until all its runs have given up what they led.
#[derive(Debug)]
pub struct InstanceLock {
    path: PathBuf,
    life: LifeId,
    /// The boot of the machine. A note of another one proves nothing: the file may have been on another machine.
    boot: String,
    notes: Mutex<Notes>,
    /// Runs that have not said that nothing of them is left.
    open_runs: AtomicUsize,
    /// True if the last note could not be written.
    fails: AtomicBool,
}

/// A run under an instance lock. Dropped without [`settle`](Self::settle), the lock is kept until the process ends: parts of
/// the run may go on.
#[derive(Debug)]
pub struct InstanceRun(Arc<InstanceLock>);

/// The lock cannot be had, so that a crash of this process costs its lease's whole duration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceLockError {
    /// Another process has it, or a descendant of an earlier life that did not die with it.
    #[error(
        "the instance lock {0:?} is held by another process, perhaps one that an earlier life has left behind"
    )]
    Busy(PathBuf),
    /// The file cannot be opened, locked, read or written.
    #[error("failed to use the instance lock {0:?}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The system does not tell one boot from another.
    #[error("the instance lock {0:?} proves nothing here: the system has no boot id")]
    NoBootId(PathBuf),
}

/// The time for which a lock that is held is waited for: what an earlier life has started is being killed then.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest delay of a write of the Lease by its note. A disk that hangs costs proofs, and not the lease.
const LONGEST_NOTE: Duration = Duration::from_millis(250);
/// The file in which Linux says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

// === impl InstanceLock ===

impl InstanceLock {
    /// Obtains the lock on that file, which is made where it is missing, for a new life of its instance. A lock that is held
    /// is waited for for 2 s.
    ///
    /// # Errors
    ///
    /// When it is still held then, or the file cannot be used.
    pub async fn obtain(path: &Path) -> Result<Arc<Self>, InstanceLockError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let file = path.to_owned();
            let opened = spawn_blocking(move || Self::open(file)).await;
            match opened.map_err(|error| InstanceLockError::Io(path.to_owned(), error.into()))? {
                Err(InstanceLockError::Busy(_)) if Instant::now() < until => sleep(PAUSE).await,
                opened => return opened.map(Arc::new),
            }
        }
    }

    fn open(path: PathBuf) -> Result<Self, InstanceLockError> {
        let Ok(boot) = std::fs::read_to_string(BOOT_ID) else {
            return Err(InstanceLockError::NoBootId(path));
        };
        let failed = |error| InstanceLockError::Io(path.clone(), error);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(InstanceLockError::Busy(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let notes = inherit(&file)
            .and_then(|()| Notes::open(file))
            .map_err(failed)?;
        Ok(Self {
            life: LifeId {
                instance: notes.instance(),
                life: random_seed(),
            },
            boot: boot.trim().to_owned(),
            notes: Mutex::new(notes),
            open_runs: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
            path,
        })
    }

    /// The lock of a simulated process, without a file: that of a new life, which knows what the one before noted.
    #[doc(hidden)]
    #[must_use]
    pub fn simulated(id: LifeId, before: Option<&Self>) -> Arc<Self> {
        let before = before.map(|it| it.notes.lock().unwrap_or_else(PoisonError::into_inner));
        Arc::new(Self {
            path: PathBuf::new(),
            life: id,
            boot: String::new(),
            notes: Mutex::new(Notes::in_memory(id.instance, before.as_deref())),
            open_runs: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
        })
    }

    /// The life of this process.
    pub const fn life(&self) -> LifeId {
        self.life
    }

    /// A run begins whose terms are noted.
    #[must_use]
    pub fn begin_run(self: &Arc<Self>) -> InstanceRun {
        self.open_runs.fetch_add(1, Ordering::Relaxed);
        InstanceRun(Arc::clone(self))
    }

    /// The terms of that Lease that earlier lives of this instance began, or were about to. Those lives are dead.
    pub fn former_terms(&self, lease: &LeaseKey) -> Vec<FormerTerm> {
        // A poisoned lock holds a valid state: a block whose write did not end is none.
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let of_lease = notes.of(lease).map(|(_, note)| note);
        of_lease
            .filter(|note| note.boot == self.boot && note.life() != Some(self.life))
            .filter_map(Note::term)
            .collect()
    }

    /// Notes a term before the write is sent that begins it, on the revision that is `shown`. Where that fails, or takes
    /// longer than 250 ms, the term goes without a proof, and one line in the log says so.
    pub(crate) async fn note(
        self: Arc<Self>,
        lease: LeaseKey,
        term: FormerTerm,
        shown: Option<LeaseSnapshot>,
    ) {
        let lock = Arc::clone(&self);
        let write = move || lock.write(&lease, &term, shown.as_ref());
        let written = async {
            match self.path.as_os_str().is_empty() {
                true => Ok(write()),
                false => spawn_blocking(write).await,
            }
        };
        let error = match timeout(LONGEST_NOTE, written).await {
            Ok(Ok(Ok(()))) => return self.fails.store(false, Ordering::Relaxed),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the disk does not answer".to_owned(),
        };
        if !self.fails.swap(true, Ordering::Relaxed) {
            let file = self.path.display();
            tracing::warn!(%file, error, "failed to note a term in the instance lock: after a crash its lease has to expire");
        }
    }

    fn write(
        &self,
        lease: &LeaseKey,
        term: &FormerTerm,
        shown: Option<&LeaseSnapshot>,
    ) -> io::Result<()> {
        let note = Note::new(lease, term, &self.boot);
        match self.notes.try_lock() {
            Ok(mut notes) => notes.write(note, shown),
            Err(NotesInUse::Poisoned(notes)) => notes.into_inner().write(note, shown),
            Err(NotesInUse::WouldBlock) => {
                Err(io::Error::other("the note before is still being written"))
            }
        }
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        if self.open_runs.load(Ordering::Relaxed) > 0 {
            let notes = self.notes.get_mut();
            notes.unwrap_or_else(PoisonError::into_inner).keep_open();
        }
    }
}

// === impl InstanceRun ===

impl InstanceRun {
    /// Nothing of the run is left.
    pub fn settle(self) {
        self.0.open_runs.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has processes that this one starts inherit the lock.
#[cfg(unix)]
fn inherit(file: &File) -> io::Result<()> {
    rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).map_err(io::Error::from)
}

#[cfg(not(unix))]
fn inherit(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
