//! A graph in a mapped file. Nothing is read into memory: lists and codes are slices of the mapping.
//!
//! Opening reads the parameters and places every part within the payload; what lies in the parts is checked as it is
//! read, so that no content of a file, however made, leads out of bounds. The layout is in the file `graph`.

use std::ops::Range;

use super::beam::{Candidate, Desk, END, Pool};
use super::config::HnswConfig;
use super::order::UPPER_LAYERS_MAX;
use crate::codes;
use crate::file::Mapped;
use crate::rows::DIMENSIONS_MAX;
use crate::{Error, Result};

/// The kind of a file that holds a graph.
pub const KIND: [u8; 8] = *b"hnsw\0\0\0\0";

/// Every part of the payload starts on a multiple of so many bytes.
pub(crate) const ALIGNMENT_BYTES: usize = 64;

const WORD_BYTES: usize = 4;

/// Words before the sizes of the upper layers.
const N_PARAMETERS: usize = 5;

/// A graph that is searched where it is mapped. Shared by threads; it keeps the scratch memory of past searches.
#[derive(Debug)]
pub struct FrozenGraph {
    file: Mapped,
    n_rows: usize,
    dimensions: usize,
    config: HnswConfig,
    entry: u32,
    base: Slots,
    upper_rows: Range<usize>,
    upper: Vec<Slots>,
    twins: Twins,
    scales: Range<usize>,
    codes: Range<usize>,
    pub(super) desks: Pool<Desk>,
}

/// Lists of neighbours in slots. All places are of the payload, in bytes.
#[derive(Debug)]
struct Slots {
    n_lists: usize,
    n_slots: usize,
    place: Range<usize>,
}

