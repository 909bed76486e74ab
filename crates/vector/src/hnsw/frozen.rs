//! A graph in a mapped file. Nothing is read into memory: lists of neighbours are slices of the mapping.
//!
//! Opening reads the parameters and places every part within the payload; what lies in the parts is checked as it is read,
//! so that no content of a file, however made, leads out of bounds. The layout is in the file `graph`.

use std::ops::Range;
use std::sync::Mutex;

use super::beam::Scratch;
use super::config::HnswConfig;
use crate::file::Mapped;
use crate::{Error, Result};

/// The kind of a file that holds a graph.
pub const KIND: [u8; 8] = *b"hnsw\0\0\0\0";

/// Every part of the payload starts on a multiple of so many words: 64 bytes.
pub(crate) const ALIGNMENT_WORDS: usize = 16;

const WORD_BYTES: usize = 4;

/// Words before the sizes of the upper layers.
const N_PARAMETERS: usize = 4;

/// More layers than any construction makes.
const UPPER_LAYERS_MAX: usize = 15;

/// A graph that is searched where it is mapped. Shared by threads; it keeps the scratch memory of past searches.
#[derive(Debug)]
pub struct FrozenGraph {
    file: Mapped,
    n_rows: usize,
    config: HnswConfig,
    entry: u32,
    base: Lists,
    upper: Vec<Layer>,
    twins: Layer,
    pool: Mutex<Vec<Scratch>>,
}

/// Lists of neighbours one after another, by their places in the payload, in words.
#[derive(Debug)]
struct Lists {
    ends: Range<usize>,
    neighbors: Range<usize>,
}

/// Some rows, ascending, and a list for each.
#[derive(Debug)]
struct Layer {
    rows: Range<usize>,
    lists: Lists,
}

impl FrozenGraph {
    /// The graph of this file.
    ///
    /// # Errors
    /// [`Error::OtherKind`], [`Error::Corrupt`].
    pub fn open(file: Mapped) -> Result<Self> {
        if file.kind() != KIND {
            let found = String::from_utf8_lossy(&file.kind()).into_owned();
            return Err(Error::OtherKind { path: file.path().to_owned(), expected: "hnsw".to_owned(), found });
        }
        let [n_rows, n_edges] = file.counts();
        let misfit = || file.corrupt(0, "the sizes of the graph do not fit its payload");
        let n_rows = u32::try_from(n_rows).map_err(|_| misfit())? as usize;
        let n_edges = u32::try_from(n_edges).map_err(|_| misfit())? as usize;

        let &[m, ef_construction, entry, n_upper] = words(&file, 0..N_PARAMETERS)? else { return Err(misfit()) };
        if n_upper as usize > UPPER_LAYERS_MAX || (entry as usize >= n_rows && n_rows > 0) {
            return Err(file.corrupt(0, "the parameters of the graph are out of range"));
        }
        let n_sizes = 2 * (n_upper as usize + 1);
        let sizes = words(&file, N_PARAMETERS..N_PARAMETERS + n_sizes)?.to_vec();
        let mut places = Places(N_PARAMETERS + n_sizes);
        let base = places.lists(n_rows, n_edges).ok_or_else(misfit)?;
        let mut upper = Vec::with_capacity(n_upper as usize + 1);
        for &[n_rows, n_edges] in sizes.as_chunks().0 {
            let rows = places.part(n_rows as usize).ok_or_else(misfit)?;
            let lists = places.lists(n_rows as usize, n_edges as usize).ok_or_else(misfit)?;
            upper.push(Layer { rows, lists });
        }
        let twins = upper.pop().ok_or_else(misfit)?;
        let n_words = places.0.checked_next_multiple_of(ALIGNMENT_WORDS).ok_or_else(misfit)?;
        if n_words.checked_mul(WORD_BYTES) != Some(file.len()) {
            return Err(misfit());
        }
        let config = HnswConfig { m: m as usize, ef_construction: ef_construction as usize };
        Ok(Self { file, n_rows, config, entry, base, upper, twins, pool: Mutex::default() })
    }

    /// N.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// How the graph was built.
    pub fn config(&self) -> HnswConfig {
        self.config
    }

    /// The file.
    pub fn file(&self) -> &Mapped {
        &self.file
    }

