//! The links that authors made, document by document, as stored: targets are as written, and nothing is resolved, so
//! that growth, deletion and compaction leave nothing to mend.

use std::io;
use std::ops::Range;
use std::path::Path;

use cento_corpus::Link;
use cento_vector as vector;

use super::files::LINKS;
use super::records::{DocumentRecord, LinkRecord};
use crate::error::{Error, Result};
use crate::format::table::{Table, TableWriter};
use crate::fs::{Folder, Fs};

/// Links of the documents of a segment; without a file where no document has any.
#[derive(Debug, Clone, Default)]
pub struct Links {
    table: Option<Table<LinkRecord>>,
}

impl Links {
    /// Opens the file, if there is one; reads header and block table only.
    pub(super) fn open(folder: &Folder) -> Result<Self> {
        match folder.map(LINKS.1, &[LINKS.0]) {
            Err(vector::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            mapped => Ok(Self { table: Some(Table::of(mapped?)?) }),
        }
    }

    /// The mapped file, if there is one.
    pub(super) fn file(&self) -> Option<&vector::file::Mapped> {
        self.table.as_ref().map(Table::file)
    }

    /// Bytes of records and targets.
    pub(super) fn n_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::n_bytes)
    }

    /// Number of links.
    pub(crate) fn len(&self) -> usize {
        self.table.as_ref().map_or(0, Table::len)
    }

    /// The file's name and its check, if there is one.
    pub(super) fn verify(&self) -> Option<(&'static str, Result<()>)> {
        self.table.as_ref().map(|table| (LINKS.1, table.verify()))
    }

    /// The links of a document in the order of its text; `None` if they were not looked for when it was indexed.
    ///
    /// # Errors
    /// `Corrupt` if the file does not have the links that the document's record counts.
    pub fn of(&self, number: u32, document: &DocumentRecord) -> Result<Option<Vec<Link>>> {
        let Some(n_links) = document.n_links() else { return Ok(None) };
        if n_links == 0 {
            return Ok(Some(Vec::new()));
        }
        let Some(table) = &self.table else {
            let reason = format!("the file is missing, and document {number} has {n_links} links");
            return Err(Error::Corrupt { path: LINKS.1.into(), reason });
        };
        let range = self.range(table, number)?;
        if range.len() != n_links as usize {
            let reason = format!("document {number} has {} links here and {n_links} in its record", range.len());
            return Err(table.corrupt(reason));
        }
        table.records(range)?.iter().map(|record| link(table, record, document)).collect::<Result<_>>().map(Some)
    }

    /// The records of a document, which lie together.
    fn range(&self, table: &Table<LinkRecord>, number: u32) -> Result<Range<usize>> {
        let first = |of: u32| -> Result<usize> {
            let mut range = 0..table.len();
            while !range.is_empty() {
                let middle = range.start + range.len() / 2;
                match table.record(middle)?.document < of {
                    true => range.start = middle + 1,
                    false => range.end = middle,
                }
            }
            Ok(range.start)
        };
        let start = first(number)?;
        let end = number.checked_add(1).map_or(Ok(table.len()), first)?;
        Ok(start..end.max(start)) // a damaged file may not ascend
    }
}

/// A link of a document from its record, which may say anything.
fn link(table: &Table<LinkRecord>, record: &LinkRecord, document: &DocumentRecord) -> Result<Link> {
    let kind = record.kind().ok_or_else(|| table.corrupt(format!("no kind of link has number {}", record.kind)))?;
    if record.start > record.end || record.end > document.text_bytes {
        let (start, end) = (record.start, record.end);
        return Err(table.corrupt(format!("bytes {start}-{end} of a link lie outside its document")));
    }
    let target = table.text(record.target)?.to_owned();
    Ok(Link { start: record.start as usize, end: record.end as usize, kind, target })
}

/// Gathers the links of a segment's documents.
#[derive(Debug)]
pub(super) struct LinksWriter {
    table: TableWriter<LinkRecord>,
}

impl LinksWriter {
    pub(super) fn new() -> Self {
        Self { table: TableWriter::new() }
    }