/// Some rows, ascending, and a list for each.
#[derive(Debug)]
struct Twins {
    rows: Range<usize>,
    ends: Range<usize>,
    lists: Range<usize>,
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
        let misfit = || file.corrupt(0, "the sizes of the graph do not fit its payload");
        let out_of_range = || file.corrupt(0, "the parameters of the graph are out of range");
        let [n_rows, dimensions] = file.counts().map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        if n_rows > Candidate::NODES_MAX || !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(misfit());
        }
        file.expect_random_access();
        let &[m, ef_construction, entry, n_slots, n_upper] = words(&file, 0..N_PARAMETERS * WORD_BYTES)? else {
            return Err(misfit());
        };
        let config = HnswConfig { m: m as usize, ef_construction: ef_construction as usize };
        let has_entry = (entry as usize) < n_rows || n_rows == 0;
        if n_upper as usize > UPPER_LAYERS_MAX || !has_entry || n_slots == 0 || config.check().is_err() {
            return Err(out_of_range());
        }
        let n_sizes = n_upper as usize + 2;
        let sizes = N_PARAMETERS * WORD_BYTES..(N_PARAMETERS + n_sizes) * WORD_BYTES;
        let mut parts = Parts(sizes.end);
        let (sizes, &[n_first, n_twins]) = words(&file, sizes)?.split_last_chunk().ok_or_else(misfit)?;
        // Upper layers are prefixes of one order, each within the one below.
        let is_nested =
            sizes.is_sorted_by(|a, b| a >= b) && sizes.iter().all(|&size| (1..=n_rows).contains(&(size as usize)));
        if !is_nested {
            return Err(out_of_range());
        }
        let n_upper_rows = sizes.first().map_or(0, |&size| size as usize);
        let upper_rows = parts.words(n_upper_rows, 1).ok_or_else(misfit)?;
        let mut upper = Vec::with_capacity(sizes.len());
        for &n_lists in sizes {
            upper.push(parts.slots(n_lists as usize, config.m).ok_or_else(misfit)?);
        }
        let twins = Twins {
            rows: parts.words(n_first as usize, 1).ok_or_else(misfit)?,
            ends: parts.words(n_first as usize + 1, 1).ok_or_else(misfit)?,
            lists: parts.words(n_twins as usize, 1).ok_or_else(misfit)?,
        };
        let scales = parts.words(n_rows, 1).ok_or_else(misfit)?;
        let base = parts.slots(n_rows, n_slots as usize).ok_or_else(misfit)?;
        let codes =
            parts.bytes(n_rows.checked_mul(codes::padded(dimensions)).ok_or_else(misfit)?).ok_or_else(misfit)?;
        if codes.end != file.len() {
            return Err(misfit());
        }
        Ok(Self {
            file,
            n_rows,
            dimensions,
            config,
            entry,
            base,
            upper_rows,
            upper,
            twins,
            scales,
            codes,
            desks: Pool::default(),
        })
    }

    /// N.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// D.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The settings the graph was built with.
    pub fn config(&self) -> HnswConfig {
        self.config
    }

    /// The file.
    pub fn file(&self) -> &Mapped {
        &self.file
    }

    /// Reads everything: block checksums, then that every list and every row that it names is in bounds, and that
    /// scales are those of vectors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first that is not.
    pub fn verify(&self) -> Result<()> {
        self.file.verify()?;
        (0..self.n_rows as u32).try_for_each(|row| self.neighbors(row).map(drop))?;
        let upper_rows = words(&self.file, self.upper_rows.clone())?;
        (0..upper_rows.len() as u32).try_for_each(|node| self.row_of(node).map(drop))?;
        for (layer, slots) in self.upper.iter().enumerate() {
            (0..slots.n_lists as u32).try_for_each(|node| self.upper_neighbors(layer, node).map(drop))?;
        }
        if !words(&self.file, self.twins.rows.clone())?.is_sorted_by(|a, b| a < b) {
            return Err(self.file.corrupt(self.twins.rows.start, "rows that have twins do not ascend"));
        }
        self.all_twins()?;
        let ends = words(&self.file, self.twins.ends.clone())?;
        if ends.first() != Some(&0) || ends.last().map(|&end| end as usize * WORD_BYTES) != Some(self.twins.lists.len())
        {
            return Err(self.file.corrupt(self.twins.ends.start, "the lists of twins do not fill their part"));
        }
        match self.scales()?.iter().position(|scale| !(scale.is_finite() && *scale > 0.0)) {
            Some(row) => {
                Err(self.file.corrupt(self.scales.start + row * WORD_BYTES, "a scale is not that of a vector"))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// Layers above layer 0.
    pub(crate) fn n_upper(&self) -> usize {
        self.upper.len()
    }

    /// The neighbours of a row in layer 0, in bounds.
    pub(crate) fn neighbors(&self, row: u32) -> Result<&[u32]> {
        let slots = self.slots(row)?;
        self.list(slots, self.n_rows, self.base.place.start)
    }

    /// The neighbours of a row in layer 0 and what follows them, unchecked.
    #[inline]
    pub(crate) fn slots(&self, row: u32) -> Result<&[u32]> {
        words(&self.file, self.base.of(row))
    }

    /// Where the neighbours of a row lie; they may be damaged.
    #[inline]
    pub(crate) fn place_of_slots(&self, row: u32) -> &[u8] {
        let place = self.base.of(row);
        self.file.will_need(place.clone());
        self.file.get(place).unwrap_or_default()
    }

    /// The neighbours of a node in an upper layer, layer 1 being 0; in bounds.
    pub(crate) fn upper_neighbors(&self, layer: usize, node: u32) -> Result<&[u32]> {
        let layer = &self.upper[layer];
        self.list(words(&self.file, layer.of(node))?, layer.n_lists, layer.place.start)
    }

    /// The row of a node of an upper layer.
    pub(crate) fn row_of(&self, node: u32) -> Result<u32> {
        let start = self.upper_rows.start + node as usize * WORD_BYTES;
        match words(&self.file, start..start + WORD_BYTES)? {
            &[row] if (row as usize) < self.n_rows => Ok(row),
            _ => Err(self.file.corrupt(start, "an upper layer has a row that does not exist")),
        }
    }

    /// The scale of the codes of each row.
    #[inline]
    pub(crate) fn scales(&self) -> Result<&[f32]> {
        Ok(bytemuck::cast_slice(self.file.bytes(self.scales.clone())?))
    }

    /// The codes of a row.
    #[inline]
    pub(crate) fn codes(&self, row: u32) -> Result<&[u8]> {
        self.file.bytes(self.code_range(row))
    }

    /// Where the codes of a row lie; they may be damaged.
    #[inline]
    pub(crate) fn place_of_codes(&self, row: u32) -> &[u8] {
        let range = self.code_range(row);
        self.file.will_need(range.clone());
        self.file.get(range).unwrap_or_default()
    }

    #[inline]
    fn code_range(&self, row: u32) -> Range<usize> {
        let stride = codes::padded(self.dimensions);
        let start = self.codes.start + row as usize * stride;
        start..start + stride
    }

    /// The rows equal to this one that it stands for, ascending; none for most rows.
    #[inline]
    pub(crate) fn twins(&self, row: u32) -> Result<&[u32]> {
        if self.twins.rows.is_empty() {
            return Ok(&[]);
        }
        match words(&self.file, self.twins.rows.clone())?.binary_search(&row) {
            Ok(place) => self.twin_list(place),
            Err(_) => Ok(&[]),
        }
    }

    /// All rows that others stand for, in the order of these.
    pub(crate) fn all_twins(&self) -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for place in 0..self.twins.rows.len() / WORD_BYTES {
            all.extend_from_slice(self.twin_list(place)?);
        }
        Ok(all)
    }

    fn twin_list(&self, place: usize) -> Result<&[u32]> {
        let at = self.twins.ends.start + place * WORD_BYTES;
        let lists = words(&self.file, self.twins.lists.clone())?;
        let list = match words(&self.file, at..at + 2 * WORD_BYTES)? {
            &[start, end] => lists.get(start as usize..end as usize),
            _ => None,
        };
        let list = list.ok_or_else(|| self.file.corrupt(at, "a list of twins ends outside its part"))?;
        self.list(list, self.n_rows, self.twins.lists.start)
    }

    /// A list up to its end, which names nodes below `n_nodes` only.
    fn list<'a>(&self, slots: &'a [u32], n_nodes: usize, part: usize) -> Result<&'a [u32]> {
        let end = slots.iter().position(|&node| node as usize >= n_nodes).unwrap_or(slots.len());
        match slots.get(end) {
            None | Some(&END) => Ok(&slots[..end]),
            Some(_) => Err(self.file.corrupt(part, "a list names a row that does not exist")),
        }
    }

    /// The error for a list of layer 0 that names a row which does not exist.
    pub(crate) fn no_such_row(&self, named_by: u32) -> Error {
        self.file.corrupt(self.base.of(named_by).start, "a list names a row that does not exist")
    }
}

