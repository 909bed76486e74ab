//! Archives, as ZIP: each file in one is read as what it is, and is documents of its own.
//!
//! The id of such a document is that of the archive, `/` and its name in it. Nothing is unpacked but into memory. What
//! no password opens, a link, of a type that is not read, or called by a name that leads out of the archive or stands
//! there twice, is named as unread; hidden files are passed over, as in a folder.
//! Source: APPNOTE.TXT 6.3.10 of PKWARE.
//! Cost: one entry at a time, of no more bytes than it declares; all of them, and those of archives inside this one,
//! within one [`Allowance`](super::Allowance).

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::package::unread;
use super::part::{ENCRYPTED, UNPACKED_BYTES_MAX, quoted};
use super::{Fault, Inner, Parsed, Part};
use crate::budget::NAME_BYTES_MAX;
use crate::document::record_id;
use crate::extraction::Extraction;
use crate::format::{Format, unknown_type};

const ENGINE: &str = "zip 9";

/// A folder of a packer's own notes on the others.
const NOTES_OF_PACKER: &str = "__MACOSX";

/// Longest name of an entry, in bytes: the id has that of the archive before it.
const ENTRY_NAME_BYTES_MAX: u64 = NAME_BYTES_MAX / 2;

/// The first bytes of an entry in the directory of an archive, and the bytes that stand there before its name.
const DIRECTORY_ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);

/// Reads the files of an archive.
pub(super) fn read(part: &Part<'_>, inner: Inner<'_>) -> Result<Parsed, Fault> {
    let archive = ZipArchive::new(Cursor::new(part.bytes))
        .map_err(|error| Fault::Unparsed { engine: ENGINE, reason: error.to_string() })?;
    let extraction = Extraction { engine: ENGINE.into(), ..Extraction::default() };
    let parsed = Parsed { documents: Vec::new(), extraction };
    let mut reading = Reading { part, inner, archive, parsed, names: HashSet::new(), n_text_bytes: 0 };
    for name in repeated(part.bytes, reading.archive.central_directory_start()) {
        let name = quoted(&String::from_utf8_lossy(name));
        reading.unread(format!("entry {name}: a later entry has this name, which is read"));
    }
    let n_entries = reading.archive.len();
    let mut n_encrypted = 0;
    for index in 0..n_entries {
        let Some(entry) = reading.entry(index) else { continue };
        if let Err(reason) = part.allowance.enter() {
            let n_behind = n_entries - index - 1;
            reading.unread(format!("entry {} and {n_behind} behind it: {reason}", quoted(&entry.name)));
            break;
        }
        if let Err(reason) = reading.read(index, &entry) {
            n_encrypted += usize::from(reason.starts_with(ENCRYPTED));
            reading.unread(format!("entry {}: {reason}", quoted(&entry.name)));
        }
    }
    let is_locked = n_encrypted > 0 && reading.parsed.documents.is_empty();
    match is_locked {
        true => Err(Fault::Encrypted(part.options.passwords.locked())),
        false => Ok(reading.parsed),
    }
}

struct Reading<'r> {
    part: &'r Part<'r>,
    inner: Inner<'r>,
    archive: ZipArchive<Cursor<&'r [u8]>>,
    parsed: Parsed,
    /// Paths of the entries so far.
    names: HashSet<String>,
    n_text_bytes: u64,
}

/// An entry that is no folder, and not hidden.
struct Entry {
    name: String,
    /// Its name is not UTF-8: it was taken for code page 437, as the format has it.
    is_of_code_page: bool,
}

