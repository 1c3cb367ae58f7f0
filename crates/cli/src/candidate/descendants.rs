//! The processes that descend from this one, whatever sessions and groups they have moved to.

#[cfg(target_os = "linux")]
pub(super) use self::linux::{adopt_orphans, kill_all};
#[cfg(not(target_os = "linux"))]
pub(super) use self::other::{adopt_orphans, kill_all};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, HashSet};
    use std::{fs, io};

    use rustix::process::{
        Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
        set_child_subreaper,
    };

    /// One process of the list. The same id with another start time is another process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct ListedProcess {
        id: Pid,
        parent: i32,
        start_time: u64,
    }

    type ByParent = BTreeMap<i32, Vec<ListedProcess>>;

    /// Makes this process the parent of every descendant whose own parent dies, in place of process 1.
    pub(crate) fn adopt_orphans() -> io::Result<()> {
        Ok(set_child_subreaper(Some(getpid()))?)
    }

    /// Sends SIGKILL to all descendants that are found. One that is forked at this very moment may be missed, so this is
    /// to be repeated until no child is left. `killed` has id and start time of each that was. True if all had been killed
    /// before: those fork no more.
    pub(crate) fn kill_all(killed: &mut HashSet<(Pid, u64)>) -> io::Result<bool> {
        Ok(kill_listed(list()?, killed))
    }

    fn kill_listed(mut listed: ByParent, killed: &mut HashSet<(Pid, u64)>) -> bool {
        let found = take_descendants(&mut listed);
        // Ids wrap around: a child may be read before its parent, and that be gone when its own turn comes.
        let is_absent = |(id, _): &(Pid, u64)| listed.contains_key(&id.as_raw_nonzero().get());
        let mut all_known = !killed.iter().any(is_absent);
        for process in &found {
            let known = (process.id, process.start_time);
            all_known &= killed.contains(&known);
            if kill(process) {
                killed.insert(known);
            }
        }
        all_known
    }

    fn list() -> io::Result<ByParent> {
        let mut listed = ByParent::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.parse().ok());
            // One that has ended in between has no entry any more.
            if let Some(process) = id.and_then(Pid::from_raw).and_then(read) {
                listed.entry(process.parent).or_default().push(process);
            }
        }
        Ok(listed)
    }

    fn take_descendants(listed: &mut ByParent) -> Vec<ListedProcess> {
        let mut found = listed
            .remove(&getpid().as_raw_nonzero().get())
            .unwrap_or_default();
        let mut next = 0;
        while let Some(process) = found.get(next) {
            let children = listed.remove(&process.id.as_raw_nonzero().get());
            found.extend(children.unwrap_or_default());
            next += 1;
        }
        found
    }

    fn read(id: Pid) -> Option<ListedProcess> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
        // The name, in parentheses, may contain anything; after it come the state, the parent, and much else.
        let (_, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split_ascii_whitespace();
        Some(ListedProcess {
            id,
            parent: fields.nth(1)?.parse().ok()?,
            start_time: fields.nth(17)?.parse().ok()?,
        })
    }

    /// Kills that process and no other that has taken its id in between. False means that it is gone or is not ours to
    /// kill, and shows in the next list.
    fn kill(process: &ListedProcess) -> bool {
        let same = |read: ListedProcess| read.start_time == process.start_time;
        let open = pidfd_open(process.id, PidfdFlags::empty());
        if !read(process.id).is_some_and(same) {
            return false;
        }
        let killed = match open {
            Ok(open) => pidfd_send_signal(open, Signal::KILL),
            // A kernel that has no such call yet, or a filter that does not know it.
            Err(_) => kill_process(process.id, Signal::KILL),
        };
        killed.is_ok()
    }

    #[cfg(test)]
    mod tests {
        use std::process::{Command, Stdio};

        use super::*;

        #[test]
        fn children_and_their_children_are_descendants_and_the_parent_is_none() {
            let mut child = Command::new("sh")
                .args(["-c", "sleep 30 & echo; wait $!"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = [0];
            io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
            let id = i32::try_from(child.id()).unwrap();
            let found = take_descendants(&mut list().unwrap());
            let of = |parent: i32| found.iter().filter(|one| one.parent == parent).count();
            assert_eq!(of(id), 1, "{found:?}");
            assert!(found.iter().all(|one| one.id != getpid()));
            let own_child = found.iter().find(|one| one.id == Pid::from_child(&child));
            let its_child = found.iter().find(|one| one.parent == id).unwrap();
            let mut killed = HashSet::new();
            let listed = |parent: Pid, processes: &[ListedProcess]| {
                ByParent::from([(parent.as_raw_nonzero().get(), processes.to_vec())])
            };
            let alone = listed(getpid(), &[*its_child]);
            assert!(!kill_listed(alone.clone(), &mut killed), "it is new");
            assert!(kill_listed(alone, &mut killed), "no other is left");
            assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
            let parent = own_child.unwrap();
            let gone = listed(getpid(), &[*its_child, *parent]);
            assert!(!kill_listed(gone.clone(), &mut killed), "one is new");
            assert!(!kill_listed(gone, &mut killed), "and was never killed");
            // The list was too late for its parent.
            let orphan = listed(parent.id, &[*its_child]);
            assert!(kill_listed(orphan.clone(), &mut killed), "a stranger's");
            killed.insert((parent.id, parent.start_time));
            assert!(!kill_listed(orphan, &mut killed), "one of ours");
        }

        #[test]
        fn a_process_that_has_the_id_of_another_is_left_alone() {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let id = Pid::from_child(&child);
            let mut other = read(id).unwrap();
            other.start_time += 1;
            kill(&other);
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::collections::HashSet;
    use std::io;

    use rustix::process::Pid;

    /// No orphan can be adopted here: it belongs to process 1.
    #[expect(clippy::unnecessary_wraps, reason = "the same signature everywhere")]
    pub(crate) fn adopt_orphans() -> io::Result<()> {
        Ok(())
    }

    /// No list of processes here: what has left the command's group goes on.
    #[expect(clippy::unnecessary_wraps, reason = "the same signature everywhere")]
    pub(crate) fn kill_all(_: &mut HashSet<(Pid, u64)>) -> io::Result<bool> {
        Ok(false)
    }
}
