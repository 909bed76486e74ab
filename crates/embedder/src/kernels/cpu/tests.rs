//! Every kernel against a plain oracle in double precision, and every instruction set against the portable one, bit for bit.

use candle_core::{Device, Tensor};
use proptest::prelude::*;

use super::attention::{Attention, Scratch};
use super::elementary::{exp_of_negative, gelu};
use super::norm::Norm;
use super::product::{Activation, Panels, Product};
use super::{Simd, noise};

fn grid(from: f32, to: f32, n: usize) -> impl Iterator<Item = f32> {
    (0..=n).map(move |i| from + (to - from) * i as f32 / n as f32)
}

/// The exact GELU in double precision, from the tensor library's erf.
fn gelu_oracle(x: &[f32]) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    Tensor::from_slice(&x, x.len(), &Device::Cpu).unwrap().gelu_erf().unwrap().to_vec1().unwrap()
}

#[test]
fn gelu_is_exact_to_a_millionth() {
    let x: Vec<f32> = grid(-12.0, 12.0, 200_000).chain([0.0, -0.0, 1e-30, 100.0, -100.0, 1e30, -1e4]).collect();
    for (&x, expected) in x.iter().zip(gelu_oracle(&x)) {
        let error = (f64::from(gelu(x)) - expected).abs();
        assert!(error <= 1e-6_f64.max(expected.abs() * 2e-7), "gelu({x}) = {}, not {expected}", gelu(x));
    }
}

#[test]
fn exp_is_exact_to_two_ten_millionths() {
    for x in grid(-87.0, 0.0, 300_000) {
        let expected = f64::from(x).exp();
        assert!(
            (f64::from(exp_of_negative(x)) - expected).abs() <= 2e-7 * expected,
            "exp({x}) = {}",
            exp_of_negative(x)
        );
    }
    assert_eq!(exp_of_negative(0.0), 1.0);
    for x in [-88.0, -1e9, f32::NEG_INFINITY] {
        assert!((0.0..1e-37).contains(&exp_of_negative(x)));
    }
}

#[test]
fn not_a_number_stays_not_a_number() {
    assert!(exp_of_negative(f32::NAN).is_nan() && gelu(f32::NAN).is_nan());
    for simd in Simd::available() {
        let mut qkv = noise(1, 5 * 24);
        qkv[30] = f32::NAN;
        let mut out = vec![0.0; 5 * 8];
        simd.run(Attention { n_heads: 2, hidden: 8, qkv: &qkv, out: &mut out, scratch: &mut Scratch::new(simd) });
        assert!(out.iter().any(|value| value.is_nan()));
    }
}

fn multiply(
    simd: Simd,
    rows: &[f32],
    weight: &[f32],
    bias: &[f32],
    n_inputs: usize,
    activation: Activation,
) -> Vec<f32> {
    let panels = Panels::of_transposed(simd, weight, bias.len(), n_inputs);
    multiply_panels(simd, rows, &panels, bias, activation)
}

