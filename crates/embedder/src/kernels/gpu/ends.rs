//! The two ends of an encoder: the first rows of a batch, gathered from tables, and the one row that is left of a text.

use bytemuck::cast_slice;

use super::failure::{NO_MEMORY, Result};
use super::launch::{bound, optional, shape};
use super::record::THREADS;
use super::table::Table;
use super::{Gpu, GpuRows, Recorder};
use crate::kernels::cuda::pool::{Pool, SPAN_WORDS};

/// Word vectors \[V, H\] on a GPU, and the table of what is added to them.
#[derive(Debug)]
pub(crate) struct GpuTables {
    words: Table,
    places: Option<Table>,
    width: usize,
}

impl GpuTables {
    /// Nothing where a table is larger than what a kernel reads of one buffer, or than the memory that is left: main
    /// memory gathers then.
    pub(crate) fn new(gpu: &Gpu, words: &[f32], places: Option<&[f32]>, width: usize) -> Result<Option<Self>> {
        if size_of_val(words).max(places.map_or(0, size_of_val)) > gpu.binding_bytes_max() {
            return Ok(None);
        }
        let tables = || -> Result<Self> {
            let places = places.map(|places| Table::new(gpu, places)).transpose()?;
            Ok(Self { words: Table::new(gpu, words)?, places, width })
        };
        match tables() {
            Err(full) if full.to_string().contains(NO_MEMORY) => Ok(None),
            tables => Ok(Some(tables?)),
        }
    }

    /// The first rows of a batch, \[T, H\], of tokens with those ids and those rows of the second table.
    pub(crate) fn gather(&self, ids: &[u32], places: &[u32], recorder: &mut Recorder) -> Result<GpuRows> {
        let rows = recorder.begin(ids.len(), self.width)?;
        let tokens = Table::new(recorder.gpu(), &[ids, places].concat())?;
        let text = [
            shape(&[("H", self.width)]),
            optional(self.places.as_ref().map(|_| ()), 3, "place"),
            include_str!("wgsl/gather.wgsl").to_owned(),
        ];
        let mut buffers = vec![bound(&rows), tokens.bound(), self.words.bound()];
        buffers.extend(self.places.as_ref().map(Table::bound));
        recorder.run_each(&text.concat(), &buffers, ids.len() * self.width)?;
        Ok(rows)
    }
}

/// Rows \[T, H\] → \[S, H\], as [`crate::kernels::cuda::pool::pool`] makes them: a span is its first row, one past its
/// last, and the place of its first row in its text; none is empty.
pub(crate) fn pool(rows: &GpuRows, spans: &[u32], mode: Pool, recorder: &mut Recorder) -> Result<GpuRows> {
    let n_spans = spans.len() / SPAN_WORDS;
    let out = recorder.take(n_spans, rows.width)?;
    let table = Table::new(recorder.gpu(), cast_slice::<u32, u8>(spans))?;
    let text = [shape(&[("H", rows.width), ("MODE", mode as usize)]), include_str!("wgsl/pool.wgsl").to_owned()];
    let groups = [n_spans as u32, rows.width.div_ceil(THREADS) as u32];
    recorder.run(&text.concat(), &[bound(rows), table.bound(), bound(&out)], groups)?;
    Ok(out)
}
