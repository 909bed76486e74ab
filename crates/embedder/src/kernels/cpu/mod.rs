//! Kernels for the CPU: safe Rust that the compiler vectorises, compiled once per instruction set and chosen at run
//! time.
//!
//! **Same bits everywhere.** Every output element is one fixed chain of IEEE operations (fused multiply-adds in index
//! order, sums over [`LANES`] fixed partial sums). Neither the number of rows beside it, nor the thread, nor the
//! instruction set changes a bit of it; the instruction sets differ only in how many such chains run side by side.
//!
//! Letters: T rows (tokens), K inputs, N outputs of a product; S tokens of one text; H hidden, D = H / heads; F inner.

pub(crate) mod simd;
pub(crate) mod dense;
pub(crate) mod heads;
pub(crate) mod attention;
pub(crate) mod norm;
pub(crate) mod gather;
pub(crate) mod rotary;
pub(crate) mod gate;
pub(crate) mod elementary;
mod product;
mod packed;
mod bf16;
mod int8;
mod transpose;
mod aligned;

pub(crate) use simd::Simd;

/// Partial sums of a reduction: a multiple of every vector length in use, so that all of them add in the same order.
const LANES: usize = 32;

/// Sum of `term` over `values`: element `i` goes into partial sum `i % LANES`, the partial sums are added as a binary
/// tree.
#[inline(always)]
fn lane_sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let (chunks, tail) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for i in 0..LANES {
            lanes[i] += term(chunk[i]);
        }
    }
    let padded = padded(tail, 0.0);
    for i in 0..LANES {
        lanes[i] += if i < tail.len() { term(padded[i]) } else { 0.0 };
    }
    reduced(lanes, |a, b| a + b)
}

/// Fewer than [`LANES`] values, and `rest` where there are none.
#[inline(always)]
fn padded(tail: &[f32], rest: f32) -> [f32; LANES] {
    let mut padded = [rest; LANES];
    padded[..tail.len()].copy_from_slice(tail);
    padded
}

/// One value of all lanes, as a binary tree.
#[inline(always)]
fn reduced(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = join(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// `n` reproducible values in [-1, 1) from a linear congruential generator.
#[cfg(test)]
pub(crate) fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

#[cfg(test)]
mod tests;
