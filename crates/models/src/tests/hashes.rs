//! A remembered hash is that of the file as it is: whatever happens to the file, it is hashed anew.

use std::cell::Cell;
use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

use super::*;

const N_BYTES: usize = 9 << 20;

/// A large file, and how often it was hashed.
struct Place {
    folder: TempDir,
    n_hashed: Cell<usize>,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), n_hashed: Cell::new(0) };
        fs::write(place.weights(), vec![1; N_BYTES]).unwrap();
        place
    }

    fn weights(&self) -> PathBuf {
        self.folder.path().join("model.safetensors")
    }

    fn hash(&self) -> [u8; 32] {
        let path = self.weights();
        let file = File::open(&path).unwrap();
        let mut hash = || -> std::io::Result<[u8; 32]> {
            self.n_hashed.set(self.n_hashed.get() + 1);
            Ok(Sha256::digest(fs::read(&path)?).into())
        };
        Hashes::new(Some(self.folder.path().join("hashes")), &OsFs).of(&path, &file, &mut hash).unwrap()
    }

    /// Remembers what the file is now, as if it had settled.
    fn remember(&self) -> [u8; 32] {
        let hash = self.hash();
        let n_hashed = self.n_hashed.get();
        let file = File::open(self.weights()).unwrap();
        Hashes::new(Some(self.folder.path().join("hashes")), &OsFs).settle(&self.weights(), &file, hash);
        assert_eq!((self.hash(), self.n_hashed.get()), (hash, n_hashed), "it is remembered");
        hash
    }
}

#[test]
fn a_file_that_changed_moments_ago_is_hashed_each_time() {
    let place = Place::new();
    assert_eq!(place.hash(), place.hash());
    assert_eq!(place.n_hashed.get(), 2);
}

#[test]
fn whatever_is_done_to_a_file_its_hash_is_its_own() {
    let check = |change: &dyn Fn(&Path)| {
        let place = Place::new();
        let old = place.remember();
        change(&place.weights());
        let expected: [u8; 32] = Sha256::digest(fs::read(place.weights()).unwrap()).into();
        assert_eq!(place.hash(), expected);
        assert_eq!(place.n_hashed.get(), 2, "it is hashed anew");
        assert_ne!(old, expected);
    };
    let other = || vec![2; N_BYTES];
    // Written over, at the old time.
    check(&|path| {
        let written = fs::metadata(path).unwrap().modified().unwrap();
        fs::write(path, other()).unwrap();
        File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(written)).unwrap();
    });
    // Replaced by another of the same size and time.
    check(&|path| {
        let written = fs::metadata(path).unwrap().modified().unwrap();
        let beside = path.with_extension("new");
        fs::write(&beside, other()).unwrap();
        File::options().write(true).open(&beside).unwrap().set_times(FileTimes::new().set_modified(written)).unwrap();
        fs::rename(&beside, path).unwrap();
    });
    // Longer, shorter, dated into the future.
    check(&|path| fs::write(path, vec![1; N_BYTES + 1]).unwrap());
    check(&|path| fs::write(path, vec![1; N_BYTES - 1]).unwrap());
    check(&|path| {
        fs::write(path, other()).unwrap();
        let future = SystemTime::now() + Duration::from_secs(1000);
        File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(future)).unwrap();
    });
}

#[test]
fn a_damaged_memory_is_none() {
    let place = Place::new();
    let hash = place.remember();
    let remembered = fs::read_dir(place.folder.path().join("hashes")).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&remembered).unwrap();
    for damaged in [&b""[..], &whole[..whole.len() / 2], &vec![0; whole.len()]] {
        fs::write(&remembered, damaged).unwrap();
        let n_hashed = place.n_hashed.get();
        assert_eq!((place.hash(), place.n_hashed.get()), (hash, n_hashed + 1));
    }
}

#[test]
fn a_check_that_was_passed_is_remembered_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let hashes = Hashes::new(Some(folder.path().join("hashes")), &OsFs);
    assert!(!hashes.has_passed("adapter 1, driver 2"));
    hashes.remember_pass("adapter 1, driver 2");
    assert!(hashes.has_passed("adapter 1, driver 2") && !hashes.has_passed("adapter 1, driver 3"));
    let nowhere = Hashes::new(None, &OsFs);
    nowhere.remember_pass("adapter 1, driver 2");
    assert!(!nowhere.has_passed("adapter 1, driver 2"));
}
