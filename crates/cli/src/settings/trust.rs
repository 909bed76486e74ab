//! The folders whose settings file the user trusts, remembered by its content: a changed file is a new one.
//!
//! One record a folder in `$XDG_DATA_HOME/cento/trusted`, else in `~/.local/share`, which others cannot read.
//! A record that cannot be read is no trust.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use cento_engine::{Fs as _, OsFs, read_bounded};
use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};

use super::file::{Author, FILE, SettingsFile};

/// A trusted folder, as it is kept.
#[derive(Serialize, Deserialize)]
struct Record {
    folder: PathBuf,
    /// BLAKE3 of the folder and the bytes of its file.
    blake3: String,
}

/// State of the file of a trusted folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Trusted,
    Changed,
    Gone,
}

/// A trusted folder, as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Trusted {
    pub(crate) folder: PathBuf,
    pub(crate) state: State,
}

/// State of a file; nothing if its folder was never trusted.
pub(super) fn state(file: &SettingsFile) -> Option<State> {
    let folder = file.folder().ok()?;
    let record = read(&place(&folder).ok()?).ok()?;
    Some(if record.blake3 == fingerprint(&folder, &file.bytes) { State::Trusted } else { State::Changed })
}

/// Every trusted folder, by name.
pub(crate) fn list() -> anyhow::Result<Vec<Trusted>> {
    let records = records()?;
    let entries = match fs::read_dir(&records) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| records.display().to_string())?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| records.display().to_string())?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let Record { folder, blake3 } = read(&path)?;
            let state = match SettingsFile::read(&folder.join(FILE), Author::Folder) {
                Ok(file) if blake3 == fingerprint(&folder, &file.bytes) => State::Trusted,
                Ok(_) => State::Changed,
                Err(_) => State::Gone,
            };
            found.push(Trusted { folder, state });
        }
    }
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    Ok(found)
}

/// Trusts a file as it was read.
pub(crate) fn add(file: &SettingsFile) -> anyhow::Result<PathBuf> {
    let folder = file.folder().with_context(|| file.path.display().to_string())?;
    let record = Record { folder: folder.clone(), blake3: fingerprint(&folder, &file.bytes) };
    let (records, path) = (records()?, place(&folder)?);
    make_private(&records).with_context(|| records.display().to_string())?;
    let write = || -> anyhow::Result<()> {
        let mut new = tempfile::NamedTempFile::new_in(&records)?; // readable by its owner alone
        new.write_all(&serde_json::to_vec(&record)?)?;
        new.as_file().sync_all()?;
        new.persist(&path)?;
        Ok(OsFs.sync_dir(&records)?)
    };
    write().with_context(|| path.display().to_string())?;
    Ok(folder)
}

/// Forgets a folder, there or not; nothing if it was not trusted.
pub(crate) fn remove(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let folder = folder.canonicalize().or_else(|_| std::path::absolute(folder));
    let folder = folder.context("the folder's path")?;
    let path = place(&folder)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        removed => removed.with_context(|| path.display().to_string())?,
    }
    OsFs.sync_dir(&records()?)?;
    Ok(Some(folder))
}

const EXTENSION: &str = "json";
/// A path and a hash.
const RECORD_BYTES_MAX: u64 = 1 << 16;

fn records() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy()
        .map_err(|_| anyhow!("no folder for data of yours: set HOME or XDG_DATA_HOME"))?;
    Ok(base.data_dir().join("cento").join("trusted"))
}

/// The record of a folder.
fn place(folder: &Path) -> anyhow::Result<PathBuf> {
    let name = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    Ok(records()?.join(format!("{name}.{EXTENSION}")))
}

fn read(path: &Path) -> anyhow::Result<Record> {
    let way_out =
        || format!("{}: is no record of a trusted folder; remove it, and trust the folder again", path.display());
    serde_json::from_slice(&read_bounded(path, RECORD_BYTES_MAX).with_context(way_out)?).with_context(way_out)
}

fn fingerprint(folder: &Path, content: &[u8]) -> String {
    let folder = folder.as_os_str().as_encoded_bytes();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(folder.len() as u64).to_le_bytes()).update(folder).update(content);
    hasher.finalize().to_hex().to_string()
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
