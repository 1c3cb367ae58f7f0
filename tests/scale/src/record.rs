//! The tables in the documentation.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use xtask::paths;

use crate::args::{ScaleArgs, ServerName};
use crate::figures::ScaleFigures;
use crate::table::table;

/// Where they go, from the root of the workspace.
const FILE: &str = "docs/scale.md";

/// The text before the tables.
const INTRODUCTION: &str = "\
# Scale

Written by `cargo xtask bench scale --record`, one table for each API server; not to be edited.
`cargo xtask bench scale --help` says what can be measured.

The API server, `elector run` as a process of its own, and the candidates share one machine. The elector is built with the
cargo profile `release`; that of the static binaries, `dist`, makes them small rather than fast. One process plays all
candidates over two watches; they write what `elector-candidate` does: they register, accept, ack and renew. All
are of the same version; those of one lease are registered one after the other, lease by lease, as fast as the server
takes them.

* **all leases led**: from the first registration until the accept of the last lease was answered.
* **events, requests**: the watch events that are delivered to the elector, and the requests that it sends, each of which
  has a response. Those of Leases and LeaseCandidates are counted by its own metrics, Events at the server.
* **processor time**: utime and stime of all threads of the elector. For each event and response, it is that of the
  elections divided by their number, or of the renewals.
* **resident**: VmRSS of the elector, VmHWM for the most. For each lease, it is that after the renewals, less that of the
  idle elector.
* **bare client**: a thread that watches both resources by kube and k8s-openapi, creates and grants each Lease when its last
  candidate appears, and decides nothing: the same events, and but for the Events the same requests, on the same server
  after the elections. What the elector takes more is Elector's own.
* **bare writes**: the same number of creates and updates by plain requests, without elector and watches, through as many
  connections as candidates and elector had open, on the same server after the elections.

The elector is started with `--absent-lease-grace=0s`, since the store is new; it waits longer otherwise before the first
grant, not for each. All programs act as administrators, whose requests no API priority holds back.
";

/// Writes the tables of one server into the documentation, in the place of those that are there.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn record(args: &ScaleArgs, figures: &[ScaleFigures]) -> Result<()> {
    let path = paths::workspace().join(FILE);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("failed to read {}", path.display()));
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let server = figures.first().map_or("", |measured| &measured.server);
    let section = format!(
        "{}\n\n`{}`, {server}, {processors} processors.\n\n{}",
        heading(args.server),
        args.command(),
        table(figures)
    );
    let other = match args.server {
        ServerName::Embedded => ServerName::Real,
        ServerName::Real => ServerName::Embedded,
    };
    let mut sections = [
        (args.server, Some(section)),
        (other, section_of(&before, other)),
    ];
    sections.sort_by_key(|(name, _)| *name == ServerName::Real);
    let mut text = INTRODUCTION.to_owned();
    for (_, section) in sections {
        if let Some(section) = section {
            text.push('\n');
            text.push_str(section.trim_end());
            text.push('\n');
        }
    }
    fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
}

fn heading(server: ServerName) -> &'static str {
    match server {
        ServerName::Embedded => "## On the embedded API server",
        ServerName::Real => "## On kube-apiserver with etcd",
    }
}

/// The section of a server in the page as it is.
fn section_of(page: &str, server: ServerName) -> Option<String> {
    let start = page.find(heading(server))?;
    let section = &page[start..];
    let end = section[2..]
        .find("\n## ")
        .map_or(section.len(), |end| end + 2);
    Some(section[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_section_of_the_page() {
        let (embedded, real) = (heading(ServerName::Embedded), heading(ServerName::Real));
        let page = format!("# Scale\n\ntext\n\n{embedded}\n\na\n\n{real}\n\nb\n");
        let section = |server| section_of(&page, server).unwrap();
        assert_eq!(
            section(ServerName::Embedded).trim_end(),
            format!("{embedded}\n\na")
        );
        assert_eq!(section(ServerName::Real), format!("{real}\n\nb\n"));
        assert_eq!(section_of("# Scale", ServerName::Real), None);
    }
}
