//! Vectors in a Parquet file: a column of lists of floats, and what the columns beside it say of each row.
//!
//! Source: the Parquet format (parquet.apache.org); lists of a fixed size are stored as lists. The `parquet` crate
//! reads pages and levels, one batch of rows at a time; its readers of whole rows are not used, as some values make
//! them panic. Its own panics on damaged pages, which it checks by assertions, are caught here and become errors.
//! Differs: what a few bytes of a page claim to hold is bounded before it is unpacked.

use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cento_corpus::{ID_KEYS, LINE_BYTES_MAX, TEXT_KEYS, TITLE_KEYS};
use cento_vector::DIMENSIONS_MAX;
use half::f16;
use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as Pages};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;
use serde_json::{Map, Value};

use super::rows::{Header, Number, Record, Rows, Shape};
use crate::error::{Error, Result};

/// Numbers that are read of the vectors at a time, as whole rows.
const BATCH_NUMBERS: usize = 1 << 18;
/// Numbers that one page may claim to hold beyond those that are wanted: more than any writer puts there.
const PAGE_NUMBERS_MAX: u64 = if cfg!(test) { 1 << 16 } else { 1 << 25 };

/// Parts of the name of a list's numbers: the list, its places, what stands there.
const LIST_PARTS_MAX: usize = 3;

/// A file of vectors, read batch by batch.
pub(super) struct ParquetRows {
    file: SerializedFileReader<File>,
    path: PathBuf,
    /// The leaf that holds the numbers.
    vectors: usize,
    /// The definition level of a number that is there.
    full: i16,
    others: Vec<Column>,
    n_columns: usize,
    /// The row group that is read next, and the one that is being read.
    next_group: usize,
    group: Option<Group>,
    batch: Batch,
    n_read: u64,
}

/// A column of single values.
struct Column {
    leaf: usize,
    /// The definition level of a value that is there.
    full: i16,
    name: String,
    role: Role,
}

/// The part of a record that a column fills.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Id,
    Title,
    Text,
    Metadata,
}

/// The columns of a row group in reading.
struct Group {
    n_rows_left: u64,
    vectors: ColumnReader,
    /// Numbers that pages may still claim.
    left: Arc<AtomicU64>,
    others: Vec<ColumnReader>,
}

/// Rows that were read, the next at `at`.
#[derive(Default)]
struct Batch {
    numbers: Vec<f32>,
    cells: Vec<Vec<Cell>>,
    n_rows: usize,
    at: usize,
}

/// A value as its page has it. A text is copied when its row is taken: many rows may share one.
#[derive(Clone)]
enum Cell {
    Text(ByteArray),
    Other(Value),
}

impl ParquetRows {
    /// Opens a file; `name` is the column of the vectors, without it the only one that can be.
    pub(super) fn open(path: &Path, file: File, name: Option<&str>) -> Result<(Header, Box<dyn Rows>)> {
        let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
        let damaged = |error: ParquetError| refuse(format!("cannot be read as Parquet: {error}"));
        let file = caught(|| SerializedFileReader::new(file)).map_err(damaged)?;
        let groups = (0..file.num_row_groups()).map(|group| file.metadata().row_group(group).num_rows());
        let n_rows = groups.map(u64::try_from).try_fold(0_u64, |sum, n| sum.checked_add(n.ok()?));
        let n_rows = n_rows.ok_or_else(|| refuse("names a number of rows that cannot be".to_owned()))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let (vectors, number) = vector_column(schema.columns(), name).map_err(refuse)?;
        let full = schema.column(vectors).max_def_level();
        let (others, left_out) = other_columns(schema.columns(), vectors);
        let mut notes = Vec::new();
        if !left_out.is_empty() {
            notes.push(format!("columns that hold no single value are left out: {}", left_out.join(", ")));
        }
        let has = |role| others.iter().any(|column| column.role == role);
        let mut header = Header {
            shape: Shape { number, n_rows, n_columns: 0 },
            has_ids: has(Role::Id),
            has_texts: has(Role::Text) || has(Role::Title),
            distance: None,
            notes,
        };
        let mut rows = Self {
            file,
            path: path.to_owned(),
            vectors,
            full,
            others,
            n_columns: 0,
            next_group: 0,
            group: None,
            batch: Batch::default(),
            n_read: 0,
        };
        if n_rows > 0 {
            rows.fill(1)?;
            rows.n_columns = rows.batch.numbers.len();
        }
        header.shape.n_columns = rows.n_columns as u64; // those of the first row
        Ok((header, Box::new(rows)))
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Vectors { path: self.path.clone(), reason }
    }

