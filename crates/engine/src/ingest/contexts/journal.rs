//! The contexts that were ever written, so that none is asked for twice: lines of JSON, each synced before its call
//! counts as done.
//!
//! A line's check binds its context to the chunk, the model and the prompt. A line that does not hold what it says
//! (torn by a power loss, altered, of another journal) is no answer: it is counted and told, and its context asked for
//! again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use cento_collection::format::config::WrittenContexts;
use cento_collection::fs::{Fs, OsFs, create_private_folders, private_file, sync_parents};
use serde::{Deserialize, Serialize};

use crate::error::{AtPath, Result};

/// The folder beside those of the models' vectors.
const FOLDER: &str = "contexts";

/// Hexadecimal digits of a line's check.
const CHECK_CHARS: usize = 16;

/// BLAKE3 of a document and a chunk's place in it.
pub(super) type Key = [u8; 32];

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// In hexadecimal digits.
    chunk: String,
    context: String,
    check: String,
}

/// Lines that hold no whole record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damage {
    /// The first of them, from 1.
    pub(super) first_line: u64,
    pub(super) n_lines: u64,
}

/// The contexts of one model and one prompt.
#[derive(Debug)]
pub(super) struct Journal {
    written: WrittenContexts,
    pub(super) path: PathBuf,
    pub(super) damage: Option<Damage>,
    known: HashMap<String, String>,
    /// Opened when something is kept.
    file: Option<File>,
}

impl Journal {
    /// The journal of a model in a cache; nothing is written.
    pub(super) fn open(cache: &Path, written: &WrittenContexts) -> Result<Self> {
        let WrittenContexts { model, prompt } = written;
        let name = blake3::hash(format!("{prompt} {model}").as_bytes()).to_hex();
        let path = cache.join(FOLDER).join(format!("{}.jsonl", &name[..32]));
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(mut file) => file.read_to_end(&mut bytes).map(drop).at(&path)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).at(&path),
        }
        let mut journal = Self { written: written.clone(), path, damage: None, known: HashMap::new(), file: None };
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.is_empty()) {
            match journal.read(line) {
                Some(Line { chunk, context, .. }) => drop(journal.known.insert(chunk, context)),
                None => journal.damage.get_or_insert(Damage { first_line: number, n_lines: 0 }).n_lines += 1,
            }
        }
        Ok(journal)
    }

    pub(super) fn find(&self, key: &Key) -> Option<&str> {
        self.known.get(&hex(key)).map(String::as_str)
    }

    /// Keeps a context, for good when this returns.
    pub(super) fn keep(&mut self, key: &Key, context: &str) -> Result<()> {
        let (chunk, context) = (hex(key), context.to_owned());
        let line = Line { check: self.check(&chunk, &context), chunk, context };
        let json = serde_json::to_string(&line).expect("texts become JSON");
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.append(&OsFs)?,
        };
        // What fails here may have left a part of the line: the file is opened anew, behind a line end.
        file.write_all(format!("{json}\n").as_bytes()).and_then(|()| file.sync_data()).at(&self.path)?;
        self.file = Some(file);
        self.known.insert(line.chunk, line.context);
        Ok(())
    }

    /// Opens the file at its end, behind a whole line. A new one has its name in the folder for good.
    fn append(&self, fs: &dyn Fs) -> Result<File> {
        let n_new = self.path.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).count();
        let folder = self.path.parent().expect("it lies in a folder");
        create_private_folders(folder).at(folder)?;
        let mut file = private_file().create(true).read(true).append(true).open(&self.path).at(&self.path)?;
        sync_parents(fs, &self.path, n_new)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last).at(&self.path)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n").at(&self.path)?;
        }
        Ok(file)
    }

    /// A line that holds what it says.
    fn read(&self, line: &[u8]) -> Option<Line> {
        let line: Line = serde_json::from_slice(line).ok()?;
        (line.check == self.check(&line.chunk, &line.context)).then_some(line)
    }

    fn check(&self, chunk: &str, context: &str) -> String {
        let WrittenContexts { model, prompt } = &self.written;
        let mut hasher = blake3::Hasher::new();
        for part in [prompt, model, chunk, context] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..CHECK_CHARS].to_owned()
    }
}

