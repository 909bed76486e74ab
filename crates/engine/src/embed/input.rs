//! The texts to embed: lines of JSONL, read on a thread of their own, in batches that depend on the input alone.
//!
//! The bytes are hashed as they are read, so that a run that goes on can tell whether it reads what the run before it
//! read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use serde::{Deserialize, Serialize};

use cento_corpus::{self as corpus, Record, Records};

use crate::error::{AtPath, Error, Result};
use crate::ingest::{FilePart, Issue};
use crate::plural::counted;

/// Batches read ahead of the encoder.
pub(super) const BATCHES_AHEAD: usize = 2;
/// Texts embedded at a time; what an interruption loses at least.
const BATCH_TEXTS: usize = 1024;
/// A batch ends before, once it has this many bytes of text.
const BATCH_TEXT_BYTES: usize = 4 << 20;
const READ_BYTES: usize = 1 << 20;

/// Where the texts come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmbedInput {
    /// JSONL.
    File(PathBuf),
    /// Lines of a JSONL file.
    Part(FileLines),
    /// JSONL too.
    Stdin,
}

/// The lines of a file that begin in one of its parts.
///
/// The parts of a file are cut at equal numbers of bytes, so that each is found without reading those before it as
/// records; one behind the other, they are the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLines {
    path: PathBuf,
    part: FilePart,
    bytes: Range<u64>,
    n_lines_before: u64,
}

impl FileLines {
    /// Finds the lines of a part. Reads the file up to there, to number them.
    ///
    /// # Errors
    /// If the file cannot be read, or is none whose size is known.
    pub fn find(path: &Path, part: FilePart) -> Result<Self> {
        let metadata = path.metadata().at(path)?;
        if !metadata.is_file() {
            let reason = format!("needs a file: {} is none", path.display());
            return Err(Error::Setting { setting: "part", value: part.to_string(), reason });
        }
        let share = part.share(metadata.len());
        let mut file = BufReader::with_capacity(READ_BYTES, File::open(path).at(path)?);
        let (start, n_lines_before) = next_line(&mut file, 0, share.start).at(path)?;
        let (end, _) = next_line(&mut file, start, share.end.max(start)).at(path)?;
        Ok(Self { path: path.to_owned(), part, bytes: start..end, n_lines_before })
    }
}

/// Where the first line begins at or behind the byte `from`, and how many lines end on the way there from `at`, where
/// the file stands and a line begins.
fn next_line(file: &mut impl BufRead, mut at: u64, from: u64) -> io::Result<(u64, u64)> {
    let (mut n_lines, mut begins) = (0, true);
    while at < from || !begins {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        // Up to the byte before `from`, lines are counted; from there on the end of one is looked for.
        let n_before = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX).min(buffer.len());
        let n_bytes = match n_before {
            0 => buffer.iter().position(|byte| *byte == b'\n').map_or(buffer.len(), |end| end + 1),
            n_before => n_before,
        };
        n_lines += buffer[..n_bytes].iter().filter(|byte| **byte == b'\n').count() as u64;
        begins = buffer[n_bytes - 1] == b'\n';
        at += n_bytes as u64;
        file.consume(n_bytes);
    }
    Ok((at, n_lines))
}

impl EmbedInput {
    /// Its name in errors and the manifest.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::File(path) | Self::Part(FileLines { path, .. }) => path.clone(),
            Self::Stdin => PathBuf::from("stdin"),
        }
    }

    /// The part of a file that it is, `i/n`.
    pub(super) fn part(&self) -> Option<String> {
        match self {
            Self::Part(lines) => Some(lines.part.to_string()),
            Self::File(_) | Self::Stdin => None,
        }
    }

    pub(super) fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => Box::new(File::open(path).at(path)?),
            Self::Part(FileLines { path, bytes, .. }) => {
                let mut file = File::open(path).at(path)?;
                file.seek(SeekFrom::Start(bytes.start)).at(path)?;
                Box::new(file.take(bytes.end - bytes.start))
            }
            Self::Stdin => Box::new(io::stdin()),
        })
    }

    /// Lines and bytes of the file before it.
    fn before(&self) -> (u64, u64) {
        match self {
            Self::Part(lines) => (lines.n_lines_before, lines.bytes.start),
            Self::File(_) | Self::Stdin => (0, 0),
        }
    }

    /// Bytes to be read, where that is known.
    pub(super) fn n_bytes(&self) -> Option<u64> {
        match self {
            Self::File(path) => {
                path.metadata().ok().filter(|metadata| metadata.is_file()).map(|metadata| metadata.len())
            }
            Self::Part(lines) => Some(lines.bytes.end - lines.bytes.start),
            Self::Stdin => None,
        }
    }

    /// Hash of all of it, where it can be read twice.
    pub(super) fn hash(&self) -> Result<Option<Prefix>> {
        match self {
            Self::File(_) | Self::Part(_) => hash_of(&mut self.open()?).at(&self.name()).map(Some),
            Self::Stdin => Ok(None),
        }
    }
}

/// Length of what was read of the input, and hexadecimal BLAKE3 of these first bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prefix {
    pub(super) n_bytes: u64,
    pub(super) blake3: String,
}

/// A text to embed.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) line: u64,
    pub(super) id: String,
    /// Title and text with a blank between them, as users of sentence-transformers join them.
    pub(super) text: String,
}

/// Texts to embed together, and what was read up to the end of the last of them.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) texts: Vec<Text>,
    pub(super) read: Prefix,
}

