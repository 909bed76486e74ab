//! A finished graph in memory, and how it is written.
//!
//! The payload, in words of 32 bits; each part starts on a 64-byte boundary:
//!
//! | part | words |
//! |---|---|
//! | parameters | m, ef_construction, entry, number of upper layers, and for each of them and the twins: rows, edges |
//! | layer 0 | where each row's list ends, with a 0 before: N + 1 |
//! | | the lists, nearest first |
//! | each upper layer | its rows, ascending; where their lists end, with a 0 before; the lists |
//! | twins | as an upper layer: the rows that have twins, and lists of these |
//!
//! Equal rows stand in the graph once, by the first of them; the others are its twins and have no lists of their own.
//!
//! Counts of the header: rows, edges of layer 0.

use std::collections::VecDeque;
use std::io::{self, Seek, Write};

use super::config::HnswConfig;
use super::frozen::{ALIGNMENT_WORDS, KIND};
use crate::Result;
use crate::file::Writer;

/// A graph over N rows: as it was built and repaired, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    pub(crate) config: HnswConfig,
    /// Where every search starts; 0 in a graph of no rows.
    pub(crate) entry: u32,
    /// The neighbours of each row in layer 0.
    pub(crate) base: Vec<Vec<u32>>,
    /// Layers 1 and up.
    pub(crate) upper: Vec<Layer>,
    /// The rows equal to each row that stands for several.
    pub(crate) twins: Layer,
    pub(crate) repairs: Repairs,
}

/// What the repair had to add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Rows that could not be reached.
    pub n_unreachable: usize,
    /// Edges added so that every row can be reached and is named by a few lists.
    pub n_edges: usize,
}

/// Some rows, ascending, and a list for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layer {
    rows: Vec<u32>,
    lists: Vec<Vec<u32>>,
}

impl Layer {
    pub(crate) fn new(mut lists: Vec<(u32, Vec<u32>)>) -> Self {
        lists.sort_unstable_by_key(|(row, _)| *row);
        let (rows, lists) = lists.into_iter().unzip();
        Self { rows, lists }
    }
}

impl Graph {
    pub(crate) fn empty(config: HnswConfig, n_rows: usize) -> Self {
        let base = vec![Vec::new(); n_rows];
        Self { config, entry: 0, base, upper: Vec::new(), twins: Layer::default(), repairs: Repairs::default() }
    }

    /// N.
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// Rows that differ from one another: those that stand in the graph.
    pub fn n_distinct(&self) -> usize {
        self.len() - n_edges(&self.twins.lists) as usize
    }

    /// What had to be repaired.
    pub fn repairs(&self) -> Repairs {
        self.repairs
    }

    /// Writes the graph as a file of its own and gives the writer back.
    ///
    /// # Errors
    /// [`crate::Error::Write`].
    pub fn write<W: Write + Seek>(&self, out: W) -> Result<W> {
        let mut out = Words { out: Writer::new(out, KIND)?, n_words: 0 };
        out.put(&[self.config.m as u32, self.config.ef_construction as u32, self.entry, self.upper.len() as u32])?;
        let layers = || self.upper.iter().chain([&self.twins]);
        for layer in layers() {
            out.put(&[layer.rows.len() as u32, n_edges(&layer.lists) as u32])?;
        }
        out.align()?;
        out.put_lists(&self.base)?;
        for layer in layers() {
            out.put(&layer.rows)?;
            out.align()?;
            out.put_lists(&layer.lists)?;
        }
        Ok(out.out.finish([self.len() as u64, self.n_base_edges()])?)
    }

    pub(crate) fn n_base_edges(&self) -> u64 {
        n_edges(&self.base)
    }

    /// A bug, not bad data, if one of these does not hold.
    pub(crate) fn assert_invariants(&self) {
        let n_rows = self.len();
        assert!((self.entry as usize) < n_rows, "entry {} of {n_rows} rows", self.entry);
        let mut reached = vec![false; n_rows];
        reached[self.entry as usize] = true;
        let mut queue = VecDeque::from([self.entry]);
        let mut n_reached = 0;
        while let Some(row) = queue.pop_front() {
            n_reached += 1;
            for &next in &self.base[row as usize] {
                assert!((next as usize) < n_rows && next != row, "row {row} names {next} of {n_rows} rows");
                if !std::mem::replace(&mut reached[next as usize], true) {
                    queue.push_back(next);
                }
            }
        }
        assert_eq!(n_reached, self.n_distinct(), "rows reached from the entry, of all that differ");
        for layer in &self.upper {
            assert!(layer.rows.is_sorted_by(|a, b| a < b), "rows of an upper layer ascend");
            for &next in layer.lists.iter().flatten() {
                assert!(layer.rows.binary_search(&next).is_ok(), "{next} is named in a layer that it is not in");
            }
        }
    }
}

fn n_edges(lists: &[Vec<u32>]) -> u64 {
    lists.iter().map(|list| list.len() as u64).sum()
}

/// Words on their way into a file.
struct Words<W: Write + Seek> {
    out: Writer<W>,
    n_words: usize,
}

impl<W: Write + Seek> Words<W> {
    fn put(&mut self, words: &[u32]) -> io::Result<()> {
        self.n_words += words.len();
        self.out.write_all(bytemuck::cast_slice(words))
    }

    /// Zeros up to the next part.
    fn align(&mut self) -> io::Result<()> {
        const ZEROS: [u32; ALIGNMENT_WORDS] = [0; ALIGNMENT_WORDS];
        self.put(&ZEROS[..self.n_words.next_multiple_of(ALIGNMENT_WORDS) - self.n_words])
    }

    /// Where the lists end, then the lists, each on a boundary. The ends fit 32 bits: `freeze` has checked.
    fn put_lists(&mut self, lists: &[Vec<u32>]) -> io::Result<()> {
        let mut end = 0_u32;
        self.put(&[end])?;
        for list in lists {
            end += list.len() as u32;
            self.put(&[end])?;
        }
        self.align()?;
        for list in lists {
            self.put(list)?;
        }
        self.align()
    }
}
