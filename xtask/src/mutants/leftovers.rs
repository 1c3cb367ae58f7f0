//! Processes that tests leave behind.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Kills every process of a program in that folder. Where there is no `/proc`, none is found.
pub(super) fn kill_leftovers(folder: &Path) {
    let Ok(folder) = folder.canonicalize() else {
        return;
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let id = process.file_name().to_str().and_then(|id| id.parse().ok());
        let program = fs::read_link(process.path().join("exe"));
        if let Some(id) = id.and_then(Pid::from_raw)
            && program.is_ok_and(|program| program.starts_with(&folder))
        {
            // It may have ended by now.
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn programs_of_the_folder_are_killed_and_no_others() {
        let [inside, outside] = [(); 2].map(|()| TempDir::new().unwrap());
        let [mut ours, mut other] = [&inside, &outside].map(|folder| {
            let program = folder.path().join("sleep");
            fs::copy("/bin/sleep", &program).unwrap();
            Command::new(program).arg("600").spawn().unwrap()
        });
        kill_leftovers(inside.path());
        assert_eq!(ours.wait().unwrap().signal(), Some(9));
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
