//! Copies between main memory and the device that neither side waits for: through page-locked memory, in the stream's
//! order.

use candle_core::{DType, Device, Result, Tensor};

/// Queues the copy of some numbers to the device: u32 \[n\].
pub(crate) fn upload(words: &[u32], device: &Device) -> Result<Tensor> {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device {
        return cuda::upload(words, device);
    }
    Tensor::from_slice(words, words.len(), device)
}

/// Queues the copy of values as they lie in memory, f32 or f16, to the device.
pub(crate) fn upload_bytes(bytes: &[u8], dtype: DType, shape: (usize, usize), device: &Device) -> Result<Tensor> {
    assert_eq!(bytes.len(), shape.0 * shape.1 * dtype.size_in_bytes(), "whole rows");
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device {
        return cuda::upload_bytes(bytes, dtype, shape, device);
    }
    Tensor::from_raw_buffer(bytes, dtype, &[shape.0, shape.1], device)
}

/// Values on their way to main memory.
#[derive(Debug)]
pub(crate) struct Download(Way);

#[derive(Debug)]
enum Way {
    Arrived(Vec<f32>),
    #[cfg(feature = "cuda")]
    Coming(cuda::Coming),
}

impl Download {
    /// Queues the copy of all values of an f32 tensor.
    pub(crate) fn start(tensor: &Tensor) -> Result<Self> {
        #[cfg(feature = "cuda")]
        if tensor.device().is_cuda() {
            return Ok(Self(Way::Coming(cuda::download(tensor)?)));
        }
        Ok(Self(Way::Arrived(tensor.flatten_all()?.to_vec1()?)))
    }

    /// The values, once the device has come that far.
    pub(crate) fn wait(self) -> Result<Vec<f32>> {
        match self.0 {
            Way::Arrived(values) => Ok(values),
            #[cfg(feature = "cuda")]
            Way::Coming(coming) => coming.wait(),
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use candle_core::cuda_backend::cudarc::driver::{CudaEvent, DevicePtr, PinnedHostSlice, result, sys};
    use candle_core::cuda_backend::{CudaStorageSlice, DeviceId, WrapErr};
    use candle_core::op::BackpropOp;
    use candle_core::{CudaDevice, CudaStorage, DType, Error, Result, Shape, Storage, Tensor};
    use parking_lot::Mutex;

    /// Page-locked memory, and what must have happened on the device before it may be read or written again.
    #[derive(Debug)]
    struct Pinned {
        device: DeviceId,
        memory: PinnedHostSlice<u8>,
        last_use: Option<CudaEvent>,
    }

    /// Buffers that no copy needs any more, or soon will not: page-locking memory is slow.
    static SPARE: Mutex<Vec<Pinned>> = Mutex::new(Vec::new());

    /// Buffers are made at least this large, so that most of them fit most batches.
    const BYTES_MIN: usize = 1 << 18;
    /// Buffers of a size that are waited for before another is made.
    const BUFFERS_IN_USE_MAX: usize = 3;
    /// Below this a copy is not worth a thread.
    const BYTES_A_THREAD_MIN: usize = 4 << 20;
    const COPY_THREADS_MAX: usize = 8;

    impl Pinned {
        /// A buffer of at least that many bytes which nothing uses any more.
        fn take(device: &CudaDevice, n_bytes: usize) -> Result<Self> {
            let mut spare = SPARE.lock();
            let fits = |pinned: &Self| {
                pinned.device == device.id() && (n_bytes..=8 * n_bytes.max(BYTES_MIN)).contains(&pinned.memory.len())
            };
            let fitting = spare.iter().filter(|pinned| fits(pinned)).count();
            let ready = |pinned: &Self| pinned.last_use.as_ref().is_none_or(CudaEvent::is_complete);
            let found = spare.iter().position(|pinned| fits(pinned) && ready(pinned));
            let found = found.or_else(|| spare.iter().position(fits).filter(|_| fitting >= BUFFERS_IN_USE_MAX));
            let found = found.map(|at| spare.remove(at));
            drop(spare);
            if let Some(mut pinned) = found {
                pinned.wait()?;
                return Ok(pinned);
            }
            let (stream, n_bytes) = (device.cuda_stream(), n_bytes.next_power_of_two().max(BYTES_MIN));
            #[expect(unsafe_code, reason = "filled on the next line")]
            let mut memory = unsafe { stream.context().alloc_pinned_with_flags::<u8>(n_bytes, 0) }.w()?;
            memory.as_mut_slice().w()?.fill(0);
            Ok(Self { device: device.id(), memory, last_use: None })
        }

        /// Until the last copy from or to it is done.
        fn wait(&mut self) -> Result<()> {
            self.last_use.take().map_or(Ok(()), |event| event.synchronize()).w()
        }

        /// Notes that the copies queued so far use it.
        fn in_use(&mut self, device: &CudaDevice) -> Result<()> {
            let event = device.cuda_stream().record_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC));
            self.last_use = Some(event.w()?);
            Ok(())
        }

        fn give(self) {
            SPARE.lock().push(self);
        }
    }

