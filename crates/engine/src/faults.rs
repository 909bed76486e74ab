//! Every file operation of a commit fails in turn: the collection answers as before or as after, and the next run mends it.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    File, Fs, IndexOptions, Mode, OsFs, Root, SearchRequest, Searcher, SearcherOptions, delete, doctor, index,
};

/// The operating system's files, of which one operation fails, and every later one too: the disk is full, the process ends.
#[derive(Debug, Clone)]
struct FaultFs {
    n_left: Arc<AtomicUsize>,
}

impl FaultFs {
    fn failing_after(n_operations: usize) -> Self {
        Self { n_left: Arc::new(AtomicUsize::new(n_operations)) }
    }

    fn spend(&self) -> io::Result<()> {
        match self.n_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
    }

    fn file(&self, inner: io::Result<Box<dyn File>>) -> io::Result<Box<dyn File>> {
        Ok(Box::new(FaultFile { inner: inner?, fs: self.clone() }))
    }
}

struct FaultFile {
    inner: Box<dyn File>,
    fs: FaultFs,
}

impl Write for FaultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.fs.spend() {
            Ok(()) => self.inner.write(bytes),
            Err(error) => {
                self.inner.write_all(&bytes[..bytes.len() / 2])?; // a torn write
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FaultFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl File for FaultFile {
    fn sync(&mut self) -> io::Result<()> {
        self.fs.spend()?;
        self.inner.sync()
    }

    fn set_len(&mut self, n_bytes: u64) -> io::Result<()> {
        self.fs.spend()?;
        self.inner.set_len(n_bytes)
    }
}

impl Fs for FaultFs {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.spend()?;
        self.file(OsFs.create(path))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.spend()?;
        self.file(OsFs.append(path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        OsFs.read(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.spend()?;
        OsFs.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.spend()?;
        OsFs.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.spend()?;
        OsFs.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.spend()?;
        OsFs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.spend()?;
        OsFs.remove_dir(path)
    }
}

/// A folder of notes and a collection beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("tides.md", "# Tides\n\nThe moon pulls the sea.\n");
        place.write("bread.md", "# Bread\n\nBread is flour and water.\n");
        place
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.folder.path().join("notes")).unwrap();
        std::fs::write(self.folder.path().join("notes").join(name), text).unwrap();
    }

    fn collection(&self) -> PathBuf {
        self.folder.path().join("collection")
    }

    fn index(&self, fs: &dyn Fs) -> crate::Result<u64> {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny").to_owned();
        let options = IndexOptions { model: Some(model), graph_rows_min: 1, ..IndexOptions::default() };
        let notes = Root { label: "notes".to_owned(), path: self.folder.path().join("notes") };
        index(&self.collection(), &[notes], &options, fs, &mut |_| {}).map(|report| report.generation)
    }

    /// The ids that answer.
    fn answer(&self) -> Vec<String> {
        let searcher = Searcher::open(self.collection(), SearcherOptions::default()).unwrap();
        let request =
            SearchRequest { mode: Mode::Lexical, k: 100, ..SearchRequest::new("moon bread flour rye cheese water") };
        let mut ids: Vec<_> = searcher.search(&request).unwrap().hits.into_iter().map(|hit| hit.id).collect();
        ids.sort();
        ids
    }
}

#[test]
fn whatever_operation_fails_a_generation_answers_whole_and_the_next_run_mends_it() {
    let before = vec!["notes/bread.md#0".to_owned(), "notes/tides.md#0".to_owned()];
    let after = vec!["notes/bread.md#0".to_owned(), "notes/cheese.md#0".to_owned()];
    let (mut n_failed, mut n_old, mut n_new) = (0, 0, 0);
    for n_operations in 0.. {
        let place = Place::new();
        place.index(&OsFs).unwrap();
        assert_eq!(place.answer(), before);
        place.write("bread.md", "# Bread\n\nBread is rye and water.\n");
        place.write("cheese.md", "# Cheese\n\nCheese is milk.\n");
        std::fs::remove_file(place.folder.path().join("notes/tides.md")).unwrap();
        let ended = place.index(&FaultFs::failing_after(n_operations));
        match place.answer() {
            ids if ids == before => n_old += 1,
            ids if ids == after => n_new += 1,
            ids => panic!("after {n_operations} operations neither generation answers: {ids:?}"),
        }
        assert!(doctor(&place.collection()).unwrap().is_healthy(), "after {n_operations} operations");
        let Err(error) = ended else { break };
        assert!(crate::describe(&error).contains("collection"), "the message names the file: {error}");
        n_failed += 1;
        place.index(&OsFs).unwrap();
        assert_eq!(place.answer(), after, "after {n_operations} operations");
        assert!(doctor(&place.collection()).unwrap().is_healthy());
    }
    assert!(n_failed > 30 && n_old > 20 && n_new > 1, "{n_failed} failures, {n_old} old, {n_new} new");
}

#[test]
fn a_first_run_that_fails_leaves_no_collection_and_the_next_makes_it() {
    for n_operations in [0, 1, 3, 7, 15, 25, 35] {
        let place = Place::new();
        assert!(place.index(&FaultFs::failing_after(n_operations)).is_err(), "{n_operations}");
        assert!(Searcher::open(place.collection(), SearcherOptions::default()).is_err());
        assert_eq!(place.index(&OsFs).unwrap(), 1);
        assert_eq!(place.answer().len(), 2);
    }
}

#[test]
fn a_delete_that_fails_deletes_nothing_or_all() {
    for n_operations in 0.. {
        let place = Place::new();
        place.index(&OsFs).unwrap();
        let ended = delete(&place.collection(), &["notes/bread.md".to_owned()], &FaultFs::failing_after(n_operations));
        let n_left = place.answer().len();
        assert!([1, 2].contains(&n_left), "after {n_operations} operations {n_left} documents answer");
        if ended.is_ok() {
            assert_eq!(n_left, 1);
            break;
        }
    }
}
