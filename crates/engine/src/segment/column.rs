//! A column: one vector for each chunk of a segment, and for many chunks a graph over them.

use std::ops::ControlFlow;
use std::path::Path;

use cento_vector::{self as vector, Neighbor, Scalar, exact, file, hnsw};
use roaring::RoaringBitmap;

use crate::error::{AtPath, Error, Result};
use crate::fs::Fs;
use crate::retrieve::Scan;

/// Files of each column, vectors and graph. The first has the names of a segment with vectors of one kind.
const NAMES: [[&str; 2]; 2] = [["vectors.rows", "hnsw.graph"], ["vectors-late.rows", "hnsw-late.graph"]];

/// Vectors of one kind.
#[derive(Debug)]
pub(crate) struct Column {
    at: usize,
    pub(crate) rows: vector::Rows,
    pub(crate) graph: Option<hnsw::FrozenGraph>,
}

impl Column {
    /// Opens the column's files; reads headers and block tables only.
    pub(super) fn open(folder: &Path, at: usize) -> Result<Self> {
        let [rows, graph] = NAMES[at].map(|name| folder.join(name));
        Ok(Self {
            at,
            rows: vector::Rows::open(file::Mapped::open_any(rows, &Scalar::KINDS)?)?,
            graph: match graph.exists() {
                true => Some(hnsw::FrozenGraph::open(file::Mapped::open(&graph, hnsw::KIND)?)?),
                false => None,
            },
        })
    }

    /// The `depth` nearest allowed rows, nearest first.
    pub(crate) fn nearest(
        &self,
        query: &[f32],
        depth: usize,
        scan: Scan,
        allowed: Option<&RoaringBitmap>,
    ) -> Result<Vec<Neighbor>> {
        Ok(match (&self.graph, scan) {
            (Some(graph), Scan::Auto) => hnsw::search(graph, &self.rows, query, depth, depth, allowed)?,
            _ => exact::search(&self.rows, query, depth, allowed)?,
        })
    }

    /// Its files with each one checked.
    pub(super) fn verify(&self) -> [(&'static str, Result<()>); 2] {
        let [rows, graph] = NAMES[self.at];
        let of_graph = self.graph.as_ref().map_or(Ok(()), |graph| graph.verify().map_err(Error::from));
        [(rows, self.rows.verify().map_err(Error::from)), (graph, of_graph)]
    }
}

/// A column in the making.
#[derive(Debug)]
pub(super) struct NewColumn {
    at: usize,
    dimensions: usize,
    /// N rows one after another.
    values: Vec<f32>,
}

impl NewColumn {
    pub(super) fn new(at: usize, dimensions: usize) -> Self {
        Self { at, dimensions, values: Vec::new() }
    }

    pub(super) fn resize(&mut self, n_rows: usize) {
        self.values.resize(n_rows * self.dimensions, 0.0);
    }

    pub(super) fn set(&mut self, row: u32, vector: &[f32]) {
        assert_eq!(vector.len(), self.dimensions, "an encoder gives vectors of one length");
        let at = row as usize * self.dimensions;
        self.values[at..at + self.dimensions].copy_from_slice(vector);
    }

    /// Writes and syncs the files; from `graph_rows_min` rows on there is a graph.
    pub(super) fn write(
        self,
        fs: &dyn Fs,
        folder: &Path,
        scalar: Scalar,
        graph_rows_min: usize,
        graph_rows_done: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let [path, graph_path] = NAMES[self.at].map(|name| folder.join(name));
        let rows = self.values.chunks_exact(self.dimensions);
        let n_rows = rows.len();
        let out = fs.create(&path).at(&path)?;
        vector::write_rows(out, self.dimensions, scalar, rows).map_err(at_path(&path))?.sync().at(&path)?;
        drop(self.values);
        if n_rows >= graph_rows_min {
            let rows = vector::Rows::open(file::Mapped::open_any(&path, &Scalar::KINDS)?)?;
            let graph = hnsw::build(&rows, &hnsw::HnswConfig::default(), &mut |n_done| {
                graph_rows_done(n_done);
                ControlFlow::Continue(())
            })?;
            let out = fs.create(&graph_path).at(&graph_path)?;
            graph.write(out).map_err(at_path(&graph_path))?.sync().at(&graph_path)?;
        }
        Ok(())
    }
}

/// The vector crate writes to whatever it is given; only here is the file's name known.
fn at_path(path: &Path) -> impl Fn(vector::Error) -> Error + '_ {
    move |error| match error {
        vector::Error::Write(source) => Error::Io { path: path.to_owned(), source },
        other => other.into(),
    }
}
