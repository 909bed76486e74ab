//! Kernels for the CPU: safe Rust that the compiler vectorises, compiled once per instruction set and chosen at run time.
//!
//! **Same bits everywhere.** Every output element is one fixed chain of IEEE operations (fused multiply-adds in index order,
//! sums over [`LANES`] fixed partial sums). Neither the number of rows beside it, nor the thread, nor the instruction set
//! changes a bit of it; the instruction sets differ only in how many such chains run side by side.
//!
//! Letters: T rows (tokens), K inputs, N outputs of a product; S tokens of one text; H hidden, D = H / heads; F inner.

pub(crate) mod simd;
pub(crate) mod dense;
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
#[cfg(target_arch = "x86_64")]
mod dot;
#[cfg(target_arch = "x86_64")]
mod amx;
mod transpose;
mod aligned;

pub(crate) use simd::Simd;

/// Partial sums of a reduction: a multiple of every vector length in use, so that all of them add in the same order.
const LANES: usize = 64;
/// The longest vector in use.
const VECTOR: usize = 16;

/// Calls `add` with the place and the partial sum of every element: element `i` belongs to partial sum `i % LANES`.
#[inline(always)]
fn each_lane(n: usize, lanes: &mut [f32; LANES], mut add: impl FnMut(usize, &mut f32)) {
    let whole = n / LANES * LANES;
    for first in (0..whole).step_by(LANES) {
        for (i, lane) in lanes.iter_mut().enumerate() {
            add(first + i, lane);
        }
    }
    let vectors = n / VECTOR * VECTOR;
    for (first, lanes) in (whole..vectors).step_by(VECTOR).zip(lanes.as_chunks_mut::<VECTOR>().0) {
        for (i, lane) in lanes.iter_mut().enumerate() {
            add(first + i, lane);
        }
    }
    for (i, lane) in (vectors..n).zip(&mut lanes[vectors - whole..]) {
        add(i, lane);
    }
}

/// The partial sums, added as a binary tree.
#[inline(always)]
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Sum of `term` over `values`.
#[inline(always)]
fn lane_sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    each_lane(values.len(), &mut lanes, |i, lane| *lane += term(values[i]));
    total(lanes)
}

/// Replaces every value by `map` of its place and itself; the sum of the new ones.
#[inline(always)]
fn lane_sum_of(values: &mut [f32], map: impl Fn(usize, f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    each_lane(values.len(), &mut lanes, |i, lane| {
        values[i] = map(i, values[i]);
        *lane += values[i];
    });
    total(lanes)
}

/// The largest `term` of `values`; a NaN among them is passed over.
#[inline(always)]
fn lane_max(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    each_lane(values.len(), &mut lanes, |i, lane| *lane = larger(*lane, term(values[i])));
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = larger(lanes[i], lanes[i + width]);
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
