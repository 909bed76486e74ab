//! Every kernel against a plain oracle in double precision, and every instruction set against the portable one, bit for
//! bit.

use proptest::prelude::*;

use super::attention::{Attention, RelativeBias};
use super::dense::{Activation, Dense, Scratch, Weight};
use super::elementary::exp_of_negative;
use super::gate::{Activated, Gate};
use super::gather::Gather;
use super::heads::{Heads, Sight};
use super::norm::{Centre, Norm, NormHeads};
use super::product::{Panels, Product};
use super::rotary::Rotate;
use super::simd::Kernel;
use super::{Simd, noise};
use crate::precision::Precision;

const ACTIVATIONS: [Activation; 6] =
    [Activation::None, Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu, Activation::Tanh];

/// What the CPU computes in.
const PRECISIONS: [Precision; 3] = [Precision::F32, Precision::Bf16, Precision::Int8];

fn grid(from: f32, to: f32, n: usize) -> impl Iterator<Item = f32> {
    (0..=n).map(move |i| from + (to - from) * i as f32 / n as f32)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn activated(activation: Activation, x: f32) -> f32 {
    let mut values = [x];
    activation.apply(&mut values);
    values[0]
}

/// The error function in double precision: its series near 0, the continued fraction of its complement elsewhere.
fn erf(x: f64) -> f64 {
    if x.abs() < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..80 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let fraction = (1..120).rev().fold(0.0, |tail, n| f64::from(n) / 2.0 / (x.abs() + tail));
    let complement = (-x * x).exp() / (x.abs() + fraction) / std::f64::consts::PI.sqrt();
    (1.0 - complement).copysign(x)
}

fn activation_oracle(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
        }
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
    }
}

#[test]
fn activations_are_exact_to_a_millionth() {
    assert!((erf(0.5) - 0.520_499_877_813_046_5).abs() < 1e-15 && (erf(3.0) - 0.999_977_909_503_001_4).abs() < 1e-15);
    for activation in ACTIVATIONS {
        for x in grid(-12.0, 12.0, 200_000).chain([0.0, -0.0, 1e-30, 100.0, -100.0, 1e30, -1e4]) {
            let (ours, expected) = (activated(activation, x), activation_oracle(activation, f64::from(x)));
            let error = (f64::from(ours) - expected).abs();
            let bound = if activation == Activation::Gelu { 3e-7 } else { 5e-7 };
            assert!(error <= bound * expected.abs().max(1.0), "{activation:?}({x}) = {ours}, not {expected}");
        }
        assert!(activated(activation, f32::NAN).is_nan());
    }
    for x in [1e-3f32, 1e-6, -1e-4, -1e-9] {
        assert!((activated(Activation::Gelu, x) / x - 0.5).abs() < 1e-6 + x.abs());
    }
}

#[test]
fn exp_is_exact_to_two_ten_millionths() {
    for x in grid(-87.0, 0.0, 300_000) {
        let expected = f64::from(x).exp();
        let ours = exp_of_negative(x);
        assert!((f64::from(ours) - expected).abs() <= 2e-7 * expected, "exp({x}) = {ours}, not {expected}");
    }
    assert_eq!(exp_of_negative(0.0), 1.0);
    assert!(exp_of_negative(f32::NAN).is_nan());
    for x in [-88.0, -1e9, f32::MIN, f32::NEG_INFINITY] {
        assert_eq!(exp_of_negative(x), 0.0);
    }
}

/// One dense layer with its own scratch.
fn dense(
    simd: Simd,
    precision: Precision,
    rows: &[f32],
    weight: &[f32],
    bias: &[f32],
    activation: Activation,
) -> Vec<f32> {
    let (n_outputs, n_inputs) = (bias.len(), weight.len() / bias.len());
    let weight = Weight::pack(simd, precision, weight, n_outputs, n_inputs);
    assert_eq!((weight.n_inputs(), weight.n_outputs()), (n_inputs, n_outputs));
    let n_rows = rows.len() / n_inputs;
    let mut out = vec![f32::NAN; n_rows * n_outputs];
    let scratch = &mut Scratch::new(simd);
    Dense {
        weight: &weight,
        bias: Some(bias),
        activation,
        rows,
        n_rows,
        outputs: 0..n_outputs,
        out: &mut out,
        scratch,
    }
    .run(simd);
    out
}

