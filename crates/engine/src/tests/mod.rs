//! The life of a collection, below the command line.
//!
//! | file | claims |
//! |---|---|
//! | `lifecycle` | compaction, pins, snapshots: no answer changes, no file is missing, no space is lost |
//! | `ranking::lexical` | a document by words: what its score is the mean of |
//! | `ranking::links` | documents that the best name climb, however the collection grew and is cut |
//! | `ranking::authored` | links that authors made: what climbs by them, where they lead, collections without them |
//! | `ranking::phrases` | quoted phrases: what answers has them; many settings at once rank as one run each |
//! | `faults` | a crash, a full disk and a failing one at every operation: one generation or the other, whole |
//! | `children` | files read in children: what one that fails costs, what is told of it and for how long |
//! | `adopt` | parts indexed elsewhere and adopted: the answers of one run, or a refusal that loses nothing |
//! | `memory` | runs and merges within a bound of memory: several segments, and no answer changes |
//! | `writers` | writers that meet, collections that move under one, full disks: nothing of anybody is lost |
//! | `hostile` | links, pipes and names that lead out of a collection: nothing outside is read, written or removed |
//! | `reads` | reads that fail and files cut short, before and while they are open: an error that names them |
//! | `reads::lost` | files cut while they are read: true answers or errors, no commit of what was lost, no signal |
//! | `repair` | damage anywhere: found, never answered from, mended as far as it can be |
//! | `ranking::neighbors` | strategies are offered what their settings ask for |
//! | `seal` | a repair searches for what is missing, and each query once |
//! | `endpoints::language_model` | a language model beside it: what it brings, and whatever it does wrong |
//! | `endpoints::encoder` | an encoder at an endpoint whose model changes under an open collection |
//! | `shards` | a corpus in several collections answers as in one |
//! | `shards::remote` | the same through the words of servers; shards that lie, change, or are asked nonsense |
//! | `shards::calibration` | cosines mean what they mean of the living, however a collection grew |
//! | `requests` | requests are read strictly, with defaults and limits; their schemas say the same |
//! | `service` | many threads at once: the answers of one at a time, of the newest generation |
//! | `model` | random operations against a map and an exact scan |

mod adopt;
#[cfg(unix)]
mod children;
mod endpoints;
mod faults;
#[cfg(unix)]
mod hostile;
mod lifecycle;
mod memory;
mod model;
mod ranking;
mod reads;
mod repair;
mod resolved;
mod requests;
mod seal;
mod shards;
mod service;
mod writers;

use std::io;
use std::path::{Path, PathBuf};

use cento_collection::testing::{random, volatile};

use crate::{
    At, ChunkSearch, CompactOptions, CompactReport, File, Fs, IndexOptions, IndexReport, Merge, Mode, OsFs, Result,
    Root, Scan, Searcher, SearcherOptions,
};

/// The operating system's files without waiting for the disk: what tests run on that do not test that.
#[derive(Debug, Clone, Copy)]
struct QuickFs;

impl Fs for QuickFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(Box::new(QuickFile(std::fs::File::create(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        OsFs.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFs.rename(from, to)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        OsFs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        OsFs.remove_dir(path)
    }
}

struct QuickFile(std::fs::File);

impl io::Write for QuickFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl io::Seek for QuickFile {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl File for QuickFile {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A folder of notes and a collection beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.notes()).unwrap();
        place
    }

    fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn collection(&self) -> PathBuf {
        self.folder.path().join("collection")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.notes().join(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.notes().join(name)).unwrap();
    }

    fn options(&self) -> IndexOptions {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
        IndexOptions { model: Some(model), graph_rows_min: 1, compact: false, threads: 1, ..IndexOptions::default() }
    }

    fn index_with(&self, options: &IndexOptions, fs: &dyn Fs) -> Result<IndexReport> {
        index_notes(&self.notes(), &self.collection(), options, fs)
    }

    /// Indexes the notes; one generation more, if something changed.
    fn index(&self) -> IndexReport {
        self.index_with(&self.options(), &QuickFs).unwrap()
    }

    fn compact(&self, merge: Merge) -> CompactReport {
        let options = CompactOptions { merge, graph_rows_min: 1, ..CompactOptions::default() };
        crate::compact(&self.collection(), &options, &QuickFs, &mut |_| {}).unwrap()
    }

    fn open(&self, at: At) -> Result<Searcher> {
        Searcher::open(self.collection(), SearcherOptions { at, ..SearcherOptions::default() })
    }

    fn searcher(&self) -> Searcher {
        self.open(At::Current).unwrap()
    }

    /// Bytes of segments and tombstones, those of other generations too.
    fn n_bytes(&self) -> u64 {
        let bytes = |name: &str| cento_collection::format::layout::folder_bytes(&self.collection().join(name)).unwrap();
        bytes("segments") + bytes("deletes")
    }
}

fn index_notes(notes: &Path, collection: &Path, options: &IndexOptions, fs: &dyn Fs) -> Result<IndexReport> {
    let notes = Root { label: "notes".to_owned(), path: notes.to_owned() };
    crate::index(collection, &[notes], options, fs, &mut |_| {})
}

/// Everything a searcher says of these words, by each arm and by both: ids, scores to the last bit, spans, texts,
/// reasons.
fn answers(searcher: &Searcher, words: &[&str]) -> String {
    let mut all = String::new();
    for query in words {
        for mode in [Mode::Lexical, Mode::Dense, Mode::Hybrid] {
            let request = ChunkSearch { mode, scan: Scan::Exact, k: 1000, ..ChunkSearch::new(*query) };
            for hit in searcher.search(&request).unwrap().hits {
                all += &serde_json::to_string(&hit).unwrap();
                all.push('\n');
            }
        }
    }
    all
}

/// A copy of a folder.
fn copied(folder: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let to = to.join(path.file_name().unwrap());
            if path.is_dir() {
                std::fs::create_dir(&to).unwrap();
                copy(&path, &to);
            } else {
                std::fs::copy(&path, &to).unwrap();
            }
        }
    }
    let copied = tempfile::tempdir().unwrap();
    copy(folder, copied.path());
    copied
}