    /// Reads up to so many rows, of one row group; there must be another.
    fn fill(&mut self, n_rows_max: usize) -> Result<()> {
        let damaged = |error: ParquetError| Error::Vectors {
            path: self.path.clone(),
            reason: format!("row {} cannot be read: {error}", self.n_read),
        };
        while self.group.as_ref().is_none_or(|group| group.n_rows_left == 0) {
            if self.next_group == self.file.num_row_groups() {
                return Err(self.refuse(format!("ends after {} rows", self.n_read)));
            }
            let open = || Group::open(self.file.get_row_group(self.next_group)?.as_ref(), self.vectors, &self.others);
            self.group = Some(caught(open).map_err(damaged)?);
            self.next_group += 1;
        }
        let group = self.group.as_mut().expect("just opened");
        let n_rows = n_rows_max.min(usize::try_from(group.n_rows_left).unwrap_or(usize::MAX));
        let wanted = n_rows * if self.n_columns == 0 { DIMENSIONS_MAX } else { self.n_columns };
        group.left.store(wanted as u64 + PAGE_NUMBERS_MAX, Ordering::Relaxed);
        let read = || {
            let lists = Lists::read(&mut group.vectors, n_rows, self.full)?;
            let readers = group.others.iter_mut().zip(&self.others);
            let cells = readers.map(|(reader, column)| cells(reader, n_rows, column.full));
            Ok((lists, cells.collect::<Pages<Vec<_>>>()?))
        };
        let (lists, cells) = caught(read).map_err(damaged)?;
        group.n_rows_left -= n_rows as u64;
        let numbers = lists.of_rows(n_rows, self.n_columns, self.n_read);
        let numbers = numbers.map_err(|reason| self.refuse(reason))?;
        self.batch = Batch { numbers, cells, n_rows, at: 0 };
        Ok(())
    }
}

/// An answer of the library, or its panic as an error, after which it is asked nothing more.
fn caught<T>(read: impl FnOnce() -> Pages<T>) -> Pages<T> {
    panic::catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("a page is not what it says it is".to_owned())))
}

impl Rows for ParquetRows {
    fn next(&mut self, row: &mut Vec<f32>) -> Result<()> {
        if self.batch.at == self.batch.n_rows {
            self.fill((BATCH_NUMBERS / self.n_columns.max(1)).max(1))?;
        }
        let at = self.batch.at;
        row.clear();
        row.extend_from_slice(&self.batch.numbers[at * self.n_columns..(at + 1) * self.n_columns]);
        self.batch.at += 1;
        self.n_read += 1;
        Ok(())
    }

    fn record(&mut self) -> Result<Record> {
        let (row, at) = (self.n_read - 1, self.batch.at - 1);
        let mut record = Record::default();
        let mut metadata = Map::new();
        for (column, cells) in self.others.iter().zip(&self.batch.cells) {
            let value = match &cells[at] {
                Cell::Other(value) => value.clone(),
                Cell::Text(bytes) if bytes.len() as u64 > LINE_BYTES_MAX => {
                    let (name, n_bytes) = (&column.name, bytes.len());
                    let reason = format!("row {row}: {name:?} has {n_bytes} bytes; {LINE_BYTES_MAX} are read at most");
                    return Err(self.refuse(reason));
                }
                Cell::Text(bytes) => match bytes.as_utf8() {
                    Ok(text) => Value::String(text.to_owned()),
                    Err(_) => return Err(self.refuse(format!("row {row}: {:?} is not UTF-8", column.name))),
                },
            };
            let text = || match &value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            match column.role {
                Role::Id => record.id = text().filter(|id| !id.is_empty()),
                Role::Title => record.title = text(),
                Role::Text => record.text = text(),
                Role::Metadata => drop(metadata.insert(column.name.clone(), value)),
            }
        }
        record.metadata = metadata;
        Ok(record)
    }
}

impl Group {
    fn open(group: &dyn RowGroupReader, vectors: usize, others: &[Column]) -> Pages<Self> {
        let left = Arc::new(AtomicU64::new(0));
        let pages = Bounded { pages: group.get_column_page_reader(vectors)?, left: left.clone() };
        let descriptor = group.metadata().schema_descr().column(vectors);
        Ok(Self {
            n_rows_left: group.metadata().num_rows() as u64,
            vectors: get_column_reader(descriptor, Box::new(pages)),
            left,
            others: others.iter().map(|column| group.get_column_reader(column.leaf)).collect::<Pages<_>>()?,
        })
    }
}

