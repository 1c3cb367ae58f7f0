//! The archive of a plugin of kubectl, as package managers take it: the program and the licence, and the same bytes for the
//! same program, wherever and whenever it is made.

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

/// A file of the archive.
pub(super) struct ArchivedFile<'a> {
    pub(super) name: &'a str,
    /// The rights, such as `0o755`.
    pub(super) mode: u32,
    pub(super) content: &'a [u8],
}

/// The archive, in the form `.tar.gz`.
///
/// # Errors
/// When a name is too long for it.
pub(super) fn pack(files: &[ArchivedFile<'_>]) -> Result<Vec<u8>> {
    // No name, no time and no system of the machine that makes it: 255 stands for an unknown one.
    let gzip = GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    for file in files {
        let mut header = Header::new_ustar();
        header.set_size(u64::try_from(file.content.len())?);
        header.set_mode(file.mode);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive
            .append_data(&mut header, file.name, file.content)
            .with_context(|| format!("failed to archive {}", file.name))?;
    }
    Ok(archive.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::*;

    #[test]
    fn the_files_come_out_with_their_rights_and_with_nothing_of_the_machine() {
        let files = [
            ArchivedFile {
                name: "program",
                mode: 0o755,
                content: b"\x7fELF",
            },
            ArchivedFile {
                name: "LICENSE",
                mode: 0o644,
                content: b"free",
            },
        ];
        let packed = pack(&files).unwrap();
        // The fields of gzip: no name, no time, an unknown system.
        assert_eq!(packed[3..8], [0; 5]);
        assert_eq!(packed[9], 255);
        let mut archive = Archive::new(GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            let name = entry.path().unwrap().display().to_string();
            found.push((name, header.mode().unwrap(), content));
        }
        let expected: Vec<_> = files
            .iter()
            .map(|file| (file.name.to_owned(), file.mode, file.content.to_vec()))
            .collect();
        assert_eq!(found, expected);
    }
}