/// Largest difference from the oracle in double precision.
fn dense_error(out: &[f32], rows: &[f32], weight: &[f32], bias: &[f32]) -> f64 {
    let n_inputs = weight.len() / bias.len();
    let expected = rows.chunks_exact(n_inputs).flat_map(|row| {
        weight.chunks_exact(n_inputs).zip(bias).map(move |(weights, &bias)| {
            f64::from(bias) + row.iter().zip(weights).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>()
        })
    });
    out.iter().zip(expected).map(|(&out, expected)| (f64::from(out) - expected).abs()).fold(0.0, f64::max)
}

/// `values` with zeros to whole blocks, times the matrix of the rotation, entry by entry.
fn turned(values: &[f32]) -> Vec<f64> {
    const BLOCK: usize = super::int8::rotation::BLOCK;
    let entry = |i: usize, j: usize| if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
    let block = |block: &[f32]| -> Vec<f64> {
        let sum = |i| block.iter().enumerate().map(|(j, &x)| entry(i, j) * f64::from(x)).sum();
        (0..BLOCK).map(sum).collect()
    };
    values.chunks(BLOCK).flat_map(block).collect()
}

/// Of every output the exact value, and how far half a step of both numbers of every product can lead from it.
fn int8_oracle(rows: &[f32], weight: &[f32], bias: &[f32]) -> Vec<[f64; 2]> {
    let n_inputs = weight.len() / bias.len();
    let all = |values: &[f32]| values.chunks_exact(n_inputs).map(turned).collect::<Vec<_>>();
    let (rows, weights) = (all(rows), all(weight));
    let mut out = Vec::new();
    for row in &rows {
        let most = row.iter().copied().fold(f64::MIN, f64::max);
        let half = (most - row.iter().copied().fold(f64::MAX, f64::min)) / 255.0 / 2.0;
        for (weights, &bias) in weights.iter().zip(bias) {
            let half_weight = weights.iter().fold(0.0, |most, w| f64::max(most, w.abs())) / 127.0 / 2.0;
            let products = row.iter().zip(weights);
            let block = super::int8::rotation::BLOCK as f64;
            let exact: f64 = products.clone().map(|(x, w)| x * w).sum();
            let bound: f64 = products.map(|(x, w)| x.abs() * half_weight + (w.abs() + half_weight) * half).sum();
            out.push([f64::from(bias) + exact / block, bound / block]);
        }
    }
    out
}

/// The bf16 nearest to `x`, by way of double precision.
fn rounded(x: f32) -> f32 {
    if x == 0.0 {
        return x; // no power of two is near
    }
    let unit = 2.0f64.powi(f64::from(x.abs()).log2().floor() as i32 - 7);
    ((f64::from(x) / unit).round_ties_even() * unit) as f32
}

/// One call of attention.
#[derive(Clone, Copy)]
struct Case<'a> {
    heads: Heads,
    qkv: &'a [f32],
    bias: Option<&'a RelativeBias>,
    sight: Sight,
    precision: Precision,
}

