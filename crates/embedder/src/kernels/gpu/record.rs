//! Rows on a GPU, the commands that are not yet submitted, and the way back to main memory.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use bytemuck::cast_slice;
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding, BufferUsages, CommandEncoder,
    CommandEncoderDescriptor, MapMode, SubmissionIndex,
};

use super::adapter::GROUPS_MAX;
use super::failure::Result;
use super::handle::{Gpu, PATIENCE};
use super::table::Table;
use crate::kernels::cpu::attention::RelativeBias;
use crate::kernels::cpu::heads::{Heads, Sight};
use crate::pack::Batch;

/// Threads of every workgroup but those of products.
pub(super) const THREADS: usize = 64;

/// Rows \[T, width\] in a buffer that may be longer.
#[derive(Debug)]
pub(crate) struct GpuRows {
    pub(super) buffer: Buffer,
    pub(super) n_rows: usize,
    pub(super) width: usize,
    gpu: Gpu,
}

impl GpuRows {
    pub(super) fn n_bytes(&self) -> u64 {
        (self.n_rows * self.width * size_of::<f32>()) as u64
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Begins to copy the rows to main memory. All commands on them are submitted.
    pub(crate) fn download(&self) -> Result<Download> {
        Download::start(&self.gpu, &self.buffer, self.n_bytes())
    }
}

/// Bytes on their way to main memory.
#[derive(Debug)]
pub(crate) struct Download {
    gpu: Gpu,
    staging: Buffer,
    submission: SubmissionIndex,
    arrived: Receiver<bool>,
    n_bytes: u64,
}

impl Download {
    /// Begins to copy the first bytes of a buffer. All commands on them are submitted.
    pub(super) fn start(gpu: &Gpu, buffer: &Buffer, n_bytes: u64) -> Result<Self> {
        let gpu = gpu.clone();
        let staging = gpu.buffer(n_bytes, BufferUsages::MAP_READ | BufferUsages::COPY_DST)?;
        let mut encoder = gpu.device().create_command_encoder(&CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, n_bytes);
        let submission = gpu.submit(encoder);
        let (tell, arrived) = channel();
        staging.slice(..n_bytes).map_async(MapMode::Read, move |mapped| {
            let _ = tell.send(mapped.is_ok()); // somebody may have given up waiting
        });
        Ok(Self { gpu, staging, submission, arrived, n_bytes })
    }

