//! Builds a graph: rows go into hnsw_rs one by one, in their order, then the graph is frozen.
//!
//! Of equal rows only the first goes in; the others are remembered as its twins.
//! Points of hnsw_rs hold their row number alone; the distance looks the vectors up, so no vector is copied.
//! Cost: about `ef_construction * m` distances a row; memory about 3 kB a row while building, and the rows as f32.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use hnsw_rs::prelude::{Distance, Hnsw};
use xxhash_rust::xxh3::xxh3_128;

use super::config::HnswConfig;
use super::freeze::freeze;
use super::graph::Graph;
use crate::{Error, Kernel, Result, Rows};

/// The most layers that hnsw_rs has.
const LAYERS_MAX: usize = 16;

/// All rows as padded f32 in memory.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a> {
    values: &'a [f32],
    stride: usize,
    kernel: Kernel,
}

impl<'a> Vectors<'a> {
    pub(crate) fn row(&self, row: u32) -> &'a [f32] {
        let start = row as usize * self.stride;
        &self.values[start..start + self.stride]
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.stride
    }

    /// `1 - dot`, never below 0: hnsw_rs asserts as much.
    pub(crate) fn distance(&self, a: u32, b: u32) -> f32 {
        let [[dot]] = self.kernel.dots([self.row(a)], [self.row(b)]);
        (1.0 - dot).max(0.0)
    }
}

/// The distance between two points of hnsw_rs, each one row number.
struct ById<'a>(Vectors<'a>);

impl Distance<u32> for ById<'_> {
    fn eval(&self, a: &[u32], b: &[u32]) -> f32 {
        self.0.distance(a[0], b[0])
    }
}

/// The rows by what they are equal to.
pub(crate) struct Groups {
    /// The first row of each group, ascending: those that go into the graph.
    pub(crate) distinct: Vec<u32>,
    /// The first rows of groups of more than one, each with the others, ascending.
    pub(crate) twins: Vec<(u32, Vec<u32>)>,
}

impl Groups {
    /// Groups the rows whose bits are equal.
    ///
    /// Thousands of equal rows, such as a licence header gives, would fill the lists and the beam of everything near them.
    fn new(vectors: Vectors<'_>) -> Self {
        let mut distinct = Vec::with_capacity(vectors.len());
        let mut first_by_hash: HashMap<u128, u32> = HashMap::with_capacity(vectors.len());
        let mut twins: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in 0..vectors.len() as u32 {
            let bytes = |row| bytemuck::cast_slice::<f32, u8>(vectors.row(row));
            let first = *first_by_hash.entry(xxh3_128(bytes(row))).or_insert(row);
            // Rows of one hash that differ all the same are not grouped.
            if first == row || bytes(first) != bytes(row) {
                distinct.push(row);
            } else {
                twins.entry(first).or_default().push(row);
            }
        }
        Self { distinct, twins: twins.into_iter().collect() }
    }
}

/// Builds the graph of these rows. `progress` is told the number of rows done, now and then up to N, and may stop the work.
///
/// # Errors
/// [`Error::Setting`] for the configuration, [`Error::Corrupt`] for the rows, which are all verified,
/// [`Error::Cancelled`] where `progress` breaks.
pub fn build(rows: &Rows, config: &HnswConfig, progress: &mut dyn FnMut(usize) -> ControlFlow<()>) -> Result<Graph> {
    config.check()?;
    let values = rows.to_f32()?;
    let vectors = Vectors { values: &values, stride: rows.stride(), kernel: rows.kernel() };
    let groups = Groups::new(vectors);
    let hnsw = Hnsw::new(config.m, rows.len(), LAYERS_MAX, config.ef_construction, ById(vectors));
    for (place, &row) in groups.distinct.iter().enumerate() {
        hnsw.insert((&[row], row as usize));
        // Twins are done with the row before them.
        let n_done = groups.distinct.get(place + 1).map_or(rows.len(), |&next| next as usize);
        if progress(n_done).is_break() {
            return Err(Error::Cancelled);
        }
    }
    freeze(&hnsw, vectors, groups, config)
}