    impl Drop for Pinned {
        /// Memory that a queued copy still reads or writes is not given back to the system.
        fn drop(&mut self) {
            let _ = self.wait(); // a device that failed copies nothing any more
        }
    }

    pub(super) fn upload(words: &[u32], device: &CudaDevice) -> Result<Tensor> {
        #[expect(unsafe_code, reason = "a queued copy fills it")]
        let slice = unsafe { device.alloc(words.len()) }?;
        let bytes: &[u8] = bytes_of(words);
        copy(bytes, slice.device_ptr(&device.cuda_stream()).0, device)?;
        Ok(tensor(CudaStorageSlice::U32(slice), words.len(), device))
    }

    pub(super) fn upload_bytes(
        bytes: &[u8],
        dtype: DType,
        shape: (usize, usize),
        device: &CudaDevice,
    ) -> Result<Tensor> {
        let (n, stream) = (shape.0 * shape.1, device.cuda_stream());
        #[expect(unsafe_code, reason = "a queued copy fills it")]
        let (slice, to) = unsafe {
            match dtype {
                DType::F16 => {
                    let slice = device.alloc(n)?;
                    let to = slice.device_ptr(&stream).0;
                    (CudaStorageSlice::F16(slice), to)
                }
                _ => {
                    let slice = device.alloc(n)?;
                    let to = slice.device_ptr(&stream).0;
                    (CudaStorageSlice::F32(slice), to)
                }
            }
        };
        copy(bytes, to, device)?;
        Ok(tensor(slice, shape, device))
    }

    fn tensor(slice: CudaStorageSlice, shape: impl Into<Shape>, device: &CudaDevice) -> Tensor {
        let storage = Storage::Cuda(CudaStorage { slice, device: device.clone() });
        Tensor::from_storage(storage, shape, BackpropOp::none(), false)
    }

    /// Queues a copy to device memory that was made for as many bytes.
    fn copy(bytes: &[u8], to: sys::CUdeviceptr, device: &CudaDevice) -> Result<()> {
        let mut pinned = Pinned::take(device, bytes.len())?;
        copy_in_parallel(bytes, &mut pinned.memory.as_mut_slice().w()?[..bytes.len()]);
        let stream = device.cuda_stream();
        stream.context().bind_to_thread().w()?;
        #[expect(unsafe_code, reason = "the caller made room; the buffer is not touched again before the event")]
        unsafe {
            result::memcpy_htod_async(to, &pinned.memory.as_slice().w()?[..bytes.len()], stream.cu_stream()).w()?;
        }
        pinned.in_use(device)?;
        pinned.give();
        Ok(())
    }

    fn copy_in_parallel(from: &[u8], to: &mut [u8]) {
        let n_threads = (from.len() / BYTES_A_THREAD_MIN).clamp(1, COPY_THREADS_MAX);
        let part = from.len().div_ceil(n_threads).max(1);
        std::thread::scope(|scope| {
            let mut parts = to.chunks_mut(part).zip(from.chunks(part));
            let first = parts.next();
            for (to, from) in parts {
                scope.spawn(|| to.copy_from_slice(from));
            }
            if let Some((to, from)) = first {
                to.copy_from_slice(from);
            }
        });
    }

    /// The bytes of some numbers, as they lie in memory.
    fn bytes_of(words: &[u32]) -> &[u8] {
        #[expect(unsafe_code, reason = "every byte of a number is one, and there are four to each")]
        unsafe {
            std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words))
        }
    }

    #[derive(Debug)]
    pub(super) struct Coming {
        pinned: Pinned,
        n_bytes: usize,
    }

    pub(super) fn download(tensor: &Tensor) -> Result<Coming> {
        let (device, n_bytes) = (tensor.device().as_cuda_device()?, tensor.elem_count() * size_of::<f32>());
        assert!(tensor.is_contiguous() && tensor.dtype() == DType::F32, "vectors come as f32, one after another");
        let mut pinned = Pinned::take(device, n_bytes)?;
        let stream = device.cuda_stream();
        let (storage, layout) = tensor.storage_and_layout();
        let Storage::Cuda(CudaStorage { slice: CudaStorageSlice::F32(values), .. }) = &*storage else {
            return Err(Error::Msg("the values are not on the device".to_owned()));
        };
        let from = values.device_ptr(&stream).0 + (layout.start_offset() * size_of::<f32>()) as u64;
        stream.context().bind_to_thread().w()?;
        #[expect(unsafe_code, reason = "as many bytes as the tensor has; the buffer is not touched before the event")]
        unsafe {
            result::memcpy_dtoh_async(&mut pinned.memory.as_mut_slice().w()?[..n_bytes], from, stream.cu_stream())
                .w()?;
        }
        pinned.in_use(device)?;
        Ok(Coming { pinned, n_bytes })
    }

    impl Coming {
        pub(super) fn wait(mut self) -> Result<Vec<f32>> {
            self.pinned.wait()?;
            let (values, _) = self.pinned.memory.as_slice().w()?[..self.n_bytes].as_chunks::<4>();
            let values = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            self.pinned.give();
            Ok(values)
        }
    }
}