    /// The values, once the device has come that far.
    pub(crate) fn wait(self) -> Result<Vec<f32>> {
        self.read(|bytes| bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// The result of `read` on the bytes, once the device has come that far.
    pub(super) fn read<R>(self, read: impl FnOnce(&[u8]) -> R) -> Result<R> {
        let Self { gpu, staging, submission, arrived, n_bytes } = self;
        gpu.wait(&submission)?;
        // another thread may have been the one that found it finished, and may not have said so yet
        match arrived.recv_timeout(PATIENCE) {
            Ok(true) => {}
            Ok(false) | Err(RecvTimeoutError::Disconnected) => {
                return Err(gpu.lost("its memory cannot be read".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => return Err(gpu.stalled()),
        }
        let bytes = staging.slice(..n_bytes).get_mapped_range().map_err(|error| gpu.lost(error.to_string()))?;
        let result = read(&bytes);
        drop(bytes);
        staging.unmap();
        gpu.check()?; // what was computed while a fault came is not to be trusted
        Ok(result)
    }
}

/// The data of a batch that kernels read beside its rows.
#[derive(Debug, Default)]
struct OfBatch {
    positions: Option<Buffer>,
    /// By queries in a tile: start, end and first query of each tile.
    tiles: Vec<(usize, u32, Buffer)>,
}

/// All that a text of attention depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub(super) heads: Heads,
    pub(super) scale: f32,
    /// Of the bias, where there is one.
    pub(super) reach: Option<usize>,
    pub(super) sight: Sight,
}

/// The commands of one thread: recorded kernel by kernel, submitted layer by layer, in order.
#[derive(Debug)]
pub(crate) struct Recorder {
    gpu: Gpu,
    encoder: Option<CommandEncoder>,
    /// Buffers that no row needs any more; later commands come after those that did.
    free: Vec<Buffer>,
    batch: OfBatch,
    /// Biases by distance that layers share.
    biases: Vec<(Arc<RelativeBias>, Table)>,
    /// Texts of attention: a model has one or two.
    attention: Vec<(Setting, Arc<str>)>,
}

impl Recorder {
    pub(crate) fn new(gpu: Gpu) -> Self {
        Self {
            gpu,
            encoder: None,
            free: Vec::new(),
            batch: OfBatch::default(),
            biases: Vec::new(),
            attention: Vec::new(),
        }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The values of a bias; copied there at the first call.
    pub(super) fn bias(&mut self, bias: &Arc<RelativeBias>) -> Result<Table> {
        if let Some((_, table)) = self.biases.iter().find(|(known, _)| Arc::ptr_eq(known, bias)) {
            return Ok(table.clone());
        }
        let table = Table::new(&self.gpu, &bias.values)?;
        self.biases.push((Arc::clone(bias), table.clone()));
        Ok(table)
    }

    /// The first rows of a batch, with whatever the buffer held before.
    pub(super) fn begin(&mut self, n_rows: usize, width: usize) -> Result<GpuRows> {
        self.encoder = None; // an earlier batch may have failed half way
        self.batch = OfBatch::default();
        self.take(n_rows, width)
    }

    /// The first rows of a batch, from main memory.
    pub(crate) fn begin_with(&mut self, values: &[f32], width: usize) -> Result<GpuRows> {
        let rows = self.begin(values.len() / width, width)?;
        self.gpu.write(&rows.buffer, cast_slice(values))?;
        Ok(rows)
    }

    /// Rows whose values are whatever the buffer held before.
    pub(crate) fn take(&mut self, n_rows: usize, width: usize) -> Result<GpuRows> {
        let n_bytes = (n_rows * width * size_of::<f32>()) as u64;
        let fitting = (0..self.free.len()).filter(|&i| self.free[i].size() >= n_bytes);
        let buffer = match fitting.min_by_key(|&i| self.free[i].size()) {
            Some(i) => self.free.swap_remove(i),
            None => {
                // a smaller one would never be taken again
                let smallest = (0..self.free.len()).min_by_key(|&i| self.free[i].size());
                drop(smallest.map(|i| self.free.swap_remove(i)));
                self.gpu.buffer(n_bytes, BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST)?
            }
        };
        Ok(GpuRows { buffer, n_rows, width, gpu: self.gpu.clone() })
    }

    /// The same rows again.
    pub(crate) fn copy(&mut self, rows: &GpuRows) -> Result<GpuRows> {
        let copy = self.take(rows.n_rows, rows.width)?;
        self.encoder().copy_buffer_to_buffer(&rows.buffer, 0, &copy.buffer, 0, rows.n_bytes());
        Ok(copy)
    }

    pub(crate) fn give(&mut self, rows: GpuRows) {
        self.free.push(rows.buffer);
    }

    /// Hands what was recorded to the device.
    pub(crate) fn submit(&mut self) -> Result<()> {
        if let Some(encoder) = self.encoder.take() {
            self.gpu.submit(encoder);
        }
        self.gpu.check()
    }

    /// For each token its place in its text.
    pub(super) fn positions(&mut self, batch: &Batch) -> Result<Buffer> {
        if self.batch.positions.is_none() {
            let positions: Vec<u32> = batch.positions().collect();
            self.batch.positions = Some(self.gpu.filled(cast_slice(&positions))?);
        }
        Ok(self.batch.positions.clone().expect("set above"))
    }

    /// Tiles of at most so many queries of one text, and their number.
    pub(super) fn tiles(&mut self, batch: &Batch, n_queries: usize) -> Result<(u32, Buffer)> {
        if let Some((_, n, tiles)) = self.batch.tiles.iter().find(|(n, ..)| *n == n_queries) {
            return Ok((*n, tiles.clone()));
        }
        let of_text = |span: std::ops::Range<usize>| {
            span.clone().step_by(n_queries).flat_map(move |first| [span.start, span.end, first].map(|n| n as u32))
        };
        let tiles: Vec<u32> = batch.spans.iter().flat_map(of_text).collect();
        let (n, buffer) = ((tiles.len() / 3) as u32, self.gpu.filled(cast_slice(&tiles))?);
        self.batch.tiles.push((n_queries, n, buffer.clone()));
        Ok((n, buffer))
    }

    /// Records a kernel on buffers, of each of which so many bytes are bound: `groups` workgroups, and as many rows of
    /// them as the second number says.
    pub(super) fn run(&mut self, text: &str, buffers: &[(&Buffer, u64)], groups: [u32; 2]) -> Result<()> {
        let kernel = self.gpu.kernel(text)?;
        let mut entries = Vec::with_capacity(buffers.len());
        for (&(buffer, n_bytes), binding) in buffers.iter().zip(0..) {
            let bound = BufferBinding { buffer, offset: 0, size: NonZeroU64::new(n_bytes) };
            entries.push(BindGroupEntry { binding, resource: BindingResource::Buffer(bound) });
        }
        let layout = kernel.get_bind_group_layout(0);
        let group = self.gpu.device().create_bind_group(&BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        let mut pass = self.encoder().begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&kernel);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(groups[0], groups[1], 1);
        Ok(())
    }

    /// Records the `each` of a text, by `n_threads` threads and some more.
    pub(super) fn run_each(&mut self, text: &str, buffers: &[(&Buffer, u64)], n_threads: usize) -> Result<()> {
        self.run_many(&[text, include_str!("wgsl/each.wgsl")].concat(), buffers, n_threads.div_ceil(THREADS))
    }

    /// The text of attention in that setting; made at the first call.
    pub(super) fn attention(&mut self, setting: Setting, make: impl FnOnce(&Gpu) -> String) -> Arc<str> {
        if let Some((_, text)) = self.attention.iter().find(|(known, _)| *known == setting) {
            return Arc::clone(text);
        }
        let text: Arc<str> = make(&self.gpu).into();
        self.attention.push((setting, Arc::clone(&text)));
        text
    }

    /// As [`Recorder::run`], with any number of workgroups; the kernel numbers them across both dimensions.
    pub(super) fn run_many(&mut self, text: &str, buffers: &[(&Buffer, u64)], n_groups: usize) -> Result<()> {
        let n_groups = n_groups as u32;
        let wide = n_groups.min(GROUPS_MAX);
        self.run(text, buffers, [wide, n_groups.div_ceil(wide)])
    }

    fn encoder(&mut self) -> &mut CommandEncoder {
        let Self { encoder, gpu, .. } = self;
        encoder.get_or_insert_with(|| gpu.device().create_command_encoder(&CommandEncoderDescriptor::default()))
    }
}
