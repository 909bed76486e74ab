//! Archives, as ZIP: each file in one is read as what it is, and is documents of its own.
//!
//! The id of such a document is that of the archive, `/` and its name in it. Nothing is unpacked but into memory. What
//! is encrypted, a link, or called by a name that leads out of the archive or stands there twice, is named as unread;
//! hidden files are passed over, as in a folder.
//! Source: APPNOTE.TXT 6.3.10 of PKWARE.
//! Cost: one entry at a time, up to [`UNPACKED_BYTES_MAX`] for all, whatever sizes they declare.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::path::{Component, Path};

use zip::ZipArchive;
use zip::result::ZipError;

use super::{Fault, Inner, Parsed, Part};
use crate::budget::NAME_BYTES_MAX;
use crate::document::record_id;
use crate::extraction::Extraction;
use crate::format::Format;

const ENGINE: &str = "zip 9";

/// Entries of one archive that are read.
const ENTRIES_MAX: usize = 4_096;

/// Bytes that are unpacked of one archive, and bytes of text that come of them.
const UNPACKED_BYTES_MAX: u64 = 128 << 20;

/// A folder of a packer's own notes on the others.
const NOTES_OF_PACKER: &str = "__MACOSX";

/// Reads the files of an archive.
pub(super) fn read(part: &Part<'_>, inner: Inner<'_>) -> Result<Parsed, Fault> {
    let archive = ZipArchive::new(Cursor::new(part.bytes))
        .map_err(|error| Fault::Unparsed { engine: ENGINE, reason: error.to_string() })?;
    let extraction = Extraction { engine: ENGINE.into(), ..Extraction::default() };
    let parsed = Parsed { documents: Vec::new(), extraction };
    let mut reading = Reading {
        part,
        inner,
        archive,
        parsed,
        names: HashSet::new(),
        bytes_left: UNPACKED_BYTES_MAX,
        n_text_bytes: 0,
    };
    let n_entries = reading.archive.len();
    let (mut n_read, mut n_encrypted) = (0, 0);
    for index in 0..n_entries {
        if n_read == ENTRIES_MAX {
            let n_more = n_entries - index;
            reading.parsed.extraction.unread.push(format!("{n_more} entries behind the first {ENTRIES_MAX}"));
            break;
        }
        let Some(name) = reading.name(index) else { continue };
        n_read += 1;
        match reading.entry(index, &name) {
            Ok(()) => {}
            Err(reason) => {
                n_encrypted += usize::from(reason == ENCRYPTED);
                reading.parsed.extraction.unread.push(format!("entry {name:?}: {reason}"));
            }
        }
    }
    if n_encrypted > 0 && n_encrypted == n_read { Err(Fault::Encrypted) } else { Ok(reading.parsed) }
}

/// The reason for which an encrypted entry is not read.
const ENCRYPTED: &str = "encrypted";

struct Reading<'r> {
    part: &'r Part<'r>,
    inner: Inner<'r>,
    archive: ZipArchive<Cursor<&'r [u8]>>,
    parsed: Parsed,
    /// Names of the entries so far.
    names: HashSet<String>,
    bytes_left: u64,
    n_text_bytes: u64,
}

impl Reading<'_> {
    /// The name of an entry, folders parted by `/`; none for a folder, and for what is passed over.
    fn name(&self, index: usize) -> Option<String> {
        let name = self.archive.name_for_index(index)?.ok()?.replace('\\', "/");
        let is_hidden = |step: &str| step.starts_with('.') && step != ".." && step != "." || step == NOTES_OF_PACKER;
        (!name.ends_with('/') && !name.split('/').any(is_hidden)).then_some(name)
    }

    /// Reads an entry, or says why it was not read.
    fn entry(&mut self, index: usize, name: &str) -> Result<(), String> {
        let is_inside = Path::new(name).components().all(|step| matches!(step, Component::Normal(_)));
        if !is_inside || name.chars().any(char::is_control) || name.len() as u64 > NAME_BYTES_MAX / 2 {
            return Err("its name is that of no file in an archive".to_owned());
        }
        if !self.names.insert(name.to_owned()) {
            return Err("another entry has this name".to_owned());
        }
        let bytes = self.unpack(index)?;
        let format = Format::of_path(Path::new(name)).or_else(|| is_text(&bytes).then_some(Format::Text));
        let format =
            format.ok_or_else(|| format!("its extension is of no format that is read, {} bytes", bytes.len()))?;
        let Part { origin, options, .. } = *self.part;
        let id = record_id(self.part.id, name);
        let read = (self.inner)(&Part { bytes: &bytes, id: &id, origin, options }, format);
        let read = read.map_err(|fault| fault.reason())?;
        for document in &read.documents {
            self.n_text_bytes += document.text.len() as u64;
            let within = document.within_budgets(self.part.bytes.len() as u64);
            within.map_err(|excess| Fault::from(excess).reason())?;
        }
        if self.n_text_bytes > UNPACKED_BYTES_MAX {
            return Err(format!("more than {UNPACKED_BYTES_MAX} bytes of text up to here"));
        }
        self.parsed.take(name, read);
        Ok(())
    }

    /// The bytes of an entry.
    fn unpack(&mut self, index: usize) -> Result<Vec<u8>, String> {
        let entry = match self.archive.by_index(index) {
            Ok(entry) => entry,
            Err(ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED)) => return Err(ENCRYPTED.to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if entry.is_symlink() {
            return Err("a link".to_owned());
        }
        let limit = self.bytes_left.min(self.part.options.max_file_bytes);
        let mut bytes = Vec::new();
        let read = entry.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
        read.map_err(|error| error.to_string())?;
        match bytes.len() as u64 > limit {
            true => Err(format!("more than {limit} bytes, unpacked")),
            false => Ok(bytes),
        }
    }
}

/// True for a file that a person could read as it is: `LICENSE`, `Makefile`.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}
