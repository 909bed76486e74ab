//! The record of an evaluation: every call that was made, one JSON object a line, and what a rerun need not ask again.
//!
//! The first line is the [`Head`]: models, seed and the words of the tasks. A call's line holds what it was asked, what
//! was said, what was read from it or the fault in it, its time and its tokens. Lines are synced one by one; one that
//! a kill cut short is dropped. One run at a time writes a record.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::prompts::{self, Task};
use crate::error::{Error, Result};
use crate::lines;

/// The version of the record that is read and written.
pub const VERSION: u32 = 1;

/// The longest line: a request with its context, and an answer.
const LINE_BYTES_MAX: u64 = 1 << 28;

/// The settings of a record, all of which an answer depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the record: [`VERSION`].
    pub version: u32,
    /// The model that answers.
    pub model: String,
    /// The model that judges.
    pub judge_model: String,
    /// The seed of first attempts.
    pub seed: u32,
    /// Hash of the words of the tasks.
    pub prompts_blake3: String,
    /// The words of the tasks.
    prompts: BTreeMap<Task, String>,
}

impl Head {
    /// Of these models and this seed, with the tasks of this version of Cento.
    pub fn new(model: &str, judge_model: &str, seed: u32) -> Self {
        Self {
            version: VERSION,
            model: model.to_owned(),
            judge_model: judge_model.to_owned(),
            seed,
            prompts_blake3: prompts::version(),
            prompts: prompts::all(),
        }
    }

    /// The first setting in which two differ: its name, and the value of each.
    fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let settings = |head: &Self| {
            let Self { version, model, judge_model, seed, prompts_blake3, prompts: _ } = head.clone();
            [
                ("version", version.to_string()),
                ("model", model),
                ("judge model", judge_model),
                ("seed", seed.to_string()),
                ("prompts", prompts_blake3),
            ]
        };
        let pairs = settings(self).into_iter().zip(settings(other));
        pairs.filter(|(a, b)| a.1 != b.1).map(|((name, a), (_, b))| (name, a, b)).next()
    }
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) task: Task,
    pub(super) query_id: String,
    /// From 1; another attempt is made where nothing could be read from the one before.
    pub(super) attempt: u32,
    pub(super) seed: u32,
    pub(super) host: String,
    /// Hash of model, seed, task and case.
    pub(super) asked: String,
    /// The case, as the model was told it.
    pub(super) prompt: String,
    /// The message; none of a call that failed.
    pub(super) said: Option<String>,
    /// The reading of the message; none where it has a fault.
    pub(super) verdict: Option<Value>,
    /// The fault of the message or of the call.
    pub(super) fault: Option<String>,
    pub(super) ms: u64,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// The part of a line that answers a rerun.
#[derive(Deserialize)]
struct Known {
    asked: String,
    said: Option<String>,
}

/// A record, open.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    head: Head,
    known: Mutex<HashMap<String, String>>,
    /// Absent where the record is only read.
    file: Option<Mutex<fs_err::File>>,
}

impl Record {
    /// Opens a record to go on with, or makes a new one that its owner alone can read.
    ///
    /// # Errors
    /// [`Error::RecordOf`] for a record of another model, seed or version of the tasks, [`Error::Malformed`] for a file
    /// that is no record, [`Error::RecordHeld`] while another run writes it.
    pub fn go_on(path: &Path, head: Head) -> Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = fs_err::OpenOptions::from_options(options).open(path)?;
        match file.file().try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(Error::RecordHeld { path: path.to_owned() }),
            Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
        }
        let (found, known, end) = read(path, &file)?;
        file.set_len(end)?; // a line that was cut short
        file.seek(std::io::SeekFrom::End(0))?;
        match found {
            Some(found) => {
                if let Some((setting, recorded, asked)) = found.difference(&head) {
                    return Err(Error::RecordOf { path: path.to_owned(), setting, recorded, asked });
                }
            }
            None => append(&mut file, &head)?,
        }
        Ok(Self { path: path.to_owned(), head, known: Mutex::new(known), file: Some(Mutex::new(file)) })
    }

    /// Opens a record to take all answers from it.
    ///
    /// # Errors
    /// A file that is not there, that is no record, or of another version of the tasks.
    pub fn replay(path: &Path) -> Result<Self> {
        let file = fs_err::File::open(path)?;
        let (head, known, _) = read(path, &file)?;
        let Some(head) = head else { return Err(Error::Empty { path: path.to_owned(), what: "head of a record" }) };
        let now = Head::new(&head.model, &head.judge_model, head.seed);
        if let Some((setting, recorded, asked)) = head.difference(&now) {
            return Err(Error::RecordOf { path: path.to_owned(), setting, recorded, asked });
        }
        Ok(Self { path: path.to_owned(), head, known: Mutex::new(known), file: None })
    }

    /// Its settings.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The message that was said to a request.
    pub(super) fn known(&self, asked: &str) -> Option<String> {
        locked(&self.known).get(asked).cloned()
    }

    /// Adds a call.
    pub(super) fn add(&self, line: &Line) -> Result<()> {
        if let Some(said) = &line.said {
            locked(&self.known).insert(line.asked.clone(), said.clone());
        }
        match &self.file {
            Some(file) => append(&mut *locked(file), line),
            None => Ok(()),
        }
    }
}