impl Case<'_> {
    fn scale(self) -> f32 {
        1.0 / (self.heads.width as f32).sqrt()
    }

    fn run(self, simd: Simd, n_queries: usize) -> Vec<f32> {
        let Self { heads, qkv, bias, sight, precision } = self;
        let mut out = vec![f32::NAN; qkv.len() / heads.row() * heads.queries()];
        let (out_of_it, scratch) = (&mut out, &mut Scratch::new(simd));
        Attention { heads, scale: self.scale(), bias, sight, precision, qkv, out: out_of_it, scratch }
            .run_in_blocks(simd, n_queries);
        out
    }

    fn oracle(self) -> Vec<f64> {
        let Self { heads, qkv, bias, sight, .. } = self;
        let dimensions = heads.width;
        let rows: Vec<&[f32]> = qkv.chunks_exact(heads.row()).collect();
        let mut out = Vec::new();
        for (i, query) in rows.iter().enumerate() {
            for column in 0..heads.queries() {
                let head = column / dimensions;
                let first = head * dimensions;
                let keys = heads.queries() + head / (heads.n / heads.n_shared) * dimensions;
                let value = keys + heads.keys() + column % dimensions;
                let weight = |j: usize| -> f64 {
                    let distance = j as i64 - i as i64;
                    if (j > i && j - i > sight.ahead) || (i > j && i - j > sight.back) {
                        return 0.0;
                    }
                    let dot: f64 =
                        (0..dimensions).map(|k| f64::from(query[first + k]) * f64::from(rows[j][keys + k])).sum();
                    let bias = bias.map_or(0.0, |bias| {
                        let place = (bias.reach as i64 + distance) as usize;
                        f64::from(bias.values[head * (2 * bias.reach + 1) + place])
                    });
                    (dot * f64::from(self.scale()) + bias).exp()
                };
                let weights: Vec<f64> = (0..rows.len()).map(weight).collect();
                let sum: f64 = rows.iter().zip(&weights).map(|(row, weight)| weight * f64::from(row[value])).sum();
                out.push(sum / weights.iter().sum::<f64>());
            }
        }
        out
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn dense_equals_the_oracle_and_every_set_agrees(n_rows in 1usize..30, n_inputs in 1usize..70, n_outputs in 1usize..70, seed: u64) {
        let (rows, weight) = (noise(seed, n_rows * n_inputs), noise(seed ^ 1, n_outputs * n_inputs));
        let bias = noise(seed ^ 2, n_outputs);
        let run = |simd, activation| dense(simd, Precision::F32, &rows, &weight, &bias, activation);
        let sets = Simd::available();
        let plain = run(sets[0], Activation::None);
        prop_assert!(dense_error(&plain, &rows, &weight, &bias) < 1e-5);
        for simd in sets {
            for activation in ACTIVATIONS {
                let expected: Vec<u32> = plain.iter().map(|&x| activated(activation, x).to_bits()).collect();
                prop_assert_eq!(bits(&run(simd, activation)), expected);
            }
        }
    }

    #[test]
    fn bf16_is_the_product_of_rounded_numbers(n_rows in 1usize..70, n_inputs in 1usize..150, n_outputs in 1usize..70, seed: u64) {
        let (rows, weight) = (noise(seed, n_rows * n_inputs), noise(seed ^ 1, n_outputs * n_inputs));
        let bias = noise(seed ^ 2, n_outputs);
        let [rounded_rows, rounded_weight] = [&rows, &weight].map(|values| values.iter().map(|&x| rounded(x)).collect::<Vec<_>>());
        let plain = dense(Simd::available()[0], Precision::Bf16, &rows, &weight, &bias, Activation::None);
        for simd in Simd::available() {
            let ours = dense(simd, Precision::Bf16, &rows, &weight, &bias, Activation::None);
            prop_assert!(dense_error(&ours, &rounded_rows, &rounded_weight, &bias) < 2e-5);
            if simd.bf16_dot().is_none() {
                prop_assert_eq!(bits(&plain), bits(&ours));
            }
        }
    }

    #[test]
    fn int8_is_close_and_every_set_agrees(n_rows in 1usize..70, n_inputs in 1usize..150, n_outputs in 1usize..70, seed: u64) {
        let (rows, weight) = (noise(seed, n_rows * n_inputs), noise(seed ^ 1, n_outputs * n_inputs));
        let bias = noise(seed ^ 2, n_outputs);
        let run = |simd| dense(simd, Precision::Int8, &rows, &weight, &bias, Activation::Gelu);
        let plain = dense(Simd::available()[0], Precision::Int8, &rows, &weight, &bias, Activation::None);
        for (i, (&ours, [expected, bound])) in plain.iter().zip(int8_oracle(&rows, &weight, &bias)).enumerate() {
            let error = (f64::from(ours) - expected).abs();
            prop_assert!(error <= bound * 1.001 + 1e-5, "{}: {} is {} from {}, not {}", i, ours, error, expected, bound);
        }
        let active: Vec<u32> = plain.iter().map(|&x| activated(Activation::Gelu, x).to_bits()).collect();
        for simd in Simd::available() {
            prop_assert_eq!(&active, &bits(&run(simd)), "{:?}", simd);
        }
    }

    #[test]
    fn attention_equals_the_oracle_and_every_set_agrees(
        n_tokens in 1usize..150,
        n_shared in 1usize..4,
        n_each in 1usize..4,
        width in 1usize..70,
        window in prop::option::of(0usize..60),
        is_causal: bool,
        has_bias: bool,
        seed: u64,
    ) {
        let n_heads = n_shared * n_each;
        let heads = Heads { n: n_heads, n_shared, width };
        let sight = if is_causal { Sight::behind(window) } else { Sight::around(window) };
        let (qkv, reach) = (noise(seed, n_tokens * heads.row()), n_tokens + 3);
        let bias = RelativeBias { n_heads, reach, values: noise(seed ^ 1, n_heads * (2 * reach + 1)) };
        let case = Case { heads, qkv: &qkv, bias: has_bias.then_some(&bias), sight, precision: Precision::F32 };
        let sets = Simd::available();
        let ours = case.run(sets[0], usize::MAX);
        for (ours, expected) in ours.iter().zip(case.oracle()) {
            prop_assert!((f64::from(*ours) - expected).abs() < 1e-5);
        }
        // In bf16 there are two sources of error, the scores and the weights; neither is larger than a few units of
        // 2^-9.
        let rounded = Case { precision: Precision::Bf16, ..case };
        for (ours, expected) in rounded.run(Simd::detect(), usize::MAX).iter().zip(case.oracle()) {
            prop_assert!((f64::from(*ours) - expected).abs() < 0.02, "{} {}", ours, expected);
        }
        for simd in sets {
            for n_queries in [1, 12, 31, usize::MAX] {
                prop_assert_eq!(bits(&ours), bits(&case.run(simd, n_queries)), "{} at once on {:?}", n_queries, simd);
            }
        }
    }

    #[test]
    fn norm_equals_the_oracle_and_every_set_agrees(
        n_rows in 1usize..6,
        hidden in 2usize..200,
        mean in -50f32..50.0,
        has_shift: bool,
        has_residual: bool,
        around_zero: bool,
        seed: u64,
    ) {
        let (scale, mut shift, mut residual) =
            (noise(seed, hidden), noise(seed ^ 1, hidden), noise(seed ^ 2, n_rows * hidden));
        let x: Vec<f32> = noise(seed ^ 3, n_rows * hidden).into_iter().map(|value| value + mean).collect();
        let centre = if around_zero { Centre::Zero } else { Centre::Mean };
        let run = |simd: Simd, shift: Option<&[f32]>, residual: Option<&[f32]>| {
            let mut rows = x.clone();
            Norm { scale: &scale, shift, epsilon: 1e-5, centre, residual, rows: &mut rows }.run(simd);
            rows
        };
        let on = |simd| run(simd, has_shift.then_some(&shift), has_residual.then_some(&residual));
        let sets = Simd::available();
        let ours = on(sets[0]);
        for &simd in &sets[1..] {
            prop_assert_eq!(bits(&ours), bits(&on(simd)));
        }
        if !has_shift {
            shift.fill(0.0);
        }
        if !has_residual {
            residual.fill(0.0);
        }
        let sums: Vec<f64> = x.iter().zip(&residual).map(|(&x, &residual)| f64::from(x + residual)).collect();
        for (ours, sums) in ours.chunks_exact(hidden).zip(sums.chunks_exact(hidden)) {
            let mean = if around_zero { 0.0 } else { sums.iter().sum::<f64>() / hidden as f64 };
            let variance = sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / hidden as f64;
            for i in 0..hidden {
                let expected = (sums[i] - mean) / (variance + 1e-5).sqrt() * f64::from(scale[i]) + f64::from(shift[i]);
                prop_assert!((f64::from(ours[i]) - expected).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn norms_of_heads_equal_those_of_rows(n_tokens in 1usize..4, n_shared in 1usize..4, n_each in 1usize..4, width in 1usize..70, seed: u64) {
        let heads = Heads { n: n_shared * n_each, n_shared, width };
        let (qkv, scales) = (noise(seed, n_tokens * heads.row()), [noise(seed ^ 1, width), noise(seed ^ 2, width)]);
        for simd in Simd::available() {
            let mut ours = qkv.clone();
            let (scales_of, centre) = ([scales[0].as_slice(), scales[1].as_slice()], Centre::Zero);
            NormHeads { scales: scales_of, epsilon: 1e-5, centre, heads, qkv: &mut ours }.run(simd);
            for (row, before) in ours.chunks_exact(heads.row()).zip(qkv.chunks_exact(heads.row())) {
                for (number, (head, before)) in row.chunks_exact(width).zip(before.chunks_exact(width)).enumerate() {
                    let mut expected = before.to_vec();
                    if number < heads.n + n_shared {
                        let scale = &scales[usize::from(number >= heads.n)];
                        let (shift, residual, rows) = (None, None, &mut expected);
                        Norm { scale, shift, epsilon: 1e-5, centre, residual, rows }.run(Simd::available()[0]);
                    }
                    prop_assert_eq!(bits(head), bits(&expected));
                }
            }
        }
    }

    #[test]
    fn rotation_equals_the_oracle_and_leaves_the_rest(n_tokens in 1usize..5, n_shared in 1usize..4, n_each in 1usize..3, half in 1usize..20, more in 0usize..5, seed: u64) {
        let heads = Heads { n: n_shared * n_each, n_shared, width: 2 * half + more };
        let (qkv, n_positions, row) = (noise(seed, n_tokens * heads.row()), 9, heads.row());
        let angles = noise(seed ^ 1, n_positions * half);
        let [cos, sin] = [f32::cos, f32::sin].map(|f| angles.iter().map(|&angle| f(angle)).collect::<Vec<f32>>());
        let positions: Vec<u32> = (0..n_tokens as u32).map(|t| (t * 5 + 2) % 9).collect();
        let run = |simd| {
            let mut qkv = qkv.clone();
            Rotate { heads, cos: &cos, sin: &sin, half, positions: &positions, qkv: &mut qkv }.run(simd);
            qkv
        };
        let sets = Simd::available();
        let ours = run(sets[0]);
        for &simd in &sets[1..] {
            prop_assert_eq!(bits(&ours), bits(&run(simd)));
        }
        for (place, &ours) in ours.iter().enumerate() {
            let (t, column) = (place / row, place % row);
            let i = column % (2 * half + more);
            let expected = if column >= heads.queries() + heads.keys() || i >= 2 * half {
                f64::from(qkv[place])
            } else {
                let (other, sign) = if i < half { (place + half, -1.0) } else { (place - half, 1.0) };
                let angle = positions[t] as usize * half + i % half;
                f64::from(qkv[place]) * f64::from(cos[angle]) + sign * f64::from(qkv[other]) * f64::from(sin[angle])
            };
            prop_assert!((f64::from(ours) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn gate_is_one_half_activated_times_the_other(n_rows in 1usize..5, width in 1usize..70, seed: u64) {
        let rows = noise(seed, n_rows * 2 * width);
        for simd in Simd::available() {
            for (activated_half, first) in [(Activated::First, 0), (Activated::Second, width)] {
                let mut out = vec![f32::NAN; n_rows * width];
                Gate { activation: Activation::Silu, activated: activated_half, width, rows: &rows, out: &mut out }.run(simd);
                for (i, &out) in out.iter().enumerate() {
                    let row = &rows[i / width * 2 * width..][..2 * width];
                    let (x, other) = (row[first + i % width], row[width - first + i % width]);
                    prop_assert_eq!(out.to_bits(), (activated(Activation::Silu, x) * other).to_bits());
                }
            }
        }
    }
}

#[test]
fn gather_adds_what_there_is() {
    let (hidden, ids, places) = (19, [3, 0, 3, 1], [0, 1, 2, 1]);
    let (words, positions, constant) = (noise(1, 4 * hidden), noise(2, 3 * hidden), noise(3, hidden));
    for simd in Simd::available() {
        for (has_positions, has_constant) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut out = vec![f32::NAN; ids.len() * hidden];
            let (positions, constant) =
                (has_positions.then_some((&positions[..], &places[..])), has_constant.then_some(&constant[..]));
            Gather { words: &words, ids: &ids, positions, constant, out: &mut out }.run(simd);
            for (i, &out) in out.iter().enumerate() {
                let (t, column) = (i / hidden, i % hidden);
                let position = positions.map_or(0.0, |(table, rows)| table[rows[t] as usize * hidden + column]);
                let expected =
                    words[ids[t] as usize * hidden + column] + position + constant.map_or(0.0, |c| c[column]);
                assert_eq!(out, expected);
            }
        }
    }
}

#[test]
fn not_a_number_stays_not_a_number() {
    for simd in Simd::available() {
        for precision in PRECISIONS {
            let mut qkv = noise(1, 5 * 24);
            qkv[30] = f32::NAN;
            let case = Case { heads: Heads::alike(2, 4), qkv: &qkv, bias: None, sight: Sight::around(None), precision };
            assert!(case.run(simd, usize::MAX).iter().any(|value| value.is_nan()));
            for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let (mut rows, weight, bias) = (noise(1, 3 * 40), noise(2, 20 * 40), noise(3, 20));
                rows[57] = broken;
                let out = dense(simd, precision, &rows, &weight, &bias, Activation::None);
                let is_broken: Vec<bool> = out.chunks(20).map(|row| row.iter().all(|x| !x.is_finite())).collect();
                assert_eq!(is_broken, [false, true, false], "{precision} on {simd:?}");
            }
        }
    }
}

/// The tile of the 512-bit sets, on whatever this processor has.
#[test]
fn the_shape_of_the_tile_changes_no_bit() {
    for (n_rows, n_inputs, n_outputs) in [(1, 1, 1), (13, 200, 33), (125, 400, 64), (12, 384, 100)] {
        let (rows, weight) = (noise(1, n_rows * n_inputs), noise(2, n_outputs * n_inputs));
        let bias = noise(3, n_outputs);
        let [narrow, wide] = Panels::of_both_widths().map(|mut panels| {
            panels.fill_transposed(&weight, n_inputs, n_outputs, n_inputs);
            let mut out = vec![f32::NAN; n_rows * n_outputs];
            let product = Product {
                weight: &panels,
                inputs: 0..n_inputs,
                outputs: 0..n_outputs,
                bias: Some(&bias),
                activation: Activation::Gelu,
                rows: &rows,
                row_stride: n_inputs,
                n_rows,
                out: &mut out,
                out_stride: n_outputs,
                scratch: &mut super::aligned::Buffer::new(),
            };
            product.run();
            bits(&out)
        });
        assert_eq!(narrow, wide);
    }
}

/// Beyond one block of rows and one panel depth, where sums are continued from memory.
#[test]
fn rows_do_not_depend_on_their_neighbours() {
    let (n_inputs, n_outputs, n_rows) = (1000, 50, 256);
    let (rows, weight) = (noise(1, n_rows * n_inputs), noise(2, n_outputs * n_inputs));
    let bias = noise(3, n_outputs);
    for (precision, simd) in PRECISIONS.into_iter().flat_map(|precision| fast().map(move |simd| (precision, simd))) {
        let run = |rows: &[f32]| dense(simd, precision, rows, &weight, &bias, Activation::None);
        let all = run(&rows);
        assert!(precision != Precision::F32 || dense_error(&all, &rows, &weight, &bias) < 1e-4);
        for n in (1..n_rows).step_by(15) {
            for first in [0, n_rows - n] {
                let some = run(&rows[first * n_inputs..][..n * n_inputs]);
                let all = &all[first * n_outputs..][..n * n_outputs];
                assert_eq!(bits(&some), bits(all), "{n} rows from {first}, {precision} on {simd:?}");
            }
        }
    }
}

/// Every set but the portable one, which takes long; that one if there is no other.
fn fast() -> impl Iterator<Item = Simd> {
    let sets = Simd::available();
    let n_slow = usize::from(sets.len() > 1);
    sets.into_iter().skip(n_slow)
}

/// Numbers that bytes hold exactly once they are turned, and sums as large as they get: an instruction that saturates
/// would show.
#[test]
fn int8_is_exact_where_the_numbers_are() {
    const BLOCK: usize = super::int8::rotation::BLOCK;
    let (n_inputs, n_outputs) = (47 * BLOCK, 40);
    let byte = |i: usize, n: usize| (i * 7919 + i / 13) % n;
    let mut rows: Vec<f32> = (0..3 * n_inputs).map(|i| byte(i, 256) as f32 - 32.0).collect();
    let mut weight: Vec<f32> = (0..n_outputs * n_inputs).map(|i| byte(i, 255) as f32 - 127.0).collect();
    rows[..n_inputs].fill(223.0);
    weight[..n_inputs].fill(127.0);
    weight[n_inputs..2 * n_inputs].fill(-127.0);
    for row in rows.chunks_exact_mut(n_inputs) {
        (row[0], row[1]) = (-32.0, 223.0);
    }
    for row in weight.chunks_exact_mut(n_inputs) {
        row[5] = 127.0;
    }
    // What becomes these numbers when it is turned.
    let before = |values: &[f32]| -> Vec<f32> {
        let mut values = values.to_vec();
        super::int8::rotation::rotate(Simd::available()[0], &mut values);
        values.iter().map(|x| x / BLOCK as f32).collect()
    };
    let (inputs, weights) = (before(&rows), before(&weight));
    let bias = vec![0.5; n_outputs];
    for simd in Simd::available() {
        let ours = dense(simd, Precision::Int8, &inputs, &weights, &bias, Activation::None);
        for (i, &ours) in ours.iter().enumerate() {
            let row = &rows[i / n_outputs * n_inputs..][..n_inputs];
            let exact: f64 = row.iter().zip(&weight[i % n_outputs * n_inputs..]).map(|(&x, &w)| f64::from(x * w)).sum();
            let exact = exact / BLOCK as f64;
            assert!((f64::from(ours) - exact - 0.5).abs() <= 1e-6 * exact.abs() + 0.5, "{ours}, not {exact}");
        }
    }
}

/// One input of every row, and one weight of every output, a hundred times the others: what trained encoders have.
#[test]
fn int8_bears_numbers_that_stand_out() {
    let (n_rows, n_inputs, n_outputs) = (20, 384, 50);
    let (mut rows, mut weight) = (noise(1, n_rows * n_inputs), noise(2, n_outputs * n_inputs));
    let bias = noise(3, n_outputs);
    for (i, row) in rows.chunks_exact_mut(n_inputs).enumerate() {
        row[17] *= 100.0;
        row[i] *= 10.0;
    }
    for (i, row) in weight.chunks_exact_mut(n_inputs).enumerate() {
        row[200 + i] *= 100.0;
    }
    let ours = dense(Simd::detect(), Precision::Int8, &rows, &weight, &bias, Activation::None);
    let (mut noise, mut signal) = (0.0, 0.0);
    for (ours, [expected, _]) in ours.iter().zip(int8_oracle(&rows, &weight, &bias)) {
        noise += (f64::from(*ours) - expected).powi(2);
        signal += expected.powi(2);
    }
    let share = (noise / signal).sqrt();
    assert!(share < 0.06, "{share} of the outputs is noise"); // about .23 without the rotation
}

#[test]
fn int8_of_a_constant_row_loses_only_what_the_weights_lose() {
    let (rows, weight, bias) = ([3.25; 64], noise(2, 20 * 64), noise(3, 20));
    for row in [rows, [0.0; 64], [-1e-30; 64]] {
        for (ours, weights) in dense(Simd::detect(), Precision::Int8, &row, &weight, &bias, Activation::None)
            .iter()
            .zip(weight.chunks_exact(64))
            .zip(&bias)
            .map(|((ours, weights), bias)| (ours - bias, weights))
        {
            let expected: f32 = weights.iter().map(|w| w * row[0]).sum();
            assert!((ours - expected).abs() <= 64.0 * 0.5 / 127.0 * row[0].abs() + 1e-6);
        }
    }
}

#[test]
fn the_variable_names_a_set_or_is_refused() {
    let names = ["portable", "avx2", "avx512", "bf16", "amx"];
    let sets = names.map(|name| Simd::capped(name).unwrap());
    assert_eq!((sets[0].name(), sets[4]), ("portable", Simd::detect()));
    for name in ["", "AVX2", "sse"] {
        let error = Simd::capped(name).unwrap_err().to_string();
        assert!(error.contains("CENTO_SIMD") && names.iter().all(|known| error.contains(known)), "{error}");
    }
}
