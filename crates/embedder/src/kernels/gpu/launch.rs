//! The kernels' launches: the shapes in front of each text, its buffers, and how many workgroups it takes.

use std::fmt;
use std::sync::Arc;

use wgpu::Buffer;

use super::adapter::WORKGROUP_BYTES;
use super::failure::{Failure, Result, failed};
use super::table::Table;
use super::{Gpu, GpuRows, Recorder};
use crate::kernels::cpu::attention::RelativeBias;
use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::gate::Activated;
use crate::kernels::cpu::heads::{Heads, Sight};
use crate::kernels::cpu::norm::Centre;
use crate::pack::Batch;
use crate::precision::rounded_to_f16;

/// Threads of every workgroup but those of products.
pub(super) const THREADS: usize = 64;
/// The members of a vector of four.
const MEMBERS: [char; 4] = ['x', 'y', 'z', 'w'];

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
    pub(super) fn text(self) -> String {
        let parts = self.parts();
        let all = || (0..parts).flat_map(move |r| (0..4).flat_map(move |i| (0..parts).map(move |c| (r, i, c))));
        let sums = all().map(|(r, i, c)| format!("var sum_{r}{i}_{c} = vec4<f32>();\n"));
        let loads = (0..parts).map(|p| {
            let at = |local: &str| format!("i * LINE + {}u + {local}", 16 * p);
            format!("let a_{p} = xs[{}];\nlet b_{p} = ws[{}];\n", at("local.y"), at("local.x"))
        });
        let products = all()
            .map(|(r, i, c)| format!("sum_{r}{i}_{c} = fma(vec4(a_{r}.{}), b_{c}, sum_{r}{i}_{c});\n", MEMBERS[i]));
        let puts = all().map(|(r, i, c)| format!("put_four(t + {}u, n + {}u, sum_{r}{i}_{c});\n", 64 * r + i, 64 * c));
        let sizes = shape(&[("TILE", self.size()), ("DEPTH", 16 / parts)]);
        let text = include_str!("wgsl/product.wgsl")
            .replace("SUMS\n", &sums.collect::<String>())
            .replace("STEP\n", &loads.chain(products).collect::<String>())
            .replace("PUT\n", &puts.collect::<String>());
        [sizes, text].concat()
    }
}

/// A number as WGSL reads it.
pub(super) struct Literal(pub(super) f32);

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}f", self.0) // the shortest that is read as the same bits
    }
}

pub(super) fn bound(rows: &GpuRows) -> (&Buffer, u64) {
    (&rows.buffer, rows.n_bytes())
}

/// The function of that activation, with all of them in front.
fn activation(activation: Activation) -> String {
    let name = match activation {
        Activation::None => "none",
        Activation::Gelu => "gelu",
        Activation::GeluTanh => "gelu_tanh",
        Activation::Relu => "relu",
        Activation::Silu => "silu",
        Activation::Tanh => "tanh_of",
    };
    format!("{}fn activate(x: f32) -> f32 {{ return {name}(x); }}\n", include_str!("wgsl/activation.wgsl"))
}

