//! Every kernel, emulated, against the same thing written plainly in double precision.

use std::path::{Path, PathBuf};
use std::process::Command;

use candle_core::{DType, Device, Tensor};
use sha2::{Digest, Sha256};

use super::activation::{activate, gate};
use super::attention::{Attention, Bias, TILE_WORDS, tiles};
use super::largest::Largest;
use super::pool::{Pool, pool};
use super::rotary::rotate;
use super::rows::{Norm, Picked, Sum};
use super::{attention, emulation};
use crate::kernels::cpu::noise;
use crate::kernels::cpu::norm::Centre;
use crate::layers::gate::Activated;
use crate::layers::linear::Activation;
use crate::pack::Spans;

const TYPES: [DType; 3] = [DType::F32, DType::BF16, DType::F16];
const ACTIVATIONS: [Activation; 6] =
    [Activation::None, Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu, Activation::Tanh];

/// Reproducible values in [-1, 1), rounded to a type.
fn matrix(seed: u64, n_rows: usize, width: usize, dtype: DType) -> Tensor {
    let values = Tensor::from_vec(noise(seed, n_rows * width), (n_rows, width), &Device::Cpu).unwrap();
    values.to_dtype(dtype).unwrap()
}

fn vector(seed: u64, n: usize) -> Tensor {
    Tensor::from_vec(noise(seed, n), n, &Device::Cpu).unwrap()
}

fn words(values: &[u32]) -> Tensor {
    Tensor::new(values, &Device::Cpu).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

/// Half a unit in the last place of 1, and a little for the sums before.
fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::BF16 => 1.0 / 256.0 + 1e-5,
        DType::F16 => 1.0 / 2048.0 + 1e-5,
        _ => 1e-5,
    }
}

/// Holds results against expectations: to the rounding of the type where they are large, of 1 where they are small.
#[track_caller]
fn check(what: &str, ours: &Tensor, expected: &[f64], tolerance: f64) {
    let ours = values(ours);
    assert_eq!(ours.len(), expected.len(), "{what}");
    for (at, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        let far = (ours - expected).abs() > tolerance * expected.abs().max(1.0);
        assert!(!far && ours.is_nan() == expected.is_nan(), "{what}: {ours} at {at}, expected {expected}");
    }
}

#[test]
fn rows_are_picked_added_and_normalised() {
    emulation::with(|| {
        for dtype in TYPES {
            for (n_rows, width) in [(1, 8), (11, 384), (3, 520), (2, 768), (2, 1032), (1, 4096)] {
                let (first, second) = (matrix(1, n_rows, width, dtype), matrix(2, 5, width, dtype));
                let (bias, scale, shift) = (vector(3, width), vector(4, width), vector(5, width));
                let at: Vec<u32> = (0..n_rows as u32).map(|row| (3 * row + 1) % 5).collect();
                let picked = words(&at);
                let norm = |shift, centre| Norm { scale: &scale, shift, epsilon: 1e-12, centre };
                let second_rows = Picked { table: &second, at: Some(&picked) };
                let cases = [
                    (None, None, None),
                    (Some(second_rows), None, None),
                    (None, None, Some(norm(None, Centre::Mean))),
                    (Some(second_rows), Some(&bias), Some(norm(Some(&shift), Centre::Mean))),
                    (Some(second_rows), None, Some(norm(None, Centre::Zero))),
                ];
                for (second_rows, bias, norm) in cases {
                    let sum = Sum { first: Picked { table: &first, at: None }, second: second_rows, bias, norm };
                    let (first, second) = (values(&first), values(&second));
                    let mut expected = Vec::new();
                    for row in 0..n_rows {
                        let mut sums = first[row * width..][..width].to_vec();
                        for (i, sum) in sums.iter_mut().enumerate() {
                            *sum += second_rows.map_or(0.0, |_| second[at[row] as usize * width + i]);
                            *sum += bias.map_or(0.0, |bias| values(bias)[i]);
                        }
                        if let Some(norm) = norm {
                            let mean = match norm.centre {
                                Centre::Mean => sums.iter().sum::<f64>() / width as f64,
                                Centre::Zero => 0.0,
                            };
                            let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / width as f64;
                            let (scale, shift) = (values(norm.scale), norm.shift.map(values));
                            for (i, sum) in sums.iter_mut().enumerate() {
                                *sum = (*sum - mean) / (variance + norm.epsilon).sqrt() * scale[i]
                                    + shift.as_ref().map_or(0.0, |shift| shift[i]);
                            }
                        }
                        expected.extend(sums);
                    }
                    check(&format!("{dtype:?} {n_rows} x {width}"), &sum.run().unwrap(), &expected, rounding(dtype));
                }
            }
        }
    });
}

