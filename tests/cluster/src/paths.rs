//! Where things lie: the workspace, and the cache outside it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The root of this workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = folder.parent().and_then(Path::parent);
    root.expect("this package lies two folders below the root")
}

/// The folder for everything that is worth keeping between runs: `$XDG_CACHE_HOME/elector`, or
/// `~/.cache/elector` when that is not set.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` names an absolute path.
pub fn cache() -> Result<PathBuf> {
    cache_from(
        env::var_os("XDG_CACHE_HOME").map(PathBuf::from),
        env::home_dir(),
    )
}

fn cache_from(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf> {
    // The XDG specification says to ignore relative paths.
    xdg.filter(|path| path.is_absolute())
        .or_else(|| {
            home.filter(|path| path.is_absolute())
                .map(|home| home.join(".cache"))
        })
        .map(|base| base.join("elector"))
        .context("no cache folder: neither XDG_CACHE_HOME nor HOME names an absolute path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_prefers_xdg_and_ignores_relative_paths() {
        let path = |text: &str| Some(PathBuf::from(text));
        for (xdg, home, expected) in [
            (path("/x"), path("/h"), Some("/x/elector")),
            (path("x"), path("/h"), Some("/h/.cache/elector")),
            (None, path("/h"), Some("/h/.cache/elector")),
            (path("x"), path("h"), None),
            (None, None, None),
        ] {
            assert_eq!(cache_from(xdg, home).ok(), expected.map(PathBuf::from));
        }
    }

    #[test]
    fn the_workspace_holds_this_crate() {
        assert!(workspace().join("tests/cluster/Cargo.toml").is_file());
    }
}
