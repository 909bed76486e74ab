//! Writers that meet, collections that move under one, disks that are full: nothing of anybody is lost, and no room.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::volatile::{Fault, VolatileFs};
use super::{Place, QuickFs, answers, copied, index_notes};
use crate::{At, File, Fs, Searcher, SearcherOptions, describe, doctor, status};

const WORDS: [&str; 3] = ["moon", "bread", "iron"];
const TIDES: &str = "# Tides\n\nThe moon pulls the sea.\n";
const BREAD: &str = "# Bread\n\nBread is flour and water.\n";

/// A file system on which something else happens after one of its operations.
struct MeddledFs<'a> {
    /// Operations to go, and what happens then.
    event: Mutex<(usize, Option<Event<'a>>)>,
}

type Event<'a> = Box<dyn FnOnce() + Send + 'a>;

impl<'a> MeddledFs<'a> {
    fn after(n: usize, event: impl FnOnce() + Send + 'a) -> Self {
        Self { event: Mutex::new((n, Some(Box::new(event)))) }
    }

    fn has_happened(&self) -> bool {
        self.event.lock().unwrap().1.is_none()
    }

    fn done(&self) {
        let (n, event) = &mut *self.event.lock().unwrap();
        match n.checked_sub(1) {
            Some(left) => *n = left,
            None => event.take().into_iter().for_each(|event| event()),
        }
    }
}

impl fmt::Debug for MeddledFs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MeddledFs")
    }
}

impl Fs for MeddledFs<'_> {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = QuickFs.create(path);
        self.done();
        file
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let made = QuickFs.create_dir(path);
        self.done();
        made
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        QuickFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let renamed = QuickFs.rename(from, to);
        self.done();
        renamed
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let synced = QuickFs.sync_dir(path);
        self.done();
        synced
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let removed = QuickFs.remove_file(path);
        self.done();
        removed
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let removed = QuickFs.remove_dir(path);
        self.done();
        removed
    }
}

fn answers_at(collection: &Path) -> String {
    answers(&Searcher::open(collection, SearcherOptions::default()).unwrap(), &WORDS)
}

/// Every file and its bytes.
pub(super) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    drop(files.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap()))
                }
            }
        }
    }
    files
}

#[test]
fn a_writer_that_was_a_moment_earlier_is_not_forgotten() {
    let place = Place::new();
    place.write("tides.md", TIDES);
    let more = place.folder.path().join("more");
    std::fs::create_dir(&more).unwrap();
    std::fs::write(more.join("bread.md"), BREAD).unwrap();
    let more = crate::Root { label: "more".to_owned(), path: more };
    let fs = MeddledFs::after(0, || {
        crate::index(&place.collection(), &[more], &place.options(), &QuickFs, &mut |_| {}).unwrap();
    });
    assert_eq!(place.index_with(&place.options(), &fs).unwrap().generation, 2);
    assert!(fs.has_happened());
    assert_eq!(status(&place.collection(), &At::Current).unwrap().n_documents, 2);
    assert!(doctor(&place.collection()).unwrap().is_healthy());
}

#[test]
fn a_collection_that_moves_while_it_is_written_is_whole_and_what_takes_its_place_is_not_touched() {
    let (place, other) = (Place::new(), Place::new());
    for (n, text) in [TIDES, BREAD].iter().enumerate() {
        other.write(&format!("{n}.md"), text);
        other.index();
    }
    place.write("tides.md", TIDES);
    place.index();
    let before = answers(&place.searcher(), &WORDS);
    let state = copied(&place.collection());
    place.write("bread.md", BREAD);
    place.index();
    let after = answers(&place.searcher(), &WORDS);
    let untouched = files(&other.collection());
    for is_replaced in [false, true] {
        let mut n_refused = 0;
        for n in 0.. {
            let when = format!("after operation {n}, replaced: {is_replaced}");
            let disk = tempfile::tempdir().unwrap();
            let (here, there) = (disk.path().join("here"), disk.path().join("there"));
            std::fs::rename(copied(state.path()).path(), &here).unwrap();
            let other = copied(&other.collection());
            let fs = MeddledFs::after(n, || {
                std::fs::rename(&here, &there).unwrap();
                if is_replaced {
                    std::fs::rename(other.path(), &here).unwrap();
                }
            });
            let ended = index_notes(&place.notes(), &here, &place.options(), &fs);
            if !fs.has_happened() {
                break;
            }
            let found = answers_at(&there);
            match &ended {
                Err(error) => assert!(describe(error).contains("moved away or replaced"), "{when}: {error:?}"),
                Ok(_) => assert_eq!(found, after, "{when}"),
            }
            n_refused += usize::from(found == before);
            assert!(found == before || found == after, "{when}: {found}");
            assert!(doctor(&there).unwrap().is_healthy(), "{when}");
            match is_replaced {
                true => assert!(files(&here) == untouched, "{when}"),
                false => assert!(!here.exists(), "{when}"),
            }
            index_notes(&place.notes(), &there, &place.options(), &QuickFs).unwrap();
            assert_eq!(answers_at(&there), after, "{when}: the next run does it");
        }
        assert!(n_refused > 15, "{n_refused}");
    }
}

