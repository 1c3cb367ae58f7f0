//! The token that requests to change something carry, in a file that the program beside this process reads too.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use elector_runtime::{ServerReply, ServerRequest};

/// A file with a token, whose content is read at each request: one that is replaced counts at once.
#[derive(Clone, Debug)]
pub(super) struct PostToken(PathBuf);

/// The longest token, in bytes.
const LONGEST: u64 = 4096;

/// The rights on a file that is made: its owner writes, its group reads, as the containers of a Pod share one.
const MODE: u32 = 0o640;

// === impl PostToken ===

impl PostToken {
    /// The token in that file, which is made with a random one where there is none.
    pub(super) fn open(file: &Path) -> anyhow::Result<Self> {
        let this = Self(file.to_owned());
        if !file.try_exists().unwrap_or(false) {
            let made = this.create();
            made.with_context(|| {
                format!("make the token of --http-token-file {}", file.display())
            })?;
        }
        let token = this.read();
        let token = token.with_context(|| format!("read --http-token-file {}", file.display()))?;
        ensure!(
            !token.is_empty(),
            "use --http-token-file {}: it is empty, and must hold a token",
            file.display()
        );
        Ok(this)
    }

    /// Where it is.
    pub(super) fn file(&self) -> &Path {
        &self.0
    }

    /// The refusal of a request without the token.
    pub(super) fn refusal(&self, request: &ServerRequest<'_>) -> Option<ServerReply> {
        let Some(given) = request.bearer_token() else {
            return Some(ServerReply::unauthorized(
                "401 send the token of --http-token-file as Authorization: Bearer TOKEN\n",
            ));
        };
        match self.read() {
            Ok(token) if !token.is_empty() && is_equal(given, &token) => None,
            Ok(_) => Some(ServerReply::unauthorized("401 another token\n")),
            Err(error) => {
                tracing::warn!(%error, file = %self.0.display(), "the token of --http-token-file cannot be read");
                Some(ServerReply::failed("500 the token cannot be read\n"))
            }
        }
    }

    /// All of it or nothing: its reader may be faster.
    fn create(&self) -> io::Result<()> {
        let parent = self.0.parent().filter(|it| !it.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new(".")))?;
        let token: u128 = rand::random();
        writeln!(file, "{token:032x}")?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(MODE))?;
        match file.persist_noclobber(&self.0) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
            _ => Ok(()),
        }
    }

    fn read(&self) -> io::Result<String> {
        let mut text = String::new();
        fs::File::open(&self.0)?
            .take(LONGEST)
            .read_to_string(&mut text)?;
        Ok(text.trim().to_owned())
    }
}

/// Compares in a time that says nothing about where they differ.
fn is_equal(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differ = |differ: u8, (a, b): (&u8, &u8)| differ | (a ^ b);
    given.len() == token.len() && given.iter().zip(token).fold(0, differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_where_there_is_none_and_kept_where_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let made = PostToken::open(&file).unwrap().read().unwrap();
        assert_eq!(made.len(), 32, "{made}");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        assert_eq!(PostToken::open(&file).unwrap().read().unwrap(), made);
        let another = PostToken::open(&folder.path().join("another")).unwrap();
        assert_ne!(another.read().unwrap(), made);
        assert!(is_equal(&made, &made) && !is_equal(&made[1..], &made));
        assert!(!is_equal(&made.replace(&made[..1], "x"), &made));
    }

    #[test]
    fn a_file_that_holds_no_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |file: &Path| format!("{:#}", PostToken::open(file).unwrap_err());
        let empty = folder.path().join("empty");
        fs::write(&empty, " \n").unwrap();
        let text = refusal(&empty);
        let holds = text.ends_with("it is empty, and must hold a token");
        assert!(holds, "{text}");
        let text = refusal(&folder.path().join("nowhere/token"));
        let holds = text.starts_with("make the token of --http-token-file");
        assert!(holds, "{text}");
        let text = refusal(folder.path());
        assert!(text.starts_with("read --http-token-file"), "{text}");
    }
}
