//! A file system that forgets. Every operation happens at once on real files, as a process sees it, and is written
//! down; what a power loss would have left of it can be laid out elsewhere at any point.
//!
//! The model is the worst that POSIX allows: a file has what was synced and any part of what was written since, torn
//! anywhere; a folder has the entries that were synced and any of the changes since. Syncing a file does not sync its
//! name. A rename within a folder happens or does not.

use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::random::Random;
use crate::fs::{File, Fs, OsFs};

/// When an operation fails, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Never.
    None,
    /// This one, as a bad sector would.
    Io(usize),
    /// This one and whatever needs space after it.
    Full(usize),
}

/// The file system; clones share what was written down.
#[derive(Debug, Clone)]
pub struct VolatileFs {
    root: PathBuf,
    fault: Fault,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    operations: Vec<Operation>,
    /// Operations begun, those that only read too.
    n_begun: usize,
}

/// An operation that changes something.
#[derive(Debug, Clone)]
enum Operation {
    CreateDir(PathBuf),
    /// An empty file; one that was there is emptied.
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Sync(PathBuf),
    SyncDir(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl VolatileFs {
    /// Operations below `root`, which is empty.
    pub fn new(root: &Path, fault: Fault) -> Self {
        Self { root: root.to_owned(), fault, log: Arc::default() }
    }

    /// Operations so far that changed something.
    pub fn n_operations(&self) -> usize {
        self.log().operations.len()
    }

    /// Operations begun.
    pub fn n_begun(&self) -> usize {
        self.log().n_begun
    }

    /// Lays out under `to` what is left if the power goes after the first `n_operations`.
    pub fn crash(&self, n_operations: usize, random: &mut Random, to: &Path) {
        let mut disk = Disk::default();
        self.log().operations[..n_operations].iter().for_each(|operation| disk.apply(operation));
        disk.lay_out(0, random, to);
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    /// Begins an operation, which may fail.
    fn begin(&self, needs_space: bool) -> io::Result<()> {
        let mut log = self.log();
        let n = log.n_begun;
        log.n_begun += 1;
        match self.fault {
            Fault::Io(at) if n == at => Err(io::Error::from_raw_os_error(5)), // EIO
            Fault::Full(at) if n >= at && needs_space => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn done(&self, operation: Operation) {
        self.log().operations.push(operation);
    }

    /// The path below the root.
    fn below(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root)
            .unwrap_or_else(|_| panic!("{} is not of the collection", path.display()))
            .to_owned()
    }
}

impl Fs for VolatileFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.begin(true)?;
        let file = std::fs::File::create(path)?;
        self.done(Operation::Create(self.below(path)));
        Ok(Box::new(VolatileFile { file, path: self.below(path), fs: self.clone() }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.begin(true)?;
        let missing: Vec<_> = path.ancestors().take_while(|folder| !folder.is_dir()).map(Path::to_owned).collect();
        OsFs.create_dir(path)?;
        missing.into_iter().rev().for_each(|folder| self.done(Operation::CreateDir(self.below(&folder))));
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.begin(false)?;
        OsFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(true)?;
        OsFs.rename(from, to)?;
        self.done(Operation::Rename(self.below(from), self.below(to)));
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.begin(true)?;
        self.done(Operation::SyncDir(self.below(path)));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.begin(false)?;
        OsFs.remove_file(path)?;
        self.done(Operation::Remove(self.below(path)));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        // file by file, as it happens
        for name in OsFs.list(path)? {
            let inner = path.join(name);
            if inner.is_dir() { self.remove_dir(&inner)? } else { self.remove_file(&inner)? }
        }
        self.begin(false)?;
        std::fs::remove_dir(path)?;
        self.done(Operation::Remove(self.below(path)));
        Ok(())
    }
}

struct VolatileFile {
    file: std::fs::File,
    path: PathBuf,
    fs: VolatileFs,
}

impl Write for VolatileFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let offset = self.file.stream_position()?;
        let begun = self.fs.begin(true);
        let bytes = if begun.is_ok() { bytes } else { &bytes[..bytes.len() / 2] }; // a torn write
        self.file.write_all(bytes)?;
        self.fs.done(Operation::Write(self.path.clone(), offset, bytes.to_vec()));
        begun.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for VolatileFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl File for VolatileFile {
    fn sync(&mut self) -> io::Result<()> {
        self.fs.begin(true)?;
        self.fs.done(Operation::Sync(self.path.clone()));
        Ok(())
    }
}

/// Files and folders as the disk has them, and what was not written through yet. Node 0 is the root.
#[derive(Debug)]
struct Disk {
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    File { synced: Vec<u8>, since: Vec<Change> },
    Folder { synced: BTreeMap<String, usize>, since: Vec<Entry> },
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Emptied,
}

#[derive(Debug, Clone)]
enum Entry {
    Is(String, usize),
    Gone(String),
    Renamed(String, String, usize),
}

impl Default for Disk {
    fn default() -> Self {
        Self { nodes: vec![Node::folder()] }
    }
}

impl Node {
    fn folder() -> Self {
        Self::Folder { synced: BTreeMap::new(), since: Vec::new() }
    }
}

impl Disk {
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => self.add(path, Node::folder()),
            Operation::Create(path) => match self.find(path) {
                Some(node) => self.change(node, Change::Emptied),
                None => self.add(path, Node::File { synced: Vec::new(), since: Vec::new() }),
            },
            Operation::Write(path, offset, bytes) => self.change(self.at(path), Change::Write(*offset, bytes.clone())),
            Operation::Sync(path) | Operation::SyncDir(path) => self.sync(path),
            Operation::Rename(from, to) => {
                let node = self.at(from);
                let (from_name, to_name) = (name(from), name(to));
                match from.parent() == to.parent() {
                    true => self.entry(from, Entry::Renamed(from_name, to_name, node)),
                    false => {
                        self.entry(to, Entry::Is(to_name, node));
                        self.entry(from, Entry::Gone(from_name));
                    }
                }
            }
            Operation::Remove(path) => self.entry(path, Entry::Gone(name(path))),
        }
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        self.entry(path, Entry::Is(name(path), self.nodes.len() - 1));
    }

    fn change(&mut self, node: usize, change: Change) {
        let Node::File { since, .. } = &mut self.nodes[node] else { panic!("a folder is not written to") };
        since.push(change);
    }

    /// Changes the folder of a path.
    fn entry(&mut self, path: &Path, entry: Entry) {
        let folder = self.at(path.parent().unwrap());
        let Node::Folder { since, .. } = &mut self.nodes[folder] else { panic!("{} is no folder", path.display()) };
        since.push(entry);
    }

    fn sync(&mut self, path: &Path) {
        let node = self.at(path);
        match &mut self.nodes[node] {
            Node::File { synced, since } => since.drain(..).for_each(|change| change.apply(synced)),
            Node::Folder { synced, since } => since.drain(..).for_each(|entry| entry.apply(synced)),
        }
    }

    fn at(&self, path: &Path) -> usize {
        self.find(path).unwrap_or_else(|| panic!("{} is not there", path.display()))
    }

    /// Where a path leads now, synced or not.
    fn find(&self, path: &Path) -> Option<usize> {
        path.components().try_fold(0, |node, part| {
            let Node::Folder { synced, since } = &self.nodes[node] else { return None };
            let mut entries = synced.clone();
            since.iter().for_each(|entry| entry.apply(&mut entries));
            entries.get(part.as_os_str().to_str()?).copied()
        })
    }

    fn lay_out(&self, node: usize, random: &mut Random, to: &Path) {
        match &self.nodes[node] {
            Node::File { synced, since } => {
                let mut bytes = synced.clone();
                random.part_of(since).into_iter().for_each(|change| change.torn(random).apply(&mut bytes));
                std::fs::write(to, bytes).unwrap();
            }
            Node::Folder { synced, since } => {
                let mut entries = synced.clone();
                random.part_of(since).into_iter().for_each(|entry| entry.apply(&mut entries));
                std::fs::create_dir_all(to).unwrap();
                entries.into_iter().for_each(|(name, node)| self.lay_out(node, random, &to.join(name)));
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(offset, new) => {
                let offset = *offset as usize;
                bytes.resize(bytes.len().max(offset + new.len()), 0);
                bytes[offset..offset + new.len()].copy_from_slice(new);
            }
            Self::Emptied => bytes.clear(),
        }
    }

    /// A write that reached the disk whole, or from its start to anywhere, or from anywhere to its end.
    fn torn(&self, random: &mut Random) -> Self {
        match self {
            Self::Write(offset, bytes) if !bytes.is_empty() => {
                let cut = random.below(bytes.len());
                match random.below(4) {
                    0 => Self::Write(*offset, bytes[..cut].to_vec()),
                    1 => Self::Write(offset + cut as u64, bytes[cut..].to_vec()),
                    _ => self.clone(),
                }
            }
            other => other.clone(),
        }
    }
}

impl Entry {
    fn apply(&self, entries: &mut BTreeMap<String, usize>) {
        match self {
            Self::Is(name, node) => {
                entries.insert(name.clone(), *node);
            }
            Self::Gone(name) => {
                entries.remove(name);
            }
            Self::Renamed(from, to, node) => {
                entries.remove(from);
                entries.insert(to.clone(), *node);
            }
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}