/// A binding and a function that reads it at `i`, or one that is zero everywhere.
pub(super) fn optional(table: Option<()>, binding: u32, name: &str) -> String {
    match table {
        None => format!("fn {name}_of(i: u32) -> f32 {{ return 0.0; }}\n"),
        Some(()) => format!(
            "@group(0) @binding({binding}) var<storage, read> {name}: array<f32>;\n\
             fn {name}_of(i: u32) -> f32 {{ return {name}[i]; }}\n"
        ),
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
            ProductTile::of(n_outputs).text(),
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
            let value = |i: u32| format!("v[{i}] = {name}[r * K + min(k + {i}u, K - 1u)] * f32(k + {i}u < K);");
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

/// A norm's scale and shift on a GPU, \[H\].
#[derive(Debug, Clone)]
pub(crate) struct GpuNorm {
    scale: Table,
    shift: Option<Table>,
}

impl GpuNorm {
    pub(crate) fn new(gpu: &Gpu, scale: &[f32], shift: Option<&[f32]>) -> Result<Self> {
        Ok(Self { scale: Table::new(gpu, scale)?, shift: shift.map(|shift| Table::new(gpu, shift)).transpose()? })
    }

    /// Replaces `x` by the normalised `x + residual`.
    pub(crate) fn forward(
        &self,
        x: &GpuRows,
        residual: Option<&GpuRows>,
        (epsilon, centre): (f64, Centre),
        recorder: &mut Recorder,
    ) -> Result<()> {
        let text = [
            shape(&[("H", x.width)]),
            statistics(epsilon, centre),
            optional(residual.map(|_| ()), 2, "residual"),
            optional(self.shift.as_ref().map(|_| ()), 2 + u32::from(residual.is_some()), "shift"),
            include_str!("wgsl/norm.wgsl").to_owned(),
        ];
        let mut buffers = vec![bound(x), self.scale.bound()];
        buffers.extend(residual.map(bound));
        buffers.extend(self.shift.as_ref().map(Table::bound));
        recorder.run_many(&text.concat(), &buffers, x.n_rows)
    }
}

/// Normalises heads of queries by the first scale and of keys by the second, in rows `q | k | v`.
pub(crate) fn norm_heads(
    [queries, keys]: [&GpuNorm; 2],
    heads: Heads,
    (epsilon, centre): (f64, Centre),
    qkv: &GpuRows,
    recorder: &mut Recorder,
) -> Result<()> {
    let text = [of_heads(heads), statistics(epsilon, centre), include_str!("wgsl/heads.wgsl").to_owned()].concat();
    let n_threads = qkv.n_rows * (heads.n + heads.n_shared);
    let buffers = [bound(qkv), queries.scale.bound(), keys.scale.bound()];
    recorder.run_many(&text, &buffers, n_threads.div_ceil(THREADS))
}

fn statistics(epsilon: f64, centre: Centre) -> String {
    let around_mean = match centre {
        Centre::Mean => true,
        Centre::Zero => false,
    };
    format!("const EPSILON = {};\nconst AROUND_MEAN = {around_mean};\n", Literal(epsilon as f32))
}

pub(super) fn shape(sizes: &[(&str, usize)]) -> String {
    sizes.iter().map(|(name, size)| format!("const {name} = {size}u;\n")).collect()
}

fn of_heads(heads: Heads) -> String {
    shape(&[("A", heads.n), ("G", heads.n_shared), ("D", heads.width)])
}

/// Cosines and sines by position on a GPU, \[P, R/2\].
#[derive(Debug)]
pub(crate) struct GpuRotary {
    cos: Table,
    sin: Table,
    half: usize,
}

impl GpuRotary {
    pub(crate) fn new(gpu: &Gpu, cos: &[f32], sin: &[f32], half: usize) -> Result<Self> {
        Ok(Self { cos: Table::new(gpu, cos)?, sin: Table::new(gpu, sin)?, half })
    }

    /// Turns queries and keys in place.
    pub(crate) fn turn(&self, heads: Heads, qkv: &GpuRows, batch: &Batch, recorder: &mut Recorder) -> Result<()> {
        let positions = recorder.positions(batch)?;
        let text =
            [of_heads(heads), shape(&[("HALF", self.half)]), include_str!("wgsl/rotary.wgsl").to_owned()].concat();
        let n_threads = qkv.n_rows * (heads.n + heads.n_shared) * self.half;
        let positions = (&positions, (qkv.n_rows * size_of::<u32>()) as u64);
        let buffers = [bound(qkv), positions, self.cos.bound(), self.sin.bound()];
        recorder.run_many(&text, &buffers, n_threads.div_ceil(THREADS))
    }
}

/// Attention within each text: \[T, (A + 2G) D\] → \[T, A D\].
pub(crate) struct GpuAttention<'a> {
    pub(crate) heads: Heads,
    pub(crate) scale: f32,
    pub(crate) bias: Option<&'a Arc<RelativeBias>>,
    pub(crate) sight: Sight,
}

impl GpuAttention<'_> {
    pub(crate) fn run(self, qkv: &GpuRows, batch: &Batch, recorder: &mut Recorder) -> Result<GpuRows> {
        let Self { heads, scale, bias, sight } = self;
        let tile = AttentionTile::of(heads.width);
        let far = |n: usize| u32::try_from(n).unwrap_or(u32::MAX) as usize;
        let bias_text = match bias {
            None => "fn bias_of(head: u32, query: u32, key: u32) -> f32 { return 0.0; }\n".to_owned(),
            Some(bias) => format!(
                "@group(0) @binding(3) var<storage, read> biases: array<f32>;\n\
                 fn bias_of(head: u32, query: u32, key: u32) -> f32 {{\n\
                 return biases[head * {}u + {}u + key - query];\n}}\n",
                2 * bias.reach + 1,
                bias.reach
            ),
        };
        let sizes = [("BACK", far(sight.back)), ("AHEAD", far(sight.ahead))];
        let scale = format!("const SCALE = {};\n", Literal(scale));
        let text = [of_heads(heads), shape(&sizes), scale, bias_text, tile.text(heads)];
        let out = recorder.take(qkv.n_rows, heads.queries())?;
        let (n_tiles, tiles) = recorder.tiles(batch, tile.n_queries)?;
        let tiles_bytes = u64::from(n_tiles) * 3 * size_of::<u32>() as u64;
        let table = bias.map(|bias| recorder.bias(bias)).transpose()?;
        let mut buffers = vec![bound(qkv), (&tiles, tiles_bytes), bound(&out)];
        buffers.extend(table.as_ref().map(Table::bound));
        recorder.run(&text.concat(), &buffers, [n_tiles, heads.n as u32])?;
        Ok(out)
    }
}

