//! A segment of the cache: a folder with the two files of [`cento_embedder::cache`], written by one process, read by
//! any.
//!
//! A segment is made under another name, locked, and renamed, so that whoever sees one may ask its lock whether its
//! writer lives. It is removed by a rename too; who has it open reads on.

use std::fs::{File, FileTimes, TryLockError};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cento_collection::fs::{Fs, OsFs, create_private_folder, private_file};
use cento_embedder::cache::{self, ENTRY_BYTES, Entry, HEADER_BYTES, Key};

use crate::error::{AtPath, Result};

const KEYS: &str = "keys";
const VECTORS: &str = "vectors";
/// Added to the name of a segment that is not one yet, or no longer.
const NEW: &str = "new";
const GONE: &str = "gone";
/// A segment that has grown to this is left, and another begun: what the limit removes at a time.
pub(super) const SEGMENT_BYTES_MAX: u64 = 256 << 20;
/// Bytes of keys read at a time.
const READ_BYTES: usize = 1 << 20;

/// A segment open for reading.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    keys: File,
    vectors: File,
    dimensions: usize,
    pub(super) n_rows: u32,
}

impl Segment {
    /// Opens the segment at `path`; nothing if it was removed meanwhile. What its writer has not finished is left out.
    ///
    /// # Errors
    /// If its header is not that of vectors with these dimensions.
    pub(super) fn open(path: &Path, dimensions: usize) -> Result<Option<Self>> {
        let open = |name: &str| match File::open(path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).at(&path.join(name)),
        };
        let (Some(mut keys), Some(vectors)) = (open(KEYS)?, open(VECTORS)?) else { return Ok(None) };
        let mut header = [0; HEADER_BYTES];
        let n_keys = match keys.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            read => {
                read.at(path)?;
                cache::check_header(&header, dimensions)?;
                (keys.metadata().at(path)?.len() - HEADER_BYTES as u64) / ENTRY_BYTES as u64
            }
        };
        let n_vectors = vectors.metadata().at(path)?.len() / cache::vector_bytes(dimensions) as u64;
        let n_rows = n_keys.min(n_vectors).min(u64::from(u32::MAX)) as u32;
        Ok(Some(Self { path: path.to_owned(), keys, vectors, dimensions, n_rows }))
    }

    /// Calls `each` with every row and its key, in a bounded buffer.
    pub(super) fn keys(&mut self, mut each: impl FnMut(u32, &Key)) -> Result<()> {
        self.keys.seek(SeekFrom::Start(HEADER_BYTES as u64)).at(&self.path)?;
        let mut reader = BufReader::with_capacity(READ_BYTES, &self.keys);
        let mut bytes = [0; ENTRY_BYTES];
        for row in 0..self.n_rows {
            reader.read_exact(&mut bytes).at(&self.path)?;
            each(row, &Entry::decode(&bytes).key);
        }
        Ok(())
    }

    /// The entry and the bytes of the vector of a row; nothing if they are not as they were written.
    pub(super) fn read(&mut self, row: u32) -> io::Result<Option<(Entry, Vec<u8>)>> {
        let mut entry = [0; ENTRY_BYTES];
        let mut vector = vec![0; cache::vector_bytes(self.dimensions)];
        self.keys.seek(SeekFrom::Start(HEADER_BYTES as u64 + u64::from(row) * ENTRY_BYTES as u64))?;
        self.keys.read_exact(&mut entry)?;
        self.vectors.seek(SeekFrom::Start(u64::from(row) * vector.len() as u64))?;
        self.vectors.read_exact(&mut vector)?;
        let entry = Entry::decode(&entry);
        Ok(entry.fits(&vector).then_some((entry, vector)))
    }

    /// Holds the segment against its writer and against whoever removes segments; nothing if it is held.
    pub(super) fn lock(&self) -> Result<Option<Lock>> {
        lock_at(&self.path)
    }

    pub(super) fn n_bytes(&self) -> Result<u64> {
        let bytes = |file: &File| file.metadata().map(|metadata| metadata.len()).at(&self.path);
        Ok(bytes(&self.keys)? + bytes(&self.vectors)?)
    }

    /// When something was last written to it or found in it.
    pub(super) fn last_use(&self) -> Result<SystemTime> {
        self.keys.metadata().and_then(|metadata| metadata.modified()).at(&self.path)
    }

    /// Notes that something was found in it.
    pub(super) fn set_last_use(&self, time: SystemTime) -> Result<()> {
        set_last_use(&self.path, time)
    }
}