fn hex(key: &Key) -> String {
    blake3::Hash::from_bytes(*key).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn open(cache: &Path, model: &str) -> Journal {
        Journal::open(cache, &WrittenContexts { model: model.to_owned(), prompt: "f00d".to_owned() }).unwrap()
    }

    #[test]
    fn what_is_kept_is_found_again_by_the_same_model_alone() {
        let cache = tempfile::tempdir().unwrap();
        let mut journal = open(cache.path(), "small");
        journal.keep(&[1; 32], "of the first").unwrap();
        let journal = open(cache.path(), "small");
        assert_eq!((journal.find(&[1; 32]), journal.damage), (Some("of the first"), None));
        let other = open(cache.path(), "other");
        assert!(other.known.is_empty() && other.damage.is_none());
        // even where the file of another model lies in its place
        std::fs::copy(&journal.path, &other.path).unwrap();
        let other = open(cache.path(), "other");
        assert_eq!((other.known.len(), other.damage), (0, Some(Damage { first_line: 1, n_lines: 1 })));
    }

    #[test]
    fn wherever_a_write_is_cut_no_part_of_it_is_an_answer_and_what_was_kept_before_stays() {
        let cache = tempfile::tempdir().unwrap();
        let mut journal = open(cache.path(), "small");
        journal.keep(&[1; 32], "of the first").unwrap();
        let n_first = std::fs::read(&journal.path).unwrap().len();
        journal.keep(&[2; 32], "zum Zweiten: Gezeitenstände é").unwrap();
        let whole = std::fs::read(&journal.path).unwrap();
        for n_bytes in n_first..whole.len() {
            for rest in [0, whole.len() - n_bytes] {
                // a length that grew before its bytes came: zeros
                let torn = [&whole[..n_bytes], &vec![0; rest]].concat();
                std::fs::write(&journal.path, torn).unwrap();
                let mut again = open(cache.path(), "small");
                let is_whole = n_bytes + 1 == whole.len() && rest == 0; // but for its line end
                assert_eq!(again.find(&[1; 32]), Some("of the first"));
                assert_eq!(again.find(&[2; 32]).is_some(), is_whole, "{n_bytes} {rest}");
                again.keep(&[3; 32], "of the third").unwrap();
                let again = open(cache.path(), "small");
                assert_eq!((again.find(&[1; 32]), again.find(&[3; 32])), (Some("of the first"), Some("of the third")));
            }
        }
    }

    #[test]
    fn damage_is_counted_and_costs_the_lines_that_it_hit() {
        let cache = tempfile::tempdir().unwrap();
        let mut journal = open(cache.path(), "small");
        (1..=4).for_each(|key| journal.keep(&[key; 32], &format!("number {key}")).unwrap());
        let text = String::from_utf8(std::fs::read(&journal.path).unwrap()).unwrap();
        std::fs::write(&journal.path, text.replace("number 2", "number 9").replace("number 4\"", "number 4")).unwrap();
        let journal = open(cache.path(), "small");
        assert_eq!(journal.damage, Some(Damage { first_line: 2, n_lines: 2 }));
        let found: Vec<bool> = (1..=4).map(|key| journal.find(&[key; 32]).is_some()).collect();
        assert_eq!(found, [true, false, true, false]);
    }

    /// Writes down the folders that are synced.
    #[derive(Debug, Default)]
    struct Synced(Mutex<Vec<PathBuf>>);

    impl Fs for Synced {
        fn create(&self, path: &Path) -> std::io::Result<Box<dyn cento_collection::fs::File>> {
            OsFs.create(path)
        }
        fn create_dir(&self, path: &Path) -> std::io::Result<()> {
            OsFs.create_dir(path)
        }
        fn list(&self, path: &Path) -> std::io::Result<Vec<String>> {
            OsFs.list(path)
        }
        fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
            OsFs.rename(from, to)
        }
        fn sync_dir(&self, path: &Path) -> std::io::Result<()> {
            self.0.lock().unwrap().push(path.to_owned());
            OsFs.sync_dir(path)
        }
        fn remove_file(&self, path: &Path) -> std::io::Result<()> {
            OsFs.remove_file(path)
        }
        fn remove_dir(&self, path: &Path) -> std::io::Result<()> {
            OsFs.remove_dir(path)
        }
    }

    #[test]
    fn a_new_journal_has_its_name_for_good_before_anything_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let journal = open(&root.join("cache"), "small");
        let synced = Synced::default();
        journal.append(&synced).unwrap();
        let folders = [root.join("cache/contexts"), root.join("cache"), root.clone()];
        assert_eq!(*synced.0.lock().unwrap(), folders);
        journal.append(&synced).unwrap();
        assert_eq!(synced.0.lock().unwrap().len(), 3, "nothing was new");
    }
}