/// The leaf of the vectors, and its numbers.
fn vector_column(leaves: &[Arc<ColumnDescriptor>], name: Option<&str>) -> Result<(usize, Number), String> {
    let is_alone = |column: &ColumnDescriptor| {
        let root = |leaf: &&Arc<ColumnDescriptor>| leaf.path().parts()[0] == column.path().parts()[0];
        leaves.iter().filter(root).count() == 1 // a map or a list of structures has several leaves
    };
    let vectors = leaves.iter().enumerate().filter(|(_, column)| is_alone(column));
    let vectors = vectors.filter_map(|(leaf, column)| Some((leaf, number(column)?, column)));
    let mut vectors: Vec<_> = vectors.map(|(leaf, number, column)| (leaf, number, &column.path().parts()[0])).collect();
    let names = vectors.iter().map(|(.., name)| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        vectors.retain(|(.., column)| *column == name);
    }
    match (vectors.as_slice(), name) {
        ([(leaf, number, _)], _) => Ok((*leaf, *number)),
        ([], Some(name)) if names.is_empty() => Err(format!("has no column {name:?} of lists of floats, nor another")),
        ([], Some(name)) => Err(format!("has no column {name:?} of lists of floats; there are {names}")),
        ([], None) => Err("has no column of lists of floats".to_owned()),
        (_, _) => Err(format!("has several columns of lists of floats, and one is to be named: {names}")),
    }
}

/// The numbers of a leaf that can be vectors: below a list of the file's own columns.
fn number(column: &ColumnDescriptor) -> Option<Number> {
    if column.max_rep_level() != 1 || column.path().parts().len() > LIST_PARTS_MAX {
        return None;
    }
    match (column.physical_type(), column.logical_type_ref()) {
        (Physical::FLOAT, _) => Some(Number::F32),
        (Physical::DOUBLE, _) => Some(Number::F64),
        (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)) => Some(Number::F16),
        _ => None,
    }
}

/// The columns of single values, and the names of those that are not read.
fn other_columns(leaves: &[Arc<ColumnDescriptor>], vectors: usize) -> (Vec<Column>, Vec<String>) {
    let is_single = |column: &ColumnDescriptor| column.path().parts().len() == 1 && column.max_rep_level() == 0;
    let first_of = |keys: &[&'static str]| {
        let has = |key: &&&str| leaves.iter().any(|leaf| is_single(leaf) && is_value(leaf) && leaf.name() == **key);
        keys.iter().find(has).copied()
    };
    let (id, title, text) = (first_of(&ID_KEYS), first_of(&TITLE_KEYS), first_of(&TEXT_KEYS));
    let (mut others, mut left_out): (Vec<Column>, Vec<String>) = (Vec::new(), Vec::new());
    for (leaf, column) in leaves.iter().enumerate().filter(|(leaf, _)| *leaf != vectors) {
        if is_single(column) && is_value(column) {
            let name = Some(column.name());
            let role = match name {
                _ if name == id => Role::Id,
                _ if name == title => Role::Title,
                _ if name == text => Role::Text,
                _ => Role::Metadata,
            };
            others.push(Column { leaf, full: column.max_def_level(), name: column.name().to_owned(), role });
        } else {
            let name = format!("{:?}", column.path().parts()[0]);
            if left_out.last() != Some(&name) {
                left_out.push(name);
            }
        }
    }
    (others, left_out)
}

/// True for a column of texts, numbers or truths.
fn is_value(column: &ColumnDescriptor) -> bool {
    use parquet::basic::ConvertedType as Converted;
    let logical = column.logical_type_ref();
    let is_text = matches!(column.converted_type(), Converted::UTF8 | Converted::ENUM | Converted::JSON)
        || matches!(logical, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json));
    match column.physical_type() {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => true,
        Physical::INT32 | Physical::INT64 => {
            matches!(
                column.converted_type(),
                Converted::NONE | Converted::INT_8 | Converted::INT_16 | Converted::INT_32 | Converted::INT_64
            ) && !matches!(logical, Some(LogicalType::Timestamp { .. } | LogicalType::Time { .. }))
        }
        Physical::BYTE_ARRAY => is_text,
        Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
    }
}

/// Lists as Parquet has them: values, and for each place if it holds one and if it begins a row.
struct Lists {
    values: Vec<f32>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// The definition level of a place that holds a value.
    full: i16,
}

