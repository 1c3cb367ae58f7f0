//! The file of an instance lock: blocks of one size, each a line of JSON with its checksum, padded with spaces.
//!
//! The first block names the instance, each other one a term. A Lease has two blocks at most, so that the note of the term
//! that stands outlives the attempts at the next one. A block that cannot be read is none.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use elector_protocol::holder::FormerTerm;
use elector_protocol::shard::shard_hash;
use elector_protocol::{Identity, LeaseKey, LeaseSnapshot, LifeId, ResourceVersion, Uid};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::seed::random_seed;

/// The notes in a file.
#[derive(Debug)]
pub(super) struct Notes {
    file: Option<File>,
    instance: u64,
    /// One for each block behind the first.
    blocks: Vec<Option<Note>>,
}

/// A term that a life began, or was about to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    namespace: String,
    lease: String,
    life: String,
    uid: String,
    holder: String,
    /// The resourceVersion that the write replaced.
    base: u64,
    pub(super) boot: String,
}

#[derive(Serialize, Deserialize)]
struct Header {
    /// Sixteen hexadecimal digits.
    instance: String,
    /// The file that was locked when the instance began. A copy of it is another file, with a lock of its own.
    place: String,
}

/// The size of a block in bytes: more than the longest names need, and written by one call.
const BLOCK: usize = 1024;
/// The most blocks that are read. A process has two for each Lease.
const MOST_BLOCKS: u64 = 4096;

// === impl Notes ===

impl Notes {
    /// Reads the file, which is locked. Where it names no instance, or is a copy, a new one begins.
    pub(super) fn open(mut file: File) -> io::Result<Self> {
        let place = place(&file)?;
        let mut content = Vec::new();
        let most = MOST_BLOCKS * BLOCK as u64;
        (&mut file).take(most).read_to_end(&mut content)?;
        let mut blocks = content.chunks(BLOCK);
        let header: Option<Header> = blocks.next().and_then(read_block);
        let own = header.filter(|header| header.place == place);
        let instance = own.and_then(|header| u64::from_str_radix(&header.instance, 16).ok());
        if let Some(instance) = instance {
            return Ok(Self {
                file: Some(file),
                instance,
                blocks: blocks.map(read_block).collect(),
            });
        }
        file.set_len(0)?;
        let mut notes = Self {
            file: Some(file),
            instance: random_seed(),
            blocks: Vec::new(),
        };
        let instance = format!("{:016x}", notes.instance);
        notes.write_block(0, &Header { instance, place })?;
        Ok(notes)
    }

    /// Notes without a file, which begin as those of an earlier life.
    pub(super) fn in_memory(instance: u64, before: Option<&Self>) -> Self {
        Self {
            file: None,
            instance,
            blocks: before.map(|it| it.blocks.clone()).unwrap_or_default(),
        }
    }

    pub(super) const fn instance(&self) -> u64 {
        self.instance
    }

    /// The notes about a Lease, with their places.
    pub(super) fn of(&self, lease: &LeaseKey) -> impl Iterator<Item = (usize, &Note)> {
        let blocks = self.blocks.iter().enumerate();
        let notes = blocks.filter_map(|(index, block)| Some((index, block.as_ref()?)));
        notes.filter(move |(_, note)| {
            (&*note.namespace, &*note.lease) == (&*lease.namespace, &*lease.name)
        })
    }

    /// Writes a note, in a block that is free or in that of a term of the same Lease which `shown` does not show.
    pub(super) fn write(&mut self, note: Note, shown: Option<&LeaseSnapshot>) -> io::Result<()> {
        let lease = LeaseKey::new(&*note.namespace, &*note.lease);
        let is_shown = |note: &Note| {
            shown.is_some_and(|shown| note.term().is_some_and(|it| it.is_shown_by(shown)))
        };
        let own: Vec<_> = self.of(&lease).collect();
        if own.iter().any(|(_, written)| **written == note) {
            return Ok(());
        }
        let index = match own[..] {
            [_, _, ..] => {
                let replaced = own.iter().filter(|(_, note)| !is_shown(note));
                let oldest = replaced.min_by_key(|(_, note)| note.base);
                oldest.map_or(own[0].0, |(index, _)| *index)
            }
            _ => {
                let free = self.blocks.iter().position(Option::is_none);
                free.unwrap_or(self.blocks.len())
            }
        };
        // The note that stood there is lost, whatever comes of the write.
        if index == self.blocks.len() {
            self.blocks.push(None);
        }
        self.blocks[index] = None;
        self.write_block(index + 1, &note)?;
        self.blocks[index] = Some(note);
        Ok(())
    }

    /// Leaves the file open until the process ends.
    pub(super) fn keep_open(&mut self) {
        std::mem::forget(self.file.take());
    }

    fn write_block(&mut self, index: usize, value: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_string(value)?;
        let line = format!("{json} {:016x}", shard_hash(&json));
        if line.len() >= BLOCK {
            return Err(io::Error::other(
                "the names of the Lease and of its holder are too long",
            ));
        }
        let block = format!("{line:<width$}\n", width = BLOCK - 1);
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        file.seek(SeekFrom::Start((index * BLOCK) as u64))?;
        file.write_all(block.as_bytes())
    }
}

/// The device of the file and its number there.
#[cfg(unix)]
fn place(file: &File) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = file.metadata()?;
    Ok(format!("{}:{}", metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn place(_: &File) -> io::Result<String> {
    Ok(String::new())
}

/// The value of a block that is whole.
fn read_block<T: DeserializeOwned>(block: &[u8]) -> Option<T> {
    let text = str::from_utf8(block).ok()?.trim_end();
    let (json, checksum) = text.rsplit_once(' ')?;
    let whole = checksum == format!("{:016x}", shard_hash(json));
    serde_json::from_str(json).ok().filter(|_| whole)
}

// === impl Note ===

impl Note {
    pub(super) fn new(lease: &LeaseKey, term: &FormerTerm, boot: &str) -> Self {
        Self {
            namespace: lease.namespace.to_string(),
            lease: lease.name.to_string(),
            life: term.life.to_string(),
            uid: term.uid.to_string(),
            holder: term.holder.as_str().to_owned(),
            base: term.base.0,
            boot: boot.to_owned(),
        }
    }

    pub(super) fn life(&self) -> Option<LifeId> {
        LifeId::parse(&self.life)
    }

    /// The term, where the note is one of ours.
    pub(super) fn term(&self) -> Option<FormerTerm> {
        Some(FormerTerm {
            life: self.life()?,
            uid: Uid::new(&self.uid),
            holder: Identity::new(&*self.holder)?,
            base: ResourceVersion(self.base),
        })
    }
}