#[test]
fn a_large_mean_does_not_drown_the_variance() {
    emulation::with(|| {
        let (x, ones) = ((matrix(1, 1, 64, DType::F32) + 1000.0).unwrap(), vector(1, 64).ones_like().unwrap());
        let norm = Some(Norm { scale: &ones, shift: None, epsilon: 1e-12, centre: Centre::Mean });
        let sum = Sum { first: Picked { table: &x, at: None }, second: None, bias: None, norm };
        let variance = values(&sum.run().unwrap()).iter().map(|value| value * value).sum::<f64>() / 64.0;
        assert!((variance - 1.0).abs() < 1e-4, "{variance}");
    });
}

fn activated(x: f64, activation: Activation) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Gelu => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }
        Activation::Relu => x.max(0.0),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
    }
}

/// The series of Abramowitz and Stegun 7.1.6, which converges everywhere and quickly on what is tested here.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

#[test]
fn activations_and_gates() {
    emulation::with(|| {
        for (dtype, activation) in TYPES.into_iter().flat_map(|dtype| ACTIVATIONS.map(|one| (dtype, one))) {
            let what = format!("{dtype:?} {activation:?}");
            let x = (matrix(1, 7, 48, dtype) * 3.0).unwrap();
            let bias = vector(2, 48);
            let sums: Vec<f64> = values(&x).iter().enumerate().map(|(i, x)| x + values(&bias)[i % 48]).collect();
            let expected: Vec<f64> = sums.iter().map(|&sum| activated(sum, activation)).collect();
            let copy = x.copy().unwrap();
            check(&what, &activate(copy, Some(&bias), activation).unwrap(), &expected, rounding(dtype));
            for half in [Activated::First, Activated::Second] {
                let expected: Vec<f64> = values(&x)
                    .chunks(48)
                    .flat_map(|row| {
                        let (one, two) = row.split_at(24);
                        let (active, other) = if half == Activated::First { (one, two) } else { (two, one) };
                        active
                            .iter()
                            .zip(other)
                            .map(|(&active, other)| activated(active, activation) * other)
                            .collect::<Vec<_>>()
                    })
                    .collect();
                check(&what, &gate(&x, half, activation).unwrap(), &expected, rounding(dtype));
            }
        }
    });
}

#[test]
fn queries_and_keys_are_turned() {
    emulation::with(|| {
        for (dtype, half) in TYPES.into_iter().flat_map(|dtype| [(dtype, 8), (dtype, 5)]) {
            let (n_heads, width, positions) = (3, 16, [0u32, 1, 2, 0, 6]);
            let stride = 3 * n_heads * width;
            let (cos, sin) = (matrix(1, 7, half, DType::F32), matrix(2, 7, half, DType::F32));
            let qkv = matrix(3, positions.len(), stride, dtype);
            let mut expected = values(&qkv);
            for (row, &position) in expected.chunks_mut(stride).zip(&positions) {
                for (head, i) in (0..2 * n_heads).flat_map(|head| (0..half).map(move |i| (head * width, i))) {
                    let angle = position as usize * half + i;
                    let (cos, sin) = (values(&cos)[angle], values(&sin)[angle]);
                    let (one, two) = (row[head + i], row[head + half + i]);
                    row[head + i] = one * cos - two * sin;
                    row[head + half + i] = two * cos + one * sin;
                }
            }
            rotate(&qkv, n_heads, &cos, &sin, &words(&positions)).unwrap();
            check(&format!("{dtype:?} {half}"), &qkv, &expected, rounding(dtype));
        }
    });
}

