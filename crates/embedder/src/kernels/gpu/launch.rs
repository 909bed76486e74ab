//! The kernels' launches: the shapes in front of each text, its buffers, and how many workgroups it takes.

use std::fmt;

use wgpu::Buffer;

use super::failure::Result;
use super::table::Table;
use super::{Gpu, GpuRows, Recorder};
use crate::kernels::cpu::dense::Activation;
use crate::kernels::cpu::gate::Activated;
use crate::kernels::cpu::heads::Heads;
use crate::kernels::cpu::norm::Centre;
use crate::pack::Batch;

/// The members of a vector of four.
pub(super) const MEMBERS: [char; 4] = ['x', 'y', 'z', 'w'];

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

/// `n` fours of numbers in the memory of a workgroup, and functions that read and write them: `NAME_at`, `put_NAME`,
/// and of one member `NAME_member`, `set_NAME`.
///
/// Threads write members of the same four. The language lets a write to a member write all four; Vulkan's does not, and
/// Metal's may: there the numbers stand alone.
pub(super) fn fours(gpu: &Gpu, name: &str, n: &str) -> String {
    let (memory, at, put, member) = match gpu.adapter().interface == "vulkan" {
        true => (format!("vec4<f32>, {n}"), format!("{name}[i]"), format!("{name}[i] = v;"), format!("{name}[i][m]")),
        false => {
            let one = |m: usize| format!("{name}[4u * i + {m}u]");
            let put = |m: usize| format!("{} = v[{m}];", one(m));
            let all: Vec<String> = (0..4).map(one).collect();
            let (at, put) = (format!("vec4({})", all.join(", ")), (0..4).map(put).collect());
            (format!("f32, 4u * ({n})"), at, put, format!("{name}[4u * i + m]"))
        }
    };
    format!(
        "var<workgroup> {name}: array<{memory}>;\n\
         fn {name}_at(i: u32) -> vec4<f32> {{ return {at}; }}\n\
         fn put_{name}(i: u32, v: vec4<f32>) {{ {put} }}\n\
         fn {name}_member(i: u32, m: u32) -> f32 {{ return {member}; }}\n\
         fn set_{name}(i: u32, m: u32, v: f32) {{ {member} = v; }}\n"
    )
}

/// The function of that activation, with all of them in front.
pub(super) fn activation(activation: Activation) -> String {
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
    recorder.run_each(&text, &buffers, n_threads)
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

pub(super) fn of_heads(heads: Heads) -> String {
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
        recorder.run_each(&text, &buffers, n_threads)
    }
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
    recorder.run_each(&text, &[bound(x), bound(&out)], x.n_rows * width)?;
    Ok(out)
}

/// `x += y`, of the same shape.
pub(crate) fn add(x: &GpuRows, y: &GpuRows, recorder: &mut Recorder) -> Result<()> {
    assert_eq!((x.n_rows, x.width), (y.n_rows, y.width), "a residual has the shape of its rows");
    recorder.run_each(include_str!("wgsl/add.wgsl"), &[bound(x), bound(y)], x.n_rows * x.width)
}
