//! An embedding run on the disk while it is not whole: `OUT.part/`.
//!
//! ```text
//! LOCK            one process at a time
//! plan.json       what every row is made with; a run that goes on must want the same
//! vectors.npy     the rows so far, behind a header that is filled in at the end
//! ids.jsonl       a line a row
//! journal.jsonl   how far both files are good, and how much of the input that is; a line once a second
//! manifest.json   only when all is there: what is left to do is to rename
//! ```
//!
//! Both files are on the disk before the journal says so. What lies behind the journal's last line is cut away and made
//! again.

use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cento_collection::fs::{Fs, OsFs, create_folders, read_bounded, write_atomically};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::Prefix;
use super::manifest::{MANIFEST_BYTES_MAX, Manifest, Plan};
use super::npy;
use super::quantize::{OutputType, Ranges};
use crate::error::{AtPath, Error, Result};

#[cfg(test)]
mod tests;

/// Between two lines of the journal, at least: what a kill loses is this and a batch.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of rows converted at a time.
const CONVERT_BYTES: usize = 1 << 20;

/// The files of a result, by the name of its matrix.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) array: PathBuf,
    pub(super) ids: PathBuf,
    pub(super) ranges: PathBuf,
    pub(super) manifest: PathBuf,
    part: PathBuf,
}

impl Names {
    pub(super) fn new(array: &Path) -> Result<Self> {
        if array.extension().is_none_or(|extension| extension != "npy") || array.file_stem().is_none() {
            return Err(Error::Setting {
                setting: "output",
                value: array.display().to_string(),
                reason: "does not end in .npy; name the matrix, ids and manifest are put beside it".to_owned(),
            });
        }
        let beside = |extension: &str| array.with_extension(extension);
        Ok(Self {
            array: array.to_owned(),
            ids: beside("ids.jsonl"),
            ranges: beside("ranges.npy"),
            manifest: beside("json"),
            part: beside("part"),
        })
    }

