//! An open GPU: its queue, its kernels as far as they were compiled, and what befell it.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use wgpu::{
    Buffer, BufferDescriptor, BufferUsages, CommandEncoder, ComputePipeline, Device, ErrorFilter, PollError, PollType,
    Queue, SubmissionIndex,
};

use super::adapter::{Adapter, GROUPS_MAX};
use super::failure::{Failure, Result, failed, ready};
#[cfg(any(test, feature = "testing"))]
use super::rehearsal::Faults;

/// A device that finishes nothing for so long hangs: a layer takes milliseconds on a card, and in software that plays
/// one minutes at most.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

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
    #[cfg(any(test, feature = "testing"))]
    faults: Faults,
}

/// The course of a device, for all threads that use it.
#[derive(Default)]
struct Fate {
    /// The first fault: nothing is computed after it.
    failure: OnceLock<Failure>,
    /// Submissions that the device has finished, as far as somebody waited for it.
    n_finished: AtomicU64,
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.0.adapter)
    }
}

impl Gpu {
    /// With all the limits of the adapter, and of its features 16-bit floats.
    pub(super) fn open(adapter: &Adapter, handle: &wgpu::Adapter) -> Result<Self, String> {
        let required_features = if adapter.has_f16 { wgpu::Features::SHADER_F16 } else { wgpu::Features::empty() };
        let required_limits = handle.limits();
        let descriptor = wgpu::DeviceDescriptor { required_features, required_limits, ..Default::default() };
        let opened = ready(handle.request_device(&descriptor)).ok_or("the driver does not answer")?;
        let (device, queue) = opened.map_err(|error| error.to_string())?;
        let fate = Arc::new(Fate::default());
        let (of_loss, gpu) = (Arc::clone(&fate), adapter.to_string());
        device.set_device_lost_callback(move |reason, message| {
            let reason = format!("{reason:?} {message}").trim().to_owned();
            let _ = of_loss.failure.set(Failure::Lost { gpu: gpu.clone(), reason }); // the first failure counts
        });
        let (of_error, gpu) = (Arc::clone(&fate), adapter.to_string());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let _ = of_error.failure.set(Failure::Refused { gpu: gpu.clone(), reason: error.to_string() });
        }));
        Ok(Self(Arc::new(Inner {
            adapter: adapter.clone(),
            device,
            queue,
            kernels: Mutex::default(),
            fate,
            #[cfg(any(test, feature = "testing"))]
            faults: Faults::new(),
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
        // lengths of more bytes than that are not told truly to a kernel by every interface
        usize::try_from(binding_bytes_max.min(buffer_bytes_max).min(i32::MAX as u64)).unwrap_or(usize::MAX)
    }

    /// Rows of so many values that kernels compute at a time, at most: each is read whole, and may have a workgroup.
    pub(crate) fn rows_max(&self, width: usize) -> usize {
        (self.binding_bytes_max() / (width * size_of::<f32>())).min(GROUPS_MAX as usize)
    }

    pub(super) fn device(&self) -> &Device {
        &self.0.device
    }

    /// Hands commands to the device.
    pub(super) fn submit(&self, encoder: CommandEncoder) -> SubmissionIndex {
        #[cfg(any(test, feature = "testing"))]
        if self.0.faults.submissions_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.lose();
        }
        let submission = self.0.queue.submit([encoder.finish()]);
        let fate = Arc::clone(&self.0.fate);
        self.0.queue.on_submitted_work_done(move || {
            fate.n_finished.fetch_add(1, Ordering::Relaxed);
        });
        submission
    }

    /// Waits for a submission as long as the device goes on finishing some.
    pub(super) fn wait(&self, submission: &SubmissionIndex) -> Result<()> {
        loop {
            let n_finished = self.0.fate.n_finished.load(Ordering::Relaxed);
            if self.is_finished(submission)? {
                return Ok(());
            }
            if self.0.fate.n_finished.load(Ordering::Relaxed) == n_finished {
                return Err(self.stalled());
            }
        }
    }

    /// Waits for a submission; false if it took too long.
    fn is_finished(&self, submission: &SubmissionIndex) -> Result<bool> {
        let wait = PollType::Wait { submission_index: Some(submission.clone()), timeout: Some(PATIENCE) };
        let poll = || {
            #[cfg(test)]
            if let Some(waited) = self.0.faults.waits.lock().pop_front() {
                return self.rehearsed(waited);
            }
            self.0.device.poll(wait).map(drop)
        };
        // the library panics where the driver tells of a loss to somebody who waits
        let waited = catch_unwind(AssertUnwindSafe(poll));
        self.check()?; // it says more than the way the wait ended
        match waited {
            Ok(Ok(())) => Ok(true),
            Ok(Err(PollError::Timeout)) => Ok(false),
            Ok(Err(error)) => Err(self.lost(error.to_string())),
            Err(_) => Err(self.lost("the driver failed while it was waited for".to_owned())),
        }
    }

    /// The error of a device that something befell, the same for whoever asks.
    pub(super) fn check(&self) -> Result<()> {
        self.0.fate.failure.get().map_or(Ok(()), |failure| Err(failed(failure.clone())))
    }

    /// Ends all use of the device; the error is that of the first failure.
    fn fail(&self, failure: Failure) -> candle_core::Error {
        failed(self.0.fate.failure.get_or_init(|| failure).clone())
    }

    /// As [`Gpu::check`], of a device that hangs.
    pub(super) fn stalled(&self) -> candle_core::Error {
        std::mem::forget(self.clone()); // a queue that goes waits for its device, without an end
        self.fail(Failure::Stalled { gpu: self.name(), waited: PATIENCE })
    }

    /// As [`Gpu::check`], of a device that does not answer any more.
    pub(super) fn lost(&self, reason: String) -> candle_core::Error {
        self.fail(Failure::Lost { gpu: self.name(), reason })
    }

    /// A buffer of at least one number.
    pub(super) fn buffer(&self, n_bytes: u64, usage: BufferUsages) -> Result<Buffer> {
        let most = self.binding_bytes_max() as u64;
        if n_bytes > most {
            return Err(failed(Failure::TooLarge { gpu: self.name(), n_bytes, most }));
        }
        #[cfg(any(test, feature = "testing"))]
        if n_bytes > self.0.faults.memory.load(Ordering::Relaxed) {
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
        let descriptor = wgpu::ShaderModuleDescriptor { label: None, source };
        #[expect(
            unsafe_code,
            reason = "our own kernels, whose loops are counted and whose places are within what their launches bind; \
                      checks of each place in shared memory cost a quarter of the time"
        )]
        let module =
            unsafe { self.0.device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) };
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

    /// Makes the device lost, as a driver's reset does.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn lose(&self) {
        self.0.device.destroy();
        let _ = self.0.device.poll(PollType::wait_indefinitely()); // told when what was submitted is finished
    }
}