/// Attention of the texts, by definition.
fn attention_by_definition(
    qkv: &Tensor,
    spans: &Spans,
    n_heads: usize,
    scale: f64,
    bias: Option<(&[f64], usize)>,
    window: usize,
) -> Vec<f64> {
    let (stride, all) = (qkv.dim(1).unwrap(), values(qkv));
    let (hidden, width) = (stride / 3, stride / 3 / n_heads);
    let mut out = vec![0.0; all.len() / 3];
    for (span, head) in spans.iter().flat_map(|span| (0..n_heads).map(move |head| (span.clone(), head))) {
        let part = |row: usize, part: usize| &all[row * stride + part * hidden + head * width..][..width];
        for query in span.clone() {
            let score = |key: usize| {
                let product: f64 = part(query, 0).iter().zip(part(key, 1)).map(|(q, k)| q * k).sum();
                product * scale + bias.map_or(0.0, |(bias, reach)| bias[head * (2 * reach + 1) + reach + key - query])
            };
            let seen: Vec<usize> = span.clone().filter(|key| key.abs_diff(query) <= window).collect();
            let scores: Vec<f64> = seen.iter().map(|&key| score(key)).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            for (weight, &key) in weights.iter().zip(&seen) {
                for (i, value) in part(key, 2).iter().enumerate() {
                    out[query * hidden + head * width + i] += weight / total * value;
                }
            }
        }
    }
    out
}

#[track_caller]
fn check_attention(dtype: DType, n_heads: usize, width: usize, lengths: &[usize], biased: bool, window: Option<usize>) {
    let spans = Spans::of_lengths(lengths);
    let n_tokens: usize = lengths.iter().sum();
    let qkv = (matrix(1, n_tokens, 3 * n_heads * width, dtype) * 2.0).unwrap();
    let scale = 1.0 / (width as f32).sqrt();
    let reach = lengths.iter().max().unwrap() + 2;
    let bias = matrix(2, n_heads, 2 * reach + 1, DType::F32);
    let tiles: Vec<u32> = tiles(&spans).collect();
    let n_tiles = tiles.len() / TILE_WORDS;
    let tiles = words(&tiles).reshape((n_tiles, TILE_WORDS)).unwrap();
    let relative = biased.then_some(Bias { values: &bias, reach });
    let ours = Attention { n_heads, scale, bias: relative, window, tiles: &tiles }.run(&qkv).unwrap();
    let bias = values(&bias);
    let bias = biased.then_some((bias.as_slice(), reach));
    let window = window.unwrap_or(usize::MAX);
    let expected = attention_by_definition(&qkv, &spans, n_heads, f64::from(scale), bias, window);
    let what = format!("{dtype:?}, {n_heads} heads of {width}, {lengths:?}, bias {biased}, window {window}");
    check(&what, &ours, &expected, 2.0 * rounding(dtype)); // weights are rounded as well as results
}

#[test]
fn attention_on_tensor_cores() {
    emulation::with(|| {
        for dtype in [DType::BF16, DType::F16] {
            for width in [32, 64, 128] {
                check_attention(dtype, 2, width, &[1], false, None);
                check_attention(dtype, 2, width, &[70, 64, 15, 1], false, None);
                check_attention(dtype, 1, width, &[130, 9], true, Some(20));
            }
            check_attention(dtype, 1, 32, &[200], true, None);
            check_attention(dtype, 1, 32, &[200, 66], false, Some(0));
        }
    });
}