/// The data of a lock: a thread that died left at most a line that is cut short, which the next reading drops.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn append(file: &mut fs_err::File, line: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec(line).map_err(std::io::Error::from)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    Ok(file.file().sync_data()?)
}

/// Head, known messages and the end of the last whole line; no head of an empty file.
fn read(path: &Path, file: &fs_err::File) -> Result<(Option<Head>, HashMap<String, String>, u64)> {
    let mut input = BufReader::new(file);
    let (mut head, mut known, mut end, mut number) = (None, HashMap::new(), 0, 0);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let n = input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
        number += 1;
        if bytes.pop() != Some(b'\n') {
            if n as u64 == LINE_BYTES_MAX || n > 0 && head.is_none() {
                return Err(no_line(path, number, "a line of a record", "another file"));
            }
            return Ok((head, known, end));
        }
        let line = std::str::from_utf8(&bytes).map_err(|_| no_line(path, number, "UTF-8", "other bytes"))?;
        if head.is_none() {
            head = Some(lines::record::<Head>(path, number, line)?);
        } else {
            let Known { asked, said } = lines::record(path, number, line)?;
            known.extend(said.map(|said| (asked, said)));
        }
        end += n as u64;
    }
}

fn no_line(path: &Path, line: u64, expected: &str, found: &str) -> Error {
    Error::Malformed { path: path.to_owned(), line, column: 1, expected: expected.to_owned(), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(asked: &str, said: Option<&str>) -> Line {
        Line {
            task: Task::Read,
            query_id: "q".to_owned(),
            attempt: 1,
            seed: 7,
            host: "localhost".to_owned(),
            asked: asked.to_owned(),
            prompt: "Question: ?".to_owned(),
            said: said.map(str::to_owned),
            verdict: None,
            fault: None,
            ms: 1,
            prompt_tokens: None,
            completion_tokens: Some(2),
        }
    }

    fn head() -> Head {
        Head::new("small", "large", 7)
    }

    #[test]
    fn what_was_said_is_known_to_the_next_run_and_what_failed_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let record = Record::go_on(&path, head()).unwrap();
        record.add(&line("a", Some("Rush"))).unwrap();
        record.add(&line("b", None)).unwrap();
        assert_eq!(record.known("a").as_deref(), Some("Rush"));
        let held = Record::go_on(&path, head()).unwrap_err();
        assert!(matches!(held, Error::RecordHeld { .. }), "{held}");
        drop(record);
        for record in [Record::go_on(&path, head()).unwrap(), Record::replay(&path).unwrap()] {
            assert_eq!((record.known("a").as_deref(), record.known("b")), (Some("Rush"), None));
            assert_eq!(record.head(), &head());
        }
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs_err::metadata(&path).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600, "it holds texts of the collection");
        }
    }

    #[test]
    fn a_line_that_a_kill_cut_short_is_dropped_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        Record::go_on(&path, head()).unwrap().add(&line("a", Some("Rush"))).unwrap();
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, [&whole[..], b"{\"task\":\"read\",\"asked\":\"b\",\"sa"].concat()).unwrap();
        assert!(Record::replay(&path).unwrap().known("a").is_some());
        Record::go_on(&path, head()).unwrap().add(&line("c", Some("Toto"))).unwrap();
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(text.as_bytes().starts_with(&whole) && text.lines().count() == 3, "{text}");
        assert!(Record::replay(&path).unwrap().known("c").is_some());
    }

    #[test]
    fn a_record_of_other_settings_and_a_file_that_is_none_are_refused_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        drop(Record::go_on(&path, head()).unwrap());
        let before = fs_err::read(&path).unwrap();
        for (other, words) in [
            (Head::new("big", "large", 7), ["model", "\"small\"", "\"big\""]),
            (Head::new("small", "huge", 7), ["judge model", "\"large\"", "\"huge\""]),
            (Head::new("small", "large", 8), ["seed", "\"7\"", "\"8\""]),
        ] {
            let error = Record::go_on(&path, other).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let other = String::from_utf8(before.clone()).unwrap().replace(&prompts::version(), "another");
        fs_err::write(&path, other).unwrap();
        assert!(Record::replay(&path).unwrap_err().to_string().contains("prompts \"another\""));
        for none in ["precious", "precious\n", "{}\n"] {
            fs_err::write(&path, none).unwrap();
            assert!(Record::go_on(&path, head()).is_err() && Record::replay(&path).is_err(), "{none:?}");
            assert_eq!(fs_err::read_to_string(&path).unwrap(), none);
        }
        fs_err::write(&path, before).unwrap();
        assert!(Record::go_on(&path, head()).is_ok());
    }
}
