//! The kubeconfig of a server that lives for a moment: written for others to find it, removed when it is gone.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tempfile::{NamedTempFile, TempDir};

/// A kubeconfig that was written. Dropping it removes what is still its own.
#[derive(Debug)]
pub(super) struct KubeconfigFile {
    path: PathBuf,
    text: String,
    /// The temporary folder, where no file was named.
    folder: Option<TempDir>,
}

/// The first line of each kubeconfig of ours; one without it was written by others.
const MARK: &str = "# Written by `elector dev`, which removes it when it ends.\n";

// === impl KubeconfigFile ===

impl KubeconfigFile {
    /// Writes the kubeconfig of a server at `url`, to `path` or to a new temporary folder. It appears as a whole.
    pub(super) fn write(path: Option<&Path>, url: &str) -> anyhow::Result<Self> {
        let (path, folder) = match path {
            Some(path) => {
                let path = std::path::absolute(path)
                    .with_context(|| format!("write {}", path.display()))?;
                (path, None)
            }
            None => {
                let folder = tempfile::Builder::new()
                    .prefix("elector-dev-")
                    .tempdir()
                    .context("make a folder for the kubeconfig")?;
                (folder.path().join("kubeconfig"), Some(folder))
            }
        };
        match fs::read(&path) {
            Ok(bytes) if !bytes.starts_with(MARK.as_bytes()) => {
                bail!(
                    "write the kubeconfig {}: it exists, and `elector dev` did not write it",
                    path.display()
                );
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("read {}", path.display()));
            }
        }
        let text = text(url);
        put(&path, &text).with_context(|| format!("write the kubeconfig {}", path.display()))?;
        Ok(Self { path, text, folder })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, unless another program has written there meanwhile.
    pub(super) fn remove(mut self) -> anyhow::Result<()> {
        self.clear()
            .with_context(|| format!("remove the kubeconfig {}", self.path.display()))
    }

    fn clear(&mut self) -> io::Result<()> {
        if fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            fs::remove_file(&self.path)?;
        }
        self.folder.take().map_or(Ok(()), TempDir::close)
    }
}

impl Drop for KubeconfigFile {
    fn drop(&mut self) {
        // On the way out of another error, which is the one to be reported.
        let _ = self.clear();
    }
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

fn text(url: &str) -> String {
    format!(
        "{MARK}\
apiVersion: v1
kind: Config
clusters:
- name: elector-dev
  cluster:
    server: {url}
users:
- name: elector-dev
  user: {{}}
contexts:
- name: elector-dev
  context:
    cluster: elector-dev
    namespace: default
    user: elector-dev
current-context: elector-dev
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_elsewhere_is_neither_overwritten_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, "apiVersion: v1\n").unwrap();
        let error = KubeconfigFile::write(Some(&path), "http://127.0.0.1:1").unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("config: it exists, and `elector dev` did not write it"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");

        fs::remove_file(&path).unwrap();
        let first = KubeconfigFile::write(Some(&path), "http://127.0.0.1:1").unwrap();
        let second = KubeconfigFile::write(Some(&path), "http://127.0.0.1:2").unwrap();
        first.remove().unwrap();
        assert!(path.exists(), "it is the second's now");
        second.remove().unwrap();
        assert!(!path.exists() && folder.path().exists());
    }
}
