//! The rows with the largest products, kept for each query while blocks of rows pass by.

use candle_core::{DType, Device, Result, Tensor};

use super::launch::{Address, Grid, launch};

const THREADS: usize = 512;
/// `LargestState` in largest.cu: a histogram, a key and three counts.
const SHARED_BYTES: usize = 256 * 4 + 8 + 3 * 4 + 4;

/// As `LargestArguments` in largest.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    keys: Address,
    counts: Address,
    floors: Address,
    products: Address,
    allowed: Address,
    first_row: u32,
    n_rows: u32,
    capacity: u32,
    limit: u32,
}

/// For each query its list of rows.
#[derive(Debug)]
pub(crate) struct Largest {
    /// \[Q, capacity\].
    keys: Tensor,
    counts: Tensor,
    floors: Tensor,
    limit: usize,
}

impl Largest {
    /// Empty lists that keep `limit` rows while blocks of at most `block_rows` pass by.
    pub(crate) fn new(n_queries: usize, limit: usize, block_rows: usize, device: &Device) -> Result<Self> {
        Ok(Self {
            keys: Tensor::zeros((n_queries, limit + block_rows), DType::I64, device)?,
            counts: Tensor::zeros(n_queries, DType::U32, device)?,
            floors: Tensor::zeros(n_queries, DType::I64, device)?,
            limit,
        })
    }

    /// Takes in the products f32 \[Q, R\] of all queries with a block of rows, the first of which is number
    /// `first_row`. `allowed` are bits, 32 to a number: rows whose bit is not set do not count.
    pub(crate) fn push(&mut self, products: &Tensor, first_row: u32, allowed: Option<&Tensor>) -> Result<()> {
        let (n_queries, n_rows) = products.dims2()?;
        let capacity = self.keys.dim(1)?;
        assert!(self.limit + n_rows <= capacity, "a block of {n_rows} rows, {} were announced", capacity - self.limit);
        let arguments = Arguments {
            keys: Address::of(&self.keys)?,
            counts: Address::of(&self.counts)?,
            floors: Address::of(&self.floors)?,
            products: Address::of(products)?,
            allowed: Address::of_option(allowed)?,
            first_row,
            n_rows: n_rows as u32,
            capacity: capacity as u32,
            limit: self.limit as u32,
        };
        let grid = Grid { blocks: [n_queries, 1, 1], threads: THREADS, shared_bytes: SHARED_BYTES };
        launch("keep_largest", DType::F32, grid, arguments, products.device())
    }

    /// For each query the rows kept and their products, in no order.
    pub(crate) fn finish(self) -> Result<Vec<Vec<(u32, f32)>>> {
        let keys = self.keys.narrow(1, 0, self.limit)?.contiguous()?.to_vec2::<i64>()?;
        let counts = self.counts.to_vec1::<u32>()?;
        let of_query = |(keys, count): (Vec<i64>, u32)| {
            keys[..count as usize].iter().map(|&key| entry(key.cast_unsigned())).collect()
        };
        Ok(keys.into_iter().zip(counts).map(of_query).collect())
    }
}

/// The row and product of a key.
fn entry(key: u64) -> (u32, f32) {
    let word = (key >> 32) as u32;
    let bits = if word >> 31 == 1 { word & 0x7fff_ffff } else { !word };
    (!(key as u32), f32::from_bits(bits))
}