impl Reading<'_> {
    fn unread(&mut self, remark: String) {
        self.parsed.extraction.unread.push(remark);
    }

    /// An entry that is to be read.
    fn entry(&mut self, index: usize) -> Option<Entry> {
        let (name, is_of_code_page) = match self.archive.name_for_index(index)? {
            Ok(name) => (name.replace('\\', "/"), matches!(name, Cow::Owned(_))),
            Err(error) => {
                self.unread(format!("entry {} of the directory: its name cannot be read: {error}", index + 1));
                return None;
            }
        };
        let is_hidden = |step: &str| step.starts_with('.') && step != ".." && step != "." || step == NOTES_OF_PACKER;
        let is_read = !name.ends_with('/') && !name.split('/').any(is_hidden);
        is_read.then_some(Entry { name, is_of_code_page })
    }

    /// Reads an entry, or says why it was not read.
    fn read(&mut self, index: usize, entry: &Entry) -> Result<(), String> {
        let path = path_of(&entry.name)?;
        if !self.names.insert(path.clone()) {
            return Err("another entry has this name".to_owned());
        }
        let format = Format::of_path(Path::new(&path));
        if let (None, Some(extension)) = (format, Format::unread_extension(Path::new(&path))) {
            return Err(unknown_type(extension));
        }
        let bytes = self.unpack(index)?;
        let format = format.or_else(|| is_text(&bytes).then_some(Format::Text));
        let format = format.ok_or_else(|| format!("unknown type, and its {} bytes are no text", bytes.len()))?;
        let id = record_id(self.part.id, &path);
        let read = (self.inner)(&Part { bytes: &bytes, id: &id, ..*self.part }, format);
        let mut read = read.map_err(|fault| fault.reason())?;
        for document in &read.documents {
            self.n_text_bytes += document.text.len() as u64;
            let within = document.within_budgets(self.part.bytes.len() as u64);
            within.map_err(|excess| Fault::from(excess).reason())?;
        }
        if self.n_text_bytes > UNPACKED_BYTES_MAX {
            return Err(format!("more than {UNPACKED_BYTES_MAX} bytes of text up to here"));
        }
        if let Some(document) = read.documents.first_mut().filter(|_| entry.is_of_code_page) {
            document.warnings.push("its name in the archive is not UTF-8; read as code page 437".to_owned());
        }
        self.parsed.take(&path, read);
        Ok(())
    }

    /// The bytes of an entry.
    fn unpack(&mut self, index: usize) -> Result<Vec<u8>, String> {
        let entry = self.archive.by_index_raw(index).map_err(unread)?;
        if entry.is_symlink() {
            return Err("a link".to_owned());
        }
        let is_encrypted = entry.encrypted();
        let (n_declared, limit) = (entry.size(), self.part.options.max_file_bytes);
        if n_declared > limit {
            return Err(format!("{n_declared} bytes, the limit is {limit}"));
        }
        self.part.allowance.unpack(n_declared)?;
        drop(entry);
        if !is_encrypted {
            return taken(self.archive.by_index(index).map_err(unread)?, n_declared);
        }
        // A wrong password passes the old check of one byte once in 256 times, and that of AES, of two, once in 65,536:
        // only bytes with their checksum count.
        let passwords = &self.part.options.passwords;
        for password in passwords.iter() {
            match self.archive.by_index_decrypt(index, password.as_bytes()) {
                Ok(entry) => {
                    if let Ok(bytes) = taken(entry, n_declared) {
                        return Ok(bytes);
                    }
                }
                Err(ZipError::InvalidPassword) => {}
                Err(error) => return Err(unread(error)),
            }
        }
        Err(Fault::Encrypted(passwords.locked()).reason())
    }
}

/// The bytes of an entry, no more of them than it declares.
fn taken(entry: impl Read, n_declared: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    entry.take(n_declared.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() as u64 > n_declared {
        true => Err(format!("more than the {n_declared} bytes that it declares")),
        false => Ok(bytes),
    }
}

/// The name of an entry as a path inside the archive, else why it is none.
fn path_of(name: &str) -> Result<String, String> {
    let steps: Vec<&str> = name.split('/').filter(|step| !["", "."].contains(step)).collect();
    let is_drive = |step: &&str| step.len() == 2 && step.ends_with(':');
    if name.len() as u64 > ENTRY_NAME_BYTES_MAX {
        Err(format!("a name of {} bytes, the limit is {ENTRY_NAME_BYTES_MAX}", name.len()))
    } else if name.chars().any(char::is_control) {
        Err("a name with control characters".to_owned())
    } else if name.starts_with('/') || steps.first().is_some_and(is_drive) {
        Err("an absolute path, which no file in an archive has".to_owned())
    } else if steps.contains(&"..") {
        Err("its name leads out of its folder".to_owned())
    } else if steps.is_empty() {
        Err("without a name".to_owned())
    } else {
        Ok(steps.join("/"))
    }
}

/// Names that a later entry of the directory has again: the archive as it was opened has the last one of each alone.
fn repeated(bytes: &[u8], directory_start: u64) -> Vec<&[u8]> {
    let (mark, fixed) = DIRECTORY_ENTRY;
    let mut names = Vec::new();
    let mut rest = usize::try_from(directory_start).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
    while let Some((head, behind)) = rest.split_at_checked(fixed).filter(|(head, _)| head.starts_with(mark)) {
        let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (name, extra, comment) = (length(28), length(30), length(32));
        names.extend(behind.get(..name));
        rest = behind.get(name + extra + comment..).unwrap_or_default();
    }
    let mut later = HashSet::new();
    let mut repeated: Vec<&[u8]> = names.into_iter().rev().filter(|name| !later.insert(*name)).collect();
    repeated.reverse();
    repeated
}

/// True for a file that a person could read as it is: `LICENSE`, `Makefile`.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_inside_or_none() {
        for (name, path) in [("a.md", "a.md"), ("./a//b/./c.md", "a/b/c.md"), ("é/日.md", "é/日.md")] {
            assert_eq!(path_of(name).as_deref(), Ok(path));
        }
        for (name, words) in [
            ("/etc/passwd", "absolute"),
            ("//host/share/a.md", "absolute"),
            ("C:/a.md", "absolute"),
            ("a/../../b.md", "leads out"),
            ("..", "leads out"),
            ("a\0.md", "control"),
            ("./.", "without a name"),
            ("", "without a name"),
            (&"a".repeat(3_000), "a name of 3000 bytes"),
        ] {
            assert!(path_of(name).unwrap_err().contains(words), "{name}");
        }
    }
}
