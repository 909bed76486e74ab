//! Numbers that stay on a GPU: weights, and tables of positions.

use bytemuck::{NoUninit, cast_slice};
use wgpu::Buffer;

use super::failure::Result;
use super::handle::Gpu;

/// Numbers that stay on the device.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    buffer: Buffer,
    n_bytes: u64,
}

impl Table {
    pub(super) fn new<T: NoUninit>(gpu: &Gpu, values: &[T]) -> Result<Self> {
        let bytes = cast_slice(values);
        Ok(Self { buffer: gpu.filled(bytes)?, n_bytes: bytes.len() as u64 })
    }

    pub(super) fn bound(&self) -> (&Buffer, u64) {
        (&self.buffer, self.n_bytes)
    }
}
