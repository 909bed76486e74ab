//! An open GPU: its queue, its kernels as far as they were compiled, and what befell it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, ComputePipeline, Device, ErrorFilter, Queue};

use super::adapter::Adapter;
use super::failure::{Failure, Result, failed, ready};

/// A GPU that computes; a copy is the same one.
#[derive(Clone)]
pub(crate) struct Gpu(Arc<Inner>);

struct Inner {
    adapter: Adapter,
    device: Device,
    queue: Queue,
    /// By their text.
    kernels: Mutex<HashMap<String, ComputePipeline>>,
    fate: Arc<Fate>,
    /// Bytes of a buffer that are to count as a full memory, in tests.
    #[cfg(test)]
    memory: std::sync::atomic::AtomicU64,
}

/// The faults that the driver told outside of any call.
#[derive(Default)]
struct Fate {
    lost: OnceLock<String>,
    error: Mutex<Option<String>>,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.0.adapter)
    }
}

impl Gpu {
    /// With all the limits of the adapter and none of its features.
    pub(super) fn open(adapter: &Adapter, handle: &wgpu::Adapter) -> Result<Self, String> {
        let descriptor = wgpu::DeviceDescriptor { required_limits: handle.limits(), ..Default::default() };
        let opened = ready(handle.request_device(&descriptor)).ok_or("the driver does not answer")?;
        let (device, queue) = opened.map_err(|error| error.to_string())?;
        let fate = Arc::new(Fate::default());
        let of_loss = Arc::clone(&fate);
        device.set_device_lost_callback(move |reason, message| {
            let _ = of_loss.lost.set(format!("{reason:?} {message}").trim().to_owned()); // the first reason counts
        });
        let of_error = Arc::clone(&fate);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            of_error.error.lock().get_or_insert_with(|| error.to_string());
        }));
        Ok(Self(Arc::new(Inner {
            adapter: adapter.clone(),
            device,
            queue,
            kernels: Mutex::default(),
            fate,
            #[cfg(test)]
            memory: u64::MAX.into(),
        })))
    }

    pub(crate) fn adapter(&self) -> &Adapter {
        &self.0.adapter
    }

    /// The adapter with its driver and both versions: all of it decides the bits of a vector.
    pub(crate) fn name(&self) -> String {
        self.0.adapter.to_string()
    }

    /// Bytes that a kernel reads of one buffer, at most.
    pub(crate) fn binding_bytes_max(&self) -> usize {
        let Adapter { binding_bytes_max, buffer_bytes_max, .. } = self.0.adapter;
        usize::try_from(binding_bytes_max.min(buffer_bytes_max)).unwrap_or(usize::MAX)
    }

    pub(super) fn device(&self) -> &Device {
        &self.0.device
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.0.queue
    }

    /// The error that came since the last call, if one did.
    pub(super) fn check(&self) -> Result<()> {
        let gpu = || self.name();
        if let Some(reason) = self.0.fate.lost.get() {
            return Err(failed(Failure::Lost { gpu: gpu(), reason: reason.clone() }));
        }
        match self.0.fate.error.lock().take() {
            Some(reason) => Err(failed(Failure::Refused { gpu: gpu(), reason })),
            None => Ok(()),
        }
    }

    /// A buffer of at least one number.
    pub(super) fn buffer(&self, n_bytes: u64, usage: BufferUsages) -> Result<Buffer> {
        let most = self.binding_bytes_max() as u64;
        if n_bytes > most {
            return Err(failed(Failure::TooLarge { gpu: self.name(), n_bytes, most }));
        }
        #[cfg(test)]
        if n_bytes > self.0.memory.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(failed(Failure::OutOfMemory { gpu: self.name(), n_bytes }));
        }
        let make = || {
            let size = n_bytes.max(4);
            self.0.device.create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        self.within_memory(n_bytes, make)
    }

    /// A buffer that kernels read, with these bytes in it.
    pub(super) fn filled(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.buffer(bytes.len() as u64, BufferUsages::STORAGE | BufferUsages::COPY_DST)?;
        self.write(&buffer, bytes)?;
        Ok(buffer)
    }

    /// Copies bytes to the beginning of a buffer, before anything that is submitted later.
    pub(super) fn write(&self, buffer: &Buffer, bytes: &[u8]) -> Result<()> {
        self.within_memory(bytes.len() as u64, || self.0.queue.write_buffer(buffer, 0, bytes))
    }

    /// The result of `job`, which takes memory.
    fn within_memory<T>(&self, n_bytes: u64, job: impl FnOnce() -> T) -> Result<T> {
        let scope = self.0.device.push_error_scope(ErrorFilter::OutOfMemory);
        let made = job();
        let full = ready(scope.pop()).flatten();
        self.check()?;
        match full {
            None => Ok(made),
            Some(_) => Err(failed(Failure::OutOfMemory { gpu: self.name(), n_bytes })),
        }
    }

    /// The kernel of that text, compiled at the first call.
    pub(super) fn kernel(&self, text: &str) -> Result<ComputePipeline> {
        if let Some(kernel) = self.0.kernels.lock().get(text) {
            return Ok(kernel.clone());
        }
        let source = wgpu::ShaderSource::Wgsl(text.into());
        let module = self.0.device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let kernel = self.0.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false, // all of it is written before it is read
                ..Default::default()
            },
            cache: None,
        });
        self.check()?;
        self.0.kernels.lock().insert(text.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// Lets no buffer be larger, as if memory were full.
    #[cfg(test)]
    pub(crate) fn shrink(&self, n_bytes: u64) {
        self.0.memory.store(n_bytes, std::sync::atomic::Ordering::Relaxed);
    }

    /// Makes the device lost, as a driver's reset does.
    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.0.device.destroy();
        let _ = self.0.device.poll(wgpu::PollType::Poll);
    }
}
