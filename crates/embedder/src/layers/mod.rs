//! The parts encoders are made of, over packed tokens: rows `[T, H]` without padding.
//!
//! Each part has three forms of the same computation. On the CPU it calls our kernels on buffers that a [`Workspace`]
//! lends, so that nothing is allocated from one batch to the next; on a GPU by Vulkan or Metal it records our kernels
//! there; on the tensor library's devices it is written in that library's operations, or in kernels of ours where those
//! are slow. Tests hold the one against the other.

pub(crate) mod attention;
pub(crate) mod embedding;
pub(crate) mod gate;
pub(crate) mod linear;
pub(crate) mod norm;
pub(crate) mod team;

use candle_core::{DType, Result, Tensor};

use crate::kernels::cpu::Simd;
use crate::kernels::cpu::dense::{Activation, Scratch};
use crate::kernels::cuda;
use crate::kernels::gpu::{self, Gpu, GpuRows, Recorder};
use crate::precision::Precision;

/// The rows that flow from layer to layer: T of one width.
#[derive(Debug)]
pub(crate) enum Rows {
    Cpu(CpuRows),
    Gpu(GpuRows),
    Device(Tensor),
}

/// Rows in main memory. The buffer may be longer than the rows in it.
#[derive(Debug)]
pub(crate) struct CpuRows {
    buffer: Vec<f32>,
    n_rows: usize,
    width: usize,
}

impl CpuRows {
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.buffer[..self.n_rows * self.width]
    }

    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.buffer[..self.n_rows * self.width]
    }
}

impl Rows {
    /// Adds `other`, of the same shape, in place.
    pub(crate) fn add(&mut self, other: &Self, workspace: &mut Workspace) -> Result<()> {
        match (self, other) {
            (Self::Cpu(rows), Self::Cpu(other)) => {
                assert_eq!(
                    (rows.n_rows, rows.width),
                    (other.n_rows, other.width),
                    "a residual has the shape of its rows"
                );
                rows.values_mut().iter_mut().zip(other.values()).for_each(|(value, &add)| *value += add);
            }
            (Self::Gpu(rows), Self::Gpu(other)) => gpu::launch::add(rows, other, workspace.recorder())?,
            (Self::Device(rows), Self::Device(other)) => *rows = (&*rows + other)?,
            _ => unreachable!("one encoder lives on one device"),
        }
        Ok(())
    }

    /// The values in main memory as f32, \[T, H\].
    pub(crate) fn to_host(&self) -> Result<std::borrow::Cow<'_, [f32]>> {
        match self {
            Self::Cpu(rows) => Ok(rows.values().into()),
            Self::Gpu(rows) => Ok(rows.download()?.wait()?.into()),
            Self::Device(rows) => Ok(to_host(rows)?.into()),
        }
    }
}

/// The memory of one worker thread: buffers that go round from layer to layer, and what the kernels need besides.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) simd: Simd,
    pub(crate) scratch: Scratch,
    /// Threads beside this one, where there is no other work for them.
    pub(crate) team: Option<team::Team>,
    /// The commands of a GPU, where rows are to go there.
    recorder: Option<Recorder>,
    free: Vec<Vec<f32>>,
}

impl Workspace {
    pub(crate) fn new(simd: Simd) -> Self {
        Self { simd, scratch: Scratch::new(simd), team: None, recorder: None, free: Vec::new() }
    }

    /// The memory of a thread that gives a GPU its work.
    pub(crate) fn of_gpu(simd: Simd, gpu: Gpu) -> Self {
        Self { recorder: Some(Recorder::new(gpu)), ..Self::new(simd) }
    }

    /// The GPU that rows are to go to.
    pub(crate) fn gpu(&self) -> Option<Gpu> {
        self.recorder.as_ref().map(|recorder| recorder.gpu().clone())
    }

    /// The commands of the GPU that rows live on.
    pub(crate) fn recorder(&mut self) -> &mut Recorder {
        self.recorder.as_mut().expect("rows of a GPU are made by its commands")
    }

    /// The first rows of a batch, where the encoder computes them: those of a GPU go there.
    pub(crate) fn begin(&mut self, rows: Rows) -> Result<Rows> {
        let (Some(recorder), Rows::Cpu(host)) = (&mut self.recorder, &rows) else { return Ok(rows) };
        let begun = recorder.begin_with(host.values(), host.width())?;
        self.give(rows);
        Ok(Rows::Gpu(begun))
    }