impl Slots {
    #[inline]
    fn of(&self, node: u32) -> Range<usize> {
        let list_bytes = self.n_slots * WORD_BYTES;
        let start = self.place.start + node as usize * list_bytes;
        start..start + list_bytes
    }
}

/// Words of the payload, verified. The payload and its parts start on 64-byte boundaries, so the cast cannot fail.
#[inline]
fn words(file: &Mapped, range: Range<usize>) -> Result<&[u32]> {
    Ok(bytemuck::cast_slice(file.bytes(range)?))
}

/// Lays parts one after another, each on a boundary; `None` where the places overflow.
struct Parts(usize);

impl Parts {
    fn bytes(&mut self, n_bytes: usize) -> Option<Range<usize>> {
        let start = self.0.checked_next_multiple_of(ALIGNMENT_BYTES)?;
        self.0 = start.checked_add(n_bytes)?;
        Some(start..self.0)
    }

    fn words(&mut self, n: usize, each: usize) -> Option<Range<usize>> {
        self.bytes(n.checked_mul(each)?.checked_mul(WORD_BYTES)?)
    }

    fn slots(&mut self, n_lists: usize, n_slots: usize) -> Option<Slots> {
        Some(Slots { n_lists, n_slots, place: self.words(n_lists, n_slots)? })
    }
}
