use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::slice;

use elector_protocol::{Identity, LeaseRecord, ResourceVersion, Timestamp, Token, Uid};
use tempfile::TempDir;

use super::*;
use crate::testing::ForkPermit;

/// A file for the lock, and a Lease that terms are noted of.
struct LockTest {
    _permit: ForkPermit,
    folder: TempDir,
    lease: LeaseKey,
}

// === impl LockTest ===

impl LockTest {
    fn new() -> Self {
        Self {
            _permit: ForkPermit::obtain(),
            folder: TempDir::new().unwrap(),
            lease: LeaseKey::new("ns", "web"),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lock")
    }

    /// A new life, while nothing else has the lock.
    fn live(&self) -> InstanceLock {
        InstanceLock::open(self.path()).unwrap()
    }

    fn note(&self, lock: &InstanceLock, base: u64, shown: Option<&LeaseSnapshot>) -> FormerTerm {
        let term = FormerTerm {
            life: lock.life(),
            uid: Uid::new("u"),
            holder: Identity::new("web-0").unwrap(),
            base: ResourceVersion(base),
        };
        lock.write(&self.lease, &term, shown).unwrap();
        term
    }

    /// The bases of the terms that the next life is told of.
    fn told(&self) -> Vec<u64> {
        let terms = self.live().former_terms(&self.lease);
        terms.iter().map(|term| term.base.0).collect()
    }

    fn overwrite(&self, text: &str, offset: u64) {
        let file = File::options().write(true).open(self.path()).unwrap();
        file.write_all_at(text.as_bytes(), offset).unwrap();
    }
}

/// The Lease as it stands while that term does.
fn shown(term: &FormerTerm) -> LeaseSnapshot {
    let record = LeaseRecord::default().acquired(
        term.holder.clone(),
        Duration::from_secs(15),
        Token(term.base),
        Timestamp::MIN,
    );
    LeaseSnapshot {
        uid: term.uid.clone(),
        version: ResourceVersion(term.base.0 + 1),
        record: LeaseRecord {
            life: Some(term.life),
            ..record
        },
        overrides: elector_protocol::OperatorOverrides::default(),
    }
}

#[test]
fn the_next_life_of_an_instance_is_told_the_terms_of_the_dead() {
    let test = LockTest::new();
    let first = test.live();
    let term = test.note(&first, 7, None);
    assert_eq!(first.former_terms(&test.lease), [], "it lives");
    let others = [0, 1, 2, 3, 4].map(|it| LeaseKey::new("ns", format!("other-{it}")));
    for other in &others {
        first.write(other, &term, None).unwrap();
    }
    drop(first);
    let second = test.live();
    assert!(second.life().replaces(term.life));
    assert_eq!(second.former_terms(&test.lease), slice::from_ref(&term));
    for other in &others {
        assert_eq!(second.former_terms(other), slice::from_ref(&term));
    }
    // That of the term which stands outlives each attempt at the next one.
    let stands = shown(&term);
    for base in 8..12 {
        test.note(&second, base, Some(&stands));
    }
    // One that stands there already takes no other's place.
    test.note(&second, 11, None);
    drop(second);
    assert_eq!(test.told(), [7, 11]);
}

#[test]
fn what_is_torn_or_copied_or_of_another_boot_proves_nothing() {
    let test = LockTest::new();
    let first = test.live();
    for base in [7, 8] {
        test.note(&first, base, None);
    }
    drop(first);
    test.overwrite("\"base\":9", 1024 + 20);
    assert_eq!(test.told(), [8]);
    let mut rebooted = test.live();
    rebooted.boot = "another".to_owned();
    assert_eq!(rebooted.former_terms(&test.lease), []);
    let instance = rebooted.life().instance;
    // The lock of a copy is free while the life that is in it lives.
    let copy = test.folder.path().join("copy");
    std::fs::copy(test.path(), &copy).unwrap();
    for _ in 0..2 {
        let copied = InstanceLock::open(copy.clone()).unwrap();
        assert_ne!(copied.life().instance, instance);
        assert_eq!(copied.former_terms(&test.lease), []);
    }
    drop(rebooted);
    // Without its name it is another instance, although it may be a copy.
    test.overwrite("x", 3);
    let renamed = test.live();
    assert_ne!(renamed.life().instance, instance);
    assert_eq!(renamed.former_terms(&test.lease), []);
}

/// The write of the Lease goes on without a proof, and one line in the log says so.
#[tokio::test(start_paused = true)]
async fn a_note_that_cannot_be_written_holds_up_nothing() {
    let test = LockTest::new();
    let lock = Arc::new(test.live());
    let good = test.note(&lock, 7, None);
    for (base, repeated, is_noted) in [(8, 200, false), (9, 1, true)] {
        let term = FormerTerm {
            holder: Identity::new("web-0".repeat(repeated)).unwrap(),
            base: ResourceVersion(base),
            ..good.clone()
        };
        let noted = Arc::clone(&lock).note(test.lease.clone(), term, None);
        noted.await;
        assert_eq!(lock.fails.load(Ordering::Relaxed), !is_noted, "{base}");
    }
    let busy = lock.notes.lock().unwrap();
    let beside = lock.write(&test.lease, &good, None);
    assert!(beside.is_err(), "another note is being written");
    drop(busy);
    drop(lock);
    assert_eq!(test.told(), [7, 9]);
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_free_when_all_that_inherited_it_is_gone() {
    let test = LockTest::new();
    let first = test.live();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    drop(first);
    let busy = InstanceLock::obtain(&test.path()).await.unwrap_err();
    assert!(matches!(busy, InstanceLockError::Busy(_)), "{busy}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(InstanceLock::obtain(&test.path()).await.unwrap());
    let folder = test.folder.path();
    let refused = InstanceLock::obtain(folder).await.unwrap_err();
    assert!(matches!(refused, InstanceLockError::Io(..)), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_is_waited_for_for_two_seconds() {
    let test = LockTest::new();
    for (freed_after, is_obtained) in [(1_900, true), (2_010, false)] {
        let held = test.live();
        let path = test.path();
        let free = async {
            sleep(Duration::from_millis(freed_after)).await;
            drop(held);
        };
        let (lock, ()) = tokio::join!(InstanceLock::obtain(&path), free);
        assert_eq!(lock.is_ok(), is_obtained, "{freed_after} ms");
    }
}

#[test]
fn a_run_that_may_go_on_keeps_the_lock_until_the_process_ends() {
    let test = LockTest::new();
    for (settles, is_free) in [(true, true), (false, false)] {
        let lock = Arc::new(test.live());
        let run = lock.begin_run();
        lock.begin_run().settle();
        match settles {
            true => run.settle(),
            false => drop(run),
        }
        drop(lock);
        assert_eq!(InstanceLock::open(test.path()).is_ok(), is_free);
    }
}
