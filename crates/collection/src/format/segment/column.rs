//! A column: one vector for each chunk of a segment, and for many chunks a graph over them.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cento_vector::{self as vector, Scalar, file, hnsw};

use crate::error::{AtPath, Error, Result};
use crate::format::config::{CollectionConfig, VectorColumn};
use crate::format::graph_health::GraphHealth;
use crate::fs::{File, Folder, Fs};

/// Files of each column, vectors and graph. The first has the names of a segment with vectors of one kind.
const NAMES: [[&str; 2]; 2] = [["vectors.rows", "hnsw.graph"], ["vectors-late.rows", "hnsw-late.graph"]];

/// Vectors of one kind.
#[derive(Debug)]
pub struct Column {
    at: usize,
    /// Unit vectors, a row each.
    pub rows: vector::Rows,
    /// Graph over them, in segments large enough to gain by one.
    pub graph: Option<hnsw::FrozenGraph>,
}

impl Column {
    /// Opens the column's files; reads headers and block tables only.
    pub(crate) fn open(folder: &Folder, at: usize) -> Result<Self> {
        let rows = Self::open_rows(folder, at)?;
        let graph = match folder.map(NAMES[at][1], &[hnsw::KIND]) {
            Err(vector::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            mapped => Some(hnsw::FrozenGraph::open(mapped?)?),
        };
        Ok(Self { at, rows, graph })
    }

    /// Opens the file of the vectors alone.
    pub(crate) fn open_rows(folder: &Folder, at: usize) -> Result<vector::Rows> {
        Ok(vector::Rows::open(folder.map(NAMES[at][0], &Scalar::KINDS)?)?)
    }

    /// Its mapped files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &file::Mapped> {
        std::iter::once(self.rows.file()).chain(self.graph.as_ref().map(hnsw::FrozenGraph::file))
    }

    /// Bytes of memory that a row takes while a graph over all is built and examined.
    pub(crate) fn graph_row_bytes(&self) -> u64 {
        graph_row_bytes(self.rows.dimensions(), self.rows.scalar())
    }

    /// Its files with each one checked.
    pub(crate) fn verify(&self) -> impl Iterator<Item = (&'static str, Result<()>)> {
        let [rows, graph] = NAMES[self.at];
        let of_graph = self.graph.as_ref().map(|found| (graph, found.verify().map_err(Error::from)));
        std::iter::once((rows, self.rows.verify().map_err(Error::from))).chain(of_graph)
    }
}

/// A column in the making: rows go to their file in order, whatever order their vectors come in.
pub(crate) struct NewColumn {
    at: usize,
    vectors: VectorColumn,
    path: PathBuf,
    out: vector::RowWriter<Box<dyn File>>,
    /// Vectors of the rows behind those written, as far as they are known; the first is not.
    waiting: VecDeque<Option<Vec<f32>>>,
}

impl NewColumn {
    /// Starts the file of the rows.
    pub(crate) fn create(
        fs: &dyn Fs,
        folder: &Path,
        at: usize,
        vectors: VectorColumn,
        config: &CollectionConfig,
    ) -> Result<Self> {
        let path = folder.join(NAMES[at][0]);
        let out = vector::RowWriter::new(fs.create(&path).at(&path)?, config.dimensions, config.scalar()?);
        Ok(Self { at, vectors, out: out.map_err(at_path(&path))?, path, waiting: VecDeque::new() })
    }

    /// The vector of a row, once for each.
    pub(crate) fn set(&mut self, row: u32, vector: &[f32]) -> Result<()> {
        let ahead = (row as usize).checked_sub(self.out.len()).expect("a row gets one vector");
        if ahead > 0 {
            self.waiting.resize(self.waiting.len().max(ahead + 1), None);
            self.waiting[ahead] = Some(vector.to_vec());
            return Ok(());
        }
        self.waiting.pop_front();
        self.out.push(vector).map_err(at_path(&self.path))?;
        while let Some(Some(next)) = self.waiting.front() {
            self.out.push(next).map_err(at_path(&self.path))?;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Bytes of memory that a row takes while the graph over all is built and examined.
    pub(crate) fn graph_row_bytes(&self) -> u64 {
        graph_row_bytes(self.out.dimensions(), self.out.scalar())
    }

    /// Bytes of the vectors that wait for those of rows before theirs.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len() * self.out.dimensions() * size_of::<f32>()
    }

    /// Writes and syncs the files; from `graph_rows_min` rows on there is a graph, whose health comes back. A graph
    /// that is not fit to be searched is an error.
    pub(crate) fn finish(
        self,
        fs: &dyn Fs,
        folder: &Path,
        n_rows: usize,
        graph_rows_min: usize,
        graph_rows_done: &mut dyn FnMut(usize),
    ) -> Result<Option<GraphHealth>> {
        assert_eq!(self.out.len(), n_rows, "every row has a vector");
        self.out.finish().map_err(at_path(&self.path))?.sync().at(&self.path)?;
        if n_rows < graph_rows_min {
            return Ok(None);
        }
        let opened = Folder::open(folder).at(folder)?;
        let rows = Column::open_rows(&opened, self.at)?;
        let graph = hnsw::build(&rows, &hnsw::HnswConfig::default(), 0, &mut |n_done| {
            graph_rows_done(n_done);
            ControlFlow::Continue(())
        })?;
        let path = folder.join(NAMES[self.at][1]);
        let out = fs.create(&path).at(&path)?;
        graph.write(out).map_err(at_path(&path))?.sync().at(&path)?;
        drop(graph); // as large as the file that is mapped now
        let frozen = hnsw::FrozenGraph::open(opened.map(NAMES[self.at][1], &[hnsw::KIND])?)?;
        let health = GraphHealth::measure(self.vectors, &frozen, &rows);
        rows.file().check_whole()?;
        frozen.file().check_whole()?;
        let health = health?;
        health.check()?;
        Ok(Some(health))
    }
}

/// Of a row in its file, which is mapped, and in the graph.
fn graph_row_bytes(dimensions: usize, scalar: Scalar) -> u64 {
    (scalar.row_bytes(dimensions) + hnsw::row_memory_bytes(dimensions, &hnsw::HnswConfig::default())) as u64
}

/// The vector crate writes to whatever it is given; only here is the file's name known.
fn at_path(path: &Path) -> impl Fn(vector::Error) -> Error + '_ {
    move |error| match error {
        vector::Error::Write(source) => Error::Io { path: path.to_owned(), source },
        other => other.into(),
    }
}