/// The reader's report when the input has ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// All of the input.
    pub(super) read: Prefix,
    /// Lines that hold no text to embed, and why.
    pub(super) failed: Vec<Issue>,
    /// The role each key was given.
    pub(super) notes: Vec<String>,
}

/// Reads the input and sends its batches, but for the first `n_done` texts, which were embedded before from `done`.
///
/// # Errors
/// If the input cannot be read, has an id twice, or does not begin as it did before.
pub(super) fn read(input: &EmbedInput, n_done: u64, done: Option<&Prefix>, send: &SyncSender<Batch>) -> Result<Ended> {
    let path = input.name();
    let (n_lines, n_bytes) = input.before();
    let records = Records::new(Hashed::new(BufReader::with_capacity(READ_BYTES, input.open()?)), &path);
    let mut reader = Reader {
        records: records.behind(n_lines, n_bytes),
        lines: HashMap::new(),
        n_numbered: 0,
        failed: Vec::new(),
        path: &path,
    };
    let changed = || Error::InputChanged { input: path.clone(), n_texts: n_done };
    for _ in 0..n_done {
        reader.next()?.ok_or_else(changed)?;
    }
    if done.is_some_and(|done| *done != reader.prefix()) {
        return Err(changed());
    }
    loop {
        let (mut texts, mut n_bytes) = (Vec::new(), 0);
        while texts.len() < BATCH_TEXTS && n_bytes < BATCH_TEXT_BYTES {
            let Some(text) = reader.next()? else { break };
            n_bytes += text.text.len();
            texts.push(text);
        }
        if texts.is_empty() {
            return Ok(reader.ended());
        }
        if send.send(Batch { texts, read: reader.prefix() }).is_err() {
            return Ok(reader.ended()); // the other side has failed and says why
        }
    }
}

/// Hash of a whole file.
pub(super) fn hash(path: &Path) -> Result<Prefix> {
    hash_of(&mut File::open(path).at(path)?).at(path)
}

fn hash_of(input: &mut dyn Read) -> io::Result<Prefix> {
    let mut hasher = blake3::Hasher::new();
    let n_bytes = io::copy(input, &mut hasher)?;
    Ok(Prefix { n_bytes, blake3: hasher.finalize().to_hex().to_string() })
}

struct Reader<'p, R> {
    records: Records<Hashed<R>>,
    /// The line of each id, by half of its BLAKE3: 24 bytes an id, and no two ids meet by chance.
    lines: HashMap<[u64; 2], u64>,
    n_numbered: u64,
    failed: Vec<Issue>,
    path: &'p Path,
}

impl<R: BufRead> Reader<'_, R> {
    /// The next text; lines that hold none are noted.
    fn next(&mut self) -> Result<Option<Text>> {
        loop {
            match self.records.next() {
                None => return Ok(None),
                Some(Ok(record)) => return self.text(record).map(Some),
                Some(Err(error @ corpus::Error::Io { .. })) => return Err(error.into()),
                Some(Err(error)) => self.failed.push(Issue {
                    path: self.path.display().to_string(),
                    reason: crate::describe(&error).replacen(&format!("{}: ", self.path.display()), "", 1),
                }),
            }
        }
    }

    fn text(&mut self, record: Record) -> Result<Text> {
        let Record { line, id, title, text, .. } = record;
        let id = id.unwrap_or_else(|| {
            self.n_numbered += 1;
            line.to_string()
        });
        let hash = blake3::hash(id.as_bytes());
        let (halves, _) = hash.as_bytes().as_chunks::<8>();
        match self.lines.entry([u64::from_le_bytes(halves[0]), u64::from_le_bytes(halves[1])]) {
            Entry::Occupied(first) => {
                let (path, first_line) = (self.path.to_owned(), *first.get());
                return Err(corpus::Error::DuplicateId { path, id, first_line, line }.into());
            }
            Entry::Vacant(place) => place.insert(line),
        };
        let text = match (title.filter(|title| !title.is_empty()), text.unwrap_or_default()) {
            (None, text) => text,
            (Some(title), text) if text.is_empty() => title,
            (Some(title), text) => format!("{title} {text}"),
        };
        Ok(Text { line, id, text })
    }

    fn prefix(&self) -> Prefix {
        self.records.get_ref().prefix()
    }

    fn ended(self) -> Ended {
        let path = self.path.display();
        let mut notes = vec![format!("{path}: {}", self.records.note())];
        if self.n_numbered > 0 {
            notes.push(format!(
                "{path}: named by the line number, for want of an id: {}",
                counted(self.n_numbered, "line")
            ));
        }
        Ended { read: self.prefix(), failed: self.failed, notes }
    }
}

/// Hashes what is consumed.
#[derive(Debug)]
struct Hashed<R> {
    input: R,
    hasher: blake3::Hasher,
    n_bytes: u64,
}

impl<R> Hashed<R> {
    fn new(input: R) -> Self {
        Self { input, hasher: blake3::Hasher::new(), n_bytes: 0 }
    }

    fn prefix(&self) -> Prefix {
        Prefix { n_bytes: self.n_bytes, blake3: self.hasher.finalize().to_hex().to_string() }
    }
}

impl<R: BufRead> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.fill_buf()?.read(buffer)?;
        self.consume(n_read);
        Ok(n_read)
    }
}

impl<R: BufRead> BufRead for Hashed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, n_bytes: usize) {
        if let Ok(available) = self.input.fill_buf() {
            self.hasher.update(&available[..n_bytes]); // what is about to be consumed is in the buffer
        }
        self.n_bytes += n_bytes as u64;
        self.input.consume(n_bytes);
    }
}