impl Lists {
    fn read(reader: &mut ColumnReader, n_rows: usize, full: i16) -> Pages<Self> {
        match reader {
            ColumnReader::FloatColumnReader(reader) => Self::of(reader, n_rows, full, |value| *value),
            ColumnReader::DoubleColumnReader(reader) => Self::of(reader, n_rows, full, |value| *value as f32),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Self::of(reader, n_rows, full, |value| {
                value.data().first_chunk().map_or(f32::NAN, |bytes| f16::from_le_bytes(*bytes).to_f32())
            }),
            ColumnReader::BoolColumnReader(_)
            | ColumnReader::Int32ColumnReader(_)
            | ColumnReader::Int64ColumnReader(_)
            | ColumnReader::Int96ColumnReader(_)
            | ColumnReader::ByteArrayColumnReader(_) => unreachable!("the column was chosen for its floats"),
        }
    }

    fn of<T: DataType>(
        reader: &mut ColumnReaderImpl<T>,
        n_rows: usize,
        full: i16,
        value: impl Fn(&T::T) -> f32,
    ) -> Pages<Self> {
        let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let read = reader.read_records(n_rows, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
        if read.0 != n_rows {
            return Err(ParquetError::General(format!("a column of vectors ends {} rows early", n_rows - read.0)));
        }
        let values = values.iter().map(value).collect();
        Ok(Self { values, definitions, repetitions, full })
    }

    /// The numbers of so many rows, `n_columns` each; 0 for as many as the first has.
    fn of_rows(self, n_rows: usize, n_columns: usize, first_row: u64) -> Result<Vec<f32>, String> {
        let mut row = first_row;
        let mut length = 0;
        for (place, (&definition, &repetition)) in self.definitions.iter().zip(&self.repetitions).enumerate() {
            if repetition == 0 && place > 0 {
                check_length(row, length, n_columns)?;
                (row, length) = (row + 1, 0);
            }
            if definition < self.full {
                return Err(format!("row {row} has no vector, or lacks a number of it"));
            }
            length += 1;
        }
        check_length(row, length, n_columns)?;
        if n_columns > 0 && self.values.len() != n_rows * n_columns {
            return Err(format!("has {} numbers in {n_rows} rows of {n_columns}", self.values.len()));
        }
        Ok(self.values)
    }
}

fn check_length(row: u64, length: usize, n_columns: usize) -> Result<(), String> {
    if n_columns == 0 || length == n_columns {
        return Ok(());
    }
    Err(format!("row {row} has {length} columns, the first has {n_columns}"))
}

/// The next values of a column, one for each row.
fn cells(reader: &mut ColumnReader, n_rows: usize, full: i16) -> Pages<Vec<Cell>> {
    let number = |value: f64| Cell::Other(serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number));
    match reader {
        ColumnReader::BoolColumnReader(reader) => single(reader, n_rows, full, |value| Cell::Other((*value).into())),
        ColumnReader::Int32ColumnReader(reader) => single(reader, n_rows, full, |value| Cell::Other((*value).into())),
        ColumnReader::Int64ColumnReader(reader) => single(reader, n_rows, full, |value| Cell::Other((*value).into())),
        ColumnReader::FloatColumnReader(reader) => single(reader, n_rows, full, |value| number(f64::from(*value))),
        ColumnReader::DoubleColumnReader(reader) => single(reader, n_rows, full, |value| number(*value)),
        ColumnReader::ByteArrayColumnReader(reader) => single(reader, n_rows, full, |value| Cell::Text(value.clone())),
        ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
            unreachable!("such columns are left out")
        }
    }
}

fn single<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n_rows: usize,
    full: i16,
    cell: impl Fn(&T::T) -> Cell,
) -> Pages<Vec<Cell>> {
    let (mut definitions, mut values) = (Vec::new(), Vec::new());
    let (n_records, ..) = reader.read_records(n_rows, Some(&mut definitions), None, &mut values)?;
    let mut values = values.iter();
    let places = if full == 0 { vec![full; n_records] } else { definitions };
    let cells = places.into_iter().map(|definition| match definition == full {
        true => values.next().map(&cell),
        false => Some(Cell::Other(Value::Null)),
    });
    let cells: Option<Vec<Cell>> = cells.collect();
    cells
        .filter(|cells| cells.len() == n_rows)
        .ok_or_else(|| ParquetError::General("a column has other rows than the vectors".to_owned()))
}

/// Pages that claim no more numbers than there is room for: levels of a few bytes can stand for any number of them.
struct Bounded {
    pages: Box<dyn PageReader>,
    left: Arc<AtomicU64>,
}

impl PageReader for Bounded {
    fn get_next_page(&mut self) -> Pages<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page @ (Page::DataPage { .. } | Page::DataPageV2 { .. })) = &page {
            let claimed = u64::from(page.num_values());
            let take = |left: u64| left.checked_sub(claimed);
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                return Err(ParquetError::General(format!("a page claims {claimed} numbers, more than are read")));
            }
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Pages<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Pages<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Pages<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for Bounded {
    type Item = Pages<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