/// The queries that a workgroup answers, and the keys that it takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AttentionTile {
    pub(super) n_queries: usize,
    pub(super) n_keys: usize,
}

impl AttentionTile {
    const ALL: [[usize; 2]; 8] = [[32, 32], [32, 16], [16, 16], [16, 8], [8, 8], [8, 4], [4, 4], [4, 1]];

    /// The largest whose numbers fit a workgroup's memory.
    pub(super) fn of(width: usize) -> Self {
        let all = Self::ALL.map(|[n_queries, n_keys]| Self { n_queries, n_keys });
        let fitting = all.into_iter().find(|tile| tile.n_bytes(width) <= WORKGROUP_BYTES as usize);
        fitting.unwrap_or(Self { n_queries: 4, n_keys: 1 })
    }

    pub(super) fn n_bytes(self, width: usize) -> usize {
        let Self { n_queries, n_keys } = self;
        let fours = width.div_ceil(4);
        16 * (fours * n_queries + n_keys * (fours | 1) + n_keys * (n_queries / 4 + 1)) + 12 * n_queries
    }

    /// The kernel's text behind its shapes.
    fn text(self, heads: Heads) -> String {
        let Self { n_queries, n_keys } = self;
        let (fours, places) = (heads.width.div_ceil(4), n_queries / 4);
        let n_lanes = THREADS / places;
        let keys = || 0..n_keys.div_ceil(n_lanes);
        let units = || 0..(places * fours).div_ceil(THREADS);
        let key = |c: usize| format!("let key_{c} = lane + {}u;\nvar product_{c} = vec4<f32>();\n", c * n_lanes);
        let read = |i: usize| format!("let q_{} = queries[(4u * d + {i}u) * {places}u + place];\n", MEMBERS[i]);
        let multiply = keys().map(|c| {
            let product = |m: char| format!("product_{c} = fma(q_{m}, vec4(k_{c}.{m}), product_{c});\n");
            let load = format!("let k_{c} = shared_rows[min(key_{c}, {}u) * STRIDE + d];\n", n_keys - 1);
            [load, MEMBERS.map(product).concat()].concat()
        });
        let put_scores = keys().map(|c| {
            let score = |i: usize| {
                let query = format!("first + 4u * place + {i}u");
                format!("score(head, min({query}, n_tokens - 1u), key + key_{c}, product_{c}.{})", MEMBERS[i])
            };
            let scores: Vec<String> = (0..4).map(score).collect();
            format!("if (key_{c} < n_keys) {{ weights[key_{c} * LINE + place] = vec4({}); }}\n", scores.join(", "))
        });
        let scores = [
            keys().map(key).collect(),
            "for (var d = 0u; d < FOURS; d++) {\n".to_owned(),
            (0..4).map(read).collect(),
            multiply.collect(),
            "}\n".to_owned(),
            put_scores.collect::<String>(),
        ];
        let sums = units().flat_map(|c| (0..4).map(move |i| format!("var sum_{c}{i} = vec4<f32>();\n")));
        let places_of_units = units().map(|c| {
            format!("let unit_{c} = index + {}u;\nlet of_{c} = min(unit_{c} / FOURS, {}u);\nlet d_{c} = unit_{c} % FOURS;\n", c * THREADS, places - 1)
        });
        let rescale = units().map(|c| {
            let factor = |i: usize| format!("sum_{c}{i} *= factors[of_{c}].{};\n", MEMBERS[i]);
            (0..4).map(factor).collect::<String>()
        });
        let add = units().map(|c| {
            let product = |i: usize| format!("sum_{c}{i} = fma(vec4(w_{c}.{}), v_{c}, sum_{c}{i});\n", MEMBERS[i]);
            let loads =
                format!("let w_{c} = weights[j * LINE + of_{c}];\nlet v_{c} = shared_rows[j * STRIDE + d_{c}];\n");
            [loads, (0..4).map(product).collect()].concat()
        });
        let put = units().flat_map(|c| (0..4).map(move |i| {
            format!(
                "if (unit_{c} < {}u && 4u * of_{c} + {i}u < n_queries) {{ put(start + first + 4u * of_{c} + {i}u, head * D, 4u * d_{c}, sum_{c}{i} / sums[4u * of_{c} + {i}u]); }}\n",
                places * fours
            )
        }));
        let text = include_str!("wgsl/attention.wgsl")
            .replace("SUMS\n", &places_of_units.chain(sums).collect::<String>())
            .replace("SCORES\n", &scores.concat())
            .replace("RESCALE\n", &rescale.collect::<String>())
            .replace("ADD\n", &add.collect::<String>())
            .replace("PUT\n", &put.collect::<String>());
        [load_four(heads.width), shape(&[("QUERIES", n_queries), ("KEYS", n_keys)]), text].concat()
    }
}
/// The binding of `q | k | v`, and a function that reads four values of a head, zero beyond its width.
fn load_four(width: usize) -> String {
    let (element, body) = match width.is_multiple_of(4) {
        true => ("vec4<f32>", "return qkv[(at + d) / 4u];".to_owned()),
        false => {
            let value = |i: u32| format!("if (d + {i}u < D) {{ v[{i}] = qkv[at + d + {i}u]; }}");
            ("f32", format!("var v: vec4<f32>; {} return v;", (0..4).map(value).collect::<String>()))
        }
    };
    format!(
        "@group(0) @binding(0) var<storage, read> qkv: array<{element}>;\n\
         @group(0) @binding(1) var<storage, read> tiles: array<u32>;\n\
         @group(0) @binding(2) var<storage, read_write> out: array<f32>;\n\
         fn load_four(at: u32, d: u32) -> vec4<f32> {{ {body} }}\n"
    )
}

/// \[T, 2F\] → \[T, F\].
pub(crate) fn gate(
    x: &GpuRows,
    function: Activation,
    activated: Activated,
    recorder: &mut Recorder,
) -> Result<GpuRows> {
    let width = x.width / 2;
    let (first, second) = match activated {
        Activated::First => (0, width),
        Activated::Second => (width, 0),
    };
    let sizes = shape(&[("F", width), ("ACTIVATED", first), ("OTHER", second)]);
    let text = [sizes, activation(function), include_str!("wgsl/gate.wgsl").to_owned()].concat();
    let out = recorder.take(x.n_rows, width)?;
    recorder.run_many(&text, &[bound(x), bound(&out)], (x.n_rows * width).div_ceil(THREADS))?;
    Ok(out)
}

/// `x += y`, of the same shape.
pub(crate) fn add(x: &GpuRows, y: &GpuRows, recorder: &mut Recorder) -> Result<()> {
    assert_eq!((x.n_rows, x.width), (y.n_rows, y.width), "a residual has the shape of its rows");
    recorder.run_many(include_str!("wgsl/add.wgsl"), &[bound(x), bound(y)], (x.n_rows * x.width).div_ceil(THREADS))
}