    /// Bytes of memory that records and targets take.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// Adds the links of the next document; the number that its record has for them.
    pub(super) fn push(&mut self, document: u32, links: Option<&[Link]>) -> u32 {
        for link in links.unwrap_or_default() {
            let (start, end) = (link.start as u64, link.end as u64);
            let target = self.table.text(&link.target);
            self.table.push(LinkRecord { target, start, end, document, kind: link.kind.number() });
        }
        links.map_or(0, |links| links.len() as u32 + 1)
    }

    /// Writes and syncs the file, unless there is no link.
    pub(super) fn write(self, fs: &dyn Fs, folder: &Path) -> Result<()> {
        if self.table.len() == 0 {
            return Ok(());
        }
        self.table.write(fs, &folder.join(LINKS.1), LINKS.0)
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use cento_corpus::LinkKind;

    use super::*;
    use crate::fs::OsFs;

    fn links() -> Vec<Vec<Link>> {
        let link = |n: usize| Link { start: n, end: 2 * n, kind: LinkKind::Inline, target: format!("{n}.md#é") };
        (0..9).map(|document| (0..document % 4).map(link).collect()).collect()
    }

    fn record(links: u32) -> DocumentRecord {
        DocumentRecord { links, text_bytes: 8, ..DocumentRecord::zeroed() }
    }

    fn write(folder: &Path) -> Vec<DocumentRecord> {
        let mut writer = LinksWriter::new();
        let push = |(number, links): (u32, Vec<Link>)| record(writer.push(number, Some(&links)));
        let mut records: Vec<DocumentRecord> = (0..).zip(links()).map(push).collect();
        records.push(record(writer.push(9, None)));
        writer.write(&OsFs, folder).unwrap();
        records
    }

    fn open(folder: &Path) -> Result<Links> {
        Links::open(&Folder::open(folder).unwrap())
    }

    #[test]
    fn links_are_read_as_they_were_written_and_those_not_looked_for_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let records = write(folder.path());
        let opened = open(folder.path()).unwrap();
        for (number, (record, links)) in records.iter().zip(links()).enumerate() {
            assert_eq!(opened.of(number as u32, record).unwrap(), Some(links));
        }
        assert_eq!(opened.of(9, &records[9]).unwrap(), None);
    }

    #[test]
    fn a_file_that_is_missing_is_missed_where_a_document_has_links() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(folder.path()).unwrap();
        assert_eq!(opened.of(0, &record(0)).unwrap(), None);
        assert_eq!(opened.of(0, &record(1)).unwrap(), Some(Vec::new()));
        assert!(matches!(opened.of(0, &record(2)), Err(Error::Corrupt { .. })));
    }

    /// A payload whose checksums hold is read without trust all the same: an error or links inside their limits.
    #[test]
    fn sealed_nonsense_is_an_error_or_links() {
        let folder = tempfile::tempdir().unwrap();
        let records = write(folder.path());
        let path = folder.path().join(LINKS.1);
        let good = std::fs::read(&path).unwrap();
        let payload = good[vector::file::HEADER_BYTES..].to_vec();
        let number = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
        let n_bytes = number(40) as usize;
        let mut n_errors = 0;
        for at in 0..n_bytes {
            let mut payload = payload[..n_bytes].to_vec();
            payload[at] ^= 0x81;
            std::fs::remove_file(&path).unwrap(); // it may be mapped
            let mut out = vector::file::Writer::new(std::fs::File::create(&path).unwrap(), LINKS.0).unwrap();
            io::Write::write_all(&mut out, &payload).unwrap();
            out.finish([number(24), number(32)]).unwrap();
            let opened = open(folder.path()).unwrap();
            for (number, record) in records.iter().enumerate() {
                match opened.of(number as u32, record) {
                    Ok(links) => {
                        assert!(links.into_iter().flatten().all(|link| link.start <= link.end && link.end <= 8))
                    }
                    Err(_) => n_errors += 1,
                }
            }
        }
        assert!(n_errors > n_bytes / 4, "{n_errors} errors of {n_bytes} bytes");
    }
}