#[test]
fn attention_in_multiply_adds() {
    emulation::with(|| {
        for (dtype, width) in
            [(DType::F32, 32), (DType::F32, 64), (DType::F32, 128), (DType::BF16, 80), (DType::F16, 24)]
        {
            check_attention(dtype, 2, width, &[1], false, None);
            check_attention(dtype, 1, width, &[70, 33, 1], false, None);
            check_attention(dtype, 1, width, &[80, 9], true, Some(11));
        }
        check_attention(DType::F32, 1, 200, &[35], true, None);
        check_attention(DType::F32, 1, 32, &[130, 66], false, Some(0));
    });
}

#[test]
fn a_text_that_is_not_finite_says_so_and_spares_its_neighbours() {
    emulation::with(|| {
        for dtype in TYPES {
            let spans = Spans::of_lengths(&[3, 4]);
            let mut rows = noise(1, 7 * 96);
            rows[96 + 40] = f32::NAN; // a key of the first text
            let qkv = Tensor::from_vec(rows, (7, 96), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
            let tiles = words(&tiles(&spans).collect::<Vec<_>>());
            let attention = Attention { n_heads: 1, scale: 0.2, bias: None, window: None, tiles: &tiles };
            let out = values(&attention.run(&qkv).unwrap());
            assert!(out[..3 * 32].iter().all(|value| value.is_nan()), "{dtype:?}");
            assert!(out[3 * 32..].iter().all(|value| value.is_finite()), "{dtype:?}");
        }
    });
}

#[test]
fn spans_are_pooled() {
    emulation::with(|| {
        for dtype in TYPES {
            let (width, spans) = (264, [[0u32, 1, 0], [1, 40, 7], [40, 41, 2], [3, 12, 0]]);
            let rows = matrix(1, 41, width, dtype);
            let all = values(&rows);
            for mode in [Pool::Mean, Pool::MeanSqrtLength, Pool::WeightedMean, Pool::Max, Pool::First, Pool::Last] {
                let expected: Vec<f64> = spans
                    .iter()
                    .flat_map(|&[start, end, place]| {
                        let column =
                            |i: usize| (start..end).map(|row| all[row as usize * width + i]).collect::<Vec<_>>();
                        let weights: Vec<f64> = (start..end).map(|row| f64::from(place + row - start + 1)).collect();
                        (0..width)
                            .map(|i| {
                                let (column, n) = (column(i), f64::from(end - start));
                                let sum: f64 = column.iter().sum();
                                let weighted: f64 =
                                    column.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
                                match mode {
                                    Pool::Mean => sum / n,
                                    Pool::MeanSqrtLength => sum / n.sqrt(),
                                    Pool::WeightedMean => weighted / weights.iter().sum::<f64>(),
                                    Pool::Max => column.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                                    Pool::First => column[0],
                                    Pool::Last => column[column.len() - 1],
                                }
                            })
                            .collect::<Vec<_>>()
                    })
                    .collect();
                let ours = pool(&rows, &words(spans.as_flattened()), mode).unwrap();
                check(&format!("{dtype:?} {mode:?}"), &ours, &expected, 1e-5); // pooled rows are f32 whatever the type
            }
        }
    });
}

#[test]
fn a_maximum_reports_what_is_not_finite() {
    emulation::with(|| {
        for row in 0..20 {
            let mut rows = noise(1, 20 * 8);
            rows[row * 8 + 3] = f32::NAN;
            let rows = Tensor::from_vec(rows, (20, 8), &Device::Cpu).unwrap();
            let pooled = values(&pool(&rows, &words(&[0, 20, 0]), Pool::Max).unwrap());
            assert!(pooled[3].is_nan() && pooled[2].is_finite(), "row {row}");
        }
    });
}

#[test]
fn the_largest_products_are_kept_and_ties_by_row() {
    emulation::with(|| {
        let (n_queries, n_rows) = (3, 700);
        for (limit, block_rows, levels) in
            [(1, 700, 0.0), (50, 64, 0.0), (50, 200, 4.0), (690, 256, 8.0), (900, 96, 0.0)]
        {
            for some in [false, true] {
                let allowed = |row: usize| !some || row % 3 != 1;
                // few levels make many equal products
                let round = |x: f32| if levels > 0.0 { (x * levels).round() / levels } else { x };
                let products: Vec<f32> = noise(7, n_queries * n_rows).into_iter().map(round).collect();
                let products = Tensor::from_vec(products, (n_queries, n_rows), &Device::Cpu).unwrap();
                let mut largest = Largest::new(n_queries, limit, block_rows, &Device::Cpu).unwrap();
                for first in (0..n_rows).step_by(block_rows) {
                    let n = block_rows.min(n_rows - first);
                    let bit = |row: usize| u32::from(row < n && allowed(first + row)) << (row % 32);
                    let bits = (0..n.div_ceil(32)).map(|word| (0..32).map(|i| bit(word * 32 + i)).sum());
                    let bits = words(&bits.collect::<Vec<u32>>());
                    let block = products.narrow(1, first, n).unwrap().contiguous().unwrap();
                    largest.push(&block, first as u32, some.then_some(&bits)).unwrap();
                }
                let kept = largest.finish().unwrap();
                for (mut kept, products) in kept.into_iter().zip(products.to_vec2::<f32>().unwrap()) {
                    let mut expected: Vec<(u32, f32)> = (0..n_rows as u32).zip(products).collect();
                    expected.retain(|(row, _)| allowed(*row as usize));
                    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
                    expected.sort_by(order);
                    expected.truncate(limit);
                    kept.sort_by(order);
                    assert_eq!(kept, expected, "limit {limit}, blocks of {block_rows}");
                }
            }
        }
    });
}

#[test]
fn a_stray_launch_is_refused() {
    emulation::with(|| {
        let rows = matrix(1, 4, 8, DType::F32);
        let tiles = words(&[0, 0, 4]);
        assert!(
            attention::takes(&matrix(1, 4, 96, DType::F32), 1) && !attention::takes(&matrix(1, 4, 60, DType::F32), 1)
        );
        let grid = super::launch::Grid { blocks: [1, 1, 1], threads: 48, shared_bytes: 0 };
        let wrong =
            |kernel| super::launch::launch(kernel, DType::F32, grid, 0u64, rows.device()).unwrap_err().to_string();
        assert!(wrong("rows_to_512").contains("threads") && wrong("nothing").contains("no kernel"), "{tiles}");
    });
}

/// The folder's sources, each with the PTX that was made from it.
fn sources_with_ptx() -> impl Iterator<Item = (PathBuf, PathBuf)> {
    let files = std::fs::read_dir(emulation::sources()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "cu")).map(|source| {
        let name = source.with_extension("ptx").file_name().unwrap().to_owned();
        let ptx = source.with_file_name("ptx").join(name);
        (source, ptx)
    })
}

#[test]
fn ptx_is_that_of_the_sources() {
    let shared = std::fs::read(emulation::sources().join("device.cuh")).unwrap();
    let mut n_files = 0;
    for (source, ptx) in sources_with_ptx() {
        let digest = Sha256::new().chain_update(&shared).chain_update(std::fs::read(&source).unwrap()).finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let made = std::fs::read_to_string(&ptx).unwrap();
        let said = made.lines().next().and_then(|line| line.rsplit(' ').next());
        assert_eq!(said, Some(&*digest), "{}: scripts/make-ptx writes it anew", ptx.display());
        n_files += 1;
    }
    assert_eq!(n_files, 6);
}

/// Compiles the kernels anew and assembles them for six architectures, where the packages of `scripts/make-ptx` are.
#[test]
fn ptx_assembles_for_ampere_to_blackwell() {
    const PACKAGE_MISSING: i32 = 3;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/make-ptx");
    let python = std::env::var("CENTO_PTX_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Ok(output) = Command::new(&python).arg(script).arg("--check").output() else {
        return eprintln!("skipped: no {python} (CENTO_PTX_PYTHON names one)");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(PACKAGE_MISSING) {
        return eprintln!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
}