fn multiply_panels(simd: Simd, rows: &[f32], weight: &Panels, bias: &[f32], activation: Activation) -> Vec<f32> {
    let (n_inputs, n_outputs) = (weight.n_inputs(), weight.n_outputs());
    let n_rows = rows.len() / n_inputs;
    let mut out = vec![f32::NAN; n_rows * n_outputs];
    simd.run(Product {
        weight,
        bias: Some(bias),
        activation,
        rows,
        row_stride: n_inputs,
        n_rows,
        out: &mut out,
        out_stride: n_outputs,
        scratch: &mut Vec::new(),
    });
    out
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Largest difference from the oracle in double precision.
fn product_error(out: &[f32], rows: &[f32], weight: &[f32], bias: &[f32], n_inputs: usize) -> f64 {
    let expected = rows.chunks_exact(n_inputs).flat_map(|row| {
        weight.chunks_exact(n_inputs).zip(bias).map(move |(weights, &bias)| {
            f64::from(bias) + row.iter().zip(weights).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>()
        })
    });
    out.iter().zip(expected).map(|(&out, expected)| (f64::from(out) - expected).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn product_equals_the_oracle_and_every_set_agrees(n_rows in 1usize..30, n_inputs in 1usize..70, n_outputs in 1usize..70, seed: u64) {
        let (rows, weight) = (noise(seed, n_rows * n_inputs), noise(seed ^ 1, n_outputs * n_inputs));
        let bias = noise(seed ^ 2, n_outputs);
        let sets = Simd::available();
        let plain = multiply(sets[0], &rows, &weight, &bias, n_inputs, Activation::None);
        prop_assert!(product_error(&plain, &rows, &weight, &bias, n_inputs) < 1e-5);
        let active = multiply(sets[0], &rows, &weight, &bias, n_inputs, Activation::Gelu);
        prop_assert_eq!(bits(&active), plain.iter().map(|&x| gelu(x).to_bits()).collect::<Vec<_>>());
        for &simd in &sets[1..] {
            prop_assert_eq!(bits(&plain), bits(&multiply(simd, &rows, &weight, &bias, n_inputs, Activation::None)));
            prop_assert_eq!(bits(&active), bits(&multiply(simd, &rows, &weight, &bias, n_inputs, Activation::Gelu)));
        }
    }

    #[test]
    fn attention_equals_the_oracle_and_every_set_agrees(n_tokens in 1usize..40, n_heads in 1usize..4, dimensions in 1usize..40, seed: u64) {
        let hidden = n_heads * dimensions;
        let qkv = noise(seed, n_tokens * 3 * hidden);
        let run = |simd: Simd| {
            let mut out = vec![f32::NAN; n_tokens * hidden];
            simd.run(Attention { n_heads, hidden, qkv: &qkv, out: &mut out, scratch: &mut Scratch::new(simd) });
            out
        };
        let sets = Simd::available();
        let ours = run(sets[0]);
        for (ours, expected) in ours.iter().zip(attention_oracle(&qkv, n_heads, hidden)) {
            prop_assert!((f64::from(*ours) - expected).abs() < 1e-5);
        }
        for &simd in &sets[1..] {
            prop_assert_eq!(bits(&ours), bits(&run(simd)));
        }
    }

    #[test]
    fn norm_equals_the_oracle_and_every_set_agrees(n_rows in 1usize..6, hidden in 2usize..100, mean in -50f32..50.0, seed: u64) {
        let (scale, shift, residual) = (noise(seed, hidden), noise(seed ^ 1, hidden), noise(seed ^ 2, n_rows * hidden));
        let x: Vec<f32> = noise(seed ^ 3, n_rows * hidden).into_iter().map(|value| value + mean).collect();
        let run = |simd: Simd| {
            let mut rows = x.clone();
            simd.run(Norm { scale: &scale, shift: &shift, epsilon: 1e-5, residual: Some(&residual), rows: &mut rows });
            rows
        };
        let sets = Simd::available();
        let ours = run(sets[0]);
        let sums: Vec<f64> = x.iter().zip(&residual).map(|(&x, &residual)| f64::from(x + residual)).collect();
        for (ours, sums) in ours.chunks_exact(hidden).zip(sums.chunks_exact(hidden)) {
            let mean = sums.iter().sum::<f64>() / hidden as f64;
            let variance = sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / hidden as f64;
            for i in 0..hidden {
                let expected = (sums[i] - mean) / (variance + 1e-5).sqrt() * f64::from(scale[i]) + f64::from(shift[i]);
                prop_assert!((f64::from(ours[i]) - expected).abs() < 1e-4);
            }
        }
        for &simd in &sets[1..] {
            prop_assert_eq!(bits(&ours), bits(&run(simd)));
        }
    }
}

fn attention_oracle(qkv: &[f32], n_heads: usize, hidden: usize) -> Vec<f64> {
    let dimensions = hidden / n_heads;
    let rows: Vec<&[f32]> = qkv.chunks_exact(3 * hidden).collect();
    let mut out = Vec::new();
    for query in &rows {
        for column in 0..hidden {
            let first = column / dimensions * dimensions;
            let dot = |key: &[f32]| -> f64 {
                (first..first + dimensions).map(|i| f64::from(query[i]) * f64::from(key[hidden + i])).sum()
            };
            let weights: Vec<f64> = rows.iter().map(|key| (dot(key) / (dimensions as f64).sqrt()).exp()).collect();
            let sum: f64 =
                rows.iter().zip(&weights).map(|(row, weight)| weight * f64::from(row[2 * hidden + column])).sum();
            out.push(sum / weights.iter().sum::<f64>());
        }
    }
    out
}

/// The tile of the 512-bit sets, on whatever this processor has.
#[test]
fn the_shape_of_the_tile_changes_no_bit() {
    for (n_rows, n_inputs, n_outputs) in [(1, 1, 1), (13, 200, 33), (125, 400, 64), (12, 384, 100)] {
        let (rows, weight) = (noise(1, n_rows * n_inputs), noise(2, n_outputs * n_inputs));
        let bias = noise(3, n_outputs);
        let [narrow, wide] = Panels::of_both_widths().map(|mut panels| {
            panels.fill_transposed(&weight, n_inputs, n_outputs, n_inputs);
            bits(&multiply_panels(Simd::detect(), &rows, &panels, &bias, Activation::Gelu))
        });
        assert_eq!(narrow, wide);
    }
}

/// Beyond one block of rows and one panel depth, where sums are continued from memory.
#[test]
fn rows_do_not_depend_on_their_neighbours() {
    let simd = Simd::detect();
    let (n_inputs, n_outputs, n_rows) = (1000, 50, 256);
    let (rows, weight) = (noise(1, n_rows * n_inputs), noise(2, n_outputs * n_inputs));
    let bias = noise(3, n_outputs);
    let all = multiply(simd, &rows, &weight, &bias, n_inputs, Activation::None);
    assert!(product_error(&all, &rows, &weight, &bias, n_inputs) < 1e-4);
    for n in 1..n_rows {
        for first in [0, n_rows - n] {
            let some =
                multiply(simd, &rows[first * n_inputs..][..n * n_inputs], &weight, &bias, n_inputs, Activation::None);
            assert_eq!(bits(&some), bits(&all[first * n_outputs..][..n * n_outputs]), "{n} rows from {first}");
        }
    }
}
