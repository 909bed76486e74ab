//! One row for each span of rows, in one launch: the vectors of texts, or of chunks within them, before they are
//! scaled.

use candle_core::{DType, Result, Tensor};

use super::launch::{Address, Grid, launch, unfilled};
use super::{PACK, WARP};

/// The way rows become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Pool {
    Mean,
    /// The sum over the square root of the number of rows.
    MeanSqrtLength,
    /// The mean, weighted by the place in the text counted from 1.
    WeightedMean,
    /// The largest value of each column; a NaN is larger than all.
    Max,
    First,
    Last,
}

/// Numbers that describe a span.
pub(crate) const SPAN_WORDS: usize = 3;
const WARPS: usize = 8;

/// As `PoolArguments` in pool.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    out: Address,
    rows: Address,
    spans: Address,
    width: u32,
    mode: u32,
}

/// Rows \[T, H\] → f32 \[S, H\]. A span is its first row, one past its last, and the place of its first row in its
/// text; none is empty.
pub(crate) fn pool(rows: &Tensor, spans: &Tensor, mode: Pool) -> Result<Tensor> {
    let (width, n_spans) = (rows.dim(1)?, spans.elem_count() / SPAN_WORDS);
    let out = unfilled((n_spans, width), DType::F32, rows.device())?;
    let arguments = Arguments {
        out: Address::of(&out)?,
        rows: Address::of(rows)?,
        spans: Address::of(spans)?,
        width: width as u32,
        mode: mode as u32,
    };
    let columns_a_block = WARP * PACK;
    let grid = Grid {
        blocks: [n_spans, width.div_ceil(columns_a_block), 1],
        threads: WARPS * WARP,
        shared_bytes: WARPS * columns_a_block * size_of::<f32>(),
    };
    launch("pool", rows.dtype(), grid, arguments, rows.device())?;
    Ok(out)
}
