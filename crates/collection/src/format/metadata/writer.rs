//! Gathers the fields of a segment's documents and writes them as columns.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;

use cento_vector::file;

use super::fields::Described;
use super::fields::Key;
use super::layout::{ColumnRecord, KIND, ValueRecord};
use crate::error::{AtPath, Result};
use crate::format::table::Text;
use crate::fs::Fs;

/// The fields of the documents so far: for each field and value the documents that have it, ascending.
#[derive(Debug, Default)]
pub struct MetadataWriter {
    fields: BTreeMap<String, BTreeMap<Key, Vec<u32>>>,
    n_documents: u32,
    /// Pairs of a value and a document.
    n_pairs: u64,
    /// Values, and the bytes of those that are strings.
    n_values: u64,
    n_value_bytes: u64,
}

/// Bytes of memory of a value: its key and its list in a node of a tree, two allocations, its place when it is written.
const VALUE_BYTES: u64 = 240;

/// Bytes of memory that so many values take, with so many bytes of text and in so many pairs with documents.
pub(super) fn memory_bytes(n_values: u64, n_value_bytes: u64, n_pairs: u64) -> u64 {
    VALUE_BYTES * n_values + 3 * n_value_bytes + 4 * size_of::<u32>() as u64 * n_pairs
}

impl MetadataWriter {
    /// Bytes of memory that the values take while they are written.
    pub fn memory_bytes(&self) -> u64 {
        memory_bytes(self.n_values, self.n_value_bytes, self.n_pairs)
    }

    /// Pairs of a value and a document so far.
    pub fn n_pairs(&self) -> u64 {
        self.n_pairs
    }

    /// Adds the next document.
    pub fn push(&mut self, document: &Described<'_>) {
        for (name, key) in document.fields() {
            let n_bytes = key.text_bytes();
            let documents = self.fields.entry(name).or_default().entry(key).or_default();
            if documents.is_empty() {
                self.n_values += 1;
                self.n_value_bytes += n_bytes as u64;
            }
            if documents.last() != Some(&self.n_documents) {
                documents.push(self.n_documents);
                self.n_pairs += 1;
            }
        }
        self.n_documents += 1;
    }

    /// Writes and syncs the file.
    pub fn write(&self, fs: &dyn Fs, path: &Path) -> Result<()> {
        let parts = self.parts();
        let mut out = file::Writer::new(fs.create(path).at(path)?, KIND).at(path)?;
        out.write_all(&parts.bytes()).at(path)?;
        out.finish([parts.columns.len() as u64, u64::from(self.n_documents)]).at(path)?.sync().at(path)
    }

    /// The payload that [`MetadataWriter::write`] writes behind the header.
    pub fn payload(&self) -> Vec<u8> {
        self.parts().bytes()
    }

    fn parts(&self) -> Parts<'_> {
        let mut parts = Parts::default();
        for (name, values) in &self.fields {
            let name = parts.text(name);
            let mut kind = None;
            for (key, documents) in values {
                if kind != Some(key.kind()) {
                    kind = Some(key.kind());
                    parts.open_column(name, key.kind() as u32);
                }
                parts.push(key, documents);
            }
        }
        parts
    }
}

/// The parts of the payload.
#[derive(Default)]
struct Parts<'a> {
    columns: Vec<ColumnRecord>,
    values: Vec<ValueRecord>,
    documents: Vec<u32>,
    heap: Vec<u8>,
    places: HashMap<&'a str, Text>,
}

impl<'a> Parts<'a> {
    fn open_column(&mut self, name: Text, kind: u32) {
        self.columns.push(ColumnRecord {
            name,
            kind,
            reserved: 0,
            first_value: self.values.len() as u64,
            n_values: 0,
            first_document: self.documents.len() as u64,
            n_documents: 0,
        });
    }

    /// Adds a value to the open column.
    fn push(&mut self, key: &'a Key, documents: &[u32]) {
        let (bits, n_bytes) = match key {
            Key::Boolean(value) => (u64::from(*value), 0),
            Key::Integer(value) | Key::Date(value) => (*value as u64, 0),
            Key::Float(value) => (value.0.to_bits(), 0),
            Key::String(text) => {
                let place = self.text(text);
                (place.offset, place.n_bytes as u32) // a record is far shorter than 4 GiB
            }
        };
        let column = self.columns.last_mut().expect("a column is open");
        self.values.push(ValueRecord { bits, n_bytes, first_document: column.n_documents as u32 });
        column.n_values += 1;
        column.n_documents += documents.len() as u64;
        self.documents.extend_from_slice(documents);
    }

    fn text(&mut self, text: &'a str) -> Text {
        let heap = &mut self.heap;
        *self.places.entry(text).or_insert_with(|| {
            let offset = heap.len() as u64;
            heap.extend_from_slice(text.as_bytes());
            Text { offset, n_bytes: text.len() as u64 }
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let (columns, values) = (bytemuck::cast_slice(&self.columns), bytemuck::cast_slice(&self.values));
        [columns, values, bytemuck::cast_slice(&self.documents), &self.heap].concat()
    }
}
