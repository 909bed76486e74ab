//! `exp`, the GELUs, SiLU and tanh without branches or tables, so that the compiler can run them side by side.
//!
//! Source: 2^f on [-1/2, 1/2] and log2 Φ(-a) on [0, 6] as polynomials, fitted for the least largest error (Lawson's
//! reweighted least squares); Φ is the normal distribution function, and `gelu(x) = x Φ(x) = max(x, 0) - |x| Φ(-|x|)`.
//! Differs: no division in the exact GELU, where erf as a rational function needs one. A NaN stays a NaN through every
//! comparison, so that a broken weight is reported and never smoothed over.
//! Error: measured against double precision in the tests beside this file.

use std::f32::consts::LOG2_E;

/// Below it `exp` is 0: e^-87 is the last that leaves the power of two a normal number.
const EXP_MIN: f32 = -87.0;
/// Adding it leaves the nearest integer in the low bits of the sum (for magnitudes below 2^22).
const ROUND: f32 = 12_582_912.0;
/// The rest of log2 e beyond `LOG2_E`.
const LOG2_E_REST: f32 = 1.925_963e-8;
/// From here on Φ(-a) a is below 1e-8.
const TAIL: f32 = 6.0;

/// The function of an output after its sum is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// `x Φ(x)`, with the exact error function.
    Gelu,
    /// `x / (1 + e^(-2u))` with `u = √(2/π) (x + 0.044715 x³)`: the GELU by way of tanh.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
    /// `x / (1 + e^-x)`.
    Silu,
    /// The hyperbolic tangent.
    Tanh,
}

/// A function of one number. A trait and no closures: only `#[inline(always)]` code is compiled for the instruction set
/// in use.
pub(super) trait Function: Copy {
    fn of(self, x: f32) -> f32;
}

macro_rules! functions {
    ($($name:ident = $function:expr),*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $name;

        impl Function for $name {
            #[inline(always)]
            fn of(self, x: f32) -> f32 {
                $function(x)
            }
        }
    )*};
}
functions!(Identity = std::convert::identity, Gelu = gelu, GeluTanh = gelu_tanh, Relu = relu, Silu = silu, Tanh = tanh);

/// The expression, with the name bound to the [`Function`] of the activation: a loop for each of them, chosen outside
/// of it.
macro_rules! with_function {
    ($activation:expr, $function:ident => $body:expr) => {{
        use $crate::kernels::cpu::elementary as e;
        match $activation {
            e::Activation::None => {
                let $function = e::Identity;
                $body
            }
            e::Activation::Gelu => {
                let $function = e::Gelu;
                $body
            }
            e::Activation::GeluTanh => {
                let $function = e::GeluTanh;
                $body
            }
            e::Activation::Relu => {
                let $function = e::Relu;
                $body
            }
            e::Activation::Silu => {
                let $function = e::Silu;
                $body
            }
            e::Activation::Tanh => {
                let $function = e::Tanh;
                $body
            }
        }
    }};
}
pub(super) use with_function;

impl Activation {
    /// Applies it to every value.
    #[inline(always)]
    pub(super) fn apply(self, values: &mut [f32]) {
        with_function!(self, function => {
            for value in values {
                *value = function.of(*value);
            }
        });
    }
}

/// `2^(n + f)` where n stands in the low bits of `rounded` and `|f| <= 1/2`; relative error 9e-8, normal results only.
#[inline(always)]
#[expect(clippy::approx_constant, reason = "a coefficient of the fit, not ln 2")]
fn power_of_two(rounded: f32, f: f32) -> f32 {
    let mut p = 1.326_472_7e-3;
    for coefficient in [9.671_513e-3, 5.550_733_6e-2, 2.402_224_2e-1, 6.931_47e-1, 1.0] {
        p = f.mul_add(p, coefficient);
    }
    p * f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()))
}

/// `e^x` for `x <= 0`, relative error below 2e-7; 0 below [`EXP_MIN`].
#[inline(always)]
pub(super) fn exp_of_negative(x: f32) -> f32 {
    let rounded = x.mul_add(LOG2_E, ROUND);
    let n = rounded - ROUND;
    let f = x.mul_add(LOG2_E_REST, x.mul_add(LOG2_E, -n));
    let power = power_of_two(rounded, f);
    if x < EXP_MIN { 0.0 } else { power }
}

/// `x Φ(x)`, the exact GELU, absolute error below 3e-7 for every finite `x`, relative below 1e-6 for small and for
/// large ones.
#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    let a = if x.abs() > TAIL { TAIL } else { x.abs() };
    let mut p = 2.892_189_5e-5;
    for coefficient in [-7.310_799e-4, 7.948_806e-3, -5.319_526_4e-2, -4.589_448_6e-1, -1.151_14, -1.0] {
        p = a.mul_add(p, coefficient);
    }
    let rounded = p + ROUND;
    let tail = power_of_two(rounded, p - (rounded - ROUND));
    a.mul_add(-tail, relu(x))
}

/// Absolute error below 5e-7 times the larger of 1 and `|x|`.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const TWICE_SQRT_2_BY_PI: f32 = 1.595_769_2;
    let cubed = (x * x * 0.044_715).mul_add(x, x);
    x * sigmoid(cubed * TWICE_SQRT_2_BY_PI)
}

#[inline(always)]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// Absolute error below 5e-7 times the larger of 1 and `|x|`.
#[inline(always)]
fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let e = exp_of_negative(-x.abs());
    let numerator = if x < 0.0 { e } else { 1.0 };
    numerator / (1.0 + e)
}

/// Absolute error below 3e-7.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let e = exp_of_negative(-2.0 * x.abs());
    let magnitude = (1.0 - e) / (1.0 + e);
    if x < 0.0 { -magnitude } else { magnitude }
}
