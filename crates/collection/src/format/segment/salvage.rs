//! What is left of a damaged segment: every file opened by itself, and every document read that can be.

use cento_corpus::HeaderStyle;
use cento_vector as vector;

use super::column::Column;
use super::contexts::Contexts;
use super::files::{CHUNKS, DOCUMENTS, SECTIONS, TEXTS};
use super::links::Links;
use super::open;
use super::records::{ChunkRecord, DocumentRecord, SectionRecord};
use super::stored::{DocumentReader, StoredDocument, Tables};
use crate::error::Result;
use crate::format::config::CollectionConfig;
use crate::format::table::Table;
use crate::format::text::Texts;
use crate::fs::Folder;

/// The largest distance from 1 of a stored vector's length, rounded as it is; one beyond was not stored by us.
const UNIT_TOLERANCE: f32 = 2e-3;

/// The files of a segment that can be opened. A block of them may still be damaged.
#[derive(Default)]
pub struct Salvage {
    documents: Option<Table<DocumentRecord>>,
    sections: Option<Table<SectionRecord>>,
    chunks: Option<Table<ChunkRecord>>,
    links: Links,
    /// Absent if the file cannot be opened: chunks that have lost theirs are not the chunks that were indexed.
    contexts: Option<Contexts>,
    texts: Option<Texts>,
    columns: Vec<Option<vector::Rows>>,
}

impl Salvage {
    /// Opens what can be opened of the segment that has this name.
    pub fn open(collection: &Folder, name: &str, config: &CollectionConfig) -> Self {
        let Ok(folder) = open::folder(collection, name) else { return Self::default() };
        Self {
            documents: Table::open(&folder, DOCUMENTS.1, DOCUMENTS.0).ok(),
            sections: Table::open(&folder, SECTIONS.1, SECTIONS.0).ok(),
            chunks: Table::open(&folder, CHUNKS.1, CHUNKS.0).ok(),
            links: Links::open(&folder).unwrap_or_default(),
            contexts: Contexts::open(&folder).ok(),
            texts: Texts::open(&folder, TEXTS).ok(),
            columns: (0..config.pooling.columns().len()).map(|at| Column::open_rows(&folder, at).ok()).collect(),
        }
    }

    /// Reads documents, if all it takes could be opened.
    ///
    /// # Errors
    /// If the header style of the collection is none.
    pub fn reader(&self, config: &CollectionConfig) -> Result<Option<DocumentReader<'_>>> {
        let header = config.header_style()?;
        Ok(self.reader_of(header, config.context.is_some()))
    }

    fn reader_of(&self, header: HeaderStyle, has_contexts: bool) -> Option<DocumentReader<'_>> {
        let (documents, sections) = (self.documents.as_ref()?, self.sections.as_ref()?);
        let (chunks, texts) = (self.chunks.as_ref()?, self.texts.as_ref()?);
        let contexts = if has_contexts { Some(self.contexts.as_ref()?) } else { None };
        let tables = Tables { documents, sections, chunks, links: &self.links, contexts };
        let reader = DocumentReader::new(tables, texts, header);
        Some(reader.without_lost_links())
    }

    /// As [`Segment::check_whole`](super::Segment::check_whole), of the files that could be opened.
    pub fn check_whole(&self) -> Result<()> {
        let tables = [
            self.documents.as_ref().map(Table::file),
            self.sections.as_ref().map(Table::file),
            self.chunks.as_ref().map(Table::file),
            self.links.file(),
            self.contexts.as_ref().and_then(Contexts::file),
            self.texts.as_ref().map(Texts::file),
        ];
        let rows = self.columns.iter().flatten().map(vector::Rows::file);
        for file in tables.into_iter().flatten().chain(rows) {
            file.check_whole()?;
        }
        Ok(())
    }

    /// Id and origin of a document, whether or not there is more of it.
    pub fn named(&self, document: u32) -> Option<(String, String)> {
        let documents = self.documents.as_ref()?;
        let named = || -> Result<_> {
            let record = documents.record(document as usize)?;
            Ok((documents.text(record.id)?.to_owned(), documents.text(record.origin)?.to_owned()))
        };
        named().ok()
    }

    /// The vectors of a document's rows, column by column; `None` if one of them cannot be read.
    pub fn vectors(&self, document: &StoredDocument) -> Option<Vec<Vec<Vec<f32>>>> {
        let rows = document.first_row..document.first_row.checked_add(document.n_rows() as u32)?;
        let read = |column: &Option<vector::Rows>| {
            let column = column.as_ref()?;
            rows.clone()
                .map(|row| column.row(row).ok().map(|row| row.into_owned()).filter(|row| is_unit(row)))
                .collect()
        };
        self.columns.iter().map(read).collect()
    }
}

fn is_unit(vector: &[f32]) -> bool {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length - 1.0).abs() <= UNIT_TOLERANCE
}
