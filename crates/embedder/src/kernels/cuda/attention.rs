//! Self-attention of packed texts in one launch, with scores that never leave the chip.
//!
//! 16-bit rows whose heads are 32, 64 or 128 wide go through the tensor cores; all others through multiply-adds in f32.

use candle_core::{DType, Result, Tensor};

use super::launch::{Address, Grid, launch, unfilled};
use super::{PACK, takes_rows};
use crate::pack::Spans;

/// Queries of one text that a block answers, at most.
const QUERY_TILE: usize = 64;
/// Threads of a block.
const THREADS: usize = 128;
/// The widest heads there is a kernel for.
const HEAD_WIDTH_MAX: usize = 256;
/// Numbers that describe a tile.
pub(crate) const TILE_WORDS: usize = 3;

/// As `AttentionArguments` in attention.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    out: Address,
    qkv: Address,
    tiles: Address,
    bias: Address,
    reach: u32,
    n_heads: u32,
    head_width: u32,
    window: u32,
    scale: f32,
}

/// The bias on the score of a key by its offset from the query: f32 \[heads, 2 * reach + 1\].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bias<'a> {
    pub(crate) values: &'a Tensor,
    pub(crate) reach: usize,
}

/// Attention within each text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention<'a> {
    pub(crate) n_heads: usize,
    pub(crate) scale: f32,
    pub(crate) bias: Option<Bias<'a>>,
    /// A token sees keys at most this far from it.
    pub(crate) window: Option<usize>,
    /// From [`tiles`], \[., 3\].
    pub(crate) tiles: &'a Tensor,
}

/// True if there is a kernel for rows \[T, 3H\] like these.
pub(crate) fn takes(qkv: &Tensor, n_heads: usize) -> bool {
    takes_rows(qkv) && qkv.dims()[1] / 3 / n_heads <= HEAD_WIDTH_MAX
}

/// The tiles of queries of each text: first query, first token of the text, one past its last; longest texts first as
/// they come.
pub(crate) fn tiles(spans: &Spans) -> impl Iterator<Item = u32> {
    spans.iter().flat_map(|span| {
        let tile = move |first: usize| [first as u32, span.start as u32, span.end as u32];
        span.clone().step_by(QUERY_TILE).flat_map(tile)
    })
}

impl Attention<'_> {
    /// \[T, 3H\] (a row is `q | k | v`) → \[T, H\].
    pub(crate) fn run(&self, qkv: &Tensor) -> Result<Tensor> {
        let (n_tokens, stride) = qkv.dims2()?;
        let (hidden, n_tiles) = (stride / 3, self.tiles.elem_count() / TILE_WORDS);
        let head_width = hidden / self.n_heads;
        let out = unfilled((n_tokens, hidden), qkv.dtype(), qkv.device())?;
        let arguments = Arguments {
            out: Address::of(&out)?,
            qkv: Address::of(qkv)?,
            tiles: Address::of(self.tiles)?,
            bias: Address::of_option(self.bias.map(|bias| bias.values))?,
            reach: self.bias.map_or(0, |bias| bias.reach as u32),
            n_heads: self.n_heads as u32,
            head_width: head_width as u32,
            window: self.window.map_or(u32::MAX, |window| window.min(u32::MAX as usize) as u32),
            scale: self.scale,
        };
        let (kernel, grid) = kernel(qkv.dtype(), head_width, n_tiles, self.n_heads);
        launch(kernel, qkv.dtype(), grid, arguments, qkv.device())?;
        Ok(out)
    }
}

/// The kernel for heads of that width, and its grid.
fn kernel(dtype: DType, head_width: usize, n_tiles: usize, n_heads: usize) -> (&'static str, Grid) {
    const KEY_TILE: usize = 64;
    let on_tensor_cores = match head_width {
        32 => Some("attend_tensor_32"),
        64 => Some("attend_tensor_64"),
        128 => Some("attend_tensor_128"),
        _ => None,
    };
    if let (Some(kernel), DType::BF16 | DType::F16) = (on_tensor_cores, dtype) {
        let shared_bytes = 2 * KEY_TILE * (head_width + PACK) * size_of::<u16>(); // keys and values
        return (kernel, Grid { blocks: [n_tiles, n_heads, 1], threads: THREADS, shared_bytes });
    }
    let kernel = match head_width {
        0..=32 => "attend_to_32",
        33..=64 => "attend_to_64",
        _ => "attend_to_256",
    };
    // 32 queries, keys and values; keys are padded; the weights of 8 queries in each of 4 warps
    let shared_bytes = (32 * (3 * head_width + 1) + 4 * 8 * 32) * size_of::<f32>();
    (kernel, Grid { blocks: [n_tiles, n_heads, QUERY_TILE / 32], threads: THREADS, shared_bytes })
}
