//! The cost of `elector-candidate` in a program that has a client of kube anyway: crates, bytes of its executable, and the
//! time of its build.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::PROGRAMS;
use super::packages::CratePackages;
use crate::build_times::CommandTime;
use crate::commands::{self, cargo};
use crate::{measured, paths};

/// A program of which the size is reported. It is made of an adopter.
struct SizedProgram {
    name: &'static str,
    /// Its name in a document.
    described: &'static str,
}

/// The adopter that they are made of.
const ADOPTER: &str = "kube5-ring";
/// Its line in the manifest that is about the crate.
const DEPENDENCY: &str = "elector-candidate = { version = \"0.1\", features = [\"kube5\"] }\n";
/// Where they are made, from the root of the workspace.
const MADE: &str = "target/adopters/size";
/// Where the table is recorded, from the root of the workspace.
const DOCUMENT: &str = "adopters/README.md";

/// The adopter without the election: one request.
const BARE: &str = r#"#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = kube::Client::try_default().await?;
    println!("{:?}", client.apiserver_version().await?);
    Ok(())
}
"#;

/// Without the crate, with it, and with each of its features.
const SIZED: [SizedProgram; 6] = [
    sized(
        WITHOUT,
        "a client of kube 5 on rustls with ring, and one request",
    ),
    sized(WITH, "the same client, and an election: `kube5-ring`"),
    sized("clap4", "with the feature `clap4`"),
    sized("connect", "with the feature `connect`"),
    sized("events", "with the feature `events`"),
    sized("metrics", "with the feature `metrics`"),
];
const WITHOUT: &str = "without";
const WITH: &str = "with";

const fn sized(name: &'static str, described: &'static str) -> SizedProgram {
    SizedProgram { name, described }
}

/// Counts and builds them, and tells; with `record` into the document too.
///
/// # Errors
/// When one cannot be built.
pub(crate) fn tell(record: bool) -> Result<()> {
    let packages = CratePackages::make()?;
    let mut table = "| program | crates | executable | its build | of the processors |\n|---|---|---|---|---|\n".to_owned();
    for program in &SIZED {
        let folder = program.make()?;
        let crates = count_crates(&folder, &packages)?;
        // Parts of a feature that a program does not use are not in its executable.
        let built = if [WITHOUT, WITH].contains(&program.name) {
            let (bytes, time) = program.build(&folder, &packages)?;
            // Writing to a String does not fail, here and below.
            let megabytes = bytes / 10_000;
            format!("{}.{:02} MB | {time}", megabytes / 100, megabytes % 100)
        } else {
            " | | ".to_owned()
        };
        let _ = writeln!(table, "| {} | {crates} | {built} |", program.described);
    }
    print!("{table}");
    if record {
        measured::record(DOCUMENT, "size", &table)?;
    }
    Ok(())
}

/// The number of crates that it is made of, besides itself.
fn count_crates(folder: &Path, packages: &CratePackages) -> Result<usize> {
    let mut tree = cargo();
    tree.args(["tree", "--edges=normal", "--prefix=none", "--format={p}"])
        .args(packages.patches_for(folder)?)
        .current_dir(folder);
    let said = commands::read(&mut tree)?.stdout;
    // A crate that was shown before is shown again with a star.
    let crates: BTreeSet<_> = said
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty())
        .collect();
    Ok(crates.len() - 1)
}

// === impl SizedProgram ===

impl SizedProgram {
    /// Writes it into a folder of its own.
    fn make(&self) -> Result<PathBuf> {
        let adopter = paths::workspace().join(PROGRAMS).join(ADOPTER);
        let folder = paths::workspace().join(MADE).join(self.name);
        fs::create_dir_all(folder.join("src")).context("failed to make a folder for a program")?;
        let manifest = fs::read_to_string(adopter.join("Cargo.toml"))?;
        let dependency = match self.name {
            WITHOUT => String::new(),
            WITH => DEPENDENCY.to_owned(),
            feature => DEPENDENCY.replace("\"kube5\"", &format!("\"kube5\", \"{feature}\"")),
        };
        let (before, after) = manifest
            .split_once(DEPENDENCY)
            .with_context(|| format!("{ADOPTER} does not depend on the crate in that line"))?;
        let before = before.replace(
            &format!("name = \"{ADOPTER}\""),
            &format!("name = \"{}\"", self.name),
        );
        fs::write(
            folder.join("Cargo.toml"),
            format!("{before}{dependency}{after}"),
        )?;
        if self.name != WITHOUT {
            for file in fs::read_dir(adopter.join("src"))? {
                let file = file?;
                fs::copy(file.path(), folder.join("src").join(file.file_name()))?;
            }
        } else {
            fs::write(folder.join("src/main.rs"), BARE)?;
        }
        // The versions of the adopter. What a feature brings besides is added.
        fs::copy(adopter.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(folder)
    }

    /// Builds it as it would be shipped, from nothing but the sources, which are there. The result is the number of its
    /// bytes, and the time that this took.
    fn build(&self, folder: &Path, packages: &CratePackages) -> Result<(u64, CommandTime)> {
        let built = folder.join("target");
        if built.exists() {
            fs::remove_dir_all(&built).context("failed to remove what was built before")?;
        }
        let mut build = cargo();
        build
            .args(["build", "--release", "--target-dir"])
            .arg(&built)
            .args(packages.patches_for(folder)?)
            .current_dir(folder)
            .env("CARGO_PROFILE_RELEASE_STRIP", "true");
        let time = CommandTime::of(&mut build)?;
        let program = built.join("release").join(self.name);
        let bytes = fs::metadata(&program)
            .with_context(|| format!("failed to look at {}", program.display()))?
            .len();
        fs::remove_dir_all(&built).context("failed to remove what was built")?;
        Ok((bytes, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adopter_has_the_line_that_is_replaced() {
        let manifest = paths::workspace()
            .join(PROGRAMS)
            .join(ADOPTER)
            .join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        assert_eq!(manifest.matches(DEPENDENCY).count(), 1);
    }
}