    /// The manifest of a result that is there, if it is one of ours.
    ///
    /// # Errors
    /// If files of these names are there that no run of ours made.
    pub(super) fn existing(&self) -> Result<Option<Manifest>> {
        let manifest = Manifest::read(&self.manifest);
        match [&self.array, &self.manifest].into_iter().find(|path| path.exists()) {
            Some(path) if manifest.is_none() && !self.part.join(MANIFEST).exists() => {
                Err(Error::NotOurs { path: path.clone() })
            }
            _ => Ok(manifest),
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progressed {
    pub(super) n_rows: u64,
    pub(super) ids_bytes: u64,
    pub(super) n_tokens: u64,
    pub(super) n_truncated: u64,
    pub(super) read: Prefix,
}

const LOCK: &str = "LOCK";
const PLAN: &str = "plan.json";
const VECTORS: &str = "vectors.npy";
const CONVERTED: &str = "converted.npy";
const RANGES: &str = "ranges.npy";
const IDS: &str = "ids.jsonl";
const JOURNAL: &str = "journal.jsonl";
const MANIFEST: &str = "manifest.json";

/// A run being made, held against other processes.
#[derive(Debug)]
pub(super) struct Part {
    folder: PathBuf,
    _lock: File,
    vectors: File,
    ids: File,
    journal: File,
    /// In what type rows are written at first; another than the result's if its ranges are not known yet.
    written_as: OutputType,
    dimensions: usize,
    pub(super) progressed: Option<Progressed>,
    /// Written progress, not in the journal yet.
    ahead: Option<Progressed>,
    synced: Instant,
}

impl Part {
    /// Goes on where an earlier run stopped, or begins.
    ///
    /// # Errors
    /// If another process is at it, or the earlier run was made with another plan.
    pub(super) fn open(names: &Names, plan: &Plan) -> Result<Self> {
        let folder = names.part.clone();
        let lock = hold(&folder)?;
        let plan_path = folder.join(PLAN);
        match read_bounded(&plan_path, MANIFEST_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => write_atomically(&OsFs, &plan_path, &to_json(plan))?,
            read => compare(&folder, &read.at(&plan_path)?, plan)?,
        }
        let open = |name: &str| {
            let path = folder.join(name);
            File::options().create(true).truncate(false).read(true).write(true).open(&path).at(&path)
        };
        let mut part = Self {
            _lock: lock,
            vectors: open(VECTORS)?,
            ids: open(IDS)?,
            journal: open(JOURNAL)?,
            written_as: if plan.output_type.has_ranges() && plan.ranges.is_none() {
                OutputType::F32
            } else {
                plan.output_type
            },
            dimensions: plan.dimensions,
            progressed: None,
            ahead: None,
            synced: Instant::now(),
            folder,
        };
        part.recover()?;
        Ok(part)
    }

    /// Forgets what an earlier run left, whatever its plan.
    pub(super) fn discard(names: &Names) -> Result<()> {
        if names.part.exists() {
            let _lock = hold(&names.part)?;
            for name in [MANIFEST, PLAN, JOURNAL, VECTORS, IDS, CONVERTED, RANGES] {
                remove_file(&OsFs, &names.part.join(name))?;
            }
        }
        Ok(())
    }

    /// Leaves nothing behind.
    pub(super) fn remove(self) -> Result<()> {
        std::fs::remove_dir_all(&self.folder).at(&self.folder)
    }

    /// The last line of the journal whose rows and ids are all there; everything behind it is cut away.
    fn recover(&mut self) -> Result<()> {
        let lengths = [&self.vectors, &self.ids].map(|file| file.metadata().map(|metadata| metadata.len()));
        let [vectors_bytes, ids_bytes] = lengths;
        let (vectors_bytes, ids_bytes) = (vectors_bytes.at(&self.folder)?, ids_bytes.at(&self.folder)?);
        let (mut journal_bytes, mut n_bytes) = (0, 0);
        for line in BufReader::new(&self.journal).split(b'\n') {
            let line = line.at(&self.folder)?;
            n_bytes += line.len() as u64 + 1;
            let Ok(state) = serde_json::from_slice::<Progressed>(&line) else { break };
            if self.vectors_bytes(state.n_rows) > vectors_bytes || state.ids_bytes > ids_bytes {
                break;
            }
            self.progressed = Some(state);
            journal_bytes = n_bytes;
        }
        let n_rows = self.progressed.as_ref().map_or(0, |state| state.n_rows);
        let ids_bytes = self.progressed.as_ref().map_or(0, |state| state.ids_bytes);
        let vectors_bytes = self.vectors_bytes(n_rows);
        cut(&mut self.vectors, vectors_bytes).at(&self.folder)?;
        cut(&mut self.ids, ids_bytes).at(&self.folder)?;
        cut(&mut self.journal, journal_bytes).at(&self.folder)?;
        if journal_bytes > 0 {
            // The journal's last line may have lost its end to a kill, and is whole all the same.
            self.journal
                .seek(SeekFrom::Start(journal_bytes - 1))
                .and_then(|_| self.journal.write_all(b"\n"))
                .at(&self.folder)?;
        }
        Ok(())
    }

    fn row_bytes(&self) -> usize {
        self.written_as.row_bytes(self.dimensions)
    }

    fn vectors_bytes(&self, n_rows: u64) -> u64 {
        npy::HEADER_BYTES as u64 + n_rows * self.row_bytes() as u64
    }

    /// Adds rows and their lines. Now and then all of it goes to the disk and into the journal.
    pub(super) fn append(&mut self, rows: &[u8], lines: &[u8], progressed: Progressed) -> Result<()> {
        self.vectors.write_all(rows).at(&self.folder.join(VECTORS))?;
        self.ids.write_all(lines).at(&self.folder.join(IDS))?;
        self.ahead = Some(progressed);
        if self.synced.elapsed() >= SYNC_INTERVAL || self.progressed.is_none() { self.note() } else { Ok(()) }
    }

    /// Everything written so far goes to the disk and into the journal.
    pub(super) fn note(&mut self) -> Result<()> {
        let Some(progressed) = self.ahead.take() else { return Ok(()) };
        self.vectors.sync_data().and_then(|()| self.ids.sync_data()).at(&self.folder)?;
        let line = [serde_json::to_vec(&progressed).expect("plain data becomes JSON"), b"\n".to_vec()].concat();
        self.journal.write_all(&line).at(&self.folder.join(JOURNAL))?;
        self.progressed = Some(progressed);
        self.synced = Instant::now();
        Ok(())
    }

    /// The type that rows are written in now.
    pub(super) fn written_as(&self) -> OutputType {
        self.written_as
    }

    /// Ranges of the rows so far.
    pub(super) fn ranges(&mut self) -> Result<Ranges> {
        let mut ranges = Ranges::empty(self.dimensions);
        self.each_row(|vector| {
            ranges.extend(vector);
            Ok(())
        })?;
        Ok(ranges.finish())
    }

    fn each_row(&mut self, mut each: impl FnMut(&[f32]) -> io::Result<()>) -> Result<()> {
        let path = self.folder.join(VECTORS);
        self.vectors.seek(SeekFrom::Start(npy::HEADER_BYTES as u64)).at(&path)?;
        let n_rows = self.ahead.as_ref().or(self.progressed.as_ref()).map_or(0, |state| state.n_rows);
        let mut reader = BufReader::with_capacity(CONVERT_BYTES, &self.vectors);
        let (mut bytes, mut vector) = (vec![0; self.row_bytes()], vec![0.0; self.dimensions]);
        for _ in 0..n_rows {
            reader.read_exact(&mut bytes).at(&path)?;
            for (value, bytes) in vector.iter_mut().zip(bytes.as_chunks().0) {
                *value = f32::from_le_bytes(*bytes);
            }
            each(&vector).at(&path)?;
        }
        Ok(())
    }

    /// Brings the rows into the type of the result, puts all files under their names, and the manifest last.
    pub(super) fn finish(mut self, names: &Names, manifest: &Manifest, ranges: Option<&Ranges>) -> Result<()> {
        self.note()?;
        let header = npy::header(manifest.output_type.descr(), manifest.n_rows, manifest.n_columns);
        if self.written_as == manifest.output_type {
            let path = self.folder.join(VECTORS);
            self.vectors.seek(SeekFrom::Start(0)).and_then(|_| self.vectors.write_all(&header)).at(&path)?;
            self.vectors.sync_all().at(&path)?;
        } else {
            self.convert(manifest.output_type, &header, ranges)?;
        }
        if let Some(ranges) = ranges {
            let mut bytes = npy::header("<f4", 2, self.dimensions).to_vec();
            bytes.extend(ranges.rows().flat_map(|value| value.to_le_bytes()));
            write_atomically(&OsFs, &self.folder.join(RANGES), &bytes)?;
        }
        self.ids.sync_all().at(&self.folder.join(IDS))?;
        write_atomically(&OsFs, &self.folder.join(MANIFEST), &to_json(manifest))?;
        publish(&OsFs, names)
    }

    fn convert(&mut self, output: OutputType, header: &[u8], ranges: Option<&Ranges>) -> Result<()> {
        let path = self.folder.join(CONVERTED);
        let mut converted = io::BufWriter::with_capacity(CONVERT_BYTES, File::create(&path).at(&path)?);
        converted.write_all(header).at(&path)?;
        let mut row = Vec::new();
        self.each_row(|vector| {
            row.clear();
            output.encode(vector, ranges, &mut row);
            converted.write_all(&row)
        })?;
        converted.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all()).at(&path)
    }
}

/// Moves the files of a whole run to where they belong; begins where an earlier call was cut short.
///
/// Each step is on the disk before the next begins: a manifest never stands beside files of another run.
pub(super) fn publish(fs: &dyn Fs, names: &Names) -> Result<()> {
    let from = |name: &str| names.part.join(name);
    let parent = names.array.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let manifest = read_bounded(&from(MANIFEST), MANIFEST_BYTES_MAX).at(&from(MANIFEST))?;
    let has_ranges = serde_json::from_slice(&manifest).is_ok_and(|manifest: Manifest| manifest.ranges.is_some());
    let converted = from(CONVERTED).exists();
    if converted {
        remove_file(fs, &from(VECTORS))?;
        fs.sync_dir(&names.part).at(&names.part)?; // were it back, it would be taken for the matrix
    }
    let array = from(if converted { CONVERTED } else { VECTORS });
    let mut moves = vec![(array, &names.array), (from(IDS), &names.ids)];
    remove_file(fs, &names.manifest)?; // the old one, which says nothing of the new files
    fs.sync_dir(parent).at(parent)?;
    if has_ranges {
        moves.push((from(RANGES), &names.ranges));
    } else {
        remove_file(fs, &names.ranges)?; // of the old one
    }
    for (_, to) in moves.iter().filter(|(file, _)| file.exists()) {
        remove_file(fs, to)?; // so that a file which is there is known to be the new one
    }
    fs.sync_dir(parent).at(parent)?;
    for (file, to) in &moves {
        match fs.rename(file, to) {
            Err(error) if error.kind() == ErrorKind::NotFound && to.exists() => {} // renamed by the earlier call
            Err(error) if error.kind() == ErrorKind::NotFound => return forget(fs, names),
            renamed => renamed.at(to)?,
        }
    }
    remove_file(fs, &from(JOURNAL))?;
    remove_file(fs, &from(PLAN))?;
    fs.sync_dir(&names.part).at(&names.part)?;
    fs.sync_dir(parent).at(parent)?;
    write_atomically(fs, &parent.join(names.manifest.file_name().unwrap_or_default()), &manifest)?;
    fs.remove_dir(&names.part).at(&names.part)
}

/// A power loss kept a file in neither folder: nothing is left of the run, and the next one begins anew.
fn forget(fs: &dyn Fs, names: &Names) -> Result<()> {
    for file in [&names.array, &names.ids, &names.ranges] {
        remove_file(fs, file)?;
    }
    fs.remove_dir(&names.part).at(&names.part)
}

/// True if all is there but for the renames.
pub(super) fn is_whole(names: &Names) -> bool {
    names.part.join(MANIFEST).exists()
}

/// Makes the folder and holds it.
fn hold(folder: &Path) -> Result<File> {
    create_folders(&OsFs, folder)?;
    let path = folder.join(LOCK);
    let lock = File::options().create(true).truncate(false).write(true).open(&path).at(&path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Error::OutputLocked { path: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(source).at(&path),
    }
}

fn compare(folder: &Path, known: &[u8], plan: &Plan) -> Result<()> {
    let differs = |setting: String, begun: String, wanted: String| {
        Err(Error::PlanDiffers { part: folder.to_owned(), setting, begun, wanted })
    };
    let (known, wanted): (Value, Value) =
        (serde_json::from_slice(known).unwrap_or_default(), serde_json::to_value(plan).expect("plain data"));
    for (setting, wanted) in wanted.as_object().into_iter().flatten() {
        let known = &known[setting];
        if known != wanted {
            return differs(setting.replace('_', " "), words(known), words(wanted));
        }
    }
    Ok(())
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() == 64 => text[..12].to_owned(), // a hash
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn cut(file: &mut File, n_bytes: u64) -> io::Result<()> {
    file.set_len(n_bytes)?;
    file.seek(SeekFrom::Start(n_bytes)).map(drop)
}

fn remove_file(fs: &dyn Fs, path: &Path) -> Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.at(path),
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(value).expect("plain data becomes JSON");
    json.push(b'\n');
    json
}
