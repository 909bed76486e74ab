//! The contexts that were ever written, so that none is asked for twice: lines of JSON, each synced before the next
//! call counts as done.
//!
//! A line that cannot be read, torn by a power loss or by two processes, is passed over: its context is asked again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use cento_collection::format::config::WrittenContexts;
use cento_collection::fs::{create_private_folders, private_file};
use serde::{Deserialize, Serialize};

use crate::error::{AtPath, Result};

/// The folder beside those of the models' vectors.
const FOLDER: &str = "contexts";

/// BLAKE3 of a document and a chunk's place in it.
pub(super) type Key = [u8; 32];

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// In hexadecimal digits.
    chunk: String,
    context: String,
}

/// The contexts of one model and one prompt.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
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
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
        Ok(Self { path, known: lines.map(|line| (line.chunk, line.context)).collect(), file: None })
    }

    pub(super) fn find(&self, key: &Key) -> Option<&str> {
        self.known.get(&hex(key)).map(String::as_str)
    }

    /// Keeps a context, for good when this returns.
    pub(super) fn keep(&mut self, key: &Key, context: &str) -> Result<()> {
        let line = Line { chunk: hex(key), context: context.to_owned() };
        let json = serde_json::to_string(&line).expect("texts become JSON");
        if self.file.is_none() {
            self.file = Some(self.append()?);
        }
        let file = self.file.as_mut().expect("opened above");
        file.write_all(format!("{json}\n").as_bytes()).and_then(|()| file.sync_data()).at(&self.path)?;
        self.known.insert(line.chunk, line.context);
        Ok(())
    }

    /// Opens the file at its end, behind a whole line.
    fn append(&self) -> Result<File> {
        let folder = self.path.parent().expect("it lies in a folder");
        create_private_folders(folder).at(folder)?;
        let mut file = private_file().create(true).read(true).append(true).open(&self.path).at(&self.path)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(-1)).is_ok() {
            file.read_exact(&mut last).at(&self.path)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n").at(&self.path)?;
        }
        Ok(file)
    }
}

fn hex(key: &Key) -> String {
    blake3::Hash::from_bytes(*key).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again_and_a_torn_line_is_passed_over() {
        let cache = tempfile::tempdir().unwrap();
        let written = |model: &str| WrittenContexts { model: model.to_owned(), prompt: "f00d".to_owned() };
        let open = || Journal::open(cache.path(), &written("small")).unwrap();
        let mut journal = open();
        journal.keep(&[1; 32], "of the first").unwrap();
        let path = journal.path.clone();
        drop(journal);
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(br#"{"chunk":"02"#);
        std::fs::write(&path, torn).unwrap();
        let mut journal = open();
        journal.keep(&[3; 32], "of the third").unwrap();
        let journal = open();
        assert_eq!(journal.find(&[1; 32]), Some("of the first"));
        assert_eq!((journal.find(&[2; 32]), journal.find(&[3; 32])), (None, Some("of the third")));
        assert!(Journal::open(cache.path(), &written("other")).unwrap().known.is_empty());
    }
}
