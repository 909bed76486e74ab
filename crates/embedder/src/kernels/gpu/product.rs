//! Dense layers: products of rows with weights, and the tiles that they are made in.

use super::failure::{Failure, Result, failed};
use super::launch::{MEMBERS, activation, bound, fours, optional, shape};
use super::table::Table;
use super::{Gpu, GpuRows, Recorder};
use crate::kernels::cpu::dense::Activation;
use crate::precision::rounded_to_f16;

/// The tiles that a product is made in, by the model's shape alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProductTile {
    /// 64 by 64: few columns.
    Small,
    /// 128 by 128: a thread has twice the sums for what it reads.
    Large,
}

impl ProductTile {
    pub(super) fn of(n_columns: usize) -> Self {
        if n_columns <= 128 { Self::Small } else { Self::Large }
    }

    /// Rows, and columns, of a tile.
    pub(super) fn size(self) -> usize {
        16 * 4 * self.parts()
    }

    /// Parts of four rows, and of four columns, that a thread makes.
    fn parts(self) -> usize {
        match self {
            Self::Small => 1,
            Self::Large => 2,
        }
    }

    /// The kernel's text behind its shapes.
    pub(super) fn text(self, gpu: &Gpu) -> String {
        let parts = self.parts();
        let all = || (0..parts).flat_map(move |r| (0..4).flat_map(move |i| (0..parts).map(move |c| (r, i, c))));
        let sums = all().map(|(r, i, c)| format!("var sum_{r}{i}_{c} = vec4<f32>();\n"));
        let loads = (0..parts).map(|p| {
            let at = |local: &str| format!("i * LINE + {}u + {local}", 16 * p);
            format!("let a_{p} = xs_at({});\nlet b_{p} = ws_at({});\n", at("local.y"), at("local.x"))
        });
        let products = all()
            .map(|(r, i, c)| format!("sum_{r}{i}_{c} = fma(vec4(a_{r}.{}), b_{c}, sum_{r}{i}_{c});\n", MEMBERS[i]));
        let puts = all().map(|(r, i, c)| format!("put_four(t + {}u, n + {}u, sum_{r}{i}_{c});\n", 64 * r + i, 64 * c));
        let sizes = shape(&[("TILE", self.size()), ("DEPTH", 16 / parts)]);
        let text = include_str!("wgsl/product.wgsl")
            .replace("SUMS\n", &sums.collect::<String>())
            .replace("STEP\n", &loads.chain(products).collect::<String>())
            .replace("PUT\n", &puts.collect::<String>());
        let memory = ["xs", "ws"].map(|name| fours(gpu, name, "DEPTH * LINE"));
        [sizes, memory.concat(), text].concat()
    }
}

/// The number type of a weight in the memory of a GPU; it is multiplied in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WeightType {
    F32,
    F16,
}

/// A dense layer's weights on a GPU, \[N, K\] and \[N\].
#[derive(Debug)]
pub(crate) struct GpuLinear {
    weight: Table,
    bias: Option<Table>,
    n_inputs: usize,
    n_outputs: usize,
    text: String,
}

impl GpuLinear {
    pub(crate) fn new(
        gpu: &Gpu,
        weight: &[f32],
        bias: Option<&[f32]>,
        n_inputs: usize,
        (function, of_weight): (Activation, WeightType),
    ) -> Result<Self> {
        let n_outputs = weight.len() / n_inputs;
        let table = match of_weight {
            WeightType::F32 => Table::new(gpu, weight)?,
            WeightType::F16 => Table::new(gpu, &halves(gpu, weight, n_inputs)?)?,
        };
        let bias = bias.map(|bias| Table::new(gpu, bias)).transpose()?;
        let text = [
            shape(&[("K", n_inputs), ("N", n_outputs)]),
            read_floats("x", 0, n_inputs),
            "@group(0) @binding(2) var<storage, read_write> out: array<f32>;\n".to_owned(),
            "fn n_rows() -> u32 { return arrayLength(&out) / N; }\nfn n_columns() -> u32 { return N; }\n".to_owned(),
            optional(bias.as_ref().map(|_| ()), 3, "bias"),
            activation(function),
            "fn put(t: u32, n: u32, sum: f32) { out[t * N + n] = activate(sum + bias_of(n)); }\n".to_owned(),
            ProductTile::of(n_outputs).text(gpu),
        ];
        let read_weight = match of_weight {
            WeightType::F32 => read_floats("weight", 1, n_inputs),
            WeightType::F16 => read_halves(gpu, n_inputs),
        };
        Ok(Self { weight: table, bias, n_inputs, n_outputs, text: [read_weight, text.concat()].concat() })
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.n_outputs
    }

    /// \[T, K\] → \[T, N\].
    pub(crate) fn forward(&self, x: &GpuRows, recorder: &mut Recorder) -> Result<GpuRows> {
        assert_eq!(x.width, self.n_inputs, "layers of one encoder fit together");
        let out = recorder.take(x.n_rows, self.n_outputs)?;
        let mut buffers = vec![bound(x), self.weight.bound(), bound(&out)];
        buffers.extend(self.bias.as_ref().map(Table::bound));
        let tile = ProductTile::of(self.n_outputs).size();
        let tiles = [x.n_rows, self.n_outputs].map(|n| n.div_ceil(tile) as u32);
        recorder.run(&self.text, &buffers, tiles)?;
        Ok(out)
    }
}

/// A binding of rows of K values in f32, and `load_NAME`, which reads four of them.
fn read_floats(name: &str, binding: u32, width: usize) -> String {
    let (element, body) = match width.is_multiple_of(4) {
        true => ("vec4<f32>", format!("return {name}[(r * K + k) / 4u];")),
        false => {
            let value = |i: u32| format!("if (k + {i}u < K) {{ v[{i}] = {name}[r * K + k + {i}u]; }}");
            ("f32", format!("var v: vec4<f32>; {} return v;", (0..4).map(value).collect::<String>()))
        }
    };
    format!(
        "@group(0) @binding({binding}) var<storage, read> {name}: array<{element}>;\n\
         fn load_{name}(r: u32, k: u32) -> vec4<f32> {{ {body} }}\n"
    )
}

/// The same of the weight as [`halves`] lays it out: in the adapter's own 16-bit floats, or unpacked from words.
fn read_halves(gpu: &Gpu, width: usize) -> String {
    let (before, element, body) = match gpu.adapter().has_f16 {
        true => ("enable f16;\n", "vec4<f16>", "return vec4<f32>(four);"),
        false => ("", "vec2<u32>", "return vec4(unpack2x16float(four.x), unpack2x16float(four.y));"),
    };
    let fours = width.div_ceil(4);
    format!(
        "{before}@group(0) @binding(1) var<storage, read> weight: array<{element}>;\n\
         fn load_weight(r: u32, k: u32) -> vec4<f32> {{ let four = weight[r * {fours}u + k / 4u]; {body} }}\n"
    )
}

/// Rows of 16-bit floats, each filled up with zeros to a multiple of four.
fn halves(gpu: &Gpu, weight: &[f32], width: usize) -> Result<Vec<u16>> {
    let mut all = Vec::with_capacity(weight.len() / width * width.next_multiple_of(4));
    for row in weight.chunks_exact(width) {
        for &value in row {
            let half = half::f16::from_f32(rounded_to_f16(value));
            if half.is_infinite() {
                return Err(failed(Failure::TooWide { gpu: gpu.name(), value }));
            }
            all.push(half.to_bits());
        }
        all.resize(all.len().next_multiple_of(4), 0);
    }
    Ok(all)
}