#[cfg(test)]
impl Gpu {
    /// Lets no buffer be larger, as if memory were full.
    pub(crate) fn shrink(&self, n_bytes: u64) {
        self.0.faults.memory.store(n_bytes, Ordering::Relaxed);
    }

    /// Loses the device after so many submissions from now on.
    pub(crate) fn lose_after(&self, n_submissions: u64) {
        self.0.faults.submissions_left.store(n_submissions, Ordering::Relaxed);
    }

    /// Compiles a text, which may be none.
    pub(crate) fn compile(&self, text: &str) -> Result<ComputePipeline> {
        self.kernel(text)
    }

    /// Does what somebody else's wait does for all.
    pub(crate) fn poll(&self) {
        let _ = self.0.device.poll(PollType::Poll);
    }

    /// Lets the next waits end like that.
    pub(crate) fn rehearse(&self, waits: &[super::rehearsal::Waited]) {
        self.0.faults.waits.lock().extend(waits);
    }

    fn rehearsed(&self, waited: super::rehearsal::Waited) -> std::result::Result<(), PollError> {
        use super::rehearsal::Waited::{ForOthers, InVain, Panicking, TooEarly};
        match waited {
            TooEarly => return Ok(()),
            InVain => {}
            ForOthers => {
                self.0.fate.n_finished.fetch_add(1, Ordering::Relaxed);
            }
            Panicking => panic!("as the library does"),
        }
        Err(PollError::Timeout)
    }
}