    /// Reads everything: block checksums, then that every list and every row that it names is in bounds.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first that is not.
    pub fn verify(&self) -> Result<()> {
        self.file.verify()?;
        self.verify_lists(&self.base, self.n_rows)?;
        for layer in self.upper.iter().chain([&self.twins]) {
            let rows = words(&self.file, layer.rows.clone())?;
            if !rows.is_sorted_by(|a, b| a < b) {
                return Err(self.file.corrupt(layer.rows.start * WORD_BYTES, "rows of a layer do not ascend"));
            }
            self.verify_lists(&layer.lists, rows.len())?;
        }
        Ok(())
    }

    /// That the lists follow one another from the first word of their part to the last.
    fn verify_lists(&self, lists: &Lists, n_lists: usize) -> Result<()> {
        let ends = words(&self.file, lists.ends.clone())?;
        if ends.first() != Some(&0) || ends.last().map(|&end| end as usize) != Some(lists.neighbors.len()) {
            return Err(self.file.corrupt(lists.ends.start * WORD_BYTES, "the lists do not fill their part"));
        }
        (0..n_lists).try_for_each(|place| self.list(lists, place).map(drop))
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// Layers above layer 0.
    pub(crate) fn n_upper(&self) -> usize {
        self.upper.len()
    }

    /// The neighbours of a row in layer 0.
    #[inline]
    pub(crate) fn neighbors(&self, row: u32) -> Result<&[u32]> {
        self.list(&self.base, row as usize)
    }

    /// The neighbours of a row in an upper layer, layer 1 being 0; none where the row is not in it.
    pub(crate) fn upper_neighbors(&self, layer: usize, row: u32) -> Result<&[u32]> {
        self.layer_list(&self.upper[layer], row)
    }

    /// The rows equal to this one that it stands for, ascending; none for most rows.
    #[inline]
    pub(crate) fn twins(&self, row: u32) -> Result<&[u32]> {
        if self.twins.rows.is_empty() { Ok(&[]) } else { self.layer_list(&self.twins, row) }
    }

    /// All rows that others stand for, in the order of these.
    pub(crate) fn all_twins(&self) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for place in 0..self.twins.rows.len() {
            all.extend_from_slice(self.list(&self.twins.lists, place)?);
        }
        Ok(all)
    }

    fn layer_list(&self, layer: &Layer, row: u32) -> Result<&[u32]> {
        match words(&self.file, layer.rows.clone())?.binary_search(&row) {
            Ok(place) => self.list(&layer.lists, place),
            Err(_) => Ok(&[]),
        }
    }

    /// Runs with scratch memory of an earlier search, if there is any to spare.
    pub(crate) fn with_scratch<T>(&self, run: impl FnOnce(&mut Scratch) -> T) -> T {
        let pool = || self.pool.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut scratch = pool().pop().unwrap_or_default();
        let result = run(&mut scratch);
        pool().push(scratch);
        result
    }

    /// The list at this place, in bounds and naming rows of the graph only.
    #[inline]
    fn list(&self, lists: &Lists, place: usize) -> Result<&[u32]> {
        let at = lists.ends.start + place;
        let corrupt = |reason| self.file.corrupt(at * WORD_BYTES, reason);
        let (start, end) = match words(&self.file, at..(at + 2).min(lists.ends.end))? {
            &[start, end] => (start as usize, end as usize),
            _ => return Err(corrupt("the graph has no such row")),
        };
        if start > end || end > lists.neighbors.len() {
            return Err(corrupt("a list of neighbours ends outside its part"));
        }
        let list = words(&self.file, lists.neighbors.start + start..lists.neighbors.start + end)?;
        if list.iter().any(|&row| row as usize >= self.n_rows) {
            return Err(corrupt("a list names a row that does not exist"));
        }
        Ok(list)
    }
}

/// Words of the payload, verified. The payload starts on a 64-byte boundary, so the cast cannot fail.
#[inline]
fn words(file: &Mapped, range: Range<usize>) -> Result<&[u32]> {
    Ok(bytemuck::cast_slice(file.bytes(range.start * WORD_BYTES..range.end * WORD_BYTES)?))
}

/// Lays parts one after another, each on a boundary; `None` where the places overflow.
struct Places(usize);

impl Places {
    fn part(&mut self, n_words: usize) -> Option<Range<usize>> {
        let start = self.0.checked_next_multiple_of(ALIGNMENT_WORDS)?;
        self.0 = start.checked_add(n_words)?;
        Some(start..self.0)
    }

    fn lists(&mut self, n_rows: usize, n_edges: usize) -> Option<Lists> {
        Some(Lists { ends: self.part(n_rows.checked_add(1)?)?, neighbors: self.part(n_edges)? })
    }
}
