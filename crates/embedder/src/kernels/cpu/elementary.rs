//! `exp` and the exact (erf) GELU without branches or tables, so that the compiler can run them side by side.
//!
//! Source: exp by Cody-Waite reduction and a Taylor polynomial; erf as the rational approximation of Eigen and XLA
//! (`x P(x²) / Q(x²)`), and ±1 where f32 cannot tell it from that.
//! Differs: a NaN stays a NaN through every comparison, so that a broken weight is reported and never smoothed over.
//! Error: measured against double precision in the tests beside this file.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// Where `exp` underflows; anything below gives the same tiny number.
const EXP_MIN: f32 = -87.0;
/// Adding it leaves the nearest integer in the low bits of the sum (for magnitudes below 2^22).
const ROUND: f32 = 12_582_912.0;
/// From here on the error function is 1 within 4e-8.
const ERF_ONE: f32 = 3.9;
/// ln 2 in two parts: the first has few enough bits for its multiples to be exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `e^x` for `x <= 0`, relative error below 2e-7; below [`EXP_MIN`] it stays at `e^EXP_MIN` (1.6e-38).
#[inline(always)]
pub(super) fn exp_of_negative(x: f32) -> f32 {
    let x = if x < EXP_MIN { EXP_MIN } else { x };
    let rounded = x.mul_add(LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let mut p = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = r.mul_add(p, coefficient);
    }
    // 2^n: n stands in the low bits of `rounded`, and moves into the exponent.
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    p * power
}

/// The error function, absolute error below 2e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    const NUMERATOR: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const DENOMINATOR: [f32; 5] = [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2];
    let square = x * x;
    let mut p = NUMERATOR[0];
    for coefficient in &NUMERATOR[1..] {
        p = square.mul_add(p, *coefficient);
    }
    let mut q = DENOMINATOR[0];
    for coefficient in &DENOMINATOR[1..] {
        q = square.mul_add(q, *coefficient);
    }
    let value = x * p / q;
    let value = if x > ERF_ONE { 1.0 } else { value };
    if x < -ERF_ONE { -1.0 } else { value }
}

/// `x Φ(x)`, the exact GELU, absolute error below 1e-6 for every finite `x`.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let half = 0.5 * x;
    half.mul_add(erf(x * FRAC_1_SQRT_2), half)
}
