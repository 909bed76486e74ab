//! Datasets of HDF5, as the files of ann-benchmarks have them: `train` to be searched, `test` to search for, and the
//! distance as an attribute of the file.
//!
//! Source: Aumüller, Bernhardsson and Faithfull 2020, "ANN-Benchmarks"; `write_output` of its `datasets.py`.
//! The `hdf5-reader` crate reads them, a block of rows at a time; what a file may make it allocate is bounded, and
//! links to other files are not followed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hdf5_reader::{Dataset, Datatype, FileStorage, Hdf5File, OpenOptions, SliceInfo, SliceInfoElem};

use super::rows::{Header, Number, Part, Rows, Shape};
use crate::error::{Error, Result};

/// Numbers that are read at a time, as whole rows.
const BLOCK_NUMBERS: usize = 1 << 18;
/// Bytes that a read may take: more than a block of the widest rows and the largest chunk that writers make.
const READ_BYTES_MAX: usize = 256 << 20;
/// Datasets that an error names.
const NAMED_MAX: usize = 20;

/// Opens a dataset; without a name the one that ann-benchmarks gives that part.
pub(super) fn open(path: &Path, file: File, name: Option<&str>, part: Part) -> Result<(Header, Box<dyn Rows>)> {
    let refuse = |reason: String| Error::Vectors { path: path.to_owned(), reason };
    let damaged = |error: hdf5_reader::error::Error| refuse(format!("cannot be read as HDF5: {error}"));
    let storage = Arc::new(FileStorage::from_file(file).map_err(damaged)?);
    let options = OpenOptions::default().with_max_chunk_bytes(READ_BYTES_MAX).with_max_read_bytes(READ_BYTES_MAX);
    let hdf5 = Hdf5File::from_storage_with_options(storage, options).map_err(damaged)?;
    let name = name.unwrap_or(match part {
        Part::Rows => "train",
        Part::Queries => "test",
    });
    let root = hdf5.root_group().map_err(damaged)?;
    let dataset = hdf5.dataset(name).map_err(|error| {
        let others = root.datasets().unwrap_or_default();
        let others: Vec<&str> = others.iter().take(NAMED_MAX).map(Dataset::name).collect();
        refuse(format!("has no dataset {name:?} that can be read ({error}); it has {}", others.join(", ")))
    })?;
    let number = match dataset.dtype() {
        Datatype::FloatingPoint { size: 4, .. } => Number::F32,
        Datatype::FloatingPoint { size: 8, .. } => Number::F64,
        Datatype::FixedPoint { size: 1, signed: false, .. } => Number::U8,
        other => return Err(refuse(format!("{name:?} is of {other:?}; float32, float64 and uint8 are read"))),
    };
    let &[n_rows, n_columns] = dataset.shape() else {
        let shape = dataset.shape();
        return Err(refuse(format!("{name:?} has shape {shape:?}; two dimensions are wanted, a row for each vector")));
    };
    let distance = root.attribute("distance").ok().and_then(|attribute| attribute.read_string().ok());
    let shape = Shape { number, n_rows, n_columns };
    let rows = Blocks { path: path.to_owned(), dataset, shape, block: Vec::new(), at: 0, next_row: 0 };
    Ok((Header { distance, ..Header::bare(shape) }, Box::new(rows)))
}

/// Rows of a dataset, a block at a time.
struct Blocks {
    path: PathBuf,
    dataset: Dataset,
    shape: Shape,
    block: Vec<f32>,
    /// The number of the block that begins the next row.
    at: usize,
    /// The first row behind the block.
    next_row: u64,
}

impl Blocks {
    fn fill(&mut self) -> Result<()> {
        let n_rows = (BLOCK_NUMBERS as u64 / self.shape.n_columns).max(1);
        let (start, end) = (self.next_row, (self.next_row + n_rows).min(self.shape.n_rows));
        let all = SliceInfoElem::Slice { start: 0, end: u64::MAX, step: 1 };
        let block = SliceInfo { selections: vec![SliceInfoElem::Slice { start, end, step: 1 }, all] };
        let read = match self.shape.number {
            Number::F32 => self.dataset.read_slice::<f32>(&block).map(|block| block.into_iter().collect()),
            Number::F64 => {
                self.dataset.read_slice::<f64>(&block).map(|block| block.into_iter().map(|x| x as f32).collect())
            }
            Number::U8 => self.dataset.read_slice::<u8>(&block).map(|block| block.into_iter().map(f32::from).collect()),
            Number::F16 => unreachable!("such a dataset is refused when it is opened"),
        };
        let refuse = |reason: String| Error::Vectors { path: self.path.clone(), reason };
        let block: Vec<f32> = read.map_err(|error| refuse(format!("row {start} cannot be read: {error}")))?;
        let n_numbers = (end - start) * self.shape.n_columns;
        if block.len() as u64 != n_numbers {
            return Err(refuse(format!("row {start} and those behind it have {} of {n_numbers} numbers", block.len())));
        }
        (self.block, self.at, self.next_row) = (block, 0, end);
        Ok(())
    }
}

impl Rows for Blocks {
    fn next(&mut self, row: &mut Vec<f32>) -> Result<()> {
        if self.at == self.block.len() {
            self.fill()?;
        }
        let end = self.at + self.shape.n_columns as usize;
        row.clear();
        row.extend_from_slice(&self.block[self.at..end]);
        self.at = end;
        Ok(())
    }
}
