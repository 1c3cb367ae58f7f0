//! `kubectl elector bundle`: one file for a report, with all that elections depend on.

mod archive;
mod contents;
mod redaction;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use elector_api::Rfc3339;
use elector_runtime::{ClientArgs, connect, printable};

use self::contents::{BundleContents, BundleScope};
use crate::explain::present;
use crate::output;

/// Writes one file for a report: Leases, candidates, Events, policies, definitions, electors with their logs, and checks.
///
/// Nothing is taken from Secrets and ConfigMaps. Cut are values of environment variables, annotations of others, and
/// arguments of other containers. The file README.txt in it says what could not be read.
#[derive(Args, Debug)]
pub(super) struct BundleArgs {
    #[command(flatten)]
    scope: BundleScope,

    /// The file, which must not exist yet; `-` is standard output [default: elector-bundle-TIME.tar.gz]
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,

    /// Write numbers in the place of the names of namespaces, but for kube-*, default and that of the electors
    #[arg(long)]
    redact_namespaces: bool,

    #[command(flatten)]
    client: ClientArgs,
}

/// Runs the sub-command.
pub(super) async fn run(args: BundleArgs) -> anyhow::Result<ExitCode> {
    let cluster = connect(&args.client).await?;
    let now = present();
    let digits = Rfc3339(now).to_string();
    let digits: String = digits
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let name = format!("elector-bundle-{digits}");
    let mut contents = BundleContents::default();
    contents.gather(&cluster, &args.scope).await;
    contents.explain(&name);
    if args.redact_namespaces {
        contents.redact(&args.scope);
    }
    let bytes = archive::pack(&name, now, &contents.files()?)?;
    let path = args
        .filename
        .unwrap_or_else(|| format!("{name}.tar.gz").into());
    if path == Path::new("-") {
        io::stdout().write_all(&bytes).context("print the bundle")?;
    } else {
        let shown = path.display().to_string();
        write(&path, &bytes).with_context(|| format!("write {shown}"))?;
        let line = format!("{shown} written, {} bytes", bytes.len());
        output::print(&format!("{}\n", printable(&line))).context("print the result")?;
    }
    for unread in contents.unread() {
        output::print_error(format_args!("failed to {unread}; it is not in the bundle"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a new file, which others cannot read where the system knows of that.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}