#[test]
fn a_segment_that_found_no_room_leaves_none_occupied() {
    let place = Place::new();
    place.write("tides.md", TIDES);
    place.index();
    place.write("bread.md", BREAD);
    let mut n_refused = 0;
    for at in 0.. {
        let disk = copied(place.folder.path());
        let collection = disk.path().join("collection");
        let full = VolatileFs::new(disk.path(), Fault::Full(at));
        let Err(error) = index_notes(&place.notes(), &collection, &place.options(), &full) else { break };
        if describe(&error).contains("segments/2-0") {
            assert!(!collection.join("segments/2-0").exists(), "operation {at}: {error}");
            n_refused += 1;
        }
    }
    assert!(n_refused > 30, "{n_refused}");
}

#[test]
fn a_place_that_cannot_be_written_is_named_with_the_way_out() {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        let error = describe(&cento_collection::Error::writing(Path::new("collection/LOCK"), kind.into()));
        for words in ["collection/LOCK: cannot be written", &io::Error::from(kind).to_string(), "copy it"] {
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}

/// Another machine: it sees the files, and not the locks of this one.
#[derive(Debug)]
struct Elsewhere;

impl Fs for Elsewhere {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let _ = QuickFs.remove_file(path); // as a collection's folder does: who has it open writes into another
        QuickFs.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        QuickFs.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        QuickFs.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        QuickFs.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        QuickFs.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        QuickFs.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        QuickFs.remove_dir(path)
    }

    fn try_lock(&self, _: &std::fs::File) -> Result<(), std::fs::TryLockError> {
        Ok(())
    }

    fn machine(&self) -> String {
        "elsewhere".to_owned()
    }
}

#[test]
fn writers_that_do_not_see_each_others_locks_take_nothing_from_each_other() {
    let place = Place::new();
    place.write("tides.md", TIDES);
    place.index();
    let more = place.folder.path().join("more");
    std::fs::create_dir(&more).unwrap();
    std::fs::write(more.join("bread.md"), BREAD).unwrap();
    place.write("iron.md", "# Iron\n\nIron rusts in the sea.\n");
    let (mut n_refused, mut n) = (0, 0);
    loop {
        let when = format!("after operation {n}");
        let disk = copied(&place.collection());
        let in_the_making = Mutex::new(None);
        let more = crate::Root { label: "more".to_owned(), path: more.clone() };
        let fs = MeddledFs::after(n, || {
            let segment = disk.path().join("segments/2-0");
            let before = segment.is_dir().then(|| files(&segment));
            let named = || cento_collection::format::manifest::Manifest::read(disk.path()).unwrap().generation;
            let is_published = named() > 1;
            crate::index(disk.path(), &[more], &place.options(), &Elsewhere, &mut |_| {}).unwrap();
            if !is_published && let Some(before) = before {
                assert_eq!(files(&segment), before, "{when}: the segment in the making is as it was");
                *in_the_making.lock().unwrap() = Some(());
            }
        });
        let ended = index_notes(&place.notes(), disk.path(), &place.options(), &fs);
        if !fs.has_happened() {
            break;
        }
        let found = answers_at(disk.path());
        assert!(found.contains("more/bread.md"), "{when}: what the other one committed is there");
        match &ended {
            Ok(_) => assert!(found.contains("notes/iron.md"), "{when}: what was acknowledged is there"),
            Err(error) => {
                let words = describe(error);
                assert!(words.contains("another writer"), "{when}: {words}");
                n_refused += 1;
            }
        }
        assert!(doctor(disk.path()).unwrap().is_healthy(), "{when}");
        index_notes(&place.notes(), disk.path(), &place.options(), &QuickFs).unwrap();
        let found = answers_at(disk.path());
        assert!(found.contains("notes/iron.md") && found.contains("more/bread.md"), "{when}: the next run does it");
        assert_eq!(std::fs::read(disk.path().join("LOCK")).unwrap(), b"", "{when}");
        n += 1;
    }
    println!("{n} points, the first writer refused at {n_refused}");
    assert!(n_refused > 15, "{n_refused}");
}