    /// The end of a part of the work that a device may begin with.
    pub(crate) fn submit(&mut self) -> Result<()> {
        self.recorder.as_mut().map_or(Ok(()), Recorder::submit)
    }

    /// Rows whose values are whatever the buffer held before.
    pub(crate) fn take(&mut self, n_rows: usize, width: usize) -> CpuRows {
        let n_values = n_rows * width;
        let fitting = (0..self.free.len()).filter(|&i| self.free[i].len() >= n_values);
        let chosen = fitting.min_by_key(|&i| self.free[i].len()).or_else(|| self.free.len().checked_sub(1));
        let mut buffer = chosen.map(|i| self.free.swap_remove(i)).unwrap_or_default();
        if buffer.len() < n_values {
            buffer = vec![0.0; n_values]; // pages come zeroed from the system, growing in place would copy them
        }
        CpuRows { buffer, n_rows, width }
    }

    /// The same rows again.
    pub(crate) fn copy(&mut self, rows: &Rows) -> Result<Rows> {
        Ok(match rows {
            Rows::Cpu(rows) => {
                let mut copy = self.take(rows.n_rows, rows.width);
                copy.values_mut().copy_from_slice(rows.values());
                Rows::Cpu(copy)
            }
            Rows::Gpu(rows) => Rows::Gpu(self.recorder().copy(rows)?),
            Rows::Device(rows) => Rows::Device(rows.clone()), // tensors are never changed in place
        })
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, rows: Rows) {
        match rows {
            Rows::Cpu(rows) => self.free.push(rows.buffer),
            Rows::Gpu(rows) => self.recorder().give(rows),
            Rows::Device(_) => {}
        }
    }
}

/// The values of a tensor in main memory as f32.
pub(crate) fn to_host(tensor: &Tensor) -> Result<Vec<f32>> {
    tensor.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
}

/// True if a part whose weights are this tensor takes its CPU form.
fn lives_on_cpu(weights: &Tensor) -> bool {
    weights.device().is_cpu() && !cuda::runs_on(weights.device())
}

/// The number type of weights and rows on a device that is not the CPU.
fn dtype(precision: Precision) -> DType {
    match precision {
        Precision::F32 => DType::F32,
        Precision::Bf16 => DType::BF16,
        Precision::F16 => DType::F16,
        Precision::Int8 => unreachable!("refused for devices when the model was loaded"),
    }
}

fn activate(x: &Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::None => Ok(x.clone()),
        Activation::Gelu => x.gelu_erf(),
        Activation::GeluTanh => x.gelu(),
        Activation::Relu => x.relu(),
        Activation::Silu => x.silu(),
        Activation::Tanh => x.tanh(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use candle_core::{Device, Tensor};

    use super::*;

    pub(crate) fn workspace() -> Workspace {
        Workspace::new(Simd::detect())
    }

    /// `n` reproducible values in [-1, 1), \[n\].
    pub(crate) fn noise(seed: u64, n: usize) -> Tensor {
        Tensor::from_vec(crate::kernels::cpu::noise(seed, n), n, &Device::Cpu).unwrap()
    }

    /// The rows of a tensor \[T, H\] in both forms.
    pub(crate) fn both(tensor: &Tensor, workspace: &mut Workspace) -> (Rows, Rows) {
        let (n_rows, width) = tensor.dims2().unwrap();
        let mut rows = workspace.take(n_rows, width);
        rows.values_mut().copy_from_slice(&tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        (Rows::Cpu(rows), Rows::Device(tensor.clone()))
    }

    #[track_caller]
    pub(crate) fn assert_close(ours: &Rows, theirs: &Rows, tolerance: f32) {
        let (ours, theirs) = (ours.to_host().unwrap(), theirs.to_host().unwrap());
        assert_eq!(ours.len(), theirs.len());
        let difference = ours.iter().zip(theirs.iter()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference <= tolerance, "differs by {difference}");
    }

    #[test]
    fn buffers_go_round() {
        let mut workspace = workspace();
        let (small, large) = (workspace.take(2, 3), workspace.take(10, 10));
        let large_at = large.values().as_ptr();
        workspace.give(Rows::Cpu(large));
        workspace.give(Rows::Cpu(small));
        let again = workspace.take(9, 11);
        assert_eq!((again.values().as_ptr(), again.values().len()), (large_at, 99));
        assert_eq!(workspace.take(1, 6).values().len(), 6);
    }
}