fn set_last_use(path: &Path, time: SystemTime) -> Result<()> {
    let keys = path.join(KEYS);
    let set = File::options().append(true).open(&keys);
    match set.and_then(|file| file.set_times(FileTimes::new().set_modified(time))) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()), // removed meanwhile
        set => set.at(&keys),
    }
}

/// Holds a segment as long as it lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// As [`Segment::lock`], by path.
pub(super) fn lock_at(segment: &Path) -> Result<Option<Lock>> {
    let path = &segment.join(KEYS);
    let file = match File::options().append(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.at(path)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(source).at(path),
    }
}

/// A segment being written; locked as long as it lives.
#[derive(Debug)]
pub(super) struct SegmentWriter {
    pub(super) path: PathBuf,
    keys: File,
    vectors: File,
    pub(super) n_rows: u32,
}

impl SegmentWriter {
    /// A new, empty segment among those of a model.
    pub(super) fn create(model_folder: &Path, dimensions: usize) -> Result<Self> {
        let writer = Self::begin(model_folder, dimensions)?;
        writer.publish()
    }

    /// A segment that nobody sees before [`SegmentWriter::publish`].
    pub(super) fn begin(model_folder: &Path, dimensions: usize) -> Result<Self> {
        let (path, name) = loop {
            let name = name();
            let path = model_folder.join(format!("{name}.{NEW}"));
            match create_private_folder(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {} // made within the same microsecond
                created => {
                    created.at(&path)?;
                    break (path, name);
                }
            }
        };
        let create = |file: &str| {
            let file = path.join(file);
            private_file().write(true).create_new(true).open(&file).at(&file)
        };
        let (mut keys, vectors) = (create(KEYS)?, create(VECTORS)?);
        keys.try_lock().map_err(io::Error::from).at(&path)?;
        keys.write_all(&cache::header(dimensions)).at(&path)?;
        Ok(Self { path: model_folder.join(name), keys, vectors, n_rows: 0 })
    }

    /// Puts the segment among the others.
    pub(super) fn publish(self) -> Result<Self> {
        publish(&OsFs, &self.path)?;
        Ok(self)
    }

    /// Adds entries and their vectors. After an error nothing more may be added; what there is stays readable.
    pub(super) fn append(&mut self, entries: &[u8], vectors: &[u8]) -> Result<()> {
        self.vectors.write_all(vectors).and_then(|()| self.keys.write_all(entries)).at(&self.path)?;
        self.n_rows += (entries.len() / ENTRY_BYTES) as u32;
        Ok(())
    }

    /// Waits until everything is on the disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.vectors.sync_data().and_then(|()| self.keys.sync_data()).at(&self.path)
    }

    pub(super) fn set_last_use(&self, time: SystemTime) -> Result<()> {
        self.keys.set_times(FileTimes::new().set_modified(time)).at(&self.path)
    }
}

/// Gives a segment its name, durably: the old ones may go as soon as it has it.
pub(super) fn publish(fs: &dyn Fs, path: &Path) -> Result<()> {
    let new = path.with_extension(NEW);
    fs.sync_dir(&new).at(&new)?;
    fs.rename(&new, path).at(&new)?;
    let folder = path.parent().unwrap_or(path);
    fs.sync_dir(folder).at(folder)
}

/// Names are in the order in which segments are made.
fn name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:017}-{}", since.as_micros(), std::process::id())
}

/// Paths of the segments in a model's folder, oldest first; none if there is no such folder.
pub(super) fn list(model_folder: &Path) -> Result<Vec<PathBuf>> {
    let is_segment = |path: &PathBuf| path.extension().is_none() && path.is_dir();
    Ok(entries(model_folder)?.into_iter().filter(is_segment).collect())
}

/// Paths in a folder, ascending; none if there is no such folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at(folder)?,
    };
    let mut paths = entries.map(|entry| Ok(entry.at(folder)?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths)
}

/// Removes a segment; `_lock` is its own.
pub(super) fn remove(path: &Path, _lock: &Lock) -> Result<()> {
    let gone = path.with_extension(GONE);
    match std::fs::rename(path, &gone).and_then(|()| std::fs::remove_dir_all(&gone)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()), // somebody else was quicker
        removed => removed.at(path),
    }
}

/// Removes what processes left behind that ended while they made or removed a segment.
pub(super) fn sweep(model_folder: &Path) -> Result<()> {
    for path in entries(model_folder)? {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(GONE) => {
                let _ = std::fs::remove_dir_all(&path); // what cannot be removed now is in nobody's way
            }
            Some(NEW) => {
                if let Some(lock) = lock_at(&path)? {
                    remove(&path, &lock)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}
